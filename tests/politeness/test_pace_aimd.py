"""`aimd`: add on success, multiply on trouble, once per round trip."""

from __future__ import annotations

import pytest

from mannerly.politeness import Outcome, Settings
from mannerly.politeness.model import Sample
from mannerly.politeness.pace import AimdStrategy, Effect, Lesson, PaceChange
from mannerly.politeness.stats import HostStats

SETTINGS = Settings(start_delay_s=0.5)


class Bench:
    """Feeds samples to a pace, as a host would."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.pace = AimdStrategy(settings)
        self.stats = HostStats()
        self.now = 0.0

    def feed(
        self,
        outcome: Outcome,
        latency_s: float = 0.1,
        sent_at: float | None = None,
        status: int | None = None,
    ) -> Effect | None:
        self.now += 1.0
        sent_at = self.now - 0.5 if sent_at is None else sent_at
        if outcome is Outcome.OK:
            self.stats.add_success(latency_s, self.now)
        sample = Sample(outcome, sent_at, self.now, latency_s, 1, status=status)
        return self.pace.on_sample(sample, self.stats)


def test_success_adds_alpha_up_to_the_ceiling() -> None:
    """2.00, 2.05, 2.10 … 8 requests a second."""
    bench = Bench()

    rates = []
    for _ in range(200):
        bench.feed(Outcome.OK)
        rates.append(bench.pace.rate)

    assert rates[:3] == pytest.approx([2.05, 2.10, 2.15])
    assert rates[-1] == 8.0


def test_throttle_multiplies_by_beta_down_to_the_floor() -> None:
    """2, 1.4, 0.98 … 0.25, each with a pause that doubles from one second to a minute."""
    bench = Bench()

    effects = [bench.feed(Outcome.THROTTLE) for _ in range(8)]

    assert effects[0] == Effect(block_s=1.0, change=PaceChange.SLOWED)
    assert [effect.block_s for effect in effects if effect] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert bench.pace.rate == 0.25


def test_refusals_of_one_round_trip_cut_once() -> None:
    """Eight refusals of requests that were sent before the first cut are one piece of news."""
    bench = Bench()

    effects = [bench.feed(Outcome.THROTTLE, sent_at=0.1) for _ in range(8)]

    assert bench.pace.rate == pytest.approx(1.4)
    assert [effect.change for effect in effects if effect] == [PaceChange.SLOWED] + [None] * 7


def test_success_sent_before_a_cut_adds_nothing() -> None:
    """A rate is raised by requests that were sent at it."""
    bench = Bench()
    bench.feed(Outcome.THROTTLE)

    effect = bench.feed(Outcome.OK, sent_at=0.2)

    assert bench.pace.rate == pytest.approx(1.4)
    assert effect == Effect(change=PaceChange.RECOVERED)


@pytest.mark.parametrize("outcome", [Outcome.NEUTRAL, Outcome.OVERLOAD])
def test_other_answers_move_nothing(outcome: Outcome) -> None:
    """Only definite signs of load decrease, only pages increase."""
    bench = Bench()

    assert bench.feed(outcome) is None
    assert bench.pace.rate == 2.0


@pytest.mark.parametrize(("latency_s", "rate"), [(0.39, 2.05), (0.4, 1.4)])
def test_named_target_judges_latency(latency_s: float, rate: float) -> None:
    """Twice the target is slow, and slow cuts like a throttle, without a pause."""
    bench = Bench(Settings(start_delay_s=0.5, aimd_latency_target_s=0.2))

    effect = bench.feed(Outcome.OK, latency_s)

    assert bench.pace.rate == pytest.approx(rate)
    assert effect is None or effect == Effect(change=PaceChange.SLOWED)


def test_own_target_is_the_lowest_median_so_far() -> None:
    """Without a target, 2 × (1.5 × lowest median + 20 ms) is slow, however slow the rest became."""
    bench = Bench()
    for _ in range(15):
        bench.feed(Outcome.OK, 0.1)
    for _ in range(15):
        bench.feed(Outcome.OK, 0.3)
    rate = bench.pace.rate

    bench.feed(Outcome.OK, 0.33)
    bench.feed(Outcome.OK, 0.36)

    assert bench.pace.rate == pytest.approx(0.7 * (rate + 0.05))


def test_restart_halves() -> None:
    """After the breaker closed it begins at half the rate, and old successes add nothing."""
    bench = Bench()

    bench.pace.restart(10.0)
    bench.feed(Outcome.OK, sent_at=9.0)

    assert bench.pace.rate == 1.0


@pytest.mark.parametrize(("trust", "rate"), [(1.0, 3.6), (0.5, (3.6 * 2.0) ** 0.5), (0.0, 2.0)])
def test_memory_counts_by_its_age(trust: float, rate: float) -> None:
    """Fresh, nine tenths of what was learned; old, nothing; between, the geometric middle."""
    pace = AimdStrategy(SETTINGS)

    pace.recall(Lesson(delay_s=0.25), trust)

    assert pace.rate == pytest.approx(rate)
    assert pace.lesson() == Lesson(delay_s=1.0 / pace.rate)


def test_memory_stays_below_the_ceiling_and_may_be_empty() -> None:
    """What another configuration learned cannot break this one's limits."""
    pace = AimdStrategy(SETTINGS)

    pace.recall(Lesson(), 1.0)
    unchanged = pace.rate
    pace.recall(Lesson(delay_s=0.001), 1.0)

    assert (unchanged, pace.rate) == (2.0, 8.0)


@pytest.mark.parametrize(("is_cut", "rate"), [(True, 1.4), (False, 2.0)])
def test_plain_503_cuts_the_rate_unless_told_otherwise(is_cut: bool, rate: float) -> None:
    """It is cut as by a refusal, without a pause; the breaker's other failures cut nothing."""
    bench = Bench(Settings(start_delay_s=0.5, aimd_cut_on_503=is_cut))

    other = bench.feed(Outcome.OVERLOAD, status=500)
    before = bench.pace.rate
    effect = bench.feed(Outcome.OVERLOAD, status=503)

    assert (other, before) == (None, 2.0)
    assert bench.pace.rate == pytest.approx(rate)
    assert effect == (Effect(change=PaceChange.SLOWED) if is_cut else None)
