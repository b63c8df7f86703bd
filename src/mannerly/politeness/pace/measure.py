"""Notes that `learned` takes while it tries something: a probe, an episode of refusals, a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model import Instant, Sample


class Probe:
    """A rate above the limit, on trial."""

    __slots__ = ("count", "excess", "last_at", "rate", "since")

    def __init__(self, rate: float, count: int, now: Instant) -> None:
        self.rate = rate
        self.since = self.last_at = now
        self.count = count  # accepted before it began
        self.excess = 0.0  # requests spent above the limit so far


class Episode:
    """A run of refusals, from the first to the accepted trial that ends it."""

    __slots__ = (
        "count",
        "delivery",
        "is_told",
        "last_at",
        "probe",
        "rate",
        "refusals",
        "since",
        "wait_s",
    )

    def __init__(
        self, rate: float, count: int, delivery: float, probe: Probe | None, sample: Sample
    ) -> None:
        self.rate = rate  # what was refused
        self.count = count  # accepted by then
        self.delivery = delivery  # accepted a second just before
        self.probe = probe  # the probe that was refused, if it was one
        self.since = self.last_at = sample.done_at
        self.is_told = sample.retry_after_s is not None  # the server named the pause
        self.refusals = 1
        self.wait_s = 0.0  # before the second trial; it doubles with every one after


class Cycle(NamedTuple):
    """What happened from one recovery to the next."""

    accepts: int
    span_s: float
    before_refusal: int  # accepts until the refusal
    active_s: float  # time until the refusal
    pause_s: float  # from the refusal to the trial that was accepted
    since: Instant
    trial_at: Instant
    ended_at: Instant  # when the pause is thought to have ended
    is_long: bool  # the pause was longer than the wait for a token

    @property
    def rate(self) -> float:
        """Accepts a second, the pause included."""
        return self.accepts / self.span_s
