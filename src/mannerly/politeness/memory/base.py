"""The record of a host that is kept between runs, and the interface of a memory.

Times are wall time here (seconds since 1970), because monotonic time differs between processes. A
memory only loads and saves records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..bounds import LAST_INSTANT, MOST, bounded
from ..pace.base import Lesson

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The record of one host that is kept between runs. Times are seconds since 1970."""

    host: str
    lesson: Lesson
    crawl_delay_s: float = 0.0
    blocked_until: float = 0.0  # end of a Retry-After, if it is more than a minute away
    updated_at: float = 0.0
    failing_since: float = 0.0  # first refusal or failure since the last success; 0: none
    failures_in_a_row: int = 0  # as the breaker counts them, while it is closed
    breaker_opens: int = 0  # consecutive openings of the breaker
    breaker_until: float = 0.0  # no request but a probe before; 0: the breaker is closed

    def within_bounds(self) -> Remembered:
        """Return the record as far as it makes sense: a memory may hold any number, or none."""
        lesson = self.lesson
        return Remembered(
            host=self.host,
            lesson=Lesson(
                delay_s=bounded(lesson.delay_s),
                floor_s=bounded(lesson.floor_s),
                allowance=bounded(lesson.allowance, MOST),
                block_s=bounded(lesson.block_s),
                concurrency=int(bounded(lesson.concurrency, MOST)),
                is_proven=bool(lesson.is_proven),
            ),
            crawl_delay_s=bounded(self.crawl_delay_s),
            blocked_until=bounded(self.blocked_until, LAST_INSTANT),
            updated_at=bounded(self.updated_at, LAST_INSTANT),
            failing_since=bounded(self.failing_since, LAST_INSTANT),
            failures_in_a_row=int(bounded(self.failures_in_a_row, MOST)),
            breaker_opens=int(bounded(self.breaker_opens, MOST)),
            breaker_until=bounded(self.breaker_until, LAST_INSTANT),
        )


class Memory(Protocol):
    """Storage for records of hosts. Test your own with `politeness.testing.MemoryContract`."""

    def load(self, host: str) -> Remembered | None:
        """Return the record of one host; None if there is none."""

    def save(self, records: Iterable[Remembered]) -> None:
        """Save all of these records, or none of them; they replace older ones of their hosts."""

    def forget(self, host: str) -> None:
        """Remove a host's record."""

    def close(self) -> None:
        """Release the resources of the memory; closing twice is harmless."""
