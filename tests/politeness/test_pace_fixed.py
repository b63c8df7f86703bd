"""`fixed`: the operator's word, and a pause that doubles."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from mannerly.politeness import Outcome, Settings
from mannerly.politeness.model import Sample
from mannerly.politeness.pace import FixedStrategy, Lesson
from mannerly.politeness.stats import HostStats
from mannerly.simulation import run

NOTHING = HostStats()


def pauses_s(pace: FixedStrategy, *outcomes: Outcome) -> list[float]:
    """The pause that each answer causes."""
    effects = [pace.on_sample(Sample(outcome, 0.0, 0.1, 0.1, 1), NOTHING) for outcome in outcomes]
    return [effect.block_s if effect else 0.0 for effect in effects]


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        (Settings(delay_s=4.0), 0.25),
        (Settings(delay_s=4.0, max_rate="unlimited"), 0.25),
        (Settings(delay_s=4.0, max_rate=100.0), 0.25),
        (Settings(), 8.0),
        (Settings(max_rate=100.0), 100.0),
        (Settings(max_rate=0.2, start_delay_s=0.25), 0.2),
        (Settings(max_rate="unlimited"), inf),
    ],
    ids=["delay", "delay before unlimited", "delay before rate", "default", "fast", "slow", "∞"],
)
def test_rate_is_what_was_said(settings: Settings, rate: float) -> None:
    """The delay if there is one, else the maximum rate; unlimited only if that was said."""
    assert FixedStrategy(settings).rate == rate


def test_hundred_a_second_is_a_hundred_a_second() -> None:
    """A fixed rate of 100/s starts a request every hundredth of a second, from the first one."""
    settings = Settings(strategy="fixed", max_rate=100.0, max_concurrency=100)
    starts = run(settings, "bucket:1000:1000", 10).starts

    assert len(starts) == pytest.approx(1000, abs=2)
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 0.01 - 1e-9


def test_refusals_in_a_row_double_the_pause() -> None:
    """1, 2, 4 … s up to the longest delay; a page ends the run, a 404 or a fault does not."""
    pace = FixedStrategy(Settings())
    throttle, ok = Outcome.THROTTLE, Outcome.OK

    run_s = pauses_s(pace, *[throttle] * 8)
    after_s = pauses_s(pace, Outcome.NEUTRAL, Outcome.OVERLOAD, throttle, ok, throttle)

    assert run_s == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert after_s == [0.0, 0.0, 60.0, 0.0, 1.0]


def test_pause_is_at_least_the_gap() -> None:
    """Whoever sends every ten seconds does not wait one second after a refusal."""
    assert pauses_s(FixedStrategy(Settings(delay_s=10.0)), Outcome.THROTTLE) == [10.0]


def test_it_never_learns() -> None:
    """Neither answers, nor a restart, nor a memory change the operator's word."""
    pace = FixedStrategy(Settings(delay_s=2.0))

    pauses_s(pace, *Outcome)
    pace.restart(5.0)
    pace.recall(Lesson(delay_s=9.0, concurrency=1), 1.0)

    assert (pace.rate, pace.concurrency) == (0.5, 8)
    assert pace.lesson() == Lesson()
