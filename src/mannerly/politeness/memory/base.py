"""What is kept of a host between runs, and what a place to keep it must do.

Times are wall time here (seconds since 1970): a monotonic instant means nothing to the next
process. A memory is dull: it loads and saves records, and knows no politeness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..pace.base import Lesson


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """One host's lesson, with its age."""

    host: str
    lesson: Lesson
    crawl_delay_s: float = 0.0
    blocked_until: float = 0.0  # wall time of a Retry-After that is more than a minute away
    updated_at: float = 0.0


class Memory(Protocol):
    """A place for learned state. The contract suite is in `mannerly.politeness.testing`."""

    def load(self, host: str) -> Remembered | None:
        """The record of one host."""

    def save(self, records: Iterable[Remembered]) -> None:
        """Keep these, all or none, in place of what was there for their hosts."""

    def forget(self, host: str) -> None:
        """Remove a host's record."""

    def close(self) -> None:
        """Release what the memory holds open."""
