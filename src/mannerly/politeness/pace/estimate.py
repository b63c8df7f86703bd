"""The estimate of a host's limit, and how refusals and probes change it.

The number of requests that a server accepts between two recoveries is its limit times the time
(see `accepted`), so every episode of refusals is also a measurement. Until the kind of the limit is
recognised (see `kinds`), the pause tells three apart:

- **bucket**: the pause is short. The average since the last recovery is exact after 20 accepted
  requests.
- **quota** (n per window): the pause is long, but it only compensates for requests that were sent
  too early. The average must be taken over a whole cycle.
- **penalty** (a ban): the pause is longer than that. It is detected when a probe exceeds a whole
  quota and is not refused, or is refused with hardly any excess. Such hosts are probed gently
  (+6 %) and rarely, so that pauses cost at most a fortieth of the time.

    r │      ramp ╱•       •  refused: one refusal, and a       r │  steady ┌────  proved: excess
      │  ────────╯         measurement, whatever the height       │  ───────┘      ≥ allowance + 3
      └──────────────                                             └─────────────
           bucket, sliding, fixed                                   quota, penalty

A ramp goes up by 8, 16, 24 … % until it is refused, so it finds a limit that has doubled as well as
one that has grown by a tenth. At a quota or a penalty the rate of a probe must not change: it is
proved when Σ(1 − limit·dt) over its accepted requests exceeds the allowance by 3, for then it has
sent more above the limit than any burst or window was seen to accept. For a quota, two whole cycles
without a refusal prove a probe, too.

Error budget: a failed probe costs refusals, so `hold_s`, the time until the next probe, grows to
1.25·refusals/(ε·limit), ε = 0.5 %. (A fixed number of successes, such as 20, would mean a probe
every 4 s at 5/s.) A host that once allowed more is probed twice as often: limits that fell tend to
rise again.

This module has no phases and no present rates: see `learned`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..model import NEVER
from .kinds import SURE, LimitKind, drain_s, recognise, recognise_long
from .measure import refusal_of

if TYPE_CHECKING:
    from ..model import Instant
    from .accepted import AcceptedCounter
    from .kinds import KnownLimit, Refusal
    from .measure import Cycle, Episode, Probe

HOLD_S = 15.0
HOLD_FULL_S = 75.0  # at 5/s and more the error budget would allow needlessly many probes
HOLD_MAX_S = 1800.0
BUDGETED, SLOW = 1.25, 2.0  # refusals per probe; below 2/s, more of them come while cruising
HOLD_COSTLY_S = 600.0  # the longest hold because of the time that a refusal cost, but for bans
BAN_COST = 40.0  # times a pause: so long is a host not probed that has banned us
LONG_BAN_S = 300.0  # after a ban that lasted longer, even steps of 6 % have pauses between them
GAIN, GAIN_MAX = 1.25, 2.0
GAIN_PENALTY = 1.06
RISEN = 1.25  # a limit that grew more than this is another one
CREEP = 1.03  # how much a limit is raised that has never been refused
PROVE_WITHIN_S = 15.0  # the gain is chosen so that a proof takes about this long
PROVE_MARGIN = 3.0
ALLOWANCE = 8.0
ALLOWANCE_MAX = 2000.0
# What a host that bans lets through at once, in seconds of its limit: at most, and probably.
BURST_MOST_S, BURST_S = 2.0, 1.0
BLAMED = 4  # times that lowering the rate may fail to end the failures
EXACT = 20  # accepted requests that make an average exact enough: ±1 is 5 %
CLOSE = 1.05  # a refused rate below this factor of the limit ends the search
EARLY = 1.5  # requests: a probe that was refused with less excess met the limit, and no burst
REMEMBERED = 8  # refusals
MOVED = 1.1  # a limit that differs by more from that of its kind is another one
OPENED_S = 0.3  # how much later than its window opens a fixed limit is asked again


class LimitEstimate:
    """The estimated limit of one host, and the evidence for it."""

    __slots__ = (
        "allowance",
        "blamed",
        "count",
        "cycle_s",
        "drain_until",
        "drained_at",
        "grace_until",
        "hold_s",
        "is_failing",
        "is_penalty",
        "is_proven",
        "is_searching",
        "is_tight",
        "kind",
        "known",
        "limit",
        "most_refused",
        "pause_s",
        "peak",
        "recalled",
        "refusals",
        "refused",
        "since",
        "unblamed",
        "usual_failures",
        "was_probe",
        "with_burst",
        "without_pause",
    )

    def __init__(self, limit: float, now: Instant, count: int) -> None:
        self.limit = limit  # estimated limit in requests per second
        self.refused = 0.0  # the rate that was refused last
        self.known = 0.0  # the limit before the last successful probe, to fall back to
        self.recalled = 0.0  # the limit of an earlier run, until it has been approached in quiet
        self.peak = 0.0  # the highest limit that was proved
        self.allowance = ALLOWANCE  # requests above the limit that the server accepted
        self.pause_s = 0.0  # duration of the last pause after a refusal
        self.cycle_s = 0.0  # estimated window of a quota; 0: no quota
        self.is_penalty = False
        self.is_tight = False  # a rate that was believed to be safe was refused
        self.most_refused = 0.0  # the highest rate that was refused
        self.kind: KnownLimit | None = None  # as far as it is recognised
        self.refusals: list[Refusal] = []  # the latest, of the present limit
        self.was_probe = False  # the latest refusal ended a probe
        self.is_proven = False
        self.is_searching = False  # the limit lies between `limit` and `refused`
        self.hold_s = HOLD_S  # how long to cruise before the next probe
        self.grace_until: Instant = NEVER  # refusals until then still come from the first burst
        self.drain_until: Instant = inf  # stay below the limit until then
        self.drained_at = 0  # number of latency samples when a queue was last detected
        self.since = now  # the recovery from which accepted requests are counted
        self.count = count  # accepted requests at that time
        self.usual_failures = 0.0  # share of failures while cruising, about
        self.is_failing = False  # the host refuses by failures
        self.blamed = 0  # times in a row that failures while cruising were taken for refusals
        self.unblamed = 0.0  # the limit before the first of these
        # The limit by the climb, if the first pause was a penalty: at least, and probably.
        self.without_pause = self.with_burst = 0.0

    # ------------------------------------------------------------------ probes

    def probe_rate(self) -> float:
        """Return the rate of the next probe: high enough for a quick proof, low after penalties."""
        limit = self.limit
        if self.is_penalty:
            return GAIN_PENALTY * limit
        if self.is_searching and self.refused > CLOSE * limit:
            if self.cycle_s and not self.is_proven and self.without_pause > 1.25 * limit:
                return self.without_pause
            return 0.5 * (limit + self.refused)
        gain = 1.0 + (self.allowance + PROVE_MARGIN) / (PROVE_WITHIN_S * limit)
        return limit * max(GAIN, min(GAIN_MAX, gain))

    @property
    def is_steady(self) -> bool:
        """Return whether probes keep their rate: at a quota or a penalty."""
        return self.cycle_s > 0.0 or self.is_penalty

    def proves(self, probe: Probe, lasted_s: float) -> bool:
        """Return whether a probe without refusals has proved that the limit is higher."""
        if probe.excess >= self.allowance + PROVE_MARGIN:
            return True
        return 0.0 < 2.0 * self.cycle_s <= lasted_s and probe.excess > 0.0

    def accept(self, probe: Probe) -> bool:
        """Make the probe's rate the limit; return whether to start another probe at once."""
        overspent = probe.excess >= self.allowance + PROVE_MARGIN
        if self.cycle_s and overspent and not self.is_penalty:
            self.is_penalty = True  # more than a whole quota without a refusal: not a quota
            self.allowance = ALLOWANCE
        self.known, self.limit = self.limit, probe.rate
        if self.kind is not None:
            self.kind = self.kind._replace(requests=probe.rate * self.kind.seconds)
        self.is_proven = self.is_penalty or not self.cycle_s
        if self.is_penalty:
            self.hold_s = max(self.hold_s, 2.0 * self.pause_s)
            return GAIN_PENALTY * self.limit < self.with_burst or self.pause_s < LONG_BAN_S
        self.is_searching = False
        return False

    # ------------------------------------------------------------------ the kind of the limit

    def is_outage(self, episode: Episode) -> bool:
        """Return whether a host that refuses otherwise has failed: that tells nothing of limits."""
        return episode.by_failures and not self.is_failing

    def learn_kind(
        self, episode: Episode, trial_at: Instant, accepted: AcceptedCounter
    ) -> KnownLimit | None:
        """Add a refusal to the evidence; return the limit if its kind is known now."""
        if self.is_outage(episode):
            return None
        before = self.kind
        self.most_refused = max(self.most_refused, episode.rate)
        self.refusals = [
            *self.refusals[1 - REMEMBERED :],
            refusal_of(episode, trial_at, accepted.born_at),
        ]
        are_long = len(self.refusals) == 2 and all(each.is_long for each in self.refusals)
        if self.is_penalty or are_long:
            rates = self.most_refused, episode.rate
            self.kind = recognise_long(rates, self.refusals, accepted, is_ban=self.is_penalty)
        else:
            self.kind = recognise(self.limit, self.refusals, accepted)
        known = self.kind
        if known is None or known.sure < SURE:
            # Old marks are forgotten: a ban is known until a rate below its own is refused.
            if before is not None and before.kind is LimitKind.BAN and episode.probe is not None:
                self.kind = before
            return None
        self.is_failing |= episode.by_failures
        self._adopt(known)
        return known

    def _adopt(self, known: KnownLimit) -> None:
        """Take the limit as it was recognised."""
        self.limit = known.rate
        self.blamed = 0  # its failures are refusals
        self.is_proven = True
        self.is_searching = False
        self.is_penalty = known.kind is LimitKind.BAN
        if self.is_penalty:
            self.cycle_s = self.cycle_s or self.pause_s
            self.hold_s = max(self.hold_s, BAN_COST * self.pause_s)
        else:
            self.cycle_s = 0.0
            self.hold_s = max(self.hold_s, self._may_have_risen() * HOLD_FULL_S)

    def rest_s(self, now: Instant, cruise: float, accepted: AcceptedCounter) -> float:
        """Return how long to be silent after a recovery, so that the limit holds from then on."""
        known = self.kind
        if known is None or known.kind is not LimitKind.SLIDING or known.sure < SURE:
            return 0.0
        return drain_s(known, now - accepted.born_at, cruise * self.limit, accepted)

    def is_shown(self, known: KnownLimit) -> bool:
        """Return whether a kind is sure, and the limit was neither raised nor lowered since."""
        is_sure = known.sure >= SURE or known.kind is LimitKind.QUEUE
        return is_sure and 1.0 / MOVED < self.limit / known.rate < MOVED

    def _may_have_risen(self) -> float:
        """Return the factor on holds: a host that once allowed more is probed twice as often."""
        return 0.36 if self.limit < 0.6 * self.peak else 1.0

    def first_wait_s(self, probe: Probe | None, age_s: float) -> float:
        """Return the wait before the first trial: for a token, or by earlier pauses and excess."""
        token_s = max(0.5, 1.0 / self.limit)
        if self.is_penalty:
            return max(token_s, self.pause_s)
        known = self.kind
        if known is not None and known.kind is LimitKind.FIXED:
            return max(0.5, (known.opens_at - age_s) % known.seconds + OPENED_S)
        if probe is not None and self.cycle_s:
            return max(token_s, 0.9 * probe.excess / self.limit, 0.5 * self.pause_s)
        return 0.5 * self.pause_s if self.pause_s > 4.0 * token_s else token_s

    # ------------------------------------------------------------------ refusals

    def blame_failures(self) -> bool:
        """Return whether failures while cruising are a limit: no, if going slower did not help."""
        if not self.blamed:
            self.unblamed = self.limit
        self.blamed += 1
        self.usual_failures = 0.0
        self.is_failing = self.blamed < BLAMED
        if not self.is_failing:
            self.limit = self.unblamed
        return self.is_failing

    def identify(self, episode: Episode, cycle: Cycle, accepted: AcceptedCounter) -> None:
        """Estimate the limit from the climb, after the first refusal."""
        self.without_pause = accepted.best_average(episode.since + BURST_MOST_S).rate
        self.with_burst = accepted.best_average(episode.since + BURST_S).rate
        average = accepted.best_average(cycle.ended_at)
        self.is_searching = True
        if cycle.is_long:
            self.limit = min(average.rate, episode.rate)
            self.cycle_s = cycle.ended_at - average.since
            self.allowance = max(ALLOWANCE, float(episode.count - average.accepted))
        else:
            self.limit = min(max(average.rate, 0.9 * episode.delivery), episode.rate)
            self._update_allowance(cycle)
        self._settle(episode, cycle, accepted.count, is_whole=True)

    def revise(
        self, episode: Episode, cycle: Cycle, accepted: AcceptedCounter, budget: float
    ) -> None:
        """Correct the limit after a later refusal, of a probe or while cruising."""
        old, self.recalled = self.limit, 0.0
        is_whole = cycle.accepts >= EXACT and cycle.span_s >= 0.8 * self.cycle_s
        if episode.probe is None:
            self._revise_after_cruise(cycle, is_whole=is_whole)
            if self.limit < 0.85 * old:
                self.hold_s = HOLD_S
        else:
            self._revise_after_probe(episode, episode.probe, cycle, accepted, is_whole=is_whole)
        self._update_allowance(cycle)
        if episode.probe is not None:
            self.lengthen_hold(budget, episode.refusals + episode.cost - 1)
        if cycle.is_long and not self.is_outage(episode):
            self._weigh_pause(episode, cycle)
        self._settle(episode, cycle, accepted.count, is_whole=is_whole)

    def replay(self, episode: Episode, cycle: Cycle, accepted: AcceptedCounter) -> None:
        """Keep the limit after a refusal while the first burst is in the server's window."""
        self.is_searching = True
        is_whole = cycle.accepts >= EXACT and cycle.span_s >= 0.8 * self.cycle_s
        self._update_allowance(cycle)
        self._settle(episode, cycle, accepted.count, is_whole=is_whole)

    def lengthen_hold(self, budget: float, refusals: int) -> None:
        """Double the hold after a failed probe, up to what the error budget requires."""
        spent = BUDGETED * max(1.0, SLOW / self.limit) ** 0.3
        longest_s = min(HOLD_MAX_S, max(HOLD_FULL_S, spent / (budget * self.limit)) * refusals)
        self.hold_s = min(2.0 * self.hold_s, self._may_have_risen() * longest_s)

    def _revise_after_probe(
        self,
        episode: Episode,
        probe: Probe,
        cycle: Cycle,
        accepted: AcceptedCounter,
        *,
        is_whole: bool,
    ) -> None:
        """Correct the limit after a refused probe; a proved limit is not lowered."""
        self.is_searching = not cycle.is_long and probe.excess < EARLY
        if not is_whole:
            return
        old, most = self.limit, 0.97 * episode.rate
        if not self.is_proven:
            self.limit = min(cycle.rate, most)
            if self.cycle_s:
                self.cycle_s = max(self.cycle_s, cycle.span_s)
            return
        sure = cycle.accepts / (cycle.trial_at - cycle.since)
        if not self.cycle_s:
            burst = ALLOWANCE
            known = self.kind
            is_bucket = known is not None and known.kind is LimitKind.BUCKET
            # Failures are noticed late, after more than the burst.
            if known is not None and is_bucket and known.sure >= SURE and not self.is_failing:
                burst = min(burst, known.burst)
            sure = max(sure, accepted.beyond(burst, probe.since, cycle.trial_at, accepted.count))
        elif 0.8 * self.cycle_s <= cycle.ended_at - probe.since:
            sure = max(sure, (accepted.count - probe.count) / (cycle.trial_at - probe.since))
        self.limit = max(old, min(sure, most))
        if self.limit > RISEN * old:  # what was known of the limit is over
            self.refusals.clear()
            self.is_tight = False
            self.hold_s = 0.5 * HOLD_S
        elif not (self.cycle_s or self.is_tight or self.limit > 1.01 * old):
            self.limit = min(CREEP * old, max(old, most))

    def _revise_after_cruise(self, cycle: Cycle, *, is_whole: bool) -> None:
        """Correct the limit after a refusal while cruising: it has changed, or was wrong."""
        old = self.limit
        was_proven, self.is_proven = self.is_proven, False
        self.is_searching = True
        self.is_tight = True
        if self.cycle_s and not was_proven and self.known and cycle.is_long:
            self.limit = self.known
            self.is_searching = False
        elif not is_whole:
            self.limit = min(max(1.05 * cycle.rate, 0.4 * old), 0.93 * old)
        elif self.is_penalty and cycle.is_long and self._overspent(cycle) > 1.2 * self.allowance:
            self.limit = 0.97 * min(cycle.before_refusal / cycle.active_s, old)
        else:
            self.limit = min(max(cycle.rate, 0.5 * old), 0.97 * old)

    def _overspent(self, cycle: Cycle) -> float:
        """Return how many requests a quota of the measured rate would have accepted too early."""
        return cycle.before_refusal - cycle.rate * cycle.active_s

    def _update_allowance(self, cycle: Cycle) -> None:
        """Update the allowance by the excess before the refusal; older values lose weight."""
        above = cycle.before_refusal - self.limit * cycle.active_s
        faded = (0.9 if cycle.is_long else 0.7) * self.allowance
        # Up to half a window's quota may be unused when a probe begins.
        quota = 0.0 if self.is_penalty else 0.5 * self.limit * self.cycle_s
        self.allowance = min(ALLOWANCE_MAX, max(ALLOWANCE, above, faded, quota))

    def _weigh_pause(self, episode: Episode, cycle: Cycle) -> None:
        """After a long pause, lengthen the hold by its cost, and check for a penalty."""
        probe, lost_s = episode.probe, cycle.span_s - cycle.accepts / self.limit
        pause_s = cycle.ended_at - episode.since
        if probe is not None and self.is_proven and probe.excess < 0.3 * self.limit * pause_s:
            self.is_penalty = True
            self.allowance = max(ALLOWANCE, probe.excess)
        costly_s = BAN_COST * lost_s if self.is_penalty else min(HOLD_COSTLY_S, 10.0 * lost_s)
        self.hold_s = max(self.hold_s, costly_s)

    def _settle(self, episode: Episode, cycle: Cycle, count: int, *, is_whole: bool) -> None:
        self.refused = episode.rate
        self.pause_s = cycle.pause_s
        if is_whole:
            self.since, self.count = cycle.trial_at, count
