"""A memory that lasts as long as its object: for tests, and to hand lessons from job to job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .base import Remembered


class InMemory:
    """A dict of records. Closing it loses nothing: there is nothing to release."""

    def __init__(self) -> None:
        self._records: dict[str, Remembered] = {}

    def load(self, host: str) -> Remembered | None:
        """The record of one host."""
        return self._records.get(host)

    def save(self, records: Iterable[Remembered]) -> None:
        """Keep these. They are read to the end first: all or none."""
        self._records |= {record.host: record for record in records}

    def forget(self, host: str) -> None:
        """Remove a host's record."""
        self._records.pop(host, None)

    def close(self) -> None:
        """Do nothing."""
