"""`learned`: find the host's hidden limit and hold just under it.

        refused                         first accepted trial: measure
 CLIMB ─────────► RECOVER ─────────────────────────► CRUISE ◄─────────────────┐
   │ ×1.3 per      ▲  one trial at a time; first      │ ρ·limit               │ refused: the limit
   │ 10 OK, 4 s    │  wait by what is believed, then  │ after `hold_s`        │ stays, hold doubles
   └─► CRUISE      │  the pause so far, again         ▼                       │
     at a ceiling  └────────── refused ─────────── PROBE p > limit ───────────┘
                                                      └─ proved: limit = p, probe on

Here are the phases: what to do now. What a refusal says about the limit is `belief`, the counting
under it `ledger`; whether a refusal was about the rate at all is `blame`; a host that queues
instead of refusing is noticed by `latency`, and then drained: cruise at 0.6 of what flowed for two
round trips, then just below it.

Rules that hold throughout: evidence counts once (an answer to a request sent before the last
decision says nothing new); 5xx and timeouts are weak evidence (3 in a row, or 5 in 20); a rate that
was not used is never raised. A quota that was spent in a burst is replayed at us for one cycle,
because the burst leaves the server's window as it came; refusals in that time change nothing.

Constants without a source of their own were chosen on the 14 tuning servers (`make bench`) and
judged on 27 others; docs/adr/0004 tells what was tried.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from ..model import NEVER, OK, OVERLOAD, THROTTLE
from .base import Effect, Lesson, Note
from .belief import EXACT, HOLD_S, Belief
from .blame import PAUSE_S, ConcurrencyBlame
from .latency import MEDIAN_OF, queueing_s
from .ledger import Ledger
from .measure import Cycle, Episode, Probe

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..vitals import Vitals

GROWTH = 1.3  # reaches 30/s from 2/s in 46 s (pace §2.4 asks for 60)
STEP_OK = 10
STEP_S = 4.0
USED = 0.7  # share of a rate that must have flowed before it is raised
ABANDON_S = 120.0  # a probe that proves nothing in this time
LONG_S, LONG_REQUESTS = 5.0, 10.0  # a pause longer than both is more than a token's wait
WEAK_IN_A_ROW, WEAK_OF_20 = 3, 5.0
KEEP_QUEUEING = 0.94  # of what flowed while a queue formed
REPLAY_REST_S = 5.0
LOOK_EVERY = 8  # samples between two looks at the latency: a median costs a microsecond


class Phase(Enum):
    """What the strategy is doing."""

    CLIMB = "climb"
    CRUISE = "cruise"
    PROBE = "probe"
    RECOVER = "recover"


CLIMB, CRUISE, PROBE, RECOVER = Phase  # see model.py: looking members up is slow


class Learned:
    """The default strategy: climb, cruise, probe, recover."""

    __slots__ = (
        "_attempt",
        "_belief",
        "_blame",
        "_ceiling",
        "_decided_at",
        "_ledger",
        "_phase",
        "_settings",
        "_step_ok",
        "_step_since",
        "_weak_in_a_row",
        "_weak_recent",
        "concurrency",
        "rate",
    )
    burst = 1
    is_patient = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ceiling = settings.rate_ceiling
        self.rate = min(self._ceiling, 1.0 / settings.start_delay_s)
        self.concurrency = settings.max_concurrency
        self._phase = CLIMB
        # Made when there is something to put into them: most hosts are small and healthy.
        self._ledger: Ledger | None = None
        self._belief: Belief | None = None
        self._blame: ConcurrencyBlame | None = None
        self._attempt: Probe | Episode | None = None
        self._decided_at: Instant = NEVER  # answers to requests sent before this are old news
        self._step_since: Instant = 0.0  # of the climb's step, or of the cruise
        self._step_ok = 0
        self._weak_in_a_row = 0
        self._weak_recent = 0.0

    @property
    def phase(self) -> str:
        """What the strategy is doing, in a word."""
        return self._phase.value

    @property
    def trial_only(self) -> bool:
        """While recovering, one request at a time shows whether the host takes any."""
        return self._phase is RECOVER

    def on_sample(self, sample: Sample, vitals: Vitals) -> Effect | None:
        """Learn from one answer."""
        ledger = self._ledger or self._begin(sample.sent_at)
        outcome = sample.outcome
        if outcome is THROTTLE:
            return self._on_refusal(sample, ledger)
        if outcome is OVERLOAD:
            return self._on_failure(sample, ledger)
        now = sample.done_at
        ledger.accept(now)
        phase = self._phase
        if phase is RECOVER:
            return self._recover(sample, ledger) if sample.sent_at > self._decided_at else None
        if outcome is OK:
            if self._weak_recent:
                self._weak_in_a_row = 0
                self._weak_recent *= 0.95
            if sample.in_flight > 1:
                self._note_company(sample)
            if vitals.samples % LOOK_EVERY == 0 and vitals.samples >= MEDIAN_OF:
                effect = self._watch_latency(vitals, now, ledger)
                if effect is not None:
                    return effect
        if phase is CRUISE:
            return self._cruise(now, ledger)
        if phase is PROBE:
            return self._judge_probe(sample, ledger)
        return self._climb(sample, ledger) if outcome is OK else None

    def _begin(self, now: Instant) -> Ledger:
        """The first sample: from here on accepts and time are counted."""
        self._ledger = ledger = Ledger(now)
        self._step_since = now
        if self._belief is not None:
            self._belief.since = now  # recalled, before anybody knew the time
        return ledger

    def _set_rate(self, rate: float) -> None:
        self.rate = max(1.0 / self._settings.max_delay_s, min(self._ceiling, rate))

    # ------------------------------------------------------------------ climb, cruise, probe

    def _climb(self, sample: Sample, ledger: Ledger) -> Effect | None:
        if sample.sent_at < self._step_since:
            return None
        self._step_ok += 1
        if self._step_ok < STEP_OK:
            return None
        now = sample.done_at
        elapsed_s = now - self._step_since
        if elapsed_s < STEP_S:
            return None
        flowed = self._step_ok / elapsed_s
        self._step_since, self._step_ok = now, 0
        if flowed >= USED * self.rate and self.rate < self._ceiling:
            self._set_rate(self.rate * GROWTH)
            ledger.step(now)
            return Effect(note=Note.SPED_UP)
        if self.rate >= self._ceiling or sample.in_flight >= self.concurrency:
            self._believe(self.rate / self._settings.cruise, now, ledger)
            self._enter_cruise(now)
        return None

    def _believe(self, limit: float, now: Instant, ledger: Ledger) -> Belief:
        """Set the limit, keeping whatever else is believed."""
        belief = self._belief
        if belief is None:
            belief = self._belief = Belief(limit, now, ledger.count)
        belief.limit = limit
        return belief

    def _enter_cruise(self, now: Instant) -> None:
        belief = self._belief
        assert belief is not None
        self._phase = CRUISE
        self._attempt = None
        self._step_since, self._step_ok = now, 0
        self._set_rate(self._settings.cruise * belief.limit)

    def _cruise(self, now: Instant, ledger: Ledger) -> Effect | None:
        belief = self._belief
        assert belief is not None
        self._step_ok += 1
        if now > belief.drain_until:
            belief.drain_until = inf
            self._set_rate(self._settings.cruise * belief.limit)
        quiet_s = now - self._step_since
        enough = self._step_ok >= EXACT and quiet_s >= max(HOLD_S, belief.cycle_s)
        if enough and not belief.is_proven:
            belief.is_proven = True
        if quiet_s < belief.hold_s or self._step_ok < STEP_OK or self.rate >= self._ceiling:
            return None
        if ledger.delivery(now) < USED * self.rate:
            return None
        if belief.is_proven:
            belief.peak = max(belief.peak, belief.limit)
        self._start_probe(now, belief, ledger)
        return Effect(note=Note.PROBING)

    def _start_probe(self, now: Instant, belief: Belief, ledger: Ledger) -> None:
        self._phase = PROBE
        self._set_rate(belief.probe_rate())
        self._attempt = Probe(self.rate, ledger.count, now)

    def _judge_probe(self, sample: Sample, ledger: Ledger) -> Effect | None:
        probe, belief, now = self._attempt, self._belief, sample.done_at
        assert isinstance(probe, Probe)
        assert belief is not None
        if sample.sent_at <= probe.since:
            return None
        probe.excess += 1.0 - belief.limit * (sample.sent_at - probe.last_at)
        probe.last_at = sample.sent_at
        lasted_s = now - probe.since
        if belief.proves(probe, lasted_s):
            probe_on = belief.accept(probe)
            if probe.rate >= 0.999 * self._ceiling:
                belief.limit = self._ceiling / self._settings.cruise
                probe_on = False
            self._enter_cruise(now)
            if probe_on:
                self._start_probe(now, belief, ledger)
            return Effect(note=Note.SPED_UP)
        if lasted_s > max(ABANDON_S, 2.2 * belief.cycle_s) or probe.excess < -5.0:
            belief.gain = 0.0
            self._enter_cruise(now)
        return None

    # ------------------------------------------------------------------ refusals

    def _on_refusal(self, sample: Sample, ledger: Ledger) -> Effect | None:
        if sample.sent_at <= self._decided_at:
            return None
        now = sample.done_at
        self._decided_at = now
        if self._phase is RECOVER:
            return self._refused_again(now)
        if self._is_number_to_blame(sample):
            return Effect(block_s=PAUSE_S, note=Note.SLOWED)
        probe = self._attempt if isinstance(self._attempt, Probe) else None
        episode = Episode(self.rate, ledger.count, ledger.delivery(now), probe, sample)
        belief = self._belief
        if ledger.is_climbing or belief is None:
            first_wait_s, episode.wait_s = 1.0, 2.0
        else:
            first_wait_s = episode.wait_s = belief.first_wait_s(probe)
        self._attempt = episode
        self._phase = RECOVER
        return Effect(block_s=first_wait_s, note=Note.SLOWED)

    def _refused_again(self, now: Instant) -> Effect:
        episode = self._attempt
        assert isinstance(episode, Episode)
        episode.refusals += 1
        episode.last_at = now
        # The pause so far, again: trials double their distance from the first refusal.
        wait_s = episode.wait_s * 2.0 ** min(30, episode.refusals - 2)
        return Effect(block_s=min(self._settings.max_delay_s, wait_s))

    def _is_number_to_blame(self, sample: Sample) -> bool:
        if sample.in_flight < 2:
            return False
        blame = self._company(sample)
        is_to_blame = blame.accept(sample)
        self.concurrency = blame.limit
        return is_to_blame

    def _note_company(self, sample: Sample) -> None:
        """A success with others under way is evidence; most hosts never have any."""
        blame = self._company(sample)
        blame.on_success(sample)
        self.concurrency = blame.limit

    def _company(self, sample: Sample) -> ConcurrencyBlame:
        if self._blame is None:
            self._blame = ConcurrencyBlame(self._settings.max_concurrency, sample.done_at)
        return self._blame

    def _recover(self, sample: Sample, ledger: Ledger) -> Effect:
        """The first accepted trial ends the episode: measure, revise, go on."""
        episode, belief, now = self._attempt, self._belief, sample.done_at
        assert isinstance(episode, Episode)
        is_first = ledger.is_climbing
        if is_first or belief is None:
            belief = self._belief = Belief(0.0, ledger.born_at, 0)
        cycle = self._measure(episode, belief, sample.sent_at, ledger)
        is_replay = episode.probe is None and now < belief.grace_until
        if is_first:
            belief.identify(episode, cycle, ledger)
        elif is_replay:
            belief.replay(episode, cycle, ledger)
        else:
            belief.revise(episode, cycle, ledger, self._settings.probe_budget)
        self._enter_cruise(now)
        if is_replay:
            self._set_rate(max(0.6 * episode.rate, 0.25 * belief.limit))
            belief.drain_until = now + REPLAY_REST_S
        elif is_first and cycle.is_long:
            # Go straight on at a rate between: a quota is then measured over a whole cycle of
            # its own, and a penalty shows itself by letting it pass.
            belief.grace_until = now + 1.2 * belief.cycle_s
            self._start_probe(now, belief, ledger)
        return Effect(note=Note.RECOVERED)

    def _measure(
        self, episode: Episode, belief: Belief, trial_at: Instant, ledger: Ledger
    ) -> Cycle:
        pause_s = trial_at - episode.since
        # The pause really ended between the last refusal and this trial. Where the wait was a
        # guess of ours, the middle is the best estimate.
        is_guess = (episode.refusals > 1 or belief.pause_s > 4.0) and not episode.is_told
        ended_at = 0.5 * (trial_at + episode.last_at) if is_guess else trial_at
        return Cycle(
            accepts=ledger.count - belief.count,
            span_s=max(1e-6, ended_at - belief.since),
            before_refusal=episode.count - belief.count,
            active_s=max(1e-6, episode.since - belief.since),
            pause_s=pause_s,
            since=belief.since,
            trial_at=trial_at,
            ended_at=ended_at,
            is_long=pause_s > LONG_S and pause_s * episode.rate > LONG_REQUESTS,
        )

    # ------------------------------------------------------------------ weaker signs

    def _on_failure(self, sample: Sample, ledger: Ledger) -> Effect | None:
        """5xx, timeouts: a refusal for a trial, a hint about numbers, else weak evidence."""
        now = sample.done_at
        if self._phase is RECOVER:
            if sample.sent_at <= self._decided_at:
                return None
            self._decided_at = now
            return self._refused_again(now)
        self._weak_in_a_row += 1
        self._weak_recent += 1.0
        if sample.sent_at <= self._decided_at:
            return None
        if self._is_number_to_blame(sample):
            self._decided_at = now
            return Effect(block_s=PAUSE_S, note=Note.SLOWED)
        if self._weak_in_a_row < WEAK_IN_A_ROW and self._weak_recent < WEAK_OF_20:
            return None
        self._decided_at = now
        self._weak_in_a_row, self._weak_recent = 0, 0.0
        self._cut(0.7 * self.rate, now, ledger)
        return Effect(note=Note.SLOWED)

    def _watch_latency(self, vitals: Vitals, now: Instant, ledger: Ledger) -> Effect | None:
        """If the host queues, let the queue empty, then cruise below what flowed."""
        belief = self._belief
        median_s = queueing_s(vitals, belief.drained_at if belief is not None else 0, now)
        if not median_s:
            return None
        was_probe = self._phase is PROBE
        refused = self.rate
        belief = self._cut(min(KEEP_QUEUEING * ledger.delivery(now), 0.97 * refused), now, ledger)
        belief.drained_at = vitals.samples
        belief.refused = refused
        belief.is_searching = not was_probe
        if was_probe:
            belief.gain = 0.0
            belief.lengthen_hold(self._settings.probe_budget, 1)
        self._set_rate(0.6 * belief.limit)
        belief.drain_until = now + 2.0 * median_s
        return Effect(note=Note.SLOWED)

    def _cut(self, limit: float, now: Instant, ledger: Ledger) -> Belief:
        """Cruise at a lower limit that no refusal has measured."""
        ledger.forget_climb()
        belief = self._believe(limit, now, ledger)
        self._enter_cruise(now)
        return belief

    # ------------------------------------------------------------------ from outside

    def restart(self, now: Instant) -> None:
        """The breaker closed: cruise at half of what was believed, and search upwards."""
        ledger = self._ledger or Ledger(now)
        self._ledger = ledger
        refused = self._belief.limit if self._belief is not None else self.rate
        belief = self._cut(max(0.5 * refused, 1.0 / self._settings.max_delay_s), now, ledger)
        belief.refused = refused
        belief.is_searching = False  # the rate was not refused: the way back up is free
        belief.hold_s = HOLD_S
        belief.since, belief.count = now, ledger.count

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Cruise at the remembered limit, drawn (geometrically) to the start rate as it ages."""
        if lesson.delay_s <= 0.0:
            return
        remembered = 1.0 / lesson.delay_s
        aged: float = (0.9 * remembered) ** trust * self.rate ** (1.0 - trust)
        belief = Belief(min(aged, remembered, self._ceiling / self._settings.cruise), 0.0, 0)
        belief.refused = 1.0 / lesson.floor_s if lesson.floor_s > 0.0 else 0.0
        belief.is_searching = belief.refused > belief.limit
        belief.allowance = max(belief.allowance, lesson.allowance)
        belief.pause_s = lesson.block_s
        self._belief = belief
        self._phase = CRUISE
        self._set_rate(self._settings.cruise * belief.limit)

    def lesson(self) -> Lesson:
        """The limit (or the rate reached so far), the refused rate, allowance and pause."""
        belief = self._belief
        if belief is None:
            return Lesson(delay_s=1.0 / self.rate, concurrency=self.concurrency)
        return Lesson(
            delay_s=1.0 / belief.limit,
            floor_s=1.0 / belief.refused if belief.refused else 0.0,
            allowance=belief.allowance,
            block_s=belief.pause_s,
            concurrency=self.concurrency,
            is_proven=belief.is_proven,
        )
