"""A write buffer between the core and a memory, so that no request waits for a disk.

    core.drain ─► unsaved ─► memory.save ─► removed        every 30 s of activity, and at close

A record stays in `unsaved` until a write has succeeded; a later record of the same host replaces
it. So a failed write is repeated, the last change is never lost, and a host that returns before its
record was written is loaded from here. There is no background task: the first report after the
30 seconds starts the write.

This module decides what to write and when. The drivers decide where (a thread, an executor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core import Politeness
    from ..memory.base import Memory, Remembered
    from ..model import Instant

FLUSH_EVERY_S = 30.0  # a crash loses at most what was learned in this time


class MemoryBuffer:
    """Unsaved records of one memory. `load` and `save` may run in any thread."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.error: Exception | None = None  # of the latest write; None if it succeeded
        self._unsaved: dict[str, Remembered] = {}
        self._due_at: Instant | None = None
        self._is_writing = False

    def load(self, key: str) -> Remembered | None:
        """Return the record of a host, unsaved or from the memory."""
        return self._unsaved.get(key) or self.memory.load(key)

    def collect(
        self, core: Politeness, *, now: Instant, wall: float, is_last: bool = False
    ) -> list[Remembered]:
        """Return the records to write now; empty if no write is due. Call `saved` afterwards."""
        if self._due_at is None:
            self._due_at = now + FLUSH_EVERY_S
        if not is_last and (self._is_writing or now < self._due_at):
            return []
        self._due_at = now + FLUSH_EVERY_S
        self._unsaved.update((record.host, record) for record in core.drain(now=now, wall=wall))
        self._is_writing = bool(self._unsaved)
        return list(self._unsaved.values())

    def save(self, records: list[Remembered]) -> Exception | None:
        """Write the records. An error is returned, not raised: it must not fail a request."""
        try:
            self.memory.save(records)
        except Exception as error:  # noqa: BLE001 - a user's memory may raise anything
            return error
        return None

    def saved(self, records: list[Remembered], error: Exception | None) -> None:
        """Remove written records that have not changed meanwhile; keep all after an error."""
        self._is_writing = False
        self.error = error
        if error is None:
            for record in records:
                if self._unsaved.get(record.host) is record:
                    del self._unsaved[record.host]
