"""A memory without a file: for tests, and to pass what was learned from one job to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .base import Remembered


class InMemory:
    """A dict of records. It can still be used after `close`."""

    def __init__(self) -> None:
        self._records: dict[str, Remembered] = {}

    def load(self, host: str) -> Remembered | None:
        """Return the record of one host; None if there is none."""
        return self._records.get(host)

    def save(self, records: Iterable[Remembered]) -> None:
        """Save all of these records; none if iterating over them raises."""
        self._records |= {record.host: record for record in records}

    def forget(self, host: str) -> None:
        """Remove a host's record."""
        self._records.pop(host, None)

    def close(self) -> None:
        """Do nothing."""
