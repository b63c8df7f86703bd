"""Measurements of `learned`: a probe, an episode of refusals, a cycle between two recoveries.

A cycle, with what is measured in it:

    recovery ── cruise ── probe ── refused ── pause, trials ── recovery ── cruise ── …
    └─────────────────────────────────── cycle ────────────┘
                                   └──────── episode ──────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .kinds import Refusal

if TYPE_CHECKING:
    from ..model import Instant, Sample


class Probe:
    """Rates above the estimated limit that are being tried, in steps."""

    __slots__ = ("count", "excess", "last_at", "rate", "since", "step_ok", "step_since", "steps")

    def __init__(self, rate: float, count: int, now: Instant) -> None:
        self.rate = rate  # of the first step
        self.since = self.last_at = self.step_since = now
        self.count = count  # requests accepted before it began
        self.excess = 0.0  # requests accepted above the limit so far
        self.steps = self.step_ok = 0


class Episode:
    """Consecutive refusals, from the first one to the accepted trial that ends them."""

    __slots__ = (
        "by_failures",
        "cost",
        "count",
        "delivery",
        "last_at",
        "probe",
        "rate",
        "refusals",
        "since",
        "told_s",
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
        self.told_s = sample.retry_after_s  # what the latest refusal asked for
        self.refusals = 1
        self.cost = 1  # requests that failed until it was recognised
        self.by_failures = False  # and not by answers that ask for fewer requests
        self.wait_s = 0.0  # before the second trial; each further one doubles the pause


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


def refusal_of(episode: Episode, trial_at: Instant, born_at: Instant) -> Refusal:
    """Return what an episode tells about the length of pauses. A pause that was told is exact."""
    low = episode.last_at if episode.refusals > 1 else episode.since
    if episode.told_s is not None:
        low = max(low, episode.last_at + episode.told_s - 1.0)  # it is rounded up to seconds
    return Refusal(episode.since - born_at, min(low, trial_at) - born_at, trial_at - born_at)
