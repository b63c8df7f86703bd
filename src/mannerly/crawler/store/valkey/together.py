"""Writes to several shards of one process in one exchange: its round trip is paid once.

Each write is numbered and fenced as if it were alone (`writes`), and its answer is told to its
shard. So one that is refused or has no room is not in the way of the others, and after an exchange
whose answer was lost every write is pending in its own shard.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import LeaseLost, StoreAway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mannerly.crawler.store.base import Batch, Committed
    from mannerly.database.client import Call

    from .client import ValkeyServer
    from .keys import CrawlKeys
    from .shard import ValkeyShard

_PIECE = 64  # writes of one exchange: other clients of the server wait for it


class Together:
    """Some shards of one process, and which of them failed."""

    def __init__(
        self, server: ValkeyServer, keys: CrawlKeys, shards: Iterable[ValkeyShard]
    ) -> None:
        self._server = server
        self._keys = keys
        self._shards = list(shards)
        self._failed: dict[int, StoreError] = {}  # by shard

    def commit(self, batches: Sequence[Batch]) -> list[Committed | StoreError]:
        """Commit a batch of each shard; return what `commit` of each would return or raise."""
        self._settle()
        offered = {shard.number: batch for shard, batch in zip(self._shards, batches, strict=True)}
        self._send(self._sound, lambda shard: shard.begin_commit(offered[shard.number]))
        return [self._result(shard, shard.end_commit) for shard in self._shards]

    def pass_links(self, limit: int) -> list[Committed | StoreError]:
        """Take over what others have queued; return what `pass_links` of each would."""
        self._settle()
        asking = [shard for shard in self._sound if shard.arrived.is_due(self._server.mono())]
        try:
            known = self._arrivals(asking)
        except StoreError as error:
            self._failed |= {shard.number: error for shard in self._sound}
        else:
            for shard, arrivals in zip(asking, known, strict=True):
                shard.asked(int(arrivals or 0))
        self._settle()
        return [self._result(shard, partial(shard.arrived.take, limit)) for shard in self._shards]

    def _arrivals(self, shards: Sequence[ValkeyShard]) -> list[bytes | None]:
        """Return how many URLs others have ever added to each shard; None: none yet."""
        if not shards:
            return []
        numbers = [shard.number for shard in shards]
        found: list[bytes | None] = self._server.ask("HMGET", self._keys.arrivals, *numbers)
        return found

    def rest(self, orders: int) -> set[int]:
        """Note that nothing is left to do in these shards; return the numbers of those that rest.

        Raises:
            StoreAway, CrawlGone: see there.
        """
        self._settle()
        still = self._sound
        calls = [shard.rest_call(orders) for shard in still]
        answers = self._server.calls(calls) if calls else []
        for shard, answer in zip(still, answers, strict=True):
            if isinstance(answer, StoreError):
                self._failed[shard.number] = answer
        for error in self._failed.values():
            if not isinstance(error, LeaseLost):
                raise error
        return {shard.number for shard, answer in zip(still, answers, strict=True) if answer == 1}

    @property
    def _sound(self) -> list[ValkeyShard]:
        return [shard for shard in self._shards if shard.number not in self._failed]

    def _result(self, shard: ValkeyShard, end: Callable[[], Committed]) -> Committed | StoreError:
        return self._failed.get(shard.number) or end()

    def _settle(self) -> None:
        """Send everything that is pending."""
        self._send([shard for shard in self._sound if shard.is_pending])

    def _send(
        self, shards: list[ValkeyShard], begin: Callable[[ValkeyShard], None] | None = None
    ) -> None:
        """Send a write of each shard, which `begin` makes, and learn what came of it."""
        for start in range(0, len(shards), _PIECE):
            self._send_piece(shards[start : start + _PIECE], begin)

    def _send_piece(
        self, shards: list[ValkeyShard], begin: Callable[[ValkeyShard], None] | None
    ) -> None:
        sent: list[ValkeyShard] = []
        try:
            answers = self._server.calls(self._calls(shards, begin, sent))
        except StoreAway as error:
            self._failed |= {
                shard.number: error for shard in shards if shard.number not in self._failed
            }
            return
        for shard, answer in zip(sent, answers, strict=True):
            try:
                shard.settled(answer)
            except StoreError as error:
                self._failed[shard.number] = error

    def _calls(
        self,
        shards: list[ValkeyShard],
        begin: Callable[[ValkeyShard], None] | None,
        sent: list[ValkeyShard],
    ) -> Iterator[Call]:
        """Make the calls, one when the one before is on its way; `sent` has their shards."""
        for shard in shards:
            try:
                if begin is not None:
                    begin(shard)
                call = shard.pending_call()
            except StoreError as error:
                self._failed[shard.number] = error
            else:
                sent.append(shard)
                yield call
