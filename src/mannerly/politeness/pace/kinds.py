"""Know what kind of limit a host has, from what it accepted and what it refused.

A limiter is a counter with an edge: it refuses exactly when its counter is full. So count as every
kind would, over the marks of `accepted`. At the refusals the counter of the host's own kind shows
the same number each time, and it was never higher; those of the others show one here and another
there. And each kind ends its pauses in its own way:

    kind            counter x at a refusal                     its pause ends
    -------------   ----------------------------------------   -------------------------------------
    bucket r, b     x ← max(0, x + accepted − r·Δt) = b        when one token has come, after 1/r
    sliding n, w    N(t) − N(t − w) = n                        when the oldest request leaves
    fixed n, w, φ   N(t) − N(k·w + φ) = n                      at the next k·w + φ
    ban r, b, p     as a bucket                                after p, whatever was sent before
    concurrency n   requests in flight: see `concurrency`      when an answer comes
    queue r         none: answers become slow, see `latency`   never begins

    x │   •    •   •      own kind            x │ •                 another kind
      │  ╱│ ╱╲╱│  ╱│                            │╱│      •     •
      └────────────── t                         └────────────── t

    evidence = −Σ(x − x̄)²/2 − (highest x − highest at a refusal − 1)²/2 − 4·(pauses that do not fit)

One request is the unit, because counters count requests: that is the error of a mark. The sure
share of a kind is its evidence beside that of the best of every other kind. Two long pauses are
enough for a ban or a fixed window (for more of them a host would have to be banned again); the
counters of others need three refusals. All instants here are ages, in seconds since the first
request to the host.
"""

from __future__ import annotations

from enum import StrEnum
from math import ceil, exp, floor
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .accepted import AcceptedCounter

# People configure round windows; a limit per second, and one per any other time, is like a bucket.
WINDOWS_S = (5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)
STEP = 1.02  # between two rates of buckets that are compared
NEAR = tuple(STEP**step for step in range(-5, 14))  # times the estimate: it is often too low
STEPS = 100  # below the refused rate: down to a seventh of it
SURE = 0.8  # share from which a limit is used as it was recognised
FEW = 3  # refusals
MISFIT = 4.0
SIMPLER = 1.0  # evidence that a window needs more than a bucket: it has one parameter more
LONG_S = 3.0  # a pause longer than this is no wait for a token of a limit above 1/3 a second
TELLING = 40.0  # requests between the first and the last refusal that tell two rates apart
MOST_BURST = 20.0  # of a host that bans: a larger one is a quota, until that is refuted
LEAST_SHARE = 0.5  # of the refused rate that such a host allows


class LimitKind(StrEnum):
    """The kind of a limit."""

    BUCKET = "bucket"
    SLIDING = "sliding"
    FIXED = "fixed"
    BAN = "ban"
    CONCURRENCY = "concurrency"
    QUEUE = "queue"


class KnownLimit(NamedTuple):
    """A limit whose kind is known: `requests` in `seconds`, or so many at once (concurrency)."""

    kind: LimitKind
    requests: float
    seconds: float = 1.0
    burst: float = 0.0  # requests at once beyond that: bucket, ban
    opens_at: float = 0.0  # when one of its windows opened: fixed
    pause_s: float = 0.0  # how long a refusal lasts: ban
    sure: float = 0.0  # share of certainty; 0: it was not compared with others

    @property
    def rate(self) -> float:
        """Return the requests per second that it allows."""
        return self.requests / self.seconds

    def counted_from(self, origin: float) -> KnownLimit:
        """Return the same limit with its instant counted from another one."""
        if self.kind is not LimitKind.FIXED:
            return self
        return self._replace(opens_at=(self.opens_at - origin) % self.seconds)


class Refusal(NamedTuple):
    """A refusal, and two ages between which the pause after it ended."""

    at: float
    low: float  # the latest trial that was refused
    high: float  # the first that was accepted

    @property
    def is_long(self) -> bool:
        """Return whether the pause was longer than the wait for a token."""
        return self.high - self.at > LONG_S


def recognise(
    limit: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> KnownLimit | None:
    """Return the kind of limit that explains the refusals best; None if none is possible."""
    begin, _ = accepted.begins()
    refusals = [refusal for refusal in refusals if refusal.at >= begin]
    if len(refusals) < FEW - 1:
        return None
    span_s = refusals[-1].at - refusals[0].at
    found: dict[LimitKind, tuple[float, KnownLimit]] = {}
    for factor in NEAR:
        if factor * limit * span_s >= TELLING:
            _keep(found, _bucket(factor * limit, refusals, accepted))
    for window_s in WINDOWS_S:
        # If refusals come at even intervals, every window that holds many of them has one count.
        if len(refusals) >= FEW and window_s <= min(span_s, 2.0 * span_s / (len(refusals) - 1)):
            _keep(found, _sliding(window_s, refusals, accepted))
            _keep(found, _fixed(window_s, refusals, accepted))
    if not found:
        return None
    best = max(evidence for evidence, _ in found.values())
    total = sum(exp(evidence - best) for evidence, _ in found.values())
    known = next(known for evidence, known in found.values() if evidence == best)
    if len(refusals) < FEW:
        return known._replace(sure=exp(best))
    return known._replace(sure=exp(min(0.0, best + MISFIT)) / total)


def recognise_long(
    rates: tuple[float, float],
    refusals: Sequence[Refusal],
    accepted: AcceptedCounter,
    *,
    is_ban: bool,
) -> KnownLimit | None:
    """Return the ban or the fixed window that explains long pauses.

    `rates` are the highest and the latest rate that was refused.
    `is_ban`: the host has accepted more than a quota in between, so it is probably none.
    """
    begin, _ = accepted.begins()
    refusals = [refusal for refusal in refusals if refusal.at >= begin]
    if len(refusals) < FEW - 1:
        return None
    ban = _ban(rates[0], refusals, accepted)
    found: dict[LimitKind, tuple[float, KnownLimit]] = {}
    for window_s in WINDOWS_S:
        _keep(found, _fixed(window_s, refusals, accepted))
    evidence, window = found.get(LimitKind.FIXED, (-MISFIT, None))
    window = window._replace(sure=SURE) if window is not None and evidence > -MISFIT / 2 else None
    if is_ban:
        is_doubtful = ban is None or ban.sure < SURE / 2
        return window if len(refusals) >= FEW and window is not None and is_doubtful else ban
    if ban is not None and (
        ban.burst > MOST_BURST
        or ban.rate < LEAST_SHARE * rates[1]
        or _is_one_quota(refusals, accepted)
    ):
        ban = None
    return ban or window


def _is_one_quota(refusals: Sequence[Refusal], accepted: AcceptedCounter) -> bool:
    """Return whether as much was accepted before the first refusal as before the second.

    A ban has no reason for that, and two refusals alone fit every ban.
    """
    _, begins_with = accepted.begins()
    first, second = (accepted.at(refusal.at) for refusal in refusals[:2])
    return not begins_with and abs(second - 2.0 * first) <= MISFIT


def drain_s(known: KnownLimit, age_s: float, rate: float, accepted: AcceptedCounter) -> float:
    """Return how long to be silent so that `rate` from then on never fills a sliding window.

    What was sent in a burst leaves the window as a burst, and until then there is little room:

        wait ≥ w − (now − t) − (n − 1 − N(now) + N(t)) / rate      for each mark t in the window
    """
    wait_s = 0.0
    for at_s, count in accepted.marks(age_s - known.seconds):
        room = known.requests - 1.0 - (accepted.count - count)
        wait_s = max(wait_s, known.seconds - (age_s - at_s) - room / rate)
    return min(wait_s, known.seconds)


# ---------------------------------------------------------------------- the counters


def _keep(
    found: dict[LimitKind, tuple[float, KnownLimit]], one: tuple[float, KnownLimit] | None
) -> None:
    """Keep the best of each kind."""
    if one is not None and one[0] > found.get(one[1].kind, (one[0] - 1.0,))[0]:
        found[one[1].kind] = one


def _mean(levels: Sequence[float]) -> float:
    return sum(levels) / len(levels)


def _spread(levels: Sequence[float]) -> float:
    """Return the sum of the squared differences from the mean."""
    mean = _mean(levels)
    return sum((level - mean) ** 2 for level in levels)


def _above(peak: float, levels: Sequence[float]) -> float:
    """Return the evidence against a counter that was higher when nothing was refused."""
    return max(0.0, peak - max(levels) - 1.0) ** 2 / 2.0


def _bucket_levels(
    rate: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> tuple[list[float], float]:
    """Return the levels of a bucket of this rate at the refusals, and its highest at any time."""
    level, peak, levels = 0.0, 0.0, []
    at, count = accepted.begins()
    marks = accepted.marks(at)
    mark = next(marks, None)
    for refusal in refusals:
        while mark is not None and mark[0] <= refusal.at:
            level = max(0.0, level + mark[1] - count - rate * (mark[0] - at))
            peak = max(peak, level)
            at, count = mark
            mark = next(marks, None)
        levels.append(level)
    return levels, peak


def _bucket(
    rate: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> tuple[float, KnownLimit] | None:
    levels, peak = _bucket_levels(rate, refusals, accepted)
    if min(levels) <= 0.05:  # empty: it would not have refused
        return None
    misfits = sum(refusal.low - refusal.at > 1.0 / rate + 0.5 for refusal in refusals)
    evidence = -_spread(levels) / 2.0 - MISFIT * misfits - _above(peak, levels)
    return evidence, KnownLimit(LimitKind.BUCKET, rate, burst=_mean(levels))


def _sliding(
    window_s: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> tuple[float, KnownLimit] | None:
    begin, begins_with = accepted.begins()
    # Before the first request every window was empty.
    seen = [each for each in refusals if each.at - window_s >= begin or not begins_with]
    if len(seen) < FEW:
        return None
    left = [accepted.at(refusal.at - window_s) for refusal in seen]
    counts = [accepted.at(refusal.at) - gone for refusal, gone in zip(seen, left, strict=True)]
    if min(counts) < 1.0:  # empty: it would not have refused
        return None
    misfits = sum(
        accepted.at(refusal.low - window_s) - gone > 2.0
        for refusal, gone in zip(seen, left, strict=True)
    )
    evidence = -_spread(counts) / 2.0 - SIMPLER - MISFIT * misfits
    if evidence > -2.0 * MISFIT:
        marks = accepted.marks(begin + window_s)
        peak = max((count - accepted.at(at - window_s) for at, count in marks), default=0.0)
        evidence -= _above(peak, counts)
    return evidence, KnownLimit(LimitKind.SLIDING, _mean(counts), window_s)


def _fixed(
    window_s: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> tuple[float, KnownLimit] | None:
    if max(refusal.low - refusal.at for refusal in refusals) > window_s:
        return None
    if not any(refusal.low - refusal.at > LONG_S for refusal in refusals):
        return None
    phase = _phase(window_s, refusals)
    if phase is None:
        return None
    begin, begins_with = accepted.begins()
    best: tuple[float, KnownLimit] | None = None
    for step in range(11):
        opens_s = phase[0] + 0.1 * step * (phase[1] - phase[0])
        counts = []
        for refusal in refusals:
            opened_s = opens_s - ceil((opens_s - refusal.at) / window_s) * window_s
            if opened_s >= begin or begins_with == 0:
                counts.append(accepted.at(refusal.at) - accepted.at(opened_s))
        if len(counts) < FEW - 1:
            continue
        evidence = -_spread(counts) / 4.0 - 1.5 * SIMPLER  # counted at two marks: twice the error
        if best is None or evidence > best[0]:
            best = evidence, KnownLimit(LimitKind.FIXED, _mean(counts), window_s, opens_at=opens_s)
    if best is None:
        return None
    evidence, known = best
    openings = (known.opens_at - window_s * back for back in range(1, 13))
    passed = [
        accepted.at(opened_s + window_s) - accepted.at(opened_s)
        for opened_s in openings
        if opened_s >= begin
    ]
    return evidence - _above(max(passed, default=0.0) - 1.0, [known.requests]), known


def _phase(window_s: float, refusals: Sequence[Refusal]) -> tuple[float, float] | None:
    """Return two ages between which a window opened, by all pauses; None if they disagree."""
    last = refusals[-1].high
    low, high, seen = last - window_s, last, 0
    for refusal in refusals:
        if refusal.high - refusal.low >= window_s:
            continue
        later_s = floor((last - refusal.high) / window_s + 0.5) * window_s
        low, high = max(
            (
                (max(low, refusal.low + shift_s), min(high, refusal.high + shift_s))
                for shift_s in (later_s - window_s, later_s, later_s + window_s)
            ),
            key=lambda pair: pair[1] - pair[0],
        )
        if high < low - 0.5:
            return None
        high = max(low, high)
        seen += 1
    return (low, high) if seen >= FEW - 1 else None


def _ban(
    refused: float, refusals: Sequence[Refusal], accepted: AcceptedCounter
) -> KnownLimit | None:
    best, found = 2.0 * MISFIT, None
    pause_s = refusals[-1].high - refusals[-1].at
    for step in range(STEPS):
        rate = refused / STEP**step
        levels, _ = _bucket_levels(rate, refusals, accepted)
        spread = _spread(levels)
        if min(levels) >= 1.0 and spread < best:
            best = spread
            sure = exp(-spread / 4.0)
            found = KnownLimit(LimitKind.BAN, rate, burst=_mean(levels), pause_s=pause_s, sure=sure)
    return found
