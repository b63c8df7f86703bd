"""Everything that joins the next commit of a shard."""

from __future__ import annotations

from mannerly.crawler.store.base import Batch


class Pending:
    """The batch of a shard. Each commit begins a new one, so it is kept here only.

    Attributes:
        is_urgent: it should not wait: a host asked for a pause that a crash now would forget, or
            the batch is large.
    """

    __slots__ = ("batch", "is_urgent")

    def __init__(self) -> None:
        self.batch = Batch()
        self.is_urgent = False

    def committed(self) -> Batch:
        """Begin the next batch; return the one that is durable."""
        batch, self.batch = self.batch, Batch()
        self.is_urgent = False
        return batch
