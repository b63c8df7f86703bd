"""DuckDB as the reader of Parquet files: somebody else's code says what is in them."""

from __future__ import annotations

from typing import Any


def ask(query: str, *parameters: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds."""
    import duckdb  # here: it complains at exit if it is among what `tests/conftest.py` froze

    with duckdb.connect() as database:
        return database.execute(query, parameters).fetchall()
