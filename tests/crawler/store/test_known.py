"""New or known: the index decides, whatever the filter thinks, and memory does not grow with it."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.store.base import ShardOptions
from mannerly.crawler.store.contract.values import candidate, enter
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCH = 1000


@contextmanager
def statements() -> Iterator[list[str]]:
    """Note every statement that a database which is opened meanwhile carries out."""
    said: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = lambda _cursor, statement, _values: not said.append(statement)

    apsw.connection_hooks.append(listen)
    try:
        yield said
    finally:
        apsw.connection_hooks.remove(listen)


def _opened(directory: Path, carry_over: int) -> SqliteStore:
    return SqliteStore(directory, 0, ShardOptions(10**6), shards=1, carry_over=carry_over)


def test_a_url_is_new_although_the_filter_has_not_caught_up(tmp_path: Path) -> None:
    """Of a resumed store every URL may be known; only the index says which are."""
    create_shard(tmp_path, 0, shards=1)
    with _opened(tmp_path, carry_over=10) as store:
        enter(store, *(candidate(f"/{number}") for number in range(500)))

    with _opened(tmp_path, carry_over=10) as store:
        entries = enter(store, candidate("/7"), candidate("/new"))

    assert [entry.url for entry in entries] == ["https://a.example/new"]


@pytest.mark.parametrize(("limit", "queries"), [(None, 1), (1000, 1), (400, 3), (1, 1000)])
def test_no_more_urls_are_looked_up_at_once_than_allowed(
    tmp_path: Path, limit: int | None, queries: int
) -> None:
    """A shard asks its index about a thousand known URLs in parts of at most that many."""
    create_shard(tmp_path, 0, shards=1)
    links = [candidate(f"/{number}") for number in range(BATCH)]
    with _opened(tmp_path, carry_over=10) as store:
        for part in (links, [candidate("/last")]):  # the first part is in the index then
            enter(store, *part)
    options = ShardOptions(10**6, check_limit=limit)

    with (
        statements() as said,
        SqliteStore(tmp_path, 0, options, shards=1, carry_over=10) as store,
    ):
        entries = enter(store, *links)

    look_ups = [statement for statement in said if "carray" in statement and "seen" in statement]
    assert entries == []
    assert len(look_ups) == queries


def test_known_urls_leave_memory_when_they_are_in_the_index(tmp_path: Path) -> None:
    """Thirty thousand URLs take no more memory than a few thousand."""
    create_shard(tmp_path, 0, shards=1)
    with _opened(tmp_path, carry_over=2 * BATCH) as store:
        tracemalloc.start()
        sizes = []
        for number in range(30):
            enter(store, *(candidate(f"/{number}/{n}") for n in range(BATCH)))
            sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()

    # 30,000 URLs as text would be 3 MB; what may stay are 2,000 of them, and caches.
    assert max(sizes[10:]) - min(sizes[4:10]) < 1_000_000
