"""`learned`: find the host's unknown limit and stay just below it.

        refused                         first accepted trial: measure
 CLIMB ─────────► RECOVER ─────────────────────────► CRUISE ◄─────────────────┐
   │ +0.25/s each  ▲  one trial at a time; first      │ ρ·limit               │ refused: the limit
   │ second        │  wait by the estimate, then the  │ after `hold_s`        │ stays, hold doubles
   └─► CRUISE      │  pause doubles with each trial   ▼                       │
     at a ceiling  └────────── refused ─────────── PROBE p > limit ───────────┘
                                                      faster and faster

This module has the phases. `estimate` derives the limit from refusals, `kinds` recognises what kind
of limit it is, `accepted` counts accepted requests, `concurrency` decides whether the number of
requests in flight caused a refusal, and `latency` detects a host that queues requests instead of
refusing them. To drain such a queue, cruise for two round trips at 0.6 of the accepted rate, then
just below that rate.

Evidence counts once: a response to a request sent before the last decision says nothing new. 5xx
and timeouts are weak evidence: 3 in a row, or 5 in 20, lower the rate. While the rate is being
raised, two close together or three in 20 are a refusal, unless that is usual for the host
(docs/adr/0038): some servers refuse with a 503. A rate that was not used is never raised.
If a quota was used up in a burst, refusals during the next cycle change nothing: the requests of
the burst leave the server's window at the same speed as they came.

Constants without a source were chosen on the 14 tuning servers (`make bench`) and checked on 27
others; docs/adr/0004 describes what was tried. This module is long because it has all transitions
between the phases.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from ..model import NEVER, OK, OVERLOAD, THROTTLE
from .accepted import AcceptedCounter
from .base import Effect, Lesson, PaceChange
from .concurrency import PAUSE_S, ConcurrencyLearner
from .estimate import EXACT, HOLD_FULL_S, HOLD_S, LimitEstimate
from .kinds import KnownLimit, LimitKind
from .latency import MEDIAN_OF, queueing_s
from .measure import Cycle, Episode, Probe

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats

# The climb: a line, from where that is steeper (3.6/s) an exponential. A line spends most of its
# requests near its end, and they are the measurement: so it is quicker than an exponential from the
# start, and more exact (docs/adr/0004). 200 pages in 38 s; from 2/s to 30/s in 37 s.
RISE = 0.25  # requests/s more each second
RISE_SHARE = 0.07  # of the rate more each second
RISE_OK, RISE_S = 3, 2.0  # the shortest step
STEP_OK, STEP_S = 10, 4.0  # of a probe
USED = 0.7  # share of a rate that must have been used before it is raised
PROBE_GROWTH = 0.08  # of the first step of a probe; of the second twice as much, and so on
ABANDON_S = 120.0  # stop a probe that has proved nothing in this time
LONG_S, LONG_REQUESTS = 5.0, 10.0  # longer than 5 s and than 10 requests take: no wait for a token
WEAK_IN_A_ROW, WEAK_OF_20 = 3, 5.0
WEAK_RAISING = 1.9  # failures in 20 that are a refusal while the rate is being raised
WEAK_FAILING = 1.35  # on a host that refuses by failures: two in 20
SUDDEN_AFTER = 12  # successes without a failure: so many are rare on a host that fails at random
USUAL_FAILING = 0.016  # four in 200 while cruising on such a host: the limit is a little lower
WEAK_USUAL = 80.0  # more failures allowed, times the share of them that is usual for the host
USUAL_WEIGHT = 0.005  # of one request in that share
REPLAY_REST_S = 5.0
LOOK_EVERY = 8  # samples between two latency checks: a median costs a microsecond


class Phase(Enum):
    """The phases of the strategy."""

    CLIMB = "climb"
    CRUISE = "cruise"
    PROBE = "probe"
    RECOVER = "recover"


CLIMB, CRUISE, PROBE, RECOVER = Phase  # see model.py: member lookup is slow


class LearnedStrategy:
    """The default strategy: climb, cruise, probe, recover."""

    __slots__ = (
        "_accepted",
        "_attempt",
        "_ceiling",
        "_concurrency",
        "_decided_at",
        "_estimate",
        "_failures",
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
    may_defer_first = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ceiling = settings.rate_ceiling
        self.rate = min(self._ceiling, 1.0 / settings.start_delay_s)
        self.concurrency = settings.max_concurrency
        self._phase = CLIMB
        # Created when they are needed: most hosts are small and healthy.
        self._accepted: AcceptedCounter | None = None
        self._estimate: LimitEstimate | None = None
        self._concurrency: ConcurrencyLearner | None = None
        self._attempt: Probe | Episode | None = None
        self._decided_at: Instant = NEVER  # responses to requests sent before this do not count
        self._step_since: Instant = 0.0  # start of the present climb step or cruise
        self._step_ok = 0
        self._weak_in_a_row = 0
        self._weak_recent = 0.0
        self._failures = 0  # that neither requests in flight nor a pause explain

    @property
    def phase(self) -> str:
        """The present phase in one word."""
        return self._phase.value

    @property
    def known_limits(self) -> tuple[KnownLimit, ...]:
        """The limits of which the kind was recognised: of the rate, of requests in flight."""
        estimate, accepted, learner = self._estimate, self._accepted, self._concurrency
        kind = None if estimate is None else estimate.kind
        found = []
        if estimate is not None and accepted is not None and kind and estimate.is_shown(kind):
            found.append(kind.counted_from(-accepted.born_at))
        if learner is not None and learner.known is not None:
            found.append(learner.known)
        return tuple(found)

    @property
    def trial_only(self) -> bool:
        """Return whether only one request may be in flight: while recovering."""
        return self._phase is RECOVER

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:
        """Learn from one finished request."""
        accepted = self._accepted or self._begin(sample.sent_at)
        outcome = sample.outcome
        if outcome is THROTTLE:
            return self._on_refusal(sample, accepted)
        if outcome is OVERLOAD:
            return self._on_failure(sample, accepted)
        now = sample.done_at
        accepted.add(now)
        phase = self._phase
        if phase is RECOVER:
            return self._recover(sample, accepted) if sample.sent_at > self._decided_at else None
        if outcome is OK:
            if self._weak_recent:
                self._weak_in_a_row = 0
                self._weak_recent *= 0.95
            if sample.in_flight > 1:
                self._note_concurrent_success(sample)
            if stats.samples % LOOK_EVERY == 0 and stats.samples >= MEDIAN_OF:
                effect = self._watch_latency(stats, now, accepted)
                if effect is not None:
                    return effect
        if phase is CRUISE:
            return self._cruise(now, accepted)
        if phase is PROBE:
            return self._judge_probe(sample, accepted)
        return self._climb(sample, accepted) if outcome is OK else None

    def _begin(self, now: Instant) -> AcceptedCounter:
        """Start counting accepted requests and time, at the first sample."""
        self._accepted = accepted = AcceptedCounter(now)
        self._step_since = now
        if self._estimate is not None:
            self._estimate.since = now  # it was recalled from memory, without a time
        return accepted

    def _set_rate(self, rate: float) -> None:
        self.rate = max(1.0 / self._settings.max_delay_s, min(self._ceiling, rate))

    # ------------------------------------------------------------------ climb, cruise, probe

    def _climb(self, sample: Sample, accepted: AcceptedCounter) -> Effect | None:
        if sample.sent_at < self._step_since:
            return None
        self._step_ok += 1
        if self._step_ok < RISE_OK:
            return None
        now = sample.done_at
        elapsed_s = now - self._step_since
        if elapsed_s < RISE_S:
            return None
        flowed = self._step_ok / elapsed_s
        self._step_since, self._step_ok = now, 0
        if flowed >= USED * self.rate and self.rate < self._ceiling:
            self._set_rate(self.rate + max(RISE, RISE_SHARE * self.rate) * elapsed_s)
            accepted.mark(now)
            return Effect(change=PaceChange.SPED_UP)
        # Requests that hang fill the places in flight, too: wait whether they fail.
        is_full = sample.in_flight >= self.concurrency and self._weak_recent < 0.5
        at_ceiling = self.rate >= self._ceiling
        if at_ceiling or is_full:
            # A rate that is not the limit leaves room, so that a free place is taken at once.
            share = self._settings.cruise if at_ceiling else USED
            self._set_limit(self.rate / share, now, accepted)
            self._enter_cruise(now)
        return None

    def _set_limit(self, limit: float, now: Instant, accepted: AcceptedCounter) -> LimitEstimate:
        """Set the estimated limit, and keep the rest of the estimate."""
        estimate = self._estimate
        if estimate is None:
            estimate = self._estimate = LimitEstimate(limit, now, accepted.count)
        estimate.limit = limit
        return estimate

    def _enter_cruise(self, now: Instant) -> None:
        estimate = self._estimate
        assert estimate is not None
        self._phase = CRUISE
        self._attempt = None
        self._step_since, self._step_ok = now, 0
        self._set_rate(self._settings.cruise * estimate.limit)

    def _cruise(self, now: Instant, accepted: AcceptedCounter) -> Effect | None:
        estimate = self._estimate
        assert estimate is not None
        self._step_ok += 1
        if estimate.usual_failures:
            estimate.usual_failures *= 1.0 - USUAL_WEIGHT
            if self._step_ok == 2 * EXACT and self._weak_recent < 0.5:
                estimate.blamed = 0
        if now > estimate.drain_until:
            estimate.drain_until = inf
            self._set_rate(self._settings.cruise * estimate.limit)
        quiet_s = now - self._step_since
        if estimate.recalled and self._step_ok >= STEP_OK and quiet_s >= HOLD_S:
            estimate.limit, estimate.recalled = max(estimate.limit, estimate.recalled), 0.0
            self._set_rate(self._settings.cruise * estimate.limit)
        enough = self._step_ok >= EXACT and quiet_s >= max(HOLD_S, estimate.cycle_s)
        if enough and not estimate.is_proven:
            estimate.is_proven = True
        if quiet_s < estimate.hold_s or self._step_ok < STEP_OK or self.rate >= self._ceiling:
            return None
        if accepted.delivery(now) < USED * self.rate:
            return None
        if estimate.is_proven:
            estimate.peak = max(estimate.peak, estimate.limit)
        self._start_probe(now, estimate, accepted)
        return Effect(change=PaceChange.PROBING)

    def _start_probe(
        self, now: Instant, estimate: LimitEstimate, accepted: AcceptedCounter
    ) -> None:
        self._phase = PROBE
        self._set_rate(estimate.probe_rate())
        self._attempt = Probe(self.rate, accepted.count, now)
        accepted.mark(now)

    def _judge_probe(self, sample: Sample, accepted: AcceptedCounter) -> Effect | None:
        probe, estimate, now = self._attempt, self._estimate, sample.done_at
        assert isinstance(probe, Probe)
        assert estimate is not None
        if sample.sent_at <= probe.since:
            return None
        probe.excess += 1.0 - estimate.limit * (sample.sent_at - probe.last_at)
        probe.last_at = sample.sent_at
        lasted_s = now - probe.since
        if estimate.is_steady:
            return self._judge_steadily(probe, estimate, lasted_s, now, accepted)
        if probe.excess < -5.0:  # the rate is not used
            self._enter_cruise(now)
            return None
        probe.step_ok += 1
        if probe.step_ok < STEP_OK or now - probe.step_since < STEP_S:
            return None
        if self.rate >= 0.999 * self._ceiling and estimate.proves(probe, lasted_s):
            estimate.limit = self._ceiling / self._settings.cruise
            estimate.is_proven = True
            self._enter_cruise(now)
            return Effect(change=PaceChange.SPED_UP)
        accepted.mark(now)
        probe.steps += 1
        probe.step_since, probe.step_ok = now, 0
        self._set_rate(self.rate * (1.0 + PROBE_GROWTH * probe.steps))
        return None

    def _judge_steadily(
        self,
        probe: Probe,
        estimate: LimitEstimate,
        lasted_s: float,
        now: Instant,
        accepted: AcceptedCounter,
    ) -> Effect | None:
        """Judge a probe at a quota or a penalty: it is proved, goes on, or is given up."""
        if estimate.proves(probe, lasted_s):
            probe_on = estimate.accept(probe)
            if probe.rate >= 0.999 * self._ceiling:
                estimate.limit = self._ceiling / self._settings.cruise
                probe_on = False
            self._enter_cruise(now)
            if probe_on:
                self._start_probe(now, estimate, accepted)
            return Effect(change=PaceChange.SPED_UP)
        if lasted_s > max(ABANDON_S, 2.2 * estimate.cycle_s) or probe.excess < -5.0:
            self._enter_cruise(now)
        return None

    # ------------------------------------------------------------------ refusals

    def _on_refusal(self, sample: Sample, accepted: AcceptedCounter) -> Effect | None:
        if sample.sent_at <= self._decided_at:
            if isinstance(self._attempt, Episode):
                self._attempt.cost += 1
            return None
        now = sample.done_at
        self._decided_at = now
        if self._phase is RECOVER:
            return self._refused_again(sample)
        if self._is_concurrency_at_fault(sample):
            return Effect(block_s=PAUSE_S, change=PaceChange.SLOWED)
        return self._begin_episode(sample, accepted)

    def _begin_episode(
        self, sample: Sample, accepted: AcceptedCounter, failures: int = 0
    ) -> Effect:
        """Stop, after a refusal or so many failures, and ask by single trials when to go on."""
        now = sample.done_at
        probe = self._attempt if isinstance(self._attempt, Probe) else None
        episode = Episode(self.rate, accepted.count, accepted.delivery(now), probe, sample)
        accepted.mark(now)
        episode.by_failures = failures > 0
        episode.cost = max(1, failures)
        estimate = self._estimate
        if accepted.is_climbing or estimate is None:
            first_wait_s, episode.wait_s = 1.0, 2.0
        else:
            first_wait_s = episode.wait_s = estimate.first_wait_s(probe, now - accepted.born_at)
        self._attempt = episode
        self._phase = RECOVER
        return Effect(block_s=first_wait_s, change=PaceChange.SLOWED)

    def _refused_again(self, sample: Sample) -> Effect:
        episode, now = self._attempt, sample.done_at
        assert isinstance(episode, Episode)
        episode.refusals += 1
        episode.last_at = now
        episode.told_s = sample.retry_after_s
        if episode.refusals == 2:
            return Effect(block_s=episode.wait_s)
        # Wait as long as the pause lasted so far, so that its length doubles with each trial, until
        # even a ban is over that each trial begins anew.
        return Effect(block_s=now - episode.since + 1.0)

    def _is_concurrency_at_fault(self, sample: Sample) -> bool:
        if sample.in_flight < 2:
            return False
        learner = self._concurrency_learner(sample)
        is_to_blame = learner.lower_if_at_fault(sample)
        self.concurrency = learner.limit
        return is_to_blame

    def _note_concurrent_success(self, sample: Sample) -> None:
        """Learn from a success with other requests in flight; most hosts never have one."""
        learner = self._concurrency_learner(sample)
        learner.on_success(sample)
        self.concurrency = learner.limit

    def _concurrency_learner(self, sample: Sample) -> ConcurrencyLearner:
        if self._concurrency is None:
            self._concurrency = ConcurrencyLearner(self._settings.max_concurrency, sample.done_at)
        return self._concurrency

    def _recover(self, sample: Sample, accepted: AcceptedCounter) -> Effect:
        """End the episode after the first accepted trial: measure, correct the limit, cruise."""
        episode, estimate, now = self._attempt, self._estimate, sample.done_at
        assert isinstance(episode, Episode)
        is_first = accepted.is_climbing
        if is_first or estimate is None:
            estimate = self._estimate = LimitEstimate(0.0, accepted.born_at, 0)
        cycle = self._measure(episode, estimate, sample.sent_at, accepted)
        # What a refused probe has sent too much still counts at the host for a while.
        is_echo = estimate.was_probe and cycle.accepts < EXACT
        is_replay = episode.probe is None and (now < estimate.grace_until or is_echo)
        estimate.is_failing |= is_first and self._is_sudden(episode)
        if is_first:
            estimate.identify(episode, cycle, accepted)
        elif is_replay:
            estimate.replay(episode, cycle, accepted)
        else:
            estimate.revise(episode, cycle, accepted, self._settings.probe_budget)
        accepted.is_climbing = False
        accepted.mark(now)
        estimate.was_probe = episode.probe is not None
        known = estimate.learn_kind(episode, sample.sent_at, accepted)
        is_replay = is_replay and known is None
        self._enter_cruise(now)
        if is_replay:
            self._set_rate(max(0.6 * episode.rate, 0.25 * estimate.limit))
            estimate.drain_until = now + REPLAY_REST_S
        elif is_first and cycle.is_long:
            # Probe at once, at a rate between limit and refused rate: so a quota is measured over
            # a whole cycle, and a penalty is recognised because it does not refuse.
            estimate.grace_until = now + 1.2 * estimate.cycle_s
            self._start_probe(now, estimate, accepted)
        rest_s = estimate.rest_s(now, self._settings.cruise, accepted)
        return Effect(block_s=rest_s, change=PaceChange.RECOVERED)

    def _is_sudden(self, episode: Episode) -> bool:
        """Return whether the first failures ended the climb: at a lower rate they are no limit."""
        were_none_before = self._failures <= episode.cost and episode.count >= SUDDEN_AFTER
        return episode.by_failures and were_none_before

    def _measure(
        self,
        episode: Episode,
        estimate: LimitEstimate,
        trial_at: Instant,
        accepted: AcceptedCounter,
    ) -> Cycle:
        pause_s = trial_at - episode.since
        # The pause really ended between the last refusal and this trial. If the wait was our own
        # guess, the middle is the best estimate.
        is_guess = (episode.refusals > 1 or estimate.pause_s > 4.0) and episode.told_s is None
        ended_at = 0.5 * (trial_at + episode.last_at) if is_guess else trial_at
        # A pause that no trial and no answer has shown may have been over at once.
        is_shown = is_guess or episode.told_s is not None
        return Cycle(
            accepts=accepted.count - estimate.count,
            span_s=max(1e-6, ended_at - estimate.since),
            before_refusal=episode.count - estimate.count,
            active_s=max(1e-6, episode.since - estimate.since),
            pause_s=pause_s,
            since=estimate.since,
            trial_at=trial_at,
            ended_at=ended_at,
            is_long=is_shown and pause_s > LONG_S and pause_s * episode.rate > LONG_REQUESTS,
        )

    # ------------------------------------------------------------------ weaker evidence

    def _on_failure(self, sample: Sample, accepted: AcceptedCounter) -> Effect | None:
        """Learn from a 5xx or timeout: like a refusal for a trial, else weak evidence."""
        now = sample.done_at
        if self._phase is RECOVER:
            if sample.sent_at <= self._decided_at:
                episode = self._attempt
                assert isinstance(episode, Episode)
                episode.cost += 1
                return None
            self._decided_at = now
            return self._refused_again(sample)
        self._weak_in_a_row += 1
        self._weak_recent += 1.0
        estimate = self._estimate
        # A ceiling that was reached in the burst of a bucket is not proved yet.
        is_raised = self._phase is not CRUISE or (
            accepted.is_climbing and estimate is not None and not estimate.is_proven
        )
        if not is_raised and estimate is not None:
            estimate.usual_failures += USUAL_WEIGHT
        if sample.sent_at <= self._decided_at:
            return None
        if self._is_concurrency_at_fault(sample):
            self._decided_at = now
            return Effect(block_s=PAUSE_S, change=PaceChange.SLOWED)
        self._failures += 1
        usual = 0.0 if estimate is None else estimate.usual_failures
        most = WEAK_RAISING + WEAK_USUAL * usual
        is_failing = estimate is not None and estimate.is_failing
        if is_failing:
            most = WEAK_FAILING if usual < USUAL_FAILING else 0.0
        if (is_failing or is_raised) and self._weak_recent >= most:
            self._decided_at = now
            failures = round(self._weak_recent)
            self._weak_in_a_row, self._weak_recent = 0, 0.0
            if estimate and not is_raised and not estimate.blame_failures():
                self._enter_cruise(now)
                return Effect(change=PaceChange.SPED_UP)
            return self._begin_episode(sample, accepted, failures)
        if self._weak_in_a_row < WEAK_IN_A_ROW and self._weak_recent < WEAK_OF_20:
            return None
        self._decided_at = now
        self._weak_in_a_row, self._weak_recent = 0, 0.0
        self._cut(0.7 * self.rate, now, accepted)
        return Effect(change=PaceChange.SLOWED)

    def _watch_latency(
        self, stats: HostStats, now: Instant, accepted: AcceptedCounter
    ) -> Effect | None:
        """Let a queue at the host drain, if there is one, then cruise below that rate."""
        estimate = self._estimate
        acted_at = estimate.drained_at if estimate is not None else 0
        median_s = queueing_s(stats, acted_at, now, self._settings.latency_factor)
        if not median_s:
            return None
        was_probe = self._phase is PROBE
        refused = self.rate
        limit = min(accepted.delivery(now), 0.97 * refused)
        is_echo = stats.samples - acted_at < 2 * MEDIAN_OF  # of a queue that has not drained yet
        if (was_probe or is_echo) and estimate is not None and estimate.is_proven:
            limit = max(limit, estimate.limit)
        estimate = self._cut(limit, now, accepted)
        estimate.drained_at = stats.samples
        estimate.refused = refused
        if estimate.kind is None or estimate.kind.kind is LimitKind.QUEUE:
            estimate.kind = KnownLimit(LimitKind.QUEUE, estimate.limit)
        estimate.is_searching = not was_probe
        if was_probe:
            estimate.lengthen_hold(self._settings.probe_budget, 1)
        self._set_rate(0.6 * estimate.limit)
        estimate.drain_until = now + 2.0 * median_s
        return Effect(change=PaceChange.SLOWED)

    def _cut(self, limit: float, now: Instant, accepted: AcceptedCounter) -> LimitEstimate:
        """Cruise at a lower limit that was not measured by a refusal."""
        accepted.is_climbing = False
        estimate = self._set_limit(limit, now, accepted)
        self._enter_cruise(now)
        return estimate

    # ------------------------------------------------------------------ restart and memory

    def restart(self, now: Instant) -> None:
        """Cruise at half the estimated limit, after the breaker has closed."""
        accepted = self._accepted or AcceptedCounter(now)
        self._accepted = accepted
        if self._estimate is not None and self._estimate.is_failing:
            return  # its failures are refusals, and the limit was measured by them
        episode = self._attempt
        if accepted.is_climbing and isinstance(episode, Episode) and self._is_sudden(episode):
            return  # so are these, probably: the next success measures the limit
        refused = self._estimate.limit if self._estimate is not None else self.rate
        estimate = self._cut(max(0.5 * refused, 1.0 / self._settings.max_delay_s), now, accepted)
        estimate.refused = refused
        estimate.is_searching = False  # the rate was not refused: probes may use larger steps
        estimate.hold_s = HOLD_S
        estimate.since, estimate.count = now, accepted.count

    def configure(self, settings: Settings) -> None:
        """Keep the estimate, and the phase as far as the new maximum rate allows it.

        A climb that only the old maximum had ended goes on below a higher one.
        """
        before, self._ceiling, self._settings = self._ceiling, settings.rate_ceiling, settings
        if self._concurrency is None:
            self.concurrency = settings.max_concurrency
        else:
            self._concurrency.configure(settings.max_concurrency)
            self.concurrency = self._concurrency.limit
        estimate, accepted, probe = self._estimate, self._accepted, self._attempt
        if isinstance(probe, Probe) and self._ceiling < probe.rate:
            self._phase, self._attempt, self._step_ok = CRUISE, None, 0
        if self._phase is CRUISE and estimate is not None:
            was_capped = self.rate >= before and before < self._ceiling
            if was_capped and not estimate.refused and (accepted is None or accepted.is_climbing):
                self._set_rate(settings.cruise * estimate.limit)
                self._phase, self._estimate, self._step_ok = CLIMB, None, 0
            elif estimate.drain_until == inf:
                self._set_rate(settings.cruise * estimate.limit)
        self._set_rate(self.rate)

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Cruise at the geometric mean of remembered limit and start rate, weighted by `trust`."""
        if lesson.delay_s <= 0.0:
            return
        remembered = 1.0 / lesson.delay_s
        aged: float = (0.9 * remembered) ** trust * self.rate ** (1.0 - trust)
        estimate = LimitEstimate(
            min(aged, remembered, self._ceiling / self._settings.cruise), 0.0, 0
        )
        estimate.refused = 1.0 / lesson.floor_s if lesson.floor_s > 0.0 else 0.0
        estimate.is_searching = estimate.refused > estimate.limit
        estimate.allowance = max(estimate.allowance, lesson.allowance)
        estimate.pause_s = lesson.block_s
        estimate.hold_s = HOLD_FULL_S  # it was measured: there is no hurry to try more
        estimate.recalled = remembered if trust >= 0.5 else 0.0
        self._estimate = estimate
        self._phase = CRUISE
        self._set_rate(self._settings.cruise * estimate.limit)

    def lesson(self) -> Lesson:
        """Return the limit (or the rate reached so far), refused rate, allowance and pause."""
        estimate = self._estimate
        if estimate is None:
            return Lesson(delay_s=1.0 / self.rate, concurrency=self.concurrency)
        return Lesson(
            delay_s=1.0 / estimate.limit,
            floor_s=1.0 / estimate.refused if estimate.refused else 0.0,
            allowance=estimate.allowance,
            block_s=estimate.pause_s,
            concurrency=self.concurrency,
            is_proven=estimate.is_proven,
        )
