"""What a shard knows of its hosts survives the shard."""

from __future__ import annotations

from mannerly.crawler.model import Candidate, HostRecord
from mannerly.crawler.shard.hosts import HostBook
from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.memory import MemoryStore
from mannerly.politeness import Grant, Politeness, Response, Settings

HOST = "a.example"
WALL = 1_800_000_000.0


def known_store() -> MemoryStore:
    """A store that has heard of the host."""
    store = MemoryStore(frontier_limit=10)
    store.commit(Batch(found=[Candidate("http://a.example/", HOST, 0, 0, None)]))
    return store


def book_of(store: MemoryStore, *, is_resumed: bool) -> tuple[HostBook, Politeness]:
    politeness = Politeness(Settings(seed=1), remember=True)
    return HostBook(store, politeness, is_resumed=is_resumed), politeness


def test_short_retry_after_survives_a_crash() -> None:
    """Twenty seconds that a server asked for are waited for by the next process, too."""
    store = known_store()
    book, politeness = book_of(store, is_resumed=False)
    book.recall(HOST, now=0.0, wall=WALL)
    decision = politeness.reserve(HOST, now=0.0)
    assert isinstance(decision, Grant)
    politeness.report(decision.permit, Response(429, 0.1, {"retry-after": "20"}), now=0.1)
    book.count(HOST, WALL, refused=1)
    store.commit(Batch(hosts=book.changes(now=0.1, wall=WALL + 0.1)))

    later, again = book_of(store, is_resumed=True)
    later.recall(HOST, now=500.0, wall=WALL + 5.1)

    assert again.ready_at(HOST, now=500.0) >= 500.0 + 15.0


def test_first_request_after_a_crash_waits_one_gap() -> None:
    """What was in flight when the last process died was never recorded, so the gap counts anew."""
    book, politeness = book_of(known_store(), is_resumed=True)

    book.recall(HOST, now=100.0, wall=WALL)

    assert politeness.ready_at(HOST, now=100.0) == 101.0


def test_counts_of_a_forgotten_host_are_still_written() -> None:
    """Politeness may evict a host between two commits; what was counted is not lost."""
    book, _ = book_of(known_store(), is_resumed=False)
    book.recall(HOST, now=0.0, wall=WALL)
    book.count(HOST, WALL, fetched=3)

    book.forget(HOST)
    changes = book.changes(now=1.0, wall=WALL + 1.0)
    book.committed()

    assert changes == [HostRecord(host=HOST, fetched=3, updated_at=WALL)]
    assert book.changes(now=2.0, wall=WALL + 2.0) == []


def test_a_host_that_comes_back_before_the_commit_keeps_its_counts() -> None:
    """Forgotten and met again between two commits, it goes on where it was."""
    book, _ = book_of(known_store(), is_resumed=False)
    book.recall(HOST, now=0.0, wall=WALL)
    book.count(HOST, WALL, fetched=3)
    book.forget(HOST)

    book.recall(HOST, now=1.0, wall=WALL + 1.0)
    book.count(HOST, WALL + 1.0, fetched=2)

    assert book.changes(now=2.0, wall=WALL + 2.0) == [
        HostRecord(host=HOST, fetched=5, updated_at=WALL + 1.0)
    ]


def test_what_a_group_has_learned_outlives_its_first_own_page() -> None:
    """A lesson may be kept under the name of a host that has its first turn only afterwards."""
    store = known_store()
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    book = HostBook(store, politeness, is_resumed=False)
    book.recall("www.a.example", now=0.0, wall=WALL)
    politeness.robots("www.a.example", crawl_delay_s=7.0, now=0.0)
    store.commit(Batch(hosts=book.changes(now=0.1, wall=WALL)))
    book.committed()

    book.recall(HOST, now=1.0, wall=WALL + 1.0)
    book.count(HOST, WALL + 1.0, fetched=1)

    (record,) = book.changes(now=1.0, wall=WALL + 1.0)
    assert (record.host, record.crawl_delay_s, record.fetched) == (HOST, 7.0, 1)


def test_a_group_that_is_given_up_takes_its_hosts_along() -> None:
    """Those that were met, and those that are met only afterwards; nobody else."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    book = HostBook(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        book.recall(host, now=0.0, wall=WALL)

    given_up = book.retire("a.example", "it fails", WALL)
    book.recall("blog.a.example", now=1.0, wall=WALL + 1.0)

    assert given_up == ["www.a.example", "shop.a.example"]
    assert {host: book.retired(host) for host in book.known} == {
        "www.a.example": "it fails",
        "shop.a.example": "it fails",
        "www.b.example": None,
        "blog.a.example": "it fails",
    }


def test_the_book_forgets_all_hosts_of_a_forgotten_group() -> None:
    """It is as small as the politeness core's registry, whose keys are those of groups."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    book = HostBook(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        book.recall(host, now=0.0, wall=WALL)
        book.count(host, WALL, fetched=1)

    book.forget("a.example")

    assert list(book.known) == ["www.b.example"]
    assert {record.host for record in book.changes(now=1.0, wall=WALL)} == {
        "www.a.example",
        "shop.a.example",
        "www.b.example",
    }


def test_failures_in_a_row_end_with_a_success() -> None:
    """A refusal is neither: it says nothing about whether the host works."""
    book, _ = book_of(known_store(), is_resumed=False)
    book.recall(HOST, now=0.0, wall=WALL)
    for _ in range(3):
        book.count(HOST, WALL, failed=1)
        book.count(HOST, WALL, refused=1)
    before = book.failures_in_a_row(HOST)
    book.count(HOST, WALL, fetched=1)

    assert (before, book.failures_in_a_row(HOST)) == (3, 0)
