"""Claims about the fakes that we ship: they must be right, or every test on them is worthless."""

from __future__ import annotations

import asyncio

import pytest

from mannerly.politeness import Politeness, Response, Settings, events
from mannerly.politeness.testing import FakeClock, ScriptedServer, Transcript, retry_after


def test_fake_clock_rings_in_order_and_at_the_exact_instant() -> None:
    """Every alarm sees the time it was set for, those of one instant in the order of setting."""
    clock = FakeClock()
    rung: list[tuple[str, float]] = []
    clock.call_at(2.0, lambda: rung.append(("late", clock.now())))
    clock.call_at(1.0, lambda: rung.append(("first", clock.now())))
    clock.call_at(1.0, lambda: rung.append(("second", clock.now())))

    clock.advance(1.5)

    assert rung == [("first", 1.0), ("second", 1.0)]
    assert (clock.now(), clock.sleepers, clock.next_at) == (1.5, 1, 2.0)


def test_fake_clock_rings_what_an_alarm_sets() -> None:
    """An alarm set while time passes rings on the way, too."""
    clock = FakeClock(now=10.0)
    rung: list[float] = []

    def set_another() -> None:
        clock.call_at(12.0, lambda: rung.append(clock.now()))

    clock.call_at(11.0, set_another)
    clock.advance(5.0)

    assert rung == [12.0]


def test_fake_clock_forgets_cancelled_alarms() -> None:
    """A cancelled alarm neither rings nor counts."""
    clock = FakeClock()
    alarm = clock.call_at(1.0, lambda: pytest.fail("it was cancelled"))

    alarm.cancel()
    clock.advance(2.0)

    assert clock.sleepers == 0


def test_fake_clock_does_not_go_back() -> None:
    """Time moves forwards only, and the wall clock with it."""
    clock = FakeClock(now=5.0, wall=100.0)

    clock.advance(2.0)

    assert (clock.now(), clock.wall()) == (7.0, 102.0)
    with pytest.raises(ValueError, match="negative"):
        clock.advance(-1.0)


def test_fake_clock_says_when_nothing_will_ever_happen() -> None:
    """Where a test would hang, the clock raises."""
    with pytest.raises(RuntimeError, match="wait forever"):
        FakeClock().advance_to_next()


async def test_fake_clock_sleeps_without_sleeping() -> None:
    """An hour of the fake clock takes no time, and cancelled sleepers leave no alarm."""
    clock = FakeClock()
    long, longer = (asyncio.create_task(clock.sleep(hours * 3600.0)) for hours in (1, 2))

    await clock.run(long)
    longer.cancel()
    await clock.settle()

    assert clock.now() == 3600.0
    assert clock.sleepers == 0
    assert "3600.000, 0 alarms" in repr(clock)


def test_scripted_server_repeats_its_last_answer() -> None:
    """The script runs once, its last entry is repeated, and the starts are recorded."""
    slow = Response(200, latency_s=0.8)
    server = ScriptedServer(200, slow, Response(429, 0.01, retry_after(7)), 200)

    answers = [server.answer(now) for now in (0.0, 1.0, 2.5, 3.0, 9.0)]

    assert [answer.status for answer in answers] == [200, 200, 429, 200, 200]
    assert answers[1] is slow
    assert answers[2].headers == {"retry-after": "7"}
    assert server.gaps_s == [1.0, 1.5, 0.5, 6.0]


def test_scripted_server_speaks_the_simulators_language() -> None:
    """An error is status 0 there."""
    server = ScriptedServer(200, Response(error="timeout", latency_s=20.0))

    assert server.request(0.0, 1) == (200, 0.05, {})
    assert server.request(1.0, 1) == (0, 20.0, {})
    with pytest.raises(ValueError, match="script is empty"):
        ScriptedServer()


def test_transcript_reads_like_a_score() -> None:
    """Decisions and events become short words in the order of happening."""
    log = Transcript()
    core = Politeness(Settings(strategy="fixed", delay_s=0.5, max_concurrency=1), on_event=log)

    log.reserve(core, "example.com", now=0.0)
    log.reserve(core, "example.com", now=0.1)
    log.reserve(core, "example.com", now=0.6)
    core.retire("example.com", "enough", now=1.0)
    log.reserve(core, "example.com", now=1.0)

    assert log.take() == "G0.0 W0.5 W- X-"
    assert str(log) == ""


def test_transcript_knows_the_events() -> None:
    """Every change that moves a request has its letter; the others are left out."""
    log = Transcript()

    for event in (
        events.Throttled("a", 0.0, 429, 30.0),
        events.Throttled("a", 0.0, 429, None),
        events.Slowed("a", 0.0, 2.0, 1),
        events.SpedUp("a", 0.0, 1.5),
        events.Probing("a", 0.0, 1.0),
        events.ConcurrencyChanged("a", 0.0, 3, 4),
        events.Opened("a", 0.0, 6.0, 1),
        events.HalfOpened("a", 6.0),
        events.Closed("a", 7.0),
        events.Evicted("a", 9.0),
    ):
        log(event)

    assert str(log) == "B30 S2 F1.5 P1 C3 O6.0 H K"
