"""Links to another shard travel in letters: many links, one row.

A link is written once, when its page is committed, and read once, by the shard it belongs to; what
lies between (`inbox`) moves closed letters. A row for each link took four times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import StoreError

from .database import START_OVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A receiver takes whole letters, and what it takes is one transaction.
LINKS = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Candidate]).decode


class Letter(NamedTuple):
    """Some links for one shard, as a row of an outbox or an inbox holds them."""

    links: int
    text: bytes


def written(candidates: Sequence[Candidate]) -> Iterator[Letter]:
    """The letters that it takes to send these."""
    for start in range(0, len(candidates), LINKS):
        part = candidates[start : start + LINKS]
        yield Letter(len(part), _encode(part))


def read(text: bytes) -> list[Candidate]:
    """What a letter says.

    Raises:
        StoreError: it is damaged.
    """
    try:
        return _decode(text)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"a letter between two shards is damaged ({error}): {START_OVER}"
        ) from error
