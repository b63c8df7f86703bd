"""`learned` on scripted answers: its phases, what counts as evidence, and what it never does.

How well it does on servers is in tests/simulation/test_promises.py; here is why.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from mannerly.politeness import Outcome, Settings
from mannerly.politeness.model import Sample
from mannerly.politeness.pace import Effect, LearnedStrategy, Lesson, PaceChange
from mannerly.politeness.pace.accepted import AcceptedCounter
from mannerly.politeness.stats import HostStats
from mannerly.simulation.run import run

OK, THROTTLE, OVERLOAD, NEUTRAL, _ = Outcome
SETTINGS = Settings(start_delay_s=0.5, max_rate=50.0, min_delay_s=0.01)


class Bench:
    """Sends at exactly the rate that the strategy wants, and pauses when it says so."""

    def __init__(self, settings: Settings = SETTINGS, *, latency_s: float = 0.1) -> None:
        self.pace = LearnedStrategy(settings)
        self.stats = HostStats()
        self.now = 0.0
        self.latency_s = latency_s
        self.notes: list[PaceChange] = []

    def feed(
        self,
        outcome: Outcome = OK,
        *,
        sent_at: float | None = None,
        in_flight: int = 1,
        latency_s: float | None = None,
        retry_after_s: float | None = None,
    ) -> Effect | None:
        """One answer to a request that was sent now, or at `sent_at`."""
        latency_s = self.latency_s if latency_s is None else latency_s
        sent_at = self.now if sent_at is None else sent_at
        done_at = max(self.now, sent_at + latency_s)
        if outcome is OK:
            self.stats.add_success(latency_s, done_at)
        else:
            self.stats.add_answer(done_at, failed=outcome is OVERLOAD)
        sample = Sample(outcome, sent_at, done_at, latency_s, in_flight, retry_after_s)
        effect = self.pace.on_sample(sample, self.stats)
        if effect is not None and effect.change is not None:
            self.notes.append(effect.change)
        return effect

    def send(self, outcome: Outcome = OK, times: int = 1, **how: float) -> Effect | None:
        """Requests one gap apart; pauses that the strategy asks for are kept."""
        effect = None
        for _ in range(times):
            effect = self.feed(outcome, **how)  # type: ignore[arg-type]
            self.now += max(1.0 / self.pace.rate, effect.block_s if effect else 0.0)
        return effect

    def until(self, phase: str, limit: int = 3000) -> None:
        """Successes until the strategy gets there."""
        for _ in range(limit):
            if self.pace.phase == phase:
                return
            self.send()
        pytest.fail(f"still in {self.pace.phase}")

    def identified(self) -> Bench:
        """Climbed to a limit of about 10/s, refused once, recovered, and steady since."""
        while self.pace.rate < 10.0:
            self.send()
        self.send(THROTTLE)
        self.send()
        self.until("cruise")
        return self


# ---------------------------------------------------------------------- climb


def test_climb_is_a_line_and_then_an_exponential() -> None:
    """A quarter of a request a second more each second; from 3.6/s on, 7 % of the rate."""
    bench = Bench()

    steps = [(bench.now, bench.pace.rate)]
    while bench.now < 20.0:
        bench.send()
        if bench.pace.rate > steps[-1][1]:
            steps.append((bench.now, bench.pace.rate))

    for (before, rate), (now, faster) in pairwise(steps[1:]):
        share = max(0.25, 0.07 * rate) * (now - before)
        assert faster - rate == pytest.approx(share, rel=0.05)
        assert now - before >= 2.0
    assert steps[-1][1] > 7.0
    assert set(bench.notes) == {PaceChange.SPED_UP}


def test_climb_reaches_30_within_a_minute() -> None:
    """From 2/s to 30/s in less than sixty seconds."""
    bench = Bench()

    while bench.pace.rate < 30.0:
        bench.send()

    assert bench.now < 60.0


def test_climb_ends_at_the_ceiling() -> None:
    """At the operator's ceiling it cruises, exactly there."""
    bench = Bench(Settings(start_delay_s=0.5, max_rate=4.0))

    bench.send(times=200)

    assert (bench.pace.phase, bench.pace.rate) == ("cruise", 4.0)


def test_unused_rate_is_never_raised() -> None:
    """A crawler with one page every two seconds learns nothing about more."""
    bench = Bench()

    for _ in range(200):
        bench.feed()
        bench.now += 2.0

    assert (bench.pace.phase, bench.pace.rate) == ("climb", 2.0)


def test_rate_that_concurrency_cannot_carry_ends_the_climb() -> None:
    """With slow pages in all eight places the rate leaves room for a free place, no more."""
    bench = Bench()

    for _ in range(40):
        bench.feed(in_flight=8)
        bench.now += 1.0

    assert bench.pace.phase == "cruise"
    assert 2.0 < bench.pace.rate < 3.0 / 0.7


def test_missing_pages_do_not_climb() -> None:
    """A cheap error page is not good news."""
    bench = Bench()

    bench.send(NEUTRAL, times=200)

    assert bench.pace.rate == 2.0


# ---------------------------------------------------------------------- refusals


def test_refusal_recovers_with_one_trial_at_a_time() -> None:
    """One refusal: pause a second, one request at a time until one succeeds."""
    bench = Bench()
    bench.send(times=30)

    effect = bench.feed(THROTTLE)

    assert effect == Effect(block_s=1.0, change=PaceChange.SLOWED)
    assert bench.pace.trial_only
    bench.now += 2.0
    assert bench.feed() == Effect(change=PaceChange.RECOVERED)
    assert not bench.pace.trial_only


def test_trials_double_their_distance() -> None:
    """1, 2, 4, 8 … s without an end: a ban may begin anew with each trial."""
    bench = Bench()
    bench.send(times=30)

    waits_s = []
    for _ in range(9):
        effect = bench.send(THROTTLE)
        assert effect is not None
        waits_s.append(effect.block_s)

    assert waits_s == pytest.approx([1, 2, 4, 8, 16, 32, 64, 128, 256], rel=0.2)


def test_failed_trial_is_a_refused_one() -> None:
    """While recovering, a fault means what a refusal means; one sent before it means nothing."""
    bench = Bench()
    bench.send(times=30)
    bench.send(THROTTLE)

    old = bench.feed(OVERLOAD, sent_at=0.5)
    new = bench.feed(OVERLOAD)

    assert old is None
    assert new == Effect(block_s=2.0)


def test_refusals_in_flight_are_one_episode() -> None:
    """Eight refusals of requests sent before the first was known change nothing more."""
    alone, crowded = Bench(), Bench()
    for bench in (alone, crowded):
        bench.send(times=40)
    sent_at = alone.now

    effects = [crowded.feed(THROTTLE, sent_at=sent_at - 0.01 * number) for number in range(8)]
    alone.feed(THROTTLE, sent_at=sent_at)
    for bench in (alone, crowded):
        bench.now = sent_at + 2.0
        bench.feed()

    assert effects[1:] == [None] * 7
    assert crowded.pace.rate == pytest.approx(alone.pace.rate)
    assert crowded.pace.lesson() == alone.pace.lesson()


def test_success_sent_before_the_refusal_ends_no_episode() -> None:
    """A trial must have been sent after it."""
    bench = Bench()
    bench.send(times=40)
    bench.feed(THROTTLE)

    effect = bench.feed(sent_at=bench.now - 0.5)

    assert effect is None
    assert bench.pace.trial_only


def test_limit_is_measured_below_what_was_refused() -> None:
    """After the first episode the estimated limit is an average that was really accepted."""
    bench = Bench()
    while bench.pace.rate < 10.0:
        bench.send()
    refused = bench.pace.rate

    bench.send(THROTTLE)
    bench.send()
    lesson = bench.pace.lesson()

    assert 0.5 * refused < 1.0 / lesson.delay_s <= refused
    assert 1.0 / lesson.floor_s == pytest.approx(refused)
    assert bench.pace.rate == pytest.approx(0.98 / lesson.delay_s)


# ---------------------------------------------------------------------- cruise and probe


def test_cruise_probes_after_a_hold_and_a_probe_goes_up_until_it_is_refused() -> None:
    """Fifteen quiet seconds, then larger and larger steps; what was accepted is the new limit."""
    bench = Bench().identified()
    cruising = bench.pace.rate

    bench.until("probe")
    rates = [bench.pace.rate]
    while bench.pace.rate < 2.5 * cruising:
        bench.send()
        if bench.pace.rate != rates[-1]:
            rates.append(bench.pace.rate)
    bench.send(THROTTLE)
    bench.send()

    growth = [after / before for before, after in pairwise(rates)]
    assert rates[0] > cruising
    assert growth == sorted(growth)
    assert growth[0] == pytest.approx(1.08)
    assert 1.0 / bench.pace.lesson().delay_s > 1.5 * cruising
    assert bench.pace.phase == "cruise"


def test_probe_at_the_ceiling_is_proved_by_what_it_overspent() -> None:
    """There is nothing above it to refuse the probe."""
    bench = Bench(replace(SETTINGS, max_rate=12.0)).identified()

    bench.until("probe")
    bench.until("cruise")

    assert bench.pace.rate == pytest.approx(12.0)
    assert bench.notes[-1] is PaceChange.SPED_UP


def test_refused_probe_returns_to_what_was_proved() -> None:
    """The limit does not fall below the proved one, and the next probe comes later."""
    bench = Bench().identified()
    bench.until("probe")
    bench.send(times=60)
    bench.send(THROTTLE)
    bench.send()
    bench.until("probe")
    limit = 1.0 / bench.pace.lesson().delay_s

    bench.send(times=20)
    bench.send(THROTTLE)
    bench.send()
    began = bench.now
    bench.until("probe")

    assert bench.pace.lesson().is_proven
    assert 1.0 / bench.pace.lesson().delay_s >= 0.999 * limit
    assert bench.now - began >= 29.0


def test_refusal_while_cruising_lowers_the_limit() -> None:
    """A refusal while cruising means that the limit has changed."""
    bench = Bench().identified()
    before = 1.0 / bench.pace.lesson().delay_s

    bench.send(times=30)
    bench.send(THROTTLE)
    bench.send()

    assert 0.5 * before <= 1.0 / bench.pace.lesson().delay_s <= 0.97 * before


def test_unused_cruise_starts_no_probe() -> None:
    """Whoever has too few pages for the rate it holds does not ask for more."""
    bench = Bench().identified()
    rate = bench.pace.rate

    for _ in range(100):
        bench.feed()
        bench.now += 1.0

    assert bench.pace.phase == "cruise"
    assert bench.pace.rate == rate


def test_probe_that_proves_nothing_is_given_up() -> None:
    """If demand ends in the middle of a probe, cruising goes on at the old limit."""
    bench = Bench().identified()
    bench.until("probe")
    limit = bench.pace.lesson().delay_s

    for _ in range(20):
        bench.feed()
        bench.now += 10.0

    assert bench.pace.phase == "cruise"
    assert bench.pace.lesson().delay_s == limit


# ---------------------------------------------------------------------- who is to blame


def test_number_is_blamed_before_the_rate() -> None:
    """Refused with five under way, never seen to work: four from now on, the rate untouched."""
    bench = Bench()
    bench.send(times=30, in_flight=3)
    rate = bench.pace.rate

    effect = bench.feed(THROTTLE, in_flight=5)

    assert effect == Effect(block_s=0.25, change=PaceChange.SLOWED)
    assert (bench.pace.concurrency, bench.pace.rate, bench.pace.phase) == (4, rate, "climb")


def test_number_that_has_worked_is_not_blamed() -> None:
    """Five were under way a moment ago and succeeded: then it is the rate."""
    bench = Bench()
    bench.send(times=30, in_flight=5)

    bench.feed(THROTTLE, in_flight=5)

    assert (bench.pace.concurrency, bench.pace.phase) == (8, "recover")


def test_lone_request_cannot_blame_the_number() -> None:
    """One under way is never one too many."""
    bench = Bench()
    bench.send(times=30)

    bench.feed(THROTTLE, in_flight=1)

    assert bench.pace.phase == "recover"


def test_lost_place_is_tried_again_and_later_each_time() -> None:
    """After 30 s of full use one more is allowed; if that fails, the wait doubles."""
    bench = Bench(Settings(start_delay_s=0.5, max_rate=2.0))
    bench.send(times=10, in_flight=3)
    waits_s = []

    for _ in range(3):
        bench.feed(THROTTLE, in_flight=4)
        bench.now += 0.25
        began = bench.now
        while bench.pace.concurrency < 4:
            bench.send(in_flight=3)
        waits_s.append(bench.now - began)

    assert waits_s == pytest.approx([30.0, 60.0, 120.0], abs=1.5)


def test_failures_hint_at_the_number_too() -> None:
    """A server that answers 503 above four under way is understood at the first one."""
    bench = Bench()
    bench.send(times=30, in_flight=4)

    effect = bench.feed(OVERLOAD, in_flight=6)

    assert effect == Effect(block_s=0.25, change=PaceChange.SLOWED)
    assert bench.pace.concurrency == 5


# ---------------------------------------------------------------------- weaker signs


def test_two_failures_say_nothing_three_in_a_row_slow_down() -> None:
    """While cruising the third cuts the rate by three tenths; a success begins the count anew."""
    bench = Bench().identified()
    rate = bench.pace.rate

    pairs = [bench.send(outcome) for outcome in (OVERLOAD, OVERLOAD, OK)]
    bench.send(OVERLOAD, times=2)
    unmoved = bench.pace.rate
    third = bench.send(OVERLOAD)

    assert pairs == [None, None, None]
    assert unmoved == rate
    assert third == Effect(change=PaceChange.SLOWED)
    assert bench.pace.rate == pytest.approx(0.98 * 0.7 * unmoved)


def test_second_failure_of_a_climb_is_a_refusal() -> None:
    """A server may refuse with a 503: two soon after each other, at a rising rate, are one."""
    bench = Bench()
    bench.send(times=30)

    first = bench.send(OVERLOAD)
    bench.send(times=2)
    second = bench.send(OVERLOAD)

    assert first is None
    assert second == Effect(block_s=1.0, change=PaceChange.SLOWED)
    assert bench.pace.phase == "recover"


def test_failures_far_apart_do_not_end_a_climb() -> None:
    """One in thirty is a server that fails now and then, whatever the rate."""
    bench = Bench()

    for _ in range(4):
        bench.send(times=29)
        bench.send(OVERLOAD)

    assert bench.pace.phase == "climb"
    assert set(bench.notes) == {PaceChange.SPED_UP}


def test_usual_failures_do_not_end_a_probe() -> None:
    """A host that always fails a tenth of the requests is probed all the same."""
    bench = Bench().identified()
    for _ in range(200):
        if bench.pace.phase == "probe":
            break
        bench.send(times=9)
        bench.send(OVERLOAD)

    effects = [bench.send(outcome) for outcome in (OK, OVERLOAD, OVERLOAD)]

    assert effects == [None, None, None]
    assert bench.pace.phase == "probe"


def test_five_failures_in_twenty_slow_down() -> None:
    """Every third answer a failure is too much, even if none follows another."""
    bench = Bench()
    bench.send(times=30)

    for _ in range(7):
        bench.send(OVERLOAD)
        bench.send(times=2)

    assert PaceChange.SLOWED in bench.notes


def test_one_percent_of_failures_is_noise() -> None:
    """It never slows down for that."""
    bench = Bench()

    for _ in range(5):
        bench.send(times=99)
        bench.send(OVERLOAD)

    assert PaceChange.SLOWED not in bench.notes


def test_failures_sent_before_the_cut_cut_once() -> None:
    """Six failures that were under way together are one piece of news."""
    bench = Bench()
    bench.send(times=30)
    sent_at = bench.now

    for _ in range(6):
        bench.feed(OVERLOAD, sent_at=sent_at)

    assert bench.notes.count(PaceChange.SLOWED) == 1


def test_queue_is_noticed_and_drained() -> None:
    """A median over twice the lowest: cruise below what flowed, after a rest at 0.6 of it."""
    bench = Bench()
    bench.send(times=120)
    rate = bench.pace.rate

    while bench.notes[-1] is not PaceChange.SLOWED:
        bench.send(latency_s=0.4)
    draining = bench.pace.rate
    bench.send(times=10)

    assert bench.pace.phase == "cruise"
    assert draining < 0.6 * rate
    assert bench.pace.rate == pytest.approx(draining / 0.6 * 0.98)


def test_one_slow_page_is_no_queue() -> None:
    """Seven of fifteen slow answers decide nothing."""
    bench = Bench()
    bench.send(times=60)

    for _ in range(10):
        bench.send(times=7, latency_s=2.0)
        bench.send(times=9)

    assert PaceChange.SLOWED not in bench.notes


def test_queue_during_a_probe_ends_it() -> None:
    """The host slows down instead of refusing: the probe has failed, the next comes later."""
    bench = Bench().identified()
    bench.until("probe")

    bench.send(times=16, latency_s=0.5)

    assert bench.pace.phase == "cruise"
    assert bench.notes[-1] is PaceChange.SLOWED


# ---------------------------------------------------------------------- from outside


def test_restart_cruises_at_half_and_probes_upwards() -> None:
    """After the breaker closed: half of what was believed, then ordinary probes, for the old rate
    was never refused.
    """
    bench = Bench().identified()
    limit = 1.0 / bench.pace.lesson().delay_s

    bench.pace.restart(bench.now)
    half = bench.pace.rate
    bench.until("probe")

    assert half == pytest.approx(0.98 * 0.5 * limit)
    assert bench.pace.rate == pytest.approx(1.25 * 0.5 * limit)


def test_restart_without_samples_halves_the_start_rate() -> None:
    """Even a host that never answered begins more slowly."""
    bench = Bench()

    bench.pace.restart(7.0)

    assert (bench.pace.phase, bench.pace.rate) == ("cruise", pytest.approx(0.98))


@pytest.mark.parametrize(("trust", "limit"), [(1.0, 7.2), (0.5, (7.2 * 2.0) ** 0.5), (0.0, 2.0)])
def test_memory_counts_by_its_age(trust: float, limit: float) -> None:
    """Fresh, nine tenths of the remembered limit; old, the start rate; between, their mean."""
    pace = LearnedStrategy(SETTINGS)

    pace.recall(
        Lesson(delay_s=0.125, floor_s=0.1, allowance=40.0, block_s=9.0, is_proven=True), trust
    )
    lesson = pace.lesson()

    assert pace.phase == "cruise"
    assert 1.0 / lesson.delay_s == pytest.approx(limit)
    assert (lesson.floor_s, lesson.allowance, lesson.block_s) == (0.1, 40.0, 9.0)
    assert not lesson.is_proven


def test_memory_may_be_empty_and_never_exceeds_the_ceiling() -> None:
    """Nothing remembered changes nothing; too much is cut to what the operator allows."""
    pace = LearnedStrategy(SETTINGS)

    pace.recall(Lesson(concurrency=3), 1.0)
    unchanged = (pace.phase, pace.rate)
    pace.recall(Lesson(delay_s=0.001), 1.0)

    assert unchanged == ("climb", 2.0)
    assert pace.rate == pytest.approx(50.0)


@pytest.mark.parametrize("offset_s", [0.0, 1e6])
def test_memory_is_measured_from_its_first_use(offset_s: float) -> None:
    """The value of the clock at the start does not influence the limit."""
    bench = Bench()
    bench.now = offset_s
    bench.pace.recall(Lesson(delay_s=0.1), 1.0)

    bench.send(times=120)
    bench.send(times=16, latency_s=0.4)
    bench.send(times=60)
    before = 1.0 / bench.pace.lesson().delay_s
    bench.send(THROTTLE)
    bench.send()

    assert 1.0 / bench.pace.lesson().delay_s > 0.8 * before


def test_lesson_of_a_climb_is_how_far_it_got() -> None:
    """What was reached without a refusal is worth remembering."""
    bench = Bench()

    bench.send(times=40)

    assert bench.pace.lesson() == Lesson(delay_s=1.0 / bench.pace.rate, concurrency=8)


def test_short_climb_before_a_ban_counts_from_its_first_request() -> None:
    """Else the last step would be all that is known, and steps of 6 % up to the limit take long."""
    accepted = AcceptedCounter(5.0)
    for number in range(24):
        if number == 20:
            accepted.mark(5.0 + 8.0)
        accepted.add(5.0 + 0.4 * number)

    assert accepted.beyond(8.0, 5.0, 15.0, accepted.count) == pytest.approx(1.6)
    assert accepted.beyond(8.0, 5.5, 15.0, accepted.count) < 0.0


def test_server_that_bans_early_is_used_within_minutes() -> None:
    """One that refuses everything for a minute after the first seconds of a quick climb."""
    result = run(replace(SETTINGS, max_concurrency=8), "ban:2:4:60", 900.0, 1)

    assert result.steady_util > 0.8
    assert result.refused <= 8
