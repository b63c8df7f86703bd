"""Requests with a payload in a shard's file: its index of URLs, its repair, and what they cost."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.store.checkup import examine
from virtual.store.memory import MemoryStore

from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import candidate, new_manifest, page
from mannerly.crawler.store.contract.payloads import labelled, request
from mannerly.crawler.store.sqlite.doctor import examine as examined
from mannerly.crawler.store.sqlite.doctor import repair
from mannerly.crawler.store.sqlite.schema import SHARD
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard
from mannerly.database.sqlite import Database

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.model import Candidate, Entry
    from mannerly.crawler.store.base import Committed

_PATHS = st.sampled_from(["/a", "/b", "/c"])
_OFFERS = st.one_of(
    st.builds(candidate, _PATHS),
    st.builds(labelled, _PATHS, label=st.sampled_from(["x", "y"])),
    st.builds(lambda path: request(path, data=1), _PATHS),
    st.builds(lambda path: request(path, method="POST", body=b"1"), _PATHS),
)


def opened(directory: Path, carry_over: int) -> SqliteStore:
    return SqliteStore(directory, 0, ShardOptions(999), shards=1, carry_over=carry_over)


def said(committed: Committed) -> tuple[list[Entry], int, int]:
    return committed.new, committed.waiting, committed.repeated


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(_OFFERS, max_size=5), max_size=8), st.sampled_from([1, 3, 999]))
def test_the_index_says_the_same_as_a_store_in_memory(
    tmp_path_factory: pytest.TempPathFactory, offers: list[list[Candidate]], carry_over: int
) -> None:
    """Whatever is offered, whenever arrivals are carried over, also for the next owner."""
    directory = tmp_path_factory.mktemp("shard")
    create_shard(directory, 0, shards=1)
    plain = MemoryStore(frontier_limit=999)
    store = opened(directory, carry_over)
    urls = [candidate(path).url for path in ("/a", "/b", "/c")]
    for found in offers:
        now, then = store.commit(Batch(found=found)), plain.commit(Batch(found=found))
        assert said(now) == said(then)
        assert store.labelled(urls) == plain.labelled(urls)
        entries = [entry for entry in now.new if entry.url != urls[0]]
        store.commit(Batch(pages=[(entry, page(entry)) for entry in entries]))
    store.close()

    store = opened(directory, carry_over)
    for url in urls:
        found_here, found_there = store.find(url), plain.find(url)
        assert (found_here is None) == (found_there is None)
    assert sorted(store.urls()) == sorted(plain.urls())
    assert store.labelled(urls) == plain.labelled(urls)
    again = [each for found in offers for each in found]
    assert store.commit(Batch(found=again)).new == []
    store.close()

    assert examine(directory, 0) == []


def test_a_request_that_has_lost_its_place_is_repaired_as_what_it_was(tmp_path: Path) -> None:
    """It comes back with its method and its body, at its URL."""
    directory = tmp_path / "crawl"
    with closing(create_crawl(str(directory), new_manifest())) as crawl:
        store = crawl.claim(0, ShardOptions(9))
        (entry,) = store.commit(Batch(found=[request("/p", method="POST", body=b"1")])).new
        store.close()
    database = Database.open(directory / "shard-0.db", SHARD)
    with database.transaction():
        database.execute("DELETE FROM queue")
    database.close()

    before = examined(directory)
    repair(directory)

    with opened(directory, 99) as store:
        (back,) = store.queued("a.example", after=(-1, -1), limit=9)
        assert (back.url, back.kind) == (entry.url, entry.kind)
        assert store.payload(back.seq) is not None
    assert before
    assert examined(directory) == []


@pytest.mark.parametrize("requests", [2_000])
def test_a_payload_costs_its_bytes_and_little_more(tmp_path: Path, requests: int) -> None:
    """At most 120 bytes a request beyond a link to the same URL."""
    sizes = []
    data = {"price": "4.50", "list": "tea"}
    for number, carries in enumerate((False, True)):
        place = tmp_path / str(number)
        place.mkdir()
        create_shard(place, 0, shards=1)
        found = [candidate(f"/product/{n}") for n in range(requests)]
        if carries:
            found = [request(f"/product/{n}", label="product", data=data) for n in range(requests)]
        with opened(place, 99_999) as store:
            store.commit(Batch(found=found))
        sizes.append((place / "shard-0.db").stat().st_size)

    payload = len(b'product{"price":"4.50","list":"tea"}')
    assert (sizes[1] - sizes[0]) / requests - payload < 120
