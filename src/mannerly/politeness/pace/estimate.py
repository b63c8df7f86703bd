"""The estimate of a host's limit, and how refusals and probes change it.

The number of requests that a server accepts between two recoveries is its limit times the time
(see `accepted`), so every episode of refusals is also a measurement. Three kinds of limit exist:

- **bucket**: the pause is short. The average since the last recovery is exact after 20 accepted
  requests.
- **quota** (n per window): the pause is long, but it only compensates for requests that were sent
  too early. The average must be taken over a whole cycle.
- **penalty** (a ban): the pause is longer than that. It is detected when a probe exceeds a whole
  quota and is not refused, or is refused with hardly any excess. Such hosts are probed gently
  (+10 %) and rarely, so that pauses cost at most a tenth of the time.

A probe is proved when Σ(1 − limit·dt) over its accepted requests exceeds the allowance by 3: then
it has sent more above the limit than any burst or window was seen to accept. Without this test a
probe against "300 per minute" would look good for half a minute and then exhaust the window. For a
quota, two whole cycles without a refusal prove a probe, too.

Error budget: a failed probe costs refusals, so `hold_s`, the time until the next probe, grows to
0.95·refusals/(ε·limit), ε = 0.5 %. (A fixed number of successes, such as 20, would mean a probe
every 4 s at 5/s.) A host that once allowed more is probed twice as often: limits that fell tend to
rise again.

This module has no phases, waits or present rates: see `learned`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..model import NEVER

if TYPE_CHECKING:
    from ..model import Instant
    from .accepted import AcceptedCounter
    from .measure import Cycle, Episode, Probe

HOLD_S = 15.0
HOLD_FULL_S = 75.0  # at 5/s and more the error budget would allow needlessly many probes
HOLD_MAX_S = 1800.0
HOLD_COSTLY_S = 600.0  # the longest hold because of the time that a refusal cost
GAIN = 1.25
GAIN_MAX = 2.0
GAIN_PENALTY = 1.1
PROVE_WITHIN_S = 15.0  # the gain is chosen so that a proof takes about this long
PROVE_MARGIN = 3.0
ALLOWANCE = 8.0
ALLOWANCE_MAX = 2000.0
BLAMED = 3  # times that lowering the rate may fail to end the failures
EXACT = 20  # accepted requests that make an average exact enough: ±1 is 5 %
CLOSE = 1.08  # a refused rate below this factor of the limit ends the search


class LimitEstimate:
    """The estimated limit of one host, and the evidence for it."""

    __slots__ = (
        "allowance",
        "blamed",
        "count",
        "cycle_s",
        "drain_until",
        "drained_at",
        "gain",
        "grace_until",
        "hold_s",
        "is_failing",
        "is_penalty",
        "is_proven",
        "is_searching",
        "known",
        "limit",
        "pause_s",
        "peak",
        "refused",
        "since",
        "unblamed",
        "usual_failures",
    )

    def __init__(self, limit: float, now: Instant, count: int) -> None:
        self.limit = limit  # estimated limit in requests per second
        self.refused = 0.0  # the rate that was refused last
        self.known = 0.0  # the limit before the last successful probe, to fall back to
        self.peak = 0.0  # the highest limit that was proved
        self.allowance = ALLOWANCE  # requests above the limit that the server accepted
        self.pause_s = 0.0  # duration of the last pause after a refusal
        self.cycle_s = 0.0  # estimated window of a quota; 0: no quota
        self.is_penalty = False
        self.is_proven = False
        self.is_searching = False  # the limit lies between `limit` and `refused`
        self.hold_s = HOLD_S  # how long to cruise before the next probe
        self.gain = 0.0  # rate of the next probe / limit, after consecutive proved probes
        self.grace_until: Instant = NEVER  # refusals until then still come from the first burst
        self.drain_until: Instant = inf  # stay below the limit until then
        self.drained_at = 0  # number of latency samples when a queue was last detected
        self.since = now  # the recovery from which accepted requests are counted
        self.count = count  # accepted requests at that time
        self.usual_failures = 0.0  # share of failures while cruising, about
        self.is_failing = False  # the host refuses by failures
        self.blamed = 0  # times in a row that failures while cruising were taken for refusals
        self.unblamed = 0.0  # the limit before the first of these

    # ------------------------------------------------------------------ probes

    def probe_rate(self) -> float:
        """Return the rate of the next probe: high enough for a quick proof, low after penalties."""
        limit = self.limit
        if self.is_penalty:
            return GAIN_PENALTY * limit
        if self.is_searching and self.refused > CLOSE * limit:
            return 0.5 * (limit + self.refused)
        gain = 1.0 + (self.allowance + PROVE_MARGIN) / (PROVE_WITHIN_S * limit)
        return limit * max(GAIN, min(GAIN_MAX, gain), self.gain)

    def proves(self, probe: Probe, lasted_s: float) -> bool:
        """Return whether a probe without refusals has proved that the limit is higher."""
        if probe.excess >= self.allowance + PROVE_MARGIN:
            return True
        return 0.0 < 2.0 * self.cycle_s <= lasted_s and probe.excess > 0.0

    def accept(self, probe: Probe) -> bool:
        """Make the probe's rate the limit; return whether to start another probe at once."""
        overspent = probe.excess >= self.allowance + PROVE_MARGIN
        if self.cycle_s and self.is_searching and overspent and not self.is_penalty:
            self.is_penalty = True  # more than a whole quota without a refusal: not a quota
            self.allowance = ALLOWANCE
        self.known, self.limit = self.limit, probe.rate
        self.is_proven = self.is_penalty or not self.cycle_s
        if self.is_penalty:
            self.hold_s = max(self.hold_s, 2.0 * self.pause_s)
        if self.cycle_s or (self.is_searching and self.refused <= CLOSE * self.limit):
            self.gain = 0.0
            self.is_searching = False
            return False
        if not self.is_searching:
            self.gain = min(GAIN_MAX, 1.25 * max(self.gain, GAIN))
        return True

    def first_wait_s(self, probe: Probe | None) -> float:
        """Return the wait before the first trial: for a token, or by earlier pauses and excess."""
        token_s = max(0.5, 1.0 / self.limit)
        if probe is not None and self.cycle_s and not self.is_penalty:
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
        old = self.limit
        is_whole = cycle.accepts >= EXACT and cycle.span_s >= 0.8 * self.cycle_s
        if episode.probe is None:
            self._revise_after_cruise(cycle, is_whole=is_whole)
            if self.limit < 0.85 * old:
                self.hold_s = HOLD_S
        else:
            self._revise_after_probe(episode.probe, cycle, accepted, is_whole=is_whole)
        self._update_allowance(cycle)
        if episode.probe is not None:
            self.lengthen_hold(budget, episode.refusals + episode.cost - 1)
        if cycle.is_long:
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
        longest_s = min(HOLD_MAX_S, max(HOLD_FULL_S, 0.95 / (budget * self.limit)) * refusals)
        if self.limit < 0.6 * self.peak:
            longest_s *= 0.5
        self.hold_s = min(2.0 * self.hold_s, longest_s)

    def _revise_after_probe(
        self, probe: Probe, cycle: Cycle, accepted: AcceptedCounter, *, is_whole: bool
    ) -> None:
        """Correct the limit after a refused probe; a proved limit is not lowered."""
        self.gain = 0.0
        self.is_searching = False
        if not is_whole:
            return
        if not self.is_proven:
            self.limit = min(cycle.rate, 0.97 * probe.rate)
            if self.cycle_s:
                self.cycle_s = max(self.cycle_s, cycle.span_s)
            return
        sure = cycle.accepts / (cycle.trial_at - cycle.since)
        if 0.0 < 0.8 * self.cycle_s <= cycle.ended_at - probe.since:
            sure = max(sure, (accepted.count - probe.count) / (cycle.trial_at - probe.since))
        self.limit = max(self.limit, min(sure, 0.97 * probe.rate))

    def _revise_after_cruise(self, cycle: Cycle, *, is_whole: bool) -> None:
        """Correct the limit after a refusal while cruising: it has changed, or was wrong."""
        old = self.limit
        was_proven, self.is_proven = self.is_proven, False
        self.is_searching = True
        if self.cycle_s and not was_proven and self.known and cycle.is_long:
            self.limit = self.known
            self.is_searching = False
        elif not is_whole:
            self.limit = min(max(1.05 * cycle.rate, 0.6 * old), 0.93 * old)
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
        lost_s = cycle.span_s - cycle.accepts / self.limit
        self.hold_s = max(self.hold_s, min(HOLD_COSTLY_S, 10.0 * lost_s))
        probe = episode.probe
        if probe is None or not self.is_proven:
            return
        if probe.excess < 0.3 * self.limit * (cycle.ended_at - episode.since):
            self.is_penalty = True
            self.allowance = max(ALLOWANCE, probe.excess)

    def _settle(self, episode: Episode, cycle: Cycle, count: int, *, is_whole: bool) -> None:
        self.refused = episode.rate
        self.pause_s = cycle.pause_s
        if is_whole:
            self.since, self.count = cycle.trial_at, count
