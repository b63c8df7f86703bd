"""What a shard knows of its hosts survives the shard."""

from __future__ import annotations

from mannerly.crawler.model import Candidate, HostRecord, Now
from mannerly.crawler.shard.hosts import HostRecords
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


def records_of(store: MemoryStore, *, is_resumed: bool) -> tuple[HostRecords, Politeness]:
    politeness = Politeness(Settings(seed=1), remember=True)
    return HostRecords(store, politeness, is_resumed=is_resumed), politeness


def test_short_retry_after_survives_a_crash() -> None:
    """Twenty seconds that a server asked for are waited for by the next process, too."""
    store = known_store()
    records, politeness = records_of(store, is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    decision = politeness.reserve(HOST, now=0.0)
    assert isinstance(decision, Grant)
    politeness.report(decision.permit, Response(429, 0.1, {"retry-after": "20"}), now=0.1)
    records.count(HOST, Now(0.0, WALL), refused=1)
    store.commit(Batch(hosts=records.changes(Now(0.1, WALL + 0.1))))

    later, again = records_of(store, is_resumed=True)
    later.recall(HOST, Now(500.0, WALL + 5.1))

    assert again.ready_at(HOST, now=500.0) >= 500.0 + 15.0


def test_first_request_after_a_crash_waits_one_gap() -> None:
    """What was in flight when the last process died was never recorded, so the gap counts anew."""
    records, politeness = records_of(known_store(), is_resumed=True)

    records.recall(HOST, Now(100.0, WALL))

    assert politeness.ready_at(HOST, now=100.0) == 101.0


def test_counts_of_a_forgotten_host_are_still_written() -> None:
    """Politeness may evict a host between two commits; what was counted is not lost."""
    records, _ = records_of(known_store(), is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    records.count(HOST, Now(0.0, WALL), fetched=3)

    records.forget(HOST)
    changes = records.changes(Now(1.0, WALL + 1.0))
    records.committed()

    assert changes == [HostRecord(host=HOST, fetched=3, updated_at=WALL)]
    assert records.changes(Now(2.0, WALL + 2.0)) == []


def test_a_host_that_comes_back_before_the_commit_keeps_its_counts() -> None:
    """Forgotten and met again between two commits, it goes on where it was."""
    records, _ = records_of(known_store(), is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    records.count(HOST, Now(0.0, WALL), fetched=3)
    records.forget(HOST)

    records.recall(HOST, Now(1.0, WALL + 1.0))
    records.count(HOST, Now(0.0, WALL + 1.0), fetched=2)

    assert records.changes(Now(2.0, WALL + 2.0)) == [
        HostRecord(host=HOST, fetched=5, updated_at=WALL + 1.0)
    ]


def test_what_a_group_has_learned_outlives_its_first_own_page() -> None:
    """A lesson may be kept under the name of a host that has its first turn only afterwards."""
    store = known_store()
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = HostRecords(store, politeness, is_resumed=False)
    records.recall("www.a.example", Now(0.0, WALL))
    politeness.robots("www.a.example", crawl_delay_s=7.0, now=0.0)
    store.commit(Batch(hosts=records.changes(Now(0.1, WALL))))
    records.committed()

    records.recall(HOST, Now(1.0, WALL + 1.0))
    records.count(HOST, Now(0.0, WALL + 1.0), fetched=1)

    (record,) = records.changes(Now(1.0, WALL + 1.0))
    assert (record.host, record.crawl_delay_s, record.fetched) == (HOST, 7.0, 1)


def test_a_group_that_is_given_up_takes_its_hosts_along() -> None:
    """Those that were met, and those that are met only afterwards; nobody else."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = HostRecords(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        records.recall(host, Now(0.0, WALL))

    given_up = records.give_up("a.example", "it fails", Now(0.0, WALL))
    records.recall("blog.a.example", Now(1.0, WALL + 1.0))

    assert given_up == ["www.a.example", "shop.a.example"]
    assert {host: records.given_up(host) for host in records.known} == {
        "www.a.example": "it fails",
        "shop.a.example": "it fails",
        "www.b.example": None,
        "blog.a.example": "it fails",
    }


def test_all_hosts_of_a_forgotten_group_leave_memory() -> None:
    """It is as small as the politeness core's registry, whose keys are those of groups."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = HostRecords(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        records.recall(host, Now(0.0, WALL))
        records.count(host, Now(0.0, WALL), fetched=1)

    records.forget("a.example")

    assert list(records.known) == ["www.b.example"]
    assert {record.host for record in records.changes(Now(1.0, WALL))} == {
        "www.a.example",
        "shop.a.example",
        "www.b.example",
    }


def test_failures_in_a_row_end_with_a_success() -> None:
    """A refusal is neither: it says nothing about whether the host works."""
    records, _ = records_of(known_store(), is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    for _ in range(3):
        records.count(HOST, Now(0.0, WALL), failed=1, is_failure=True)
        records.count(HOST, Now(0.0, WALL), refused=1)
    before = records.failures_in_a_row(HOST)
    records.count(HOST, Now(0.0, WALL), fetched=1)

    assert (before, records.failures_in_a_row(HOST)) == (3, 0)


def test_a_revived_host_is_taken_up_again_and_that_is_written() -> None:
    """Its failures are forgotten, its counts are not, and the next run knows."""
    store = known_store()
    records, _ = records_of(store, is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    records.count(HOST, Now(0.0, WALL), failed=3)
    records.give_up(HOST, "3 failures in a row", Now(0.0, WALL))

    records.revive(HOST, Now(1.0, WALL + 1.0))
    store.commit(Batch(hosts=records.changes(Now(1.0, WALL + 1.0))))

    assert records.given_up(HOST) is None
    assert records.failures_in_a_row(HOST) == 0
    assert store.host(HOST) == HostRecord(host=HOST, failed=3, updated_at=WALL + 1.0)


def test_a_revived_host_brings_its_group_back() -> None:
    """Hosts of the group that are met afterwards are not given up any more."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = HostRecords(known_store(), politeness, is_resumed=False)
    records.recall("www.a.example", Now(0.0, WALL))
    records.give_up("a.example", "it fails", Now(0.0, WALL))

    records.revive("www.a.example", Now(1.0, WALL))
    records.recall("blog.a.example", Now(1.0, WALL))

    assert records.given_up("www.a.example") is None
    assert records.given_up("blog.a.example") is None


def test_an_unlearned_host_keeps_its_counts_and_the_waits_that_it_asked_for() -> None:
    """Everything that was learned about its pace is forgotten."""
    learned = HostRecord(
        host=HOST,
        adaptive_delay_s=4.0,
        adaptive_delay_floor_s=2.0,
        crawl_delay_s=7.0,
        allowance=3.0,
        block_s=60.0,
        concurrency=2,
        is_proven=True,
        blocked_until=WALL + 300.0,
        updated_at=WALL,
        fetched=9,
        refused=2,
        failed=1,
        retired="it fails",
    )
    store = known_store()
    store.commit(Batch(hosts=[learned]))
    records, _ = records_of(store, is_resumed=True)
    records.recall(HOST, Now(0.0, WALL))

    records.unlearn(HOST, Now(1.0, WALL + 1.0))

    (record,) = records.changes(Now(1.0, WALL + 1.0))
    assert record._replace(next_at=0.0) == HostRecord(
        host=HOST,
        blocked_until=WALL + 300.0,
        updated_at=WALL + 1.0,
        fetched=9,
        refused=2,
        failed=1,
    )
