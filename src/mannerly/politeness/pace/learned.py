"""`learned`: find the host's hidden limit and hold just under it.

        refused                         first accepted trial: identify the limit
 CLIMB ─────────► RECOVER ───────────────────────────────► CRUISE ◄────────────────┐
   │ ×1.3 per      ▲  one trial at a time;                    │ ρ·limit            │ refused: limit stays,
   │ 10 OK, 4 s    │  first wait by what was learned,         │ after `hold` s     │ hold doubles
   └─► CRUISE      │  then the elapsed pause doubles          ▼                    │
     at a ceiling  └────────────── refused ─────────────── PROBE p > limit ────────┘
                                                              └─ overspent more than any
                                                                 allowance seen: limit = p

What a server lets through between two recoveries is its limit times the time (see `ledger`), so
every episode of refusals is also a measurement. Four kinds of host need telling apart:

- **bucket**: the pause is short. The average since the last recovery is exact after 20 accepts.
- **quota** (n per window): the pause is long, but what was sent too early before it makes up for
  it. The average must span a whole cycle, or it measures a corner of one. Until the first burst
  has left the server's window it is replayed at us; refusals in that time say nothing (`grace`).
- **penalty** (a ban): the pause is long and nothing makes up for it. It shows when a probe
  overspends by a whole quota and is not refused, or is refused with next to no overspending. Such
  hosts are probed gently (+10 %) and rarely, so that pauses cost at most a tenth of the time.
- **queue** (slow instead of refusing): `latency` notices; drain, then cruise below what flowed.

And **concurrency**: `blame` decides whether the rate was at fault at all.

A probe is proved when Σ(1 − limit·dt) over its accepts exceeds the allowance by 3: it has spent
more above the limit than any burst or window ever let through. Without that test a probe against
"300 per minute" looks fine for half a minute and then burns the window. On a quota host two whole
cycles without a refusal prove it as well.

Error budget: a failed probe costs `refusals` requests, so `hold` grows to 0.95·refusals/(ε·limit),
ε = 0.5 %; that generalises document 001's "20 successes", which at 5/s is a probe every 4 s. A host
that once allowed more is probed twice as often: limits that fell tend to rise again.

Evidence counts once: an answer to a request sent before the last decision says nothing new. 5xx
and timeouts are weak evidence: 3 in a row, or 5 in 20. A rate that was not used is never raised.

Constants without a source of their own were chosen on the 14 tuning servers (`make bench`), and
judged on others; ADR 4 tells what was tried.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ..model import Outcome
from .base import Effect, Lesson, Note
from .blame import PAUSE_S, ConcurrencyBlame
from .latency import LatencyGuard
from .ledger import Ledger

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..vitals import Vitals

GROWTH = 1.3  # reaches 30/s from 2/s in 46 s (pace §2.4 asks for 60)
STEP_OK = 10
STEP_S = 4.0
USED = 0.7  # share of a rate that must have flowed before it is raised
HOLD_S = 15.0
HOLD_FULL_S = 75.0  # at 5/s and more the budget would allow more probes than anybody needs
HOLD_MAX_S = 1800.0
HOLD_COSTLY_S = 600.0  # at most this long for the sake of what a refusal cost
REPLAY_REST_S = 5.0
GAIN = 1.25
GAIN_MAX = 2.0
GAIN_PENALTY = 1.1
PROVE_WITHIN_S = 15.0  # the gain is chosen so that a proof takes about this long
PROVE_MARGIN = 3.0
ABANDON_S = 120.0
ALLOWANCE = 8.0
ALLOWANCE_MAX = 2000.0
EXACT = 20  # accepts that make an average trustworthy: ±1 is 5 %
CLOSE = 1.08  # a refused rate this near to the limit leaves nothing to search
LONG_S, LONG_REQUESTS = 5.0, 10.0  # a pause longer than both is more than a token's wait
WEAK_IN_A_ROW, WEAK_OF_20 = 3, 5.0
KEEP_QUEUEING = 0.94  # of what flowed while a queue formed


class Phase(Enum):
    """What the strategy is doing."""

    CLIMB = "climb"
    CRUISE = "cruise"
    PROBE = "probe"
    RECOVER = "recover"


class _Probe:
    """A rate above the limit, on trial."""

    __slots__ = ("count", "excess", "last_at", "rate", "since")

    def __init__(self, rate: float, count: int, now: Instant) -> None:
        self.rate = rate
        self.since = self.last_at = now
        self.count = count
        self.excess = 0.0  # requests spent above the limit so far


class _Episode:
    """A run of refusals, from the first to the accepted trial that ends it."""

    __slots__ = (
        "cause",
        "count",
        "delivery",
        "first_wait_s",
        "is_told",
        "rate",
        "refusals",
        "since",
    )

    def __init__(
        self, cause: Phase, rate: float, count: int, delivery: float, sample: Sample
    ) -> None:
        self.cause = cause
        self.rate = rate
        self.count = count
        self.delivery = delivery
        self.since = sample.done_at
        self.is_told = sample.retry_after_s is not None  # the server named the pause
        self.refusals = 1
        self.first_wait_s = 0.0


class _Cycle(NamedTuple):
    """What happened from the last whole recovery to this one."""

    accepts: int
    span_s: float
    rate: float  # accepts over the span, the pause included
    before_refusal: int  # accepts until the refusal
    active_s: float  # time until the refusal
    pause_s: float
    trial_at: Instant
    ended_at: Instant  # when the pause is thought to have ended
    is_long: bool  # longer than the wait for a token
    is_whole: bool  # long enough to measure a limit


class Learned:
    """The default strategy: climb, cruise, probe, recover."""

    __slots__ = (
        "_allowance",
        "_blame",
        "_ceiling",
        "_cycle_s",
        "_decided_at",
        "_drain_until",
        "_episode",
        "_gain",
        "_grace_until",
        "_guard",
        "_hold_s",
        "_is_penalty",
        "_is_proven",
        "_is_searching",
        "_known",
        "_ledger",
        "_limit",
        "_pause_s",
        "_peak",
        "_phase",
        "_probe",
        "_recovered_at",
        "_recovered_count",
        "_refused",
        "_settings",
        "_step_ok",
        "_step_since",
        "_weak_in_a_row",
        "_weak_recent",
        "rate",
        "trial_only",
    )
    burst = 1

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ceiling = settings.rate_ceiling
        self.rate = min(self._ceiling, 1.0 / settings.start_delay_s)
        self.trial_only = False
        self._phase = Phase.CLIMB
        self._ledger: Ledger | None = None  # these three are made at the first sample
        self._guard: LatencyGuard | None = None
        self._blame: ConcurrencyBlame | None = None
        self._probe: _Probe | None = None
        self._episode: _Episode | None = None
        # What is known of the host.
        self._limit = 0.0  # requests a second it is believed to allow; 0: unknown
        self._refused = 0.0  # the rate that was refused last
        self._known = 0.0  # the limit before the last probe, to fall back on
        self._peak = 0.0  # the highest limit ever proved
        self._allowance = ALLOWANCE  # requests above the limit that it has let through
        self._pause_s = 0.0  # how long the last refusal lasted
        self._cycle_s = 0.0  # a quota's window, as far as it is known; 0: no quota
        self._is_penalty = False
        self._is_proven = False
        self._is_searching = False  # the limit lies between `_limit` and `_refused`
        # Where we are.
        self._decided_at: Instant = -inf  # answers to requests sent before this are old news
        self._step_since: Instant = 0.0  # of the climb's step, or of the cruise
        self._step_ok = 0
        self._hold_s = HOLD_S
        self._gain = 0.0
        self._grace_until: Instant = -inf
        self._drain_until: Instant = -inf
        self._recovered_at: Instant = 0.0
        self._recovered_count = 0
        self._weak_in_a_row = 0
        self._weak_recent = 0.0

    @property
    def phase(self) -> str:
        """What the strategy is doing, in a word."""
        return self._phase.value

    @property
    def concurrency(self) -> int:
        """Requests under way that the host has been seen to take."""
        return self._settings.max_concurrency if self._blame is None else self._blame.limit

    def on_sample(self, sample: Sample, vitals: Vitals) -> Effect | None:
        """Learn from one answer."""
        ledger = self._ledger
        if ledger is None:
            ledger = self._begin(sample)
        outcome = sample.outcome
        if outcome is Outcome.THROTTLE:
            return self._on_refusal(sample, ledger)
        if outcome is Outcome.OVERLOAD:
            return self._on_failure(sample, ledger)
        now = sample.done_at
        ledger.accept(now)
        if self._phase is Phase.RECOVER:
            return self._recover(sample, ledger) if sample.sent_at > self._decided_at else None
        if outcome is Outcome.OK:
            self._weak_in_a_row = 0
            self._weak_recent *= 0.95
            if sample.in_flight > 1:
                self._on_company(sample)
            assert self._guard is not None
            median_s = self._guard.queueing_s(vitals, now)
            if median_s:
                return self._drain(median_s, now, ledger)
        if self._phase is Phase.CRUISE:
            return self._cruise(sample, ledger)
        if self._phase is Phase.PROBE:
            return self._judge_probe(sample, ledger)
        return self._climb(sample, ledger) if outcome is Outcome.OK else None

    def _begin(self, sample: Sample) -> Ledger:
        self._ledger = ledger = Ledger(sample.sent_at)
        if self._limit:
            ledger.forget_climb()
        self._guard = LatencyGuard(sample.done_at)
        self._recovered_at = self._step_since = sample.sent_at
        return ledger

    def _on_company(self, sample: Sample) -> None:
        """A success with others under way: evidence for `blame`, which most hosts never need."""
        if self._blame is None:
            self._blame = ConcurrencyBlame(self._settings.max_concurrency, sample.done_at)
        self._blame.on_success(sample)

    def _set_rate(self, rate: float) -> None:
        self.rate = max(1.0 / self._settings.max_delay_s, min(self._ceiling, rate))

    # ------------------------------------------------------------------ climb and cruise

    def _climb(self, sample: Sample, ledger: Ledger) -> Effect | None:
        now = sample.done_at
        if sample.sent_at < self._step_since:
            return None
        self._step_ok += 1
        elapsed_s = now - self._step_since
        if self._step_ok < STEP_OK or elapsed_s < STEP_S:
            return None
        flowed = self._step_ok / elapsed_s
        self._step_since, self._step_ok = now, 0
        if flowed >= USED * self.rate and self.rate < self._ceiling:
            self._set_rate(self.rate * GROWTH)
            ledger.step(now)
            return Effect(note=Note.SPED_UP)
        if self.rate >= self._ceiling or sample.in_flight >= self.concurrency:
            self._limit = self.rate / self._settings.cruise
            self._enter_cruise(now)
        return None

    def _enter_cruise(self, now: Instant) -> None:
        self._phase = Phase.CRUISE
        self.trial_only = False
        self._step_since, self._step_ok = now, 0
        self._set_rate(self._settings.cruise * self._limit)

    def _cruise(self, sample: Sample, ledger: Ledger) -> Effect | None:
        now = sample.done_at
        self._step_ok += 1
        if -inf < self._drain_until < now:
            self._drain_until = -inf
            self._set_rate(self._settings.cruise * self._limit)
        quiet_s = now - self._step_since
        if not self._is_proven and quiet_s >= max(HOLD_S, self._cycle_s) and self._step_ok >= EXACT:
            self._is_proven = True
        if quiet_s < self._hold_s or self._step_ok < STEP_OK or self.rate >= self._ceiling:
            return None
        if ledger.delivery(now) < USED * self.rate:
            return None  # never raise a rate that was not used
        if self._is_proven:
            self._peak = max(self._peak, self._limit)
        self._start_probe(now, ledger)
        return Effect(note=Note.PROBING)

    def _longest_hold_s(self, refusals: int) -> float:
        """Seconds between probes that keep their refusals within the budget."""
        budget_s = 0.95 / (self._settings.probe_budget * self._limit)
        hold_s = min(HOLD_MAX_S, max(HOLD_FULL_S, budget_s) * refusals)
        return 0.5 * hold_s if self._limit < 0.6 * self._peak else hold_s

    # ------------------------------------------------------------------ probe

    def _start_probe(self, now: Instant, ledger: Ledger) -> None:
        limit = self._limit
        gain = 1.0 + (self._allowance + PROVE_MARGIN) / (PROVE_WITHIN_S * limit)
        gain = min(GAIN_MAX, max(GAIN, gain))
        if self._is_penalty:
            gain = GAIN_PENALTY
        elif self._is_searching and self._refused > CLOSE * limit:
            gain = 0.5 * (limit + self._refused) / limit
        elif self._gain:
            gain = max(gain, self._gain)
        self._phase = Phase.PROBE
        self._set_rate(gain * limit)
        self._probe = _Probe(self.rate, ledger.count, now)

    def _judge_probe(self, sample: Sample, ledger: Ledger) -> Effect | None:
        probe = self._probe
        assert probe is not None
        if sample.sent_at <= probe.since:
            return None
        probe.excess += 1.0 - self._limit * (sample.sent_at - probe.last_at)
        probe.last_at = sample.sent_at
        now = sample.done_at
        lasted_s = now - probe.since
        overspent = probe.excess >= self._allowance + PROVE_MARGIN
        outlasted = 0.0 < self._cycle_s <= 0.5 * lasted_s and probe.excess > 0.0
        if overspent or outlasted:
            return self._accept_probe(probe, now, ledger, overspent=overspent)
        if lasted_s > max(ABANDON_S, 2.2 * self._cycle_s) or probe.excess < -5.0:
            self._gain = 0.0
            self._enter_cruise(now)
        return None

    def _accept_probe(
        self, probe: _Probe, now: Instant, ledger: Ledger, *, overspent: bool
    ) -> Effect:
        if self._cycle_s and self._is_searching and overspent and not self._is_penalty:
            self._is_penalty = True  # a whole quota too much, and no refusal: it is no quota
            self._allowance = ALLOWANCE
        self._known, self._limit = self._limit, probe.rate
        self._is_proven = self._is_penalty or not self._cycle_s
        if self._is_penalty:
            self._hold_s = max(self._hold_s, 2.0 * self._pause_s)
        if probe.rate >= 0.999 * self._ceiling:
            self._limit = self._ceiling / self._settings.cruise
            self._enter_cruise(now)
        elif self._cycle_s or (self._is_searching and self._refused <= CLOSE * self._limit):
            self._gain = 0.0
            self._is_searching = False
            self._enter_cruise(now)
        else:
            if not self._is_searching:
                self._gain = min(GAIN_MAX, 1.25 * max(self._gain, GAIN))
            self._start_probe(now, ledger)
        return Effect(note=Note.SPED_UP)

    # ------------------------------------------------------------------ refusals

    def _on_refusal(self, sample: Sample, ledger: Ledger) -> Effect | None:
        if sample.sent_at <= self._decided_at:
            return None
        now = sample.done_at
        self._decided_at = now
        if self._phase is Phase.RECOVER:
            return self._refused_again()
        if self._is_number_to_blame(sample):
            return Effect(block_s=PAUSE_S, note=Note.SLOWED)
        delivery = ledger.delivery(now)
        episode = _Episode(self._phase, self.rate, ledger.count, delivery, sample)
        episode.first_wait_s = self._first_wait_s(episode)
        self._episode = episode
        self._phase = Phase.RECOVER
        self.trial_only = True
        return Effect(block_s=episode.first_wait_s, note=Note.SLOWED)

    def _is_number_to_blame(self, sample: Sample) -> bool:
        if sample.in_flight < 2:
            return False
        if self._blame is None:
            self._blame = ConcurrencyBlame(self._settings.max_concurrency, sample.done_at)
        return self._blame.accept(sample)

    def _refused_again(self) -> Effect:
        episode = self._episode
        assert episode is not None
        episode.refusals += 1
        # Known hosts: the pause so far, again. Unknown ones double from the first wait at once.
        doublings = episode.refusals - (2 if self._limit else 1)
        wait_s = min(self._settings.max_delay_s, episode.first_wait_s * 2.0**doublings)
        return Effect(block_s=wait_s)

    def _first_wait_s(self, episode: _Episode) -> float:
        """Until the first trial: a token's wait, or what earlier pauses and the overspending say."""
        if not self._limit:
            return 1.0
        token_s = max(0.5, 1.0 / self._limit)
        probe = self._probe
        if episode.cause is Phase.PROBE and self._cycle_s and not self._is_penalty:
            assert probe is not None
            return max(token_s, 0.9 * probe.excess / self._limit, 0.5 * self._pause_s)
        return 0.5 * self._pause_s if self._pause_s > 4.0 * token_s else token_s

    def _on_failure(self, sample: Sample, ledger: Ledger) -> Effect | None:
        """5xx, timeouts: a refusal for a trial, a hint about numbers, else weak evidence."""
        now = sample.done_at
        is_new = sample.sent_at > self._decided_at
        if self._phase is Phase.RECOVER:
            if not is_new:
                return None
            self._decided_at = now
            return self._refused_again()
        if is_new and self._is_number_to_blame(sample):
            self._decided_at = now
            return Effect(block_s=PAUSE_S, note=Note.SLOWED)
        self._weak_in_a_row += 1
        self._weak_recent += 1.0
        is_much = self._weak_in_a_row >= WEAK_IN_A_ROW or self._weak_recent >= WEAK_OF_20
        if not is_new or not is_much:
            return None
        self._decided_at = now
        self._weak_in_a_row, self._weak_recent = 0, 0.0
        ledger.forget_climb()
        self._limit = 0.7 * self.rate
        self._enter_cruise(now)
        return Effect(note=Note.SLOWED)

    def _drain(self, median_s: float, now: Instant, ledger: Ledger) -> Effect:
        """The host queues: let the queue empty, then cruise below what flowed."""
        was_probing = self._phase is Phase.PROBE
        self._limit = min(KEEP_QUEUEING * ledger.delivery(now), 0.97 * self.rate)
        self._refused = self.rate
        self._is_searching = not was_probing
        ledger.forget_climb()
        if was_probing:
            self._gain = 0.0
            self._hold_s = min(2.0 * self._hold_s, self._longest_hold_s(1))
        self._enter_cruise(now)
        self._set_rate(0.6 * self._limit)
        self._drain_until = now + 2.0 * median_s
        assert self._guard is not None
        self._guard.acted()
        return Effect(note=Note.SLOWED)

    # ------------------------------------------------------------------ what a refusal teaches

    def _recover(self, sample: Sample, ledger: Ledger) -> Effect:
        """The first accepted trial ends the episode: measure, decide, go on."""
        episode, now = self._episode, sample.done_at
        assert episode is not None
        cycle = self._measure(episode, sample.sent_at, ledger)
        old = self._limit
        is_first = ledger.is_climbing
        is_replay = episode.cause is Phase.CRUISE and now < self._grace_until
        if is_first:
            self._identify(episode, cycle, ledger)
        elif episode.cause is Phase.PROBE:
            self._revise_after_probe(cycle, ledger)
        elif is_replay:
            self._is_searching = True
        else:
            self._revise_after_cruise(cycle)
        if not is_first or not cycle.is_long:
            self._update_allowance(cycle)
        self._update_hold(episode, cycle, old, is_first=is_first)
        self._refused = episode.rate
        self._pause_s = cycle.pause_s
        if is_first or cycle.is_whole:
            self._recovered_at, self._recovered_count = sample.sent_at, ledger.count
        self._episode = None
        self._enter_cruise(now)
        if is_replay:
            self._set_rate(max(0.6 * episode.rate, 0.25 * self._limit))
            self._drain_until = now + REPLAY_REST_S
        elif is_first and cycle.is_long:
            # Go straight on at a rate between: a quota is measured over one whole cycle of its
            # own, a penalty shows itself by letting it pass.
            self._grace_until = now + 1.2 * self._cycle_s
            self._start_probe(now, ledger)
        return Effect(note=Note.RECOVERED)

    def _measure(self, episode: _Episode, trial_at: Instant, ledger: Ledger) -> _Cycle:
        pause_s = trial_at - episode.since
        # The pause really ended between the last refusal and this trial. Where the wait was a
        # guess of ours, the middle is the best estimate.
        is_guess = (episode.refusals > 1 or self._pause_s > 4.0) and not episode.is_told
        ended_at = 0.5 * (trial_at + self._decided_at) if is_guess else trial_at
        accepts = ledger.count - self._recovered_count
        span_s = max(1e-6, ended_at - self._recovered_at)
        return _Cycle(
            accepts=accepts,
            span_s=span_s,
            rate=accepts / span_s,
            before_refusal=episode.count - self._recovered_count,
            active_s=max(1e-6, episode.since - self._recovered_at),
            pause_s=pause_s,
            trial_at=trial_at,
            ended_at=ended_at,
            is_long=pause_s > LONG_S and pause_s * episode.rate > LONG_REQUESTS,
            is_whole=accepts >= EXACT and span_s >= 0.8 * self._cycle_s,
        )

    def _identify(self, episode: _Episode, cycle: _Cycle, ledger: Ledger) -> None:
        """The first refusal ever: what the climb says about the limit."""
        average = ledger.best_average(cycle.ended_at)
        self._is_searching = True
        self._is_proven = False
        if cycle.is_long:
            self._limit = min(average.rate, episode.rate)
            self._cycle_s = cycle.ended_at - average.since
            self._allowance = max(ALLOWANCE, float(episode.count - average.accepted))
        else:
            self._limit = min(max(average.rate, 0.9 * episode.delivery), episode.rate)

    def _revise_after_probe(self, cycle: _Cycle, ledger: Ledger) -> None:
        """A refused probe: the limit is at least what it was, if that was proved."""
        probe, self._gain, self._is_searching = self._probe, 0.0, False
        assert probe is not None
        if not cycle.is_whole:
            return
        if not self._is_proven:
            self._limit = min(cycle.rate, 0.97 * probe.rate)
            if self._cycle_s:
                self._cycle_s = max(self._cycle_s, cycle.span_s)
            return
        sure = cycle.accepts / (cycle.trial_at - self._recovered_at)
        if 0.0 < 0.8 * self._cycle_s <= cycle.ended_at - probe.since:
            sure = max(sure, (ledger.count - probe.count) / (cycle.trial_at - probe.since))
        self._limit = max(self._limit, min(sure, 0.97 * probe.rate))

    def _revise_after_cruise(self, cycle: _Cycle) -> None:
        """A rate that was believed safe was refused: the limit has moved, or was wrong."""
        old = self._limit
        was_proven, self._is_proven = self._is_proven, False
        self._is_searching = True
        if self._cycle_s and not was_proven and self._known and cycle.is_long:
            self._limit = self._known
            self._is_searching = False
        elif not cycle.is_whole:
            self._limit = min(max(1.05 * cycle.rate, 0.6 * old), 0.93 * old)
        elif self._is_penalty and cycle.is_long and self._overspent(cycle) > 1.2 * self._allowance:
            flowed = cycle.before_refusal / cycle.active_s  # the pause measures nothing here
            self._limit = 0.97 * min(flowed, old)
        else:
            self._limit = min(max(cycle.rate, 0.5 * old), 0.97 * old)

    def _overspent(self, cycle: _Cycle) -> float:
        return cycle.before_refusal - cycle.rate * cycle.active_s

    def _update_allowance(self, cycle: _Cycle) -> None:
        """What was let through above the limit before the refusal; old observations fade."""
        above = cycle.before_refusal - self._limit * cycle.active_s
        faded = (0.9 if cycle.is_long else 0.7) * self._allowance
        # Half a window's quota can always have been left over when a probe begins.
        quota = 0.0 if self._is_penalty else 0.5 * self._limit * self._cycle_s
        self._allowance = min(ALLOWANCE_MAX, max(ALLOWANCE, above, faded, quota))

    def _update_hold(self, episode: _Episode, cycle: _Cycle, old: float, *, is_first: bool) -> None:
        """When to probe next: by the error budget, and by what the refusal cost."""
        was_probe = episode.cause is Phase.PROBE
        if was_probe:
            self._hold_s = min(2.0 * self._hold_s, self._longest_hold_s(episode.refusals))
        elif is_first or self._limit < 0.85 * old:
            self._hold_s = HOLD_S
        if not cycle.is_long or is_first:
            return
        lost_s = cycle.span_s - cycle.accepts / self._limit
        self._hold_s = max(self._hold_s, min(HOLD_COSTLY_S, 10.0 * lost_s))
        probe = self._probe
        if was_probe and self._is_proven and probe is not None:
            made_up_for = 0.3 * self._limit * (cycle.ended_at - episode.since)
            if probe.excess < made_up_for:
                self._is_penalty = True
                self._allowance = max(ALLOWANCE, probe.excess)

    # ------------------------------------------------------------------ from outside

    def restart(self, now: Instant) -> None:
        """The breaker closed: cruise at half of what was believed, and search upwards."""
        if self._ledger is not None:
            self._ledger.forget_climb()
            self._recovered_at, self._recovered_count = now, self._ledger.count
        self._refused = self._limit or self.rate
        self._limit = max(0.5 * self._refused, 1.0 / self._settings.max_delay_s)
        self._is_searching = True
        self._episode = None
        self._hold_s = HOLD_S
        self._enter_cruise(now)

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Cruise at the remembered limit, drawn (geometrically) to the start rate as it ages."""
        if lesson.delay_s <= 0.0:
            return
        remembered = 1.0 / lesson.delay_s
        limit: float = (0.9 * remembered) ** trust * self.rate ** (1.0 - trust)
        self._limit = min(limit, remembered, self._ceiling / self._settings.cruise)
        self._refused = 1.0 / lesson.floor_s if lesson.floor_s > 0.0 else 0.0
        self._is_searching = self._refused > self._limit
        self._allowance = max(ALLOWANCE, lesson.allowance)
        self._pause_s = lesson.block_s
        self._phase = Phase.CRUISE
        self._set_rate(self._settings.cruise * self._limit)

    def lesson(self) -> Lesson:
        """The limit (or the rate reached so far), the refused rate, allowance and pause."""
        return Lesson(
            delay_s=1.0 / (self._limit or self.rate),
            floor_s=1.0 / self._refused if self._refused else 0.0,
            allowance=self._allowance,
            block_s=self._pause_s,
            concurrency=self.concurrency,
            is_proven=self._is_proven,
        )
