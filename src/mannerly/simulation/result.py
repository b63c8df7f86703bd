"""The figures of a run, by which strategies are compared.

    util         = accepted / allowed by the limit            (steady: the second half of the run)
    regret       = (allowed − accepted + 5·refused) / allowed   (a refusal costs five pages)
    convergence  = the first second from which on 60 s reach 85 % of the limit

A request counts in the second in which it was sent. The input is a list of sent requests; this
module knows no core and no server. If the server does not say what its limit allows, the figures
that need it are nan.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import ceil, inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.politeness.events import Event

REFUSAL_COST = 5  # pages that one refusal costs in `regret`
WINDOW_S = 60  # seconds over which a rate must hold to count as reached
REACHED = 0.85  # share of the limit that counts as reached


class Second(NamedTuple):
    """Counts of one second of the run; `wanted` is the strategy's target rate in requests/s."""

    sent: int
    accepted: int
    refused: int
    allowed: float
    wanted: float


class SentRequest(NamedTuple):
    """One request: when it was sent, whether it was accepted, and how long the client waited."""

    at: float
    accepted: bool
    latency_s: float


@dataclass(frozen=True, slots=True)
class Violations:
    """Numbers of broken promises, counted by the simulator; anything above zero is a bug."""

    gap: int
    retry_after: int
    half_open: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one run; the module's docstring has the formulas."""

    util: float
    steady_util: float
    rejected: float
    steady_rejected: float
    regret: float
    p95_latency_s: float
    convergence_s: float
    accepted: int
    refused: int
    gap_violations: int
    retry_after_violations: int
    half_open_violations: int
    in_flight_violations: int
    wakeups: int
    duration_s: float
    starts: tuple[float, ...]
    timeline: tuple[Second, ...]
    events: tuple[Event, ...]

    def reached_after(self, since_s: float, share: float = REACHED) -> float:
        """Return the seconds from `since_s` until a minute reaches `share` of the limit, or inf."""
        return _reached_after(self.timeline, since_s, share)

    def refused_between(self, start_s: float, end_s: float) -> int:
        """Return the number of refused requests among those sent in these seconds."""
        return sum(second.refused for second in self.timeline[int(start_s) : ceil(end_s)])

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain values for JSON; inf and nan become null."""
        plain = {field.name: _finite(getattr(self, field.name)) for field in fields(self)}
        plain["timeline"] = [
            {key: _finite(value) for key, value in second._asdict().items()}
            for second in self.timeline
        ]
        plain["events"] = [
            {"event": type(event).__name__, **asdict(event)} for event in self.events
        ]
        return plain


def summarise(
    trace: list[SentRequest],
    *,
    duration_s: float,
    allowed: Callable[[float, float], float],
    wanted: list[float],
    violations: Violations,
    wakeups: int,
    events: tuple[Event, ...],
) -> Result:
    """Compute the figures of a list of sent requests."""
    half_s = duration_s / 2
    steady = [start for start in trace if start.at >= half_s]
    accepted = sum(start.accepted for start in trace)
    steady_accepted = sum(start.accepted for start in steady)
    refused = len(trace) - accepted
    oracle = allowed(0.0, duration_s)
    timeline = _timeline(trace, duration_s, allowed, wanted)
    return Result(
        util=_ratio(accepted, oracle),
        steady_util=_ratio(steady_accepted, allowed(half_s, duration_s)),
        rejected=refused / len(trace) if trace else 0.0,
        steady_rejected=(len(steady) - steady_accepted) / len(steady) if steady else 0.0,
        regret=_ratio(oracle - accepted + REFUSAL_COST * refused, oracle),
        p95_latency_s=_p95([start.latency_s for start in trace if start.accepted]),
        convergence_s=_reached_after(timeline, 0.0, REACHED),
        accepted=accepted,
        refused=refused,
        gap_violations=violations.gap,
        retry_after_violations=violations.retry_after,
        half_open_violations=violations.half_open,
        in_flight_violations=violations.in_flight,
        wakeups=wakeups,
        duration_s=duration_s,
        starts=tuple(start.at for start in trace),
        timeline=timeline,
        events=events,
    )


def _timeline(
    trace: list[SentRequest],
    duration_s: float,
    allowed: Callable[[float, float], float],
    wanted: list[float],
) -> tuple[Second, ...]:
    seconds = ceil(duration_s)
    sent = [0] * seconds
    accepted = [0] * seconds
    for start in trace:
        second = int(start.at)
        sent[second] += 1
        accepted[second] += start.accepted
    return tuple(
        Second(
            sent=sent[second],
            accepted=accepted[second],
            refused=sent[second] - accepted[second],
            allowed=allowed(second, min(second + 1, duration_s)),
            wanted=wanted[second] if second < len(wanted) else nan,
        )
        for second in range(seconds)
    )


def _reached_after(timeline: tuple[Second, ...], since_s: float, share: float) -> float:
    if any(isnan(second.allowed) for second in timeline):
        return nan
    for first in range(ceil(since_s), len(timeline) - WINDOW_S + 1):
        span = timeline[first : first + WINDOW_S]
        if sum(s.accepted for s in span) >= share * sum(s.allowed for s in span):
            return first - since_s
    return inf


def _p95(latencies: list[float]) -> float:
    return sorted(latencies)[ceil(0.95 * len(latencies)) - 1] if latencies else nan


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else nan


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value
