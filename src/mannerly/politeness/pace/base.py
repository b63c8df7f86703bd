"""How fast? A strategy answers with three numbers and learns from every finished request.

The host reads `rate`, `concurrency` and `trial_only` after each sample and turns them into an
admission rule together with everything the server, robots.txt and the operator asked for; a
strategy never sees those, so it cannot break them. Strategies are pure: no clock, no dice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..stats import HostStats


class PaceChange(Enum):
    """What a sample changed in a strategy's mind; the host turns it into an event."""

    SLOWED = "slowed"
    SPED_UP = "sped_up"
    PROBING = "probing"
    RECOVERED = "recovered"


class Effect(NamedTuple):
    """A sample's consequence: a pause of our own, and what to tell the listeners."""

    block_s: float = 0.0
    change: PaceChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a strategy wants to remember between runs. Delays are float seconds; 0: unknown."""

    delay_s: float = 0.0  # one over the rate known to be good
    floor_s: float = 0.0  # one over the lowest rate known to be refused
    allowance: float = 0.0  # requests the server lets through above its rate before it refuses
    block_s: float = 0.0  # how long the last refusal lasted
    concurrency: int = 0
    is_proven: bool = False


class Strategy(Protocol):
    """A strategy for one host."""

    @property
    def rate(self) -> float:
        """Requests a second it wants."""

    @property
    def concurrency(self) -> int:
        """Requests under way it wants."""

    @property
    def trial_only(self) -> bool:
        """One request at a time, until one succeeds."""

    @property
    def burst(self) -> int:
        """Requests that may start at once after a rest; 1 is strict spacing."""

    @property
    def may_defer_first(self) -> bool:
        """No single success changes any of these numbers, so the first may be told later."""

    @property
    def phase(self) -> str:
        """One word for people: what it is doing."""

    def __init__(self, settings: Settings) -> None: ...

    def on_sample(self, sample: Sample, stats: HostStats) -> Effect | None:
        """Learn from a finished request; None: nothing changed."""

    def restart(self, now: Instant) -> None:
        """The breaker closed: begin again at half the old rate."""

    def recall(self, lesson: Lesson, trust: float) -> None:
        """Start from what an earlier run learned, weighted by trust (1 fresh, 0 forgotten)."""

    def lesson(self) -> Lesson:
        """What to remember."""
