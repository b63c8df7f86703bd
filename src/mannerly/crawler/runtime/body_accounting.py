"""Count the bodies that stay in memory after their request has ended, in bytes.

reading     a helper parses the page: its body, copies of it, and its tree
delivered   the program that iterates over the crawl has it
unwritten   answers that are kept, and wait to be written to their segment
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.host.inflight import Stage
from mannerly.crawler.kinds import KINDS

if TYPE_CHECKING:
    from mannerly.crawler.kinds import Kind
    from mannerly.crawler.model import Fetched
    from mannerly.crawler.shard.interfaces import PageResult
    from mannerly.crawler.shard.shard import Shard

READING = 3  # times its size is what a page takes until a helper has read it: it is copied twice
LISTING = 2  # the same of a list: no tree is made of it, and the copy on its way is gone by then


def answer_bytes(stage: Stage, answer: Fetched, kind: Kind) -> int:
    """Return what an answer of this kind takes in this stage."""
    if stage is Stage.READING:
        return (LISTING if KINDS[kind].is_listing else READING) * len(answer.body)
    if stage is not Stage.DELIVERED:
        return 0
    return len(answer.body) + (0 if answer.exchange is None else len(answer.exchange.body))


def result_bytes(result: PageResult) -> int:
    """Return what a page took that was delivered."""
    exchange = result.exchange
    return result.found.record.bytes + (0 if exchange is None else len(exchange.body))


class Unwritten:
    """The answers that wait to be written, of some shards."""

    def __init__(self) -> None:
        self._shards: list[Shard] = []
        self._counted = 0

    def __bool__(self) -> bool:
        return bool(self._shards)

    def add(self, shard: Shard) -> None:
        """Count those of one more shard."""
        if shard.holds_answers:
            self._shards.append(shard)

    def remove(self, shard: Shard) -> None:
        """Count those of one shard less."""
        if shard.holds_answers:
            self._shards.remove(shard)

    def growth(self) -> int:
        """Return by how many bytes they have grown since this was asked last."""
        before = self._counted
        self._counted = sum([shard.held_bytes for shard in self._shards])
        return self._counted - before
