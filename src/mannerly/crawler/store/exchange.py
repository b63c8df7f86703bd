"""Writes of the shards of one process to their store: in one exchange, or one by one.

The `Fleet` of a crawl in a server is a `StoreExchange`: its round trip is paid once for all shards.
In a directory each shard has files of its own, and nothing is gained by writing them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from .base import Committed, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .base import Batch, ShardStore

T = TypeVar("T")


class StoreExchange(Protocol):
    """Writes of several shards of one process."""

    def commit(
        self,
        batches: Sequence[tuple[ShardStore, Batch]],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Committed | StoreError]:
        """Commit batches of several shards of this process; they share a round trip.

        Returns, for each, what `ShardStore.commit` returns or raises. Each batch is applied whole
        or not at all, whatever becomes of the others. `meanwhile` is called, any number of times,
        while the store works; it must use neither the store nor the batches.
        """

    def pass_links(
        self,
        stores: Sequence[ShardStore],
        limit: int,
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Committed | StoreError]:
        """Do `ShardStore.pass_links` for several shards of this process; they share a round trip.

        Returns, for each, what that returns or raises. After `StoreAway` nothing is lost: what was
        taken over is returned the next time. `meanwhile`: as for `commit`.
        """


class OneByOne:
    """The exchange of a crawl in which each shard has files of its own."""

    def __init__(self, shards: int = 2) -> None:
        self._has_links = shards > 1  # else there is no other shard

    def commit(
        self,
        batches: Sequence[tuple[ShardStore, Batch]],
        meanwhile: Callable[[], None] | None = None,  # noqa: ARG002 - nothing is waited for
    ) -> list[Committed | StoreError]:
        """Commit a batch of each shard."""
        return [_attempt(store.commit, batch) for store, batch in batches]

    def pass_links(
        self,
        stores: Sequence[ShardStore],
        limit: int,
        meanwhile: Callable[[], None] | None = None,  # noqa: ARG002 - nothing is waited for
    ) -> list[Committed | StoreError]:
        """Pass links on, from each shard and to each."""
        if not self._has_links:
            return [_NO_LINKS] * len(stores)
        return [_attempt(store.pass_links, limit) for store in stores]


_NO_LINKS = Committed([], 0)


def _attempt(write: Callable[[T], Committed], what: T) -> Committed | StoreError:
    try:
        return write(what)
    except StoreError as error:
        return error
