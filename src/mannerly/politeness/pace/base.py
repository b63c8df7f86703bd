"""The interface of strategies: they set a host's request rate and learn from its responses.

The host reads `rate`, `concurrency` and `trial_only` after each sample, and combines them with the
limits of the server, robots.txt and the operator. A strategy never sees those limits, so it cannot
break them. Strategies use no clock and no random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats
    from .kinds import KnownLimit


class PaceChange(Enum):
    """A change of a strategy's rate or phase; the host turns it into an event."""

    SLOWED = "slowed"
    SPED_UP = "sped_up"
    PROBING = "probing"
    RECOVERED = "recovered"


class Effect(NamedTuple):
    """The effect of a sample: a pause in seconds (0: none), and a change to report."""

    block_s: float = 0.0
    change: PaceChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The knowledge of a strategy about a host that is kept between runs. 0 means unknown."""

    delay_s: float = 0.0  # 1 / highest rate that was accepted
    floor_s: float = 0.0  # 1 / lowest rate that was refused
    allowance: float = 0.0  # requests above its rate that the server accepts before it refuses
    block_s: float = 0.0  # duration of the last pause after a refusal
    concurrency: int = 0  # maximum requests in flight
    is_proven: bool = False  # the rate was used for long enough without a refusal


class Strategy(Protocol):
    """A strategy for one host."""

    @property
    def rate(self) -> float:
        """Requests per second."""

    @property
    def concurrency(self) -> int:
        """Maximum requests in flight."""

    @property
    def trial_only(self) -> bool:
        """Return whether only one request may be in flight, until one succeeds."""

    @property
    def burst(self) -> int:
        """Requests that may start at once after a pause; 1: always keep the delay."""

    @property
    def may_defer_first(self) -> bool:
        """Return whether the first sample may come late: a single success changes nothing."""

    @property
    def phase(self) -> str:
        """The present phase in one word, for snapshots."""

    @property
    def known_limits(self) -> tuple[KnownLimit, ...]:
        """The limits of which the kind was recognised, their instants on the caller's clock."""

    def __init__(self, settings: Settings) -> None: ...

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:
        """Learn from a finished request; returns its effect, None if there is none."""

    def restart(self, now: Instant) -> None:
        """Continue at half the rate, after the breaker has closed."""

    def configure(self, settings: Settings) -> None:
        """Go on with other settings; keep what was learned as far as they allow."""

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start from the lesson of an earlier run; `trust` is its weight, from 1 (new) to 0."""

    def lesson(self) -> Lesson:
        """Return what to remember for the next run."""
