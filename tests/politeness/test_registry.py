"""Many hosts: what is forgotten, what never is, and what leaves through `drain` first."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import Grant, Politeness, Reason, Refuse, Response, Settings, events
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson
from mannerly.politeness.testing import retry_after

if TYPE_CHECKING:
    from mannerly.politeness import Permit

OK, REFUSED, FAILED = Response(200, 0.05), Response(429, 0.05), Response(500, 0.05)
HOUR_S = 3600.0
OLD = "old.example"


def granted(core: Politeness, host: str, now: float) -> Permit:
    decision = core.reserve(host, now=now)
    assert isinstance(decision, Grant), decision
    return decision.permit


def visit(core: Politeness, host: str, now: float, *answers: Response) -> float:
    """Send one request after the other; returns when the last was answered."""
    for answer in answers or (OK,):
        now = core.ready_at(host, now=now)
        core.report(granted(core, host, now), answer, now=now)
    return now


def crowd(core: Politeness, now: float, new_hosts: int = 20) -> None:
    """So many new hosts come that everybody is looked at."""
    for number in range(new_hosts):
        core.ready_at(f"new-{number}.example", now=now)
        core.robots(f"new-{number}-{now}.example", crawl_delay_s=None, now=now)


def test_idle_host_is_forgotten() -> None:
    """An hour after its last request a host goes when others come, and that is told."""
    told: list[events.Event] = []
    core = Politeness(Settings(), on_event=told.append)
    visit(core, OLD, 0.0)

    crowd(core, HOUR_S - 1.0, new_hosts=1)
    kept = OLD in core
    crowd(core, HOUR_S + 1.0)

    assert kept
    assert OLD not in core
    assert told == [events.Evicted(OLD, HOUR_S + 1.0)]


def test_forgotten_host_still_counts() -> None:
    """Totals are of all requests ever, not of the hosts that are left."""
    core = Politeness(Settings())
    visit(core, OLD, 0.0, OK, OK, OK)

    crowd(core, 2 * HOUR_S)

    assert OLD not in core
    assert core.snapshot().requests == 3


def test_host_under_way_is_kept() -> None:
    """A permit that is out holds its host."""
    core = Politeness(Settings())
    permit = granted(core, OLD, 0.0)

    crowd(core, 100 * HOUR_S)
    kept = OLD in core
    core.report(permit, OK, now=100 * HOUR_S)
    crowd(core, 102 * HOUR_S, new_hosts=60)

    assert kept
    assert OLD not in core


@pytest.mark.parametrize("pause_s", [7200, 80_000])
def test_retry_after_is_kept_until_it_is_over(pause_s: int) -> None:
    """A pending pause, parked or not, is never forgotten; afterwards it is no burden."""
    core = Politeness(Settings(max_retry_after_s=10_000.0))
    visit(core, OLD, 0.0, Response(429, 0.0, retry_after(pause_s)))

    crowd(core, pause_s - 1.0)
    kept = OLD in core
    crowd(core, pause_s + 2.0, new_hosts=60)

    assert kept
    assert OLD not in core


def test_next_slot_is_kept() -> None:
    """A gap longer than the time to live is still a gap."""
    core = Politeness(Settings(strategy="fixed", delay_s=100.0, idle_ttl_s=10.0))
    visit(core, OLD, 0.0)

    crowd(core, 99.0)
    kept = OLD in core
    crowd(core, 100.0, new_hosts=60)

    assert kept
    assert OLD not in core


def test_open_breaker_is_kept_until_its_rest_is_over() -> None:
    """An open breaker keeps the state; once its open time is over, the state may be dropped."""
    core = Politeness(Settings(idle_ttl_s=1.0, breaker_open_s=300.0, seed=1))
    now = visit(core, OLD, 0.0, *[FAILED] * 5)
    reopens_at = core.ready_at(OLD, now=now)

    crowd(core, reopens_at - 0.1)
    kept = OLD in core
    crowd(core, reopens_at + 1.0, new_hosts=60)

    assert kept
    assert OLD not in core


@pytest.mark.parametrize("deed", ["pause", "retire"])
def test_operators_word_is_kept(deed: str) -> None:
    """A host that must not be contacted is remembered for as long as the core lives."""
    core = Politeness(Settings())
    if deed == "pause":
        core.pause(OLD, now=0.0)
    else:
        core.retire(OLD, "enough", now=0.0)

    crowd(core, 1000 * HOUR_S, new_hosts=60)

    assert isinstance(core.reserve(OLD, now=1000 * HOUR_S), Refuse)


def test_waiter_keeps_its_host() -> None:
    """As long as a caller waits for a host it is not idle; each that leaves is counted off."""
    core = Politeness(Settings())
    visit(core, OLD, 0.0)
    core.waiting("OLD.example", 2, now=0.0)

    crowd(core, 2 * HOUR_S)
    with_two = OLD in core
    core.waiting(OLD, -1, now=2 * HOUR_S)
    crowd(core, 3 * HOUR_S)
    with_one, described = OLD in core, core.host(OLD)
    core.waiting(OLD, -1, now=3 * HOUR_S)
    crowd(core, 4 * HOUR_S, new_hosts=90)

    assert with_two
    assert with_one
    assert described is not None
    assert described.waiters == 1
    assert OLD not in core


def test_host_is_kept_between_its_robots_file_and_its_first_page() -> None:
    """A Crawl-delay or a recalled record is not dropped before the first request."""
    core = Politeness(Settings())
    core.robots("asked.example", crawl_delay_s=30.0, now=0.0)
    core.recall(Remembered(host=OLD, lesson=Lesson(delay_s=9.0)), now=0.0, wall=0.0)

    crowd(core, 10.0, new_hosts=60)

    assert core.host("asked.example").crawl_delay_s == 30.0  # type: ignore[union-attr]
    assert core.host(OLD).delay_s > 9.0  # type: ignore[union-attr]


def test_number_of_hosts_is_capped() -> None:
    """At the cap the idlest goes for each that comes, an hour or not."""
    core = Politeness(Settings(max_hosts=5))

    for number in range(50):
        visit(core, f"host-{number}.example", 10.0 * number)

    assert len(core) == 5
    assert "host-49.example" in core
    assert "host-0.example" not in core
    assert core.snapshot().requests == 50


def test_cap_never_costs_a_promise() -> None:
    """If no host can be dropped, `max_hosts` is exceeded rather than a request sent early."""
    core = Politeness(Settings(max_hosts=3))
    for number in range(6):
        visit(core, f"host-{number}.example", 0.0, Response(429, 0.0, retry_after(100)))

    assert len(core) == 6
    assert all(core.ready_at(f"host-{number}.example", now=1.0) >= 100.0 for number in range(6))


# ---------------------------------------------------------------------- what was learned


def test_lesson_leaves_before_the_state() -> None:
    """What an evicted host had learned is in the next drain, once."""
    core = Politeness(Settings(seed=1), remember=True)
    visit(core, OLD, 0.0, OK, OK, REFUSED, OK)

    crowd(core, 2 * HOUR_S, new_hosts=10)
    records = {record.host: record for record in core.drain(now=2 * HOUR_S, wall=1e9)}

    assert OLD not in core
    assert records[OLD].lesson.delay_s > 0.0
    assert records[OLD].updated_at == 1e9
    assert core.drain(now=2 * HOUR_S, wall=1e9) == []


def test_drain_tells_changes_once() -> None:
    """A host is told of when it changed since the last drain, not otherwise."""
    core = Politeness(Settings(seed=1), remember=True)
    now = visit(core, OLD, 0.0, OK, OK, REFUSED)
    visit(core, "dull.example", 0.0, OK, OK)

    first = [record.host for record in core.drain(now=now, wall=5.0)]
    second = core.drain(now=now, wall=6.0)
    visit(core, OLD, now, OK)
    third = [record.host for record in core.drain(now=now, wall=7.0)]

    assert (first, second, third) == ([OLD], [], [OLD])


def test_nothing_is_collected_without_a_memory() -> None:
    """Without `remember` there is nothing to drain, however much was learned and forgotten."""
    core = Politeness(Settings(seed=1))
    visit(core, OLD, 0.0, OK, OK, REFUSED, OK)
    core.robots(OLD, crawl_delay_s=3.0, now=0.0)

    crowd(core, 2 * HOUR_S)

    assert OLD not in core
    assert core.drain(now=2 * HOUR_S, wall=1e9) == []


@pytest.mark.parametrize(("pause_s", "is_kept"), [(30, False), (300, True)])
def test_pause_is_remembered_if_a_minute_is_left(pause_s: int, is_kept: bool) -> None:
    """A long Retry-After survives as wall time; a short one is not worth a write."""
    core = Politeness(Settings(seed=1), remember=True)
    visit(core, OLD, 10.0, Response(429, 0.0, retry_after(pause_s)))

    (record,) = core.drain(now=10.0, wall=1_000_000.0)

    assert (record.blocked_until >= 1_000_000.0 + pause_s) is is_kept


def test_recalled_host_starts_from_its_record() -> None:
    """Pace, crawl delay and pause of an earlier run hold at once, and are no news to write."""
    core = Politeness(Settings(max_rate=50.0, min_delay_s=0.01), remember=True)

    core.recall(
        Remembered(
            host=OLD,
            lesson=Lesson(delay_s=0.25),
            crawl_delay_s=0.75,
            blocked_until=1_000_090.0,
            updated_at=1_000_000.0,
        ),
        now=50.0,
        wall=1_000_000.0,
    )
    host = core.host(OLD)

    assert host is not None
    assert host.adaptive_delay_s == pytest.approx(0.25 / 0.9)
    assert host.delay_s == 0.75
    assert core.ready_at(OLD, now=50.0) == 140.0
    assert core.drain(now=50.0, wall=1_000_000.0) == []


def test_recalled_pause_may_park() -> None:
    """A ban of a day is a ban after a restart, too."""
    core = Politeness(Settings())
    record = Remembered(host=OLD, lesson=Lesson(), blocked_until=90_000.0, updated_at=0.0)

    core.recall(record, now=7.0, wall=3_600.0)

    assert core.reserve(OLD, now=7.0) == Refuse(7.0 + 86_400.0, Reason.PARKED)


def test_empty_record_changes_nothing() -> None:
    """A host about which nothing was learned starts like an unknown one."""
    core = Politeness(Settings())

    core.recall(Remembered(host=OLD, lesson=Lesson()), now=0.0, wall=1e9)
    host = core.host(OLD)

    assert host is not None
    assert (host.delay_s, host.phase) == (1.0, "new")
    assert core.ready_at(OLD, now=0.0) == 0.0


# ---------------------------------------------------------------------- forgetting on purpose


def test_host_can_be_forgotten() -> None:
    """Forgetting drops all that is known, but not the count of what was sent."""
    core = Politeness(Settings(), remember=True)
    visit(core, OLD, 0.0, OK, OK, REFUSED)

    core.forget("OLD.example")
    core.forget("never-seen.example")

    assert OLD not in core
    assert core.drain(now=9.0, wall=9.0) == []
    assert core.snapshot().requests == 3
    crowd(core, 2 * HOUR_S)


def test_host_with_something_under_way_is_not_forgotten() -> None:
    """Neither a permit nor a waiter is left without its host."""
    core = Politeness(Settings())
    permit = granted(core, OLD, 0.0)
    core.waiting("awaited.example", 1, now=0.0)

    core.forget(OLD)
    core.forget("awaited.example")

    assert OLD in core
    assert "awaited.example" in core
    core.report(permit, OK, now=1.0)


def test_hosts_cost_no_configuration() -> None:
    """Ten thousand hosts at one instant: none waits for another."""
    core = Politeness(Settings())

    decisions = [core.reserve(f"host-{number}.example", now=0.0) for number in range(10_000)]

    assert all(isinstance(decision, Grant) for decision in decisions)
    assert core.snapshot(top=3).hosts == 10_000
    assert len(core.snapshot(top=3).top) == 3


def test_ten_thousand_active_hosts_take_ten_megabytes_at_most() -> None:
    """Each host with a strategy and statistics takes less than a kilobyte."""
    core = Politeness(Settings())
    hosts = [f"host-{number}.example" for number in range(1000)]
    core.reserve("first.example", now=0.0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    for second in range(50):  # the climb has made steps
        for host in hosts:
            decision = core.reserve(host, now=float(second))
            assert isinstance(decision, Grant)
            core.report(decision.permit, Response(200, 0.1), now=second + 0.1)
    del decision
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert taken / len(hosts) <= 10e6 / 10_000
