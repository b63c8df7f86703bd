"""`gradient`: the number in flight follows the latency."""

from __future__ import annotations

import pytest

from mannerly.politeness import Outcome, Settings
from mannerly.politeness.model import Sample
from mannerly.politeness.pace import Effect, GradientStrategy, Lesson, PaceChange
from mannerly.politeness.stats import HostStats

SETTINGS = Settings(max_concurrency=20)
NOTHING = HostStats()


def feed(
    pace: GradientStrategy,
    latency_s: float = 0.1,
    *,
    outcome: Outcome = Outcome.OK,
    in_flight: int = 99,
    sent_at: float = 1.0,
) -> Effect | None:
    return pace.on_sample(Sample(outcome, sent_at, sent_at + 0.1, latency_s, in_flight), NOTHING)


def test_steady_latency_lets_the_limit_creep_up() -> None:
    """Two, then 0.8 more a sample (a fifth of the queue of four), up to the operator's number."""
    pace = GradientStrategy(SETTINGS)

    limits = [pace.concurrency]
    for _ in range(30):
        feed(pace)
        limits.append(pace.concurrency)

    assert limits[:6] == [2, 2, 3, 4, 5, 6]
    assert limits[-1] == 20


def test_latency_that_grows_shrinks_the_limit() -> None:
    """At ten times the usual latency the gradient is 0.5: a tenth off per sample, plus 0.8."""
    pace = GradientStrategy(SETTINGS)
    for _ in range(40):
        feed(pace)

    feed(pace, 1.0)
    once = pace.concurrency
    for _ in range(60):
        feed(pace, 1.0)

    assert once == 18
    assert pace.concurrency < 12


def test_long_average_forgets_a_slow_hour_fast() -> None:
    """When latency halves, the average comes down by a twentieth a sample."""
    pace = GradientStrategy(SETTINGS)
    for _ in range(5):
        feed(pace, 2.0)
    for _ in range(60):
        feed(pace, 0.1)
    limit = pace.concurrency

    feed(pace, 0.5)

    assert limit == 20
    assert pace.concurrency < limit


def test_unused_limit_is_not_raised() -> None:
    """One request at a time says nothing about twenty."""
    pace = GradientStrategy(SETTINGS)

    for _ in range(50):
        feed(pace, in_flight=1)

    assert pace.concurrency == 2


def test_throttle_halves_once_per_round_trip() -> None:
    """20, 10, 5 … 1, with pauses that double; refusals in flight with the first only pause."""
    pace = GradientStrategy(SETTINGS)
    for _ in range(40):
        feed(pace)

    effects = [feed(pace, outcome=Outcome.THROTTLE, sent_at=sent_at) for sent_at in (5, 5, 6, 7)]
    halved = pace.concurrency
    for sent_at in range(8, 20):
        feed(pace, outcome=Outcome.THROTTLE, sent_at=float(sent_at))

    assert effects == [
        Effect(1.0, PaceChange.SLOWED),
        Effect(2.0),
        Effect(4.0, PaceChange.SLOWED),
        Effect(8.0, PaceChange.SLOWED),
    ]
    assert (halved, pace.concurrency) == (2, 1)
    assert feed(pace, sent_at=30.0) == Effect(change=PaceChange.RECOVERED)


@pytest.mark.parametrize("outcome", [Outcome.NEUTRAL, Outcome.OVERLOAD])
def test_other_answers_move_nothing(outcome: Outcome) -> None:
    """A cheap error page has no latency worth following."""
    pace = GradientStrategy(SETTINGS)

    assert feed(pace, outcome=outcome) is None
    assert pace.concurrency == 2


def test_restart_halves_the_limit() -> None:
    """After the breaker closed it begins again with half as many."""
    pace = GradientStrategy(SETTINGS)
    for _ in range(40):
        feed(pace)

    pace.restart(50.0)

    assert pace.concurrency == 10
    assert pace.lesson() == Lesson(concurrency=10)


@pytest.mark.parametrize(("trust", "limit"), [(1.0, 12), (0.5, 7), (0.0, 2)])
def test_memory_counts_by_its_age(trust: float, limit: int) -> None:
    """The remembered number is approached as far as it is trusted."""
    pace = GradientStrategy(SETTINGS)

    pace.recall(Lesson(), 1.0)
    pace.recall(Lesson(concurrency=12), trust)

    assert pace.concurrency == limit


def test_rate_is_the_ceiling_until_the_host_refuses() -> None:
    """Answers of any latency leave the rate alone; a refusal halves it, once per round trip."""
    pace = GradientStrategy(Settings(max_rate=3.0))
    for latency_s in (0.1, 5.0, 0.1):
        feed(pace, latency_s)
    before = pace.rate

    for sent_at in (5.0, 5.0, 6.0):
        feed(pace, outcome=Outcome.THROTTLE, sent_at=sent_at)

    assert (before, pace.rate) == (3.0, 0.75)
    assert pace.lesson().delay_s == pytest.approx(1 / 0.75)


def test_rate_in_use_is_halved_where_none_is_set() -> None:
    """Without a maximum, four requests in flight that take half a second are eight a second."""
    pace = GradientStrategy(Settings(max_rate="unlimited"))

    feed(pace, 0.5, outcome=Outcome.THROTTLE, in_flight=4)

    assert pace.rate == pytest.approx(4.0)


def test_seventy_successes_undo_a_refusal() -> None:
    """The rate grows by a hundredth per success of a request that was sent after the cut."""
    pace = GradientStrategy(Settings(max_rate=3.0))
    feed(pace, outcome=Outcome.THROTTLE, sent_at=5.0)

    feed(pace, sent_at=5.0)
    at_once = pace.rate
    rates = [pace.rate for _ in range(80) if feed(pace, sent_at=6.0) or True]

    assert at_once == 1.5
    assert rates[0] == pytest.approx(1.515)
    assert rates[69] == pytest.approx(3.0, rel=0.02)
    assert rates[-1] == 3.0


def test_refused_rate_is_remembered_by_its_age() -> None:
    """It starts between the remembered rate and its maximum; an unpaced host leaves no rate."""
    starts = []
    for trust in (1.0, 0.5, 0.0):
        pace = GradientStrategy(Settings(max_rate=4.0))
        pace.recall(Lesson(delay_s=1.0), trust)
        starts.append(pace.rate)

    assert starts == pytest.approx([1.0, 2.0, 4.0])
    assert GradientStrategy(SETTINGS).lesson().delay_s == 0.0


def test_new_maximum_keeps_a_learned_rate() -> None:
    """A host that has refused stays at its rate; any other takes the new maximum."""
    refused, unpaced = GradientStrategy(SETTINGS), GradientStrategy(SETTINGS)
    feed(refused, outcome=Outcome.THROTTLE)

    for pace in (refused, unpaced):
        pace.configure(Settings(max_rate=20.0))

    assert (refused.rate, unpaced.rate) == (4.0, 20.0)
