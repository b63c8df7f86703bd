"""Measurements of `learned`: a probe, an episode of refusals, a cycle between two recoveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..model import Instant, Sample


class Probe:
    """A rate above the estimated limit that is being tried."""

    __slots__ = ("count", "excess", "last_at", "rate", "since")

    def __init__(self, rate: float, count: int, now: Instant) -> None:
        self.rate = rate
        self.since = self.last_at = now
        self.count = count  # requests accepted before it began
        self.excess = 0.0  # requests accepted above the limit so far


class Episode:
    """Consecutive refusals, from the first one to the accepted trial that ends them."""

    __slots__ = (
        "by_failures",
        "cost",
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
        self.rate = rate  # the rate that was refused
        self.count = count  # requests accepted by then
        self.delivery = delivery  # requests per second accepted just before
        self.probe = probe  # the probe that was refused, if any
        self.since = self.last_at = sample.done_at
        self.is_told = sample.retry_after_s is not None  # the server sent Retry-After
        self.refusals = 1
        self.cost = 1  # requests that failed until it was recognised
        self.by_failures = False  # and not by answers that ask for fewer requests
        self.wait_s = 0.0  # before the second trial; doubles with each further one


class Cycle(NamedTuple):
    """The time from one recovery to the next, with the refusal in between."""

    accepts: int  # accepted requests
    span_s: float  # from `since` to `ended_at`
    before_refusal: int  # requests accepted before the refusal
    active_s: float  # time before the refusal
    pause_s: float  # from the refusal to the accepted trial
    since: Instant
    trial_at: Instant  # when the accepted trial was sent
    ended_at: Instant  # estimated end of the pause
    is_long: bool  # the pause was longer than the wait for one token of a bucket

    @property
    def rate(self) -> float:
        """Accepted requests per second, including the pause."""
        return self.accepts / self.span_s
