"""What a shard knows of its hosts survives the shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from virtual.store.memory import MemoryStore

from mannerly.crawler.host.host import HostCounts
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.host.records import HostRecords
from mannerly.crawler.host.remembering import LONGEST_UNSURE_S
from mannerly.crawler.model import Candidate, HostRecord, Now
from mannerly.crawler.store.base import Batch
from mannerly.politeness import Grant, Politeness, Reason, Refuse, Response, Settings
from mannerly.politeness.breaker import BreakerState

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host

HOST = "a.example"
WALL = 1_800_000_000.0
BOOT = "6f1c"


def known_store() -> MemoryStore:
    """A store that has heard of the host."""
    store = MemoryStore(frontier_limit=10)
    store.commit(Batch(found=[Candidate("http://a.example/", HOST, 0, 0, None)]))
    return store


class Records:
    """The records of a shard, by the names of its hosts."""

    def __init__(self, store: MemoryStore, politeness: Politeness, **options: Any) -> None:
        key_of = politeness.key if politeness.settings.group_by != "host" else None
        self.hosts = Hosts(politeness.settings, key_of)
        self._records = HostRecords(self.hosts, store, politeness, **options)
        self.changes = self._records.changes
        self.committed = self._records.committed
        self.evicted = self._records.evicted
        self.give_up = self._records.give_up
        self.record = self._records.record

    @property
    def known(self) -> list[str]:
        return [host.name for host in self.hosts if host.budget is not None]

    def host(self, name: str) -> Host:
        host = self.hosts.get(name)
        assert host is not None
        return host

    def recall(self, name: str, now: Now) -> None:
        self._records.recall(self.hosts.meet(name), now)

    def remind(self, record: HostRecord, now: Now) -> None:
        self._records.remind(self.host(record.host), record, now)

    def count(self, name: str, now: Now, **counts: Any) -> None:
        self._records.count(self.host(name), now, **counts)

    def revive(self, name: str, now: Now) -> None:
        self._records.revive(self.host(name), now)

    def unlearn(self, name: str, now: Now) -> None:
        self._records.unlearn(self.host(name), now)

    def given_up(self, name: str) -> str | None:
        return self.host(name).given_up

    def failures_in_a_row(self, name: str) -> int:
        counts = self.host(name).counts
        return 0 if counts is None else counts.failures_in_a_row


def records_of(
    store: MemoryStore, *, is_resumed: bool, boot: str = BOOT
) -> tuple[Records, Politeness]:
    politeness = Politeness(Settings(seed=1), remember=True)
    return made(store, politeness, is_resumed=is_resumed, boot=boot), politeness


def made(
    store: MemoryStore, politeness: Politeness, *, is_resumed: bool, boot: str = BOOT
) -> Records:
    """The records of a shard that was claimed at 0.0."""
    return Records(store, politeness, resumed_at=0.0 if is_resumed else None, boot=boot)


def refused_store(**headers: str) -> MemoryStore:
    """A store that was left by a crash just after a server asked for a pause, at Now(0.1)."""
    store = known_store()
    records, politeness = records_of(store, is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    decision = politeness.reserve(HOST, now=0.0)
    assert isinstance(decision, Grant)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    politeness.report(decision.permit, Response(429, 0.1, named), now=0.1)
    store.commit(Batch(hosts=records.changes(Now(0.1, WALL + 0.1))))
    return store


def ready_in_s(store: MemoryStore, now: Now, *, boot: str = BOOT) -> float:
    """How long the next run waits for the host."""
    records, politeness = records_of(store, is_resumed=True, boot=boot)
    records.recall(HOST, now)
    return politeness.ready_at(HOST, now=now.mono) - now.mono


def test_record_of_a_host_keeps_each_field_in_its_place() -> None:
    """It is made by position, so a field that was moved would be taken for another one."""
    records = Records(MemoryStore(frontier_limit=10), Politeness(Settings()), resumed_at=0.0)
    known = HostRecord(
        host=HOST,
        adaptive_delay_s=0.5,
        adaptive_delay_floor_s=2.0,
        crawl_delay_s=3.0,
        allowance=4.0,
        block_s=5.0,
        concurrency=6,
        is_proven=True,
        blocked_until=7.0,
        next_at=8.0,
        updated_at=9.0,
        fetched=10,
        refused=11,
        failed=12,
        retired="timeout",
        failing_since=13.0,
        failures_in_a_row=14,
        breaker_failures=15,
        breaker_opens=16,
        breaker_until=17.0,
        boot="18",
        updated_mono=19.0,
        smallest_gap_s=20.0,
        required_gap_s=21.0,
        early=22,
        smallest_gap_at=23.0,
        requests=24,
        retry_afters=25,
        retry_afters_broken=26,
        doing=b"27",
    )
    assert len(set(known)) == len(known), "two fields have the same value"
    host = records.hosts.meet(HOST)
    host.counts = HostCounts()
    host.counts.put(known)

    record = records.record(HOST, Now(mono=500.0, wall=WALL))

    of_this_run = {"next_at": 0.0, "updated_at": WALL, "boot": "", "updated_mono": 500.0}
    assert record == known._replace(**of_this_run)


def test_short_retry_after_survives_a_crash() -> None:
    """Twenty seconds that a server asked for are waited for by the next process, too."""
    store = refused_store(retry_after="20")

    assert 15.0 <= ready_in_s(store, Now(5.1, WALL + 5.1)) <= 17.0


def test_a_host_waits_as_long_as_an_earlier_owner_was_asked_to() -> None:
    """It is known in this run; a second reminder of a shorter wait changes nothing."""
    records, politeness = records_of(known_store(), is_resumed=False)
    now = Now(100.0, WALL)
    records.recall(HOST, now)
    told = HostRecord(HOST, next_at=WALL + 50.0, updated_at=WALL, boot=BOOT, updated_mono=100.0)

    records.remind(told, now)
    records.remind(told._replace(next_at=WALL + 5.0), now)

    (kept,) = records.changes(now)
    assert politeness.not_before(HOST) == 150.0
    assert kept.next_at == WALL + 50.0


@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0, 0.0])
def test_a_clock_that_was_set_does_not_change_a_pause(step_s: float) -> None:
    """A day ahead does not void it and a day behind does not prolong it, within one boot."""
    store = refused_store(retry_after="7200")

    assert 7100.0 <= ready_in_s(store, Now(100.1, WALL + 100.1 + step_s)) <= 7102.0
    assert ready_in_s(store, Now(9000.0, WALL + 9000.0 + step_s)) <= 2.0


@pytest.mark.parametrize("boot", ["another", ""])
@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0, 0.0])
def test_a_pause_from_before_a_reboot_is_served_in_full(boot: str, step_s: float) -> None:
    """Nobody knows how long ago it was, so it counts from the start of this run."""
    store = refused_store(retry_after="7200")

    assert 7200.0 <= ready_in_s(store, Now(3.0, WALL + 60.0 + step_s), boot=boot) <= 7202.0


def test_a_pause_from_before_a_reboot_is_bounded() -> None:
    """A month may be over long since: a day is waited for at most."""
    store = refused_store(retry_after=str(30 * 86_400))

    assert ready_in_s(store, Now(3.0, WALL), boot="another") == LONGEST_UNSURE_S


def failing_store(failures: int) -> tuple[MemoryStore, float]:
    """A store that was left by a crash after so many failures, with the open time left then."""
    store = known_store()
    records, politeness = records_of(store, is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    at = 0.0
    for _ in range(failures):
        at = politeness.ready_at(HOST, now=at)
        decision = politeness.reserve(HOST, now=at)
        assert isinstance(decision, Grant)
        politeness.report(decision.permit, Response(500, 0.1), now=at)
        records.count(HOST, Now(at, WALL + at), failed=1, is_failure=True)
    store.commit(Batch(hosts=records.changes(Now(at, WALL + at))))
    return store, politeness.ready_at(HOST, now=at) - at


def test_an_open_breaker_survives_a_crash() -> None:
    """What is left of its open time is waited for, and it goes on counting its openings."""
    store, left_s = failing_store(8)
    kept = store.host(HOST)
    assert kept is not None

    now = Now(kept.updated_mono + 1.0, WALL + 1e6)
    records, politeness = records_of(store, is_resumed=True)
    records.recall(HOST, now)
    host = politeness.host(HOST)
    refused = politeness.reserve(HOST, now=now.mono)
    at = politeness.ready_at(HOST, now=now.mono)
    before = politeness.reserve(HOST, now=at - 0.1)
    probe = politeness.reserve(HOST, now=at)

    assert host is not None
    assert host.breaker is BreakerState.OPEN
    assert isinstance(refused, Refuse)
    assert refused.until == pytest.approx(now.mono + kept.breaker_until - kept.updated_at - 1.0)
    assert at - now.mono == pytest.approx(left_s - 1.0)
    assert not isinstance(before, Grant)
    assert isinstance(probe, Grant)
    assert probe.permit.is_probe
    assert (kept.breaker_opens, records.failures_in_a_row(HOST)) == (4, 8)


def test_failures_in_a_row_survive_a_crash() -> None:
    """Four before and one after make the five that open the breaker; a success ends both."""
    store, _ = failing_store(4)
    records, politeness = records_of(store, is_resumed=True)
    records.recall(HOST, Now(100.0, WALL + 100.0))
    decision = politeness.reserve(HOST, now=200.0)
    assert isinstance(decision, Grant)

    politeness.report(decision.permit, Response(500, 0.1), now=200.0)

    host = politeness.host(HOST)
    assert host is not None
    assert host.breaker is BreakerState.OPEN


def test_a_success_ends_what_was_counted_and_that_is_written() -> None:
    """A host that recovered before a crash does not start the next run with failures."""
    store, _ = failing_store(4)
    before = store.host(HOST)
    records, politeness = records_of(store, is_resumed=True)
    records.recall(HOST, Now(100.0, WALL + 100.0))
    decision = politeness.reserve(HOST, now=200.0)
    assert isinstance(decision, Grant)

    politeness.report(decision.permit, Response(200, 0.1), now=200.0)
    (after,) = records.changes(Now(201.0, WALL + 201.0))

    assert before is not None
    assert (before.failing_since, before.breaker_failures) == (WALL, 4)
    assert (after.failing_since, after.breaker_failures) == (0.0, 0)


def test_time_between_runs_does_not_count_as_failing() -> None:
    """A host that failed for seconds a week ago is not given up at its next failure."""
    store, _ = failing_store(4)
    records, politeness = records_of(store, is_resumed=True, boot="another")
    records.recall(HOST, Now(5.0, WALL + 604_800.0))
    decision = politeness.reserve(HOST, now=20.0)
    assert isinstance(decision, Grant)

    politeness.report(decision.permit, Response(429, 0.1), now=20.0)

    host = politeness.host(HOST)
    assert host is not None
    assert host.gate is not Reason.RETIRED
    (record,) = records.changes(Now(20.0, WALL + 604_815.0))
    assert 15.0 <= record.updated_at - record.failing_since < 60.0


@pytest.mark.parametrize(
    ("met_at", "ready_at"), [(0.0, 1.0), (0.75, 1.0), (5.0, 5.0), (100.0, 101.0)]
)
def test_first_request_after_a_crash_waits_one_gap(met_at: float, ready_at: float) -> None:
    """What was in flight when the last process died was never recorded; it left before the claim.

    Long after it the gap counts from the turn of the host.
    """
    records, politeness = records_of(known_store(), is_resumed=True)

    records.recall(HOST, Now(met_at, WALL + met_at))

    assert politeness.ready_at(HOST, now=met_at) == ready_at


def test_counts_of_a_forgotten_host_are_still_written() -> None:
    """Politeness may evict a host between two commits; what was counted is not lost."""
    records, _ = records_of(known_store(), is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    records.count(HOST, Now(0.0, WALL), fetched=3)

    records.evicted(HOST)
    changes = records.changes(Now(1.0, WALL + 1.0))
    records.committed()

    assert len(records.hosts) == 0
    assert [(record.host, record.fetched) for record in changes] == [(HOST, 3)]
    assert records.changes(Now(2.0, WALL + 2.0)) == []


def test_a_host_that_comes_back_before_the_commit_keeps_its_counts() -> None:
    """Forgotten and met again between two commits, it goes on where it was."""
    records, _ = records_of(known_store(), is_resumed=False)
    records.recall(HOST, Now(0.0, WALL))
    records.count(HOST, Now(0.0, WALL), fetched=3)
    records.evicted(HOST)

    records.recall(HOST, Now(1.0, WALL + 1.0))
    records.count(HOST, Now(0.0, WALL + 1.0), fetched=2)

    (record,) = records.changes(Now(2.0, WALL + 2.0))
    assert (record.host, record.fetched) == (HOST, 5)


def test_what_a_group_has_learned_outlives_its_first_own_page() -> None:
    """A lesson may be kept under the name of a host that has its first turn only afterwards."""
    store = known_store()
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = made(store, politeness, is_resumed=False)
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
    records = made(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        records.recall(host, Now(0.0, WALL))

    politeness.give_up("a.example", "it fails", now=0.5)
    given_up = records.give_up("a.example", "it fails")
    records.recall("blog.a.example", Now(1.0, WALL + 1.0))

    assert [host.name for host in given_up] == ["www.a.example", "shop.a.example"]
    assert {host: records.given_up(host) for host in records.known} == {
        "www.a.example": "it fails",
        "shop.a.example": "it fails",
        "www.b.example": None,
        "blog.a.example": "it fails",
    }


def test_all_hosts_of_a_forgotten_group_leave_memory() -> None:
    """It is as small as the politeness core's registry, whose keys are those of groups."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = made(known_store(), politeness, is_resumed=False)
    for host in ("www.a.example", "shop.a.example", "www.b.example"):
        records.recall(host, Now(0.0, WALL))
        records.count(host, Now(0.0, WALL), fetched=1)

    records.evicted("a.example")
    records.hosts.check()

    assert records.known == ["www.b.example"]
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
    records.give_up(HOST, "3 failures in a row")

    records.revive(HOST, Now(1.0, WALL + 1.0))
    store.commit(Batch(hosts=records.changes(Now(1.0, WALL + 1.0))))

    assert records.given_up(HOST) is None
    assert records.failures_in_a_row(HOST) == 0
    assert store.host(HOST) == HostRecord(
        host=HOST, failed=3, updated_at=WALL + 1.0, updated_mono=1.0, boot=BOOT
    )


def test_a_revived_host_brings_its_group_back() -> None:
    """Hosts of the group that are met afterwards are not given up any more."""
    politeness = Politeness(Settings(seed=1, group_by="site"), remember=True)
    records = made(known_store(), politeness, is_resumed=False)
    records.recall("www.a.example", Now(0.0, WALL))
    politeness.give_up("a.example", "it fails", now=0.0)
    records.give_up("a.example", "it fails")

    politeness.revive("a.example", now=1.0)
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
        updated_mono=1.0,
        boot=BOOT,
    )
