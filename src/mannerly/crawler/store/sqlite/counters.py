"""The counters of a shard's file, compared with its tables and mended.

Every commit keeps them, in the transaction that changes the tables, so they can only be wrong after
a fault of the disk or if another program wrote to the file. A wrong one is not harmless: a crawl
that counts one URL too many waits for it for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schema import FAILED, LISTS_ONLY, PAGES_ONLY, REQUISITES_ONLY, TOTALS

if TYPE_CHECKING:
    from mannerly.database.sqlite import Database

_COUNTED = {
    "ready": "SELECT count(*) FROM queue",
    "waiting": "SELECT count(*) FROM waiting",
    "fetched": f"SELECT count(*) FROM pages WHERE {PAGES_ONLY} AND NOT {FAILED}",  # noqa: S608
    "failed": f"SELECT count(*) FROM pages WHERE {PAGES_ONLY} AND {FAILED}",  # noqa: S608
    "lists": f"SELECT count(*) FROM pages WHERE {LISTS_ONLY}",  # noqa: S608
    "requisites": f"SELECT count(*) FROM pages WHERE {REQUISITES_ONLY}",  # noqa: S608
    "skipped": "SELECT count(*) FROM skipped",
    "given_up": "SELECT count(*) FROM given_up",
    "outgoing": "SELECT coalesce(sum(count), 0) FROM outbox",
    "hosts": "SELECT count(*) FROM hosts",
    "rechecks": """
        SELECT (SELECT count(*) FROM queue WHERE seq IN (SELECT seq FROM pages))
             + (SELECT count(*) FROM waiting WHERE seq IN (SELECT seq FROM pages))
    """,
}
# Numbers that are given out only grow; more than these is right, too.
_AT_LEAST = {
    "next_seq": """
        SELECT 1 + coalesce(max(seq), 0) FROM (
            SELECT max(seq) AS seq FROM seen UNION ALL SELECT max(seq) FROM arrivals)
    """,
    "next_position": "SELECT 1 + coalesce(max(position), 0) FROM pages",
    "applied": "SELECT 0",
    "next_elements": "SELECT coalesce(max(first + count), 1) FROM elements",
    "round": "SELECT coalesce(max(round), 0) FROM pages",
}
_QUEUES = (("ready", "queue"), ("given_up", "given_up"))
_WRONG_QUEUES = """
    SELECT count(*) FROM hosts
    WHERE {column} IS NOT (SELECT count(*) FROM {table} WHERE {table}.host = hosts.id)
"""
_MEND_QUEUES = """
    UPDATE hosts SET {column} = (SELECT count(*) FROM {table} WHERE {table}.host = hosts.id)
    WHERE {column} IS NOT (SELECT count(*) FROM {table} WHERE {table}.host = hosts.id)
"""


def wrong_counters(database: Database) -> list[str]:
    """Return each counter that differs from its table, with both numbers."""
    found = []
    for name, (stored, counted) in _wrong_totals(database).items():
        found.append(f"{name} is {_shown(stored)} instead of {counted}")
    for column, table in _QUEUES:
        row = database.row(_WRONG_QUEUES.format(column=column, table=table))
        if row is not None and row[0]:
            found.append(f"{column} of {row[0]:,} hosts")
    return found


def mend_counters(database: Database) -> list[str]:
    """Set every counter to what its table says; return those that were wrong."""
    found = wrong_counters(database)
    if found:
        wrong = _wrong_totals(database)
        with database.transaction(on_disk=True):
            if len(database.rows("SELECT 1 FROM totals")) != 1:
                database.execute("DELETE FROM totals")
                database.execute("INSERT INTO totals DEFAULT VALUES")
            for name, (_, counted) in wrong.items():
                # The names are constants of the schema.
                database.execute(f"UPDATE totals SET {name} = ?", (counted,))  # noqa: S608
            for column, table in _QUEUES:
                database.execute(_MEND_QUEUES.format(column=column, table=table))
    return found


def _wrong_totals(database: Database) -> dict[str, tuple[object, int]]:
    rows = database.rows(f"SELECT {', '.join(TOTALS)} FROM totals")  # noqa: S608
    stored = dict(zip(TOTALS, rows[0], strict=True)) if len(rows) == 1 else {}
    wrong: dict[str, tuple[object, int]] = {}
    for name, query in (_COUNTED | _AT_LEAST).items():
        row = database.row(query)
        counted = int(row[0]) if row is not None else 0
        value = stored.get(name)
        is_right = value == counted or (
            name in _AT_LEAST and type(value) is int and value > counted
        )
        if not is_right:
            wrong[name] = value, counted
    return wrong


def _shown(value: object) -> str:
    return str(value)[:20] if isinstance(value, int | float) else "no number"
