"""`linear`: what document 001 left open (its own transitions are in test_document_001)."""

from __future__ import annotations

import pytest

from mannerly.politeness import Outcome, Settings
from mannerly.politeness.model import Sample
from mannerly.politeness.pace import Effect, Lesson, LinearStrategy, PaceChange
from mannerly.politeness.pace.linear import FLOOR_AGES_AFTER
from mannerly.politeness.stats import HostStats

NOTHING = HostStats()


class Bench:
    """Answers one after the other, a second each."""

    def __init__(self) -> None:
        self.pace = LinearStrategy(Settings())
        self.now = 0.0

    def feed(self, outcome: Outcome, times: int = 1, sent_at: float | None = None) -> Effect | None:
        effect = None
        for _ in range(times):
            self.now += 1.0
            sent = self.now - 0.5 if sent_at is None else sent_at
            effect = self.pace.on_sample(Sample(outcome, sent, self.now, 0.5, 1), NOTHING)
        return effect

    @property
    def delay_s(self) -> float:
        return self.pace.lesson().delay_s


def test_success_sent_before_the_change_confirms_nothing() -> None:
    """Twenty successes of requests sent at the old delay start no probe."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE, times=3)

    effect = bench.feed(Outcome.OK, times=25, sent_at=0.1)

    assert effect is None
    assert bench.delay_s == 3.5


@pytest.mark.parametrize("outcome", [Outcome.NEUTRAL, Outcome.OVERLOAD])
def test_other_answers_move_nothing(outcome: Outcome) -> None:
    """Neither a missing page nor a fault counts as success or throttle."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE)

    bench.feed(outcome, times=50)

    assert bench.delay_s == 1.5
    assert (bench.pace.error_streak, bench.pace.success_streak) == (1, 0)


def test_first_success_after_refusals_is_a_recovery() -> None:
    """It is told once."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE, times=2)

    assert bench.feed(Outcome.OK) == Effect(change=PaceChange.RECOVERED)
    assert bench.feed(Outcome.OK) is None


def test_confirmed_probe_is_no_floor() -> None:
    """A throttle after a probe's twenty successes adds a step and leaves the floor alone."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE)
    bench.feed(Outcome.OK, times=20)
    bench.feed(Outcome.OK, times=20)

    bench.feed(Outcome.THROTTLE)

    assert bench.pace.lesson().floor_s == 0.0
    assert bench.delay_s == 1.5


def test_floor_ages() -> None:
    """A thousand successes lower the floor by a tenth: one bad minute does not last forever."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE, times=3)
    bench.feed(Outcome.OK, times=20)
    bench.feed(Outcome.THROTTLE)

    bench.feed(Outcome.OK, times=FLOOR_AGES_AFTER)

    assert bench.pace.lesson().floor_s == pytest.approx(0.9 * 3.5)
    assert bench.delay_s == pytest.approx(0.9 * 3.5)


def test_restart_doubles_the_delay() -> None:
    """After the breaker closed it begins at half the rate, and an open probe is forgotten."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE, times=3)
    bench.feed(Outcome.OK, times=20)

    bench.pace.restart(bench.now)
    bench.feed(Outcome.THROTTLE)

    assert bench.delay_s == 6.0
    assert bench.pace.lesson().floor_s == 0.0


@pytest.mark.parametrize(
    ("trust", "delay_s", "floor_s"), [(1.0, 10.5, 4.0), (0.5, 5.5, 2.0), (0.0, 0.5, 0.0)]
)
def test_memory_counts_by_its_age(trust: float, delay_s: float, floor_s: float) -> None:
    """The remembered delay is drawn towards the base, the floor towards nothing."""
    bench = Bench()

    bench.pace.recall(Lesson(delay_s=10.5, floor_s=4.0), trust)

    assert bench.delay_s == delay_s
    assert bench.pace.lesson().floor_s == floor_s


def test_memory_faster_than_the_base_is_ignored() -> None:
    """The base delay is the fastest it ever goes."""
    bench = Bench()

    bench.pace.recall(Lesson(delay_s=0.1), 1.0)

    assert bench.delay_s == 0.5
