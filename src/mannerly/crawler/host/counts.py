"""The counts of a host, on top of its stored record."""

from __future__ import annotations

from mannerly.crawler.model import HostRecord
from mannerly.politeness.model import NEVER

UNKNOWN = HostRecord("")  # most hosts have counts and nothing else


class HostCounts:
    """A host's stored record, and what was counted since it was made."""

    __slots__ = (
        *("failed", "failures_in_a_row", "fetched", "record", "refused", "requests"),
        *("doing", "is_changed", "look_at", "retry_at", "updated_at"),
    )

    def __init__(self) -> None:
        self.record: HostRecord | None = None
        self.fetched = self.failed = self.refused = self.failures_in_a_row = self.requests = 0
        self.updated_at = 0.0
        self.doing = b""  # as `HostRecord` has it
        self.look_at = NEVER  # when to see anew what the host does
        self.retry_at = NEVER  # when the URL that was put back last is due
        self.is_changed = False  # the next commit writes it

    def put(self, record: HostRecord) -> None:
        """Take a record in place of what is known."""
        self.record = record
        self.fetched = record.fetched
        self.failed = record.failed
        self.failures_in_a_row = record.failures_in_a_row
        self.refused = record.refused
        self.requests = record.requests
        self.updated_at = record.updated_at
        self.doing = record.doing

    def complete(self, host: str) -> HostRecord:
        """Return the up-to-date record. Pages are counted more often than records are written."""
        make = HostRecord if self.record is None else self.record._replace
        return make(
            host=host,
            fetched=self.fetched,
            refused=self.refused,
            failed=self.failed,
            failures_in_a_row=self.failures_in_a_row,
            requests=self.requests,
            updated_at=self.updated_at,
            doing=self.doing,
        )
