"""Long lists are read slice by slice, each in the order of its key, without sorting everything."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.sqlite import reader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", [*reader._STORED.values(), reader._ITEMS])
def test_slice_is_a_range_of_the_key(tmp_path: Path, text: str) -> None:
    """No index is built and nothing is sorted: else an export takes the square of its pages."""
    create_crawl(tmp_path / "crawl", new_manifest(1)).close()
    values = (0, 10**9, 1000)[-text.count("?") :]

    with closing(apsw.Connection(str(tmp_path / "crawl" / "shard-0.db"))) as connection:
        steps = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + text, values)]

    assert steps[0].startswith("SEARCH pages USING INTEGER PRIMARY KEY (rowid>?")
    assert not [step for step in steps if "AUTOMATIC" in step or "TEMP B-TREE" in step]
