"""What was learned, on its way to the memory: nothing is lost, and nobody waits for a disk.

    core.drain ─► unsaved ─► memory.save ─► struck out        every 30 s of activity, and at close

A record stays in `unsaved` until a write has succeeded, and a later one for the same host takes
its place: a failed write is simply tried again, a debounce cannot drop the last change, and a
host that comes back before its record was written is recalled from here. There is no background
task to leak: whoever reports when the time is due starts the write.

This file decides what to write and when. The drivers decide where (a thread, an executor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core import Politeness
    from ..memory.base import Memory, Remembered
    from ..model import Instant

FLUSH_EVERY_S = 30.0  # pace §1.8: what a crash may cost


class MemoryBuffer:
    """Records between the core and one memory. `load` and `save` may run in any thread."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.error: Exception | None = None  # of the latest write, None when it succeeded
        self._unsaved: dict[str, Remembered] = {}
        self._due_at: Instant | None = None
        self._is_writing = False

    def load(self, key: str) -> Remembered | None:
        """What is known of a host, from the records under way or from the memory."""
        return self._unsaved.get(key) or self.memory.load(key)

    def collect(
        self, core: Politeness, *, now: Instant, wall: float, is_last: bool = False
    ) -> list[Remembered]:
        """What to write now; empty while it is not yet time. Follow it with `saved`."""
        if self._due_at is None:
            self._due_at = now + FLUSH_EVERY_S
        if not is_last and (self._is_writing or now < self._due_at):
            return []
        self._due_at = now + FLUSH_EVERY_S
        self._unsaved.update((record.host, record) for record in core.drain(now=now, wall=wall))
        self._is_writing = bool(self._unsaved)
        return list(self._unsaved.values())

    def save(self, records: list[Remembered]) -> Exception | None:
        """Write them down. A failure is returned: it must not become a request's failure."""
        try:
            self.memory.save(records)
        except Exception as error:  # noqa: BLE001 - anyone's memory, so any error
            return error
        return None

    def saved(self, records: list[Remembered], error: Exception | None) -> None:
        """Strike out what was written, unless it has changed meanwhile; keep all on an error."""
        self._is_writing = False
        self.error = error
        if error is None:
            for record in records:
                if self._unsaved.get(record.host) is record:
                    del self._unsaved[record.host]
