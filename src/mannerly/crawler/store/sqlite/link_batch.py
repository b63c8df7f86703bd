"""Links to another shard travel in batches: many links, one row.

A link is encoded once, when its page is committed, and decoded once, by the shard that it belongs
to; what lies between (`inbox`) moves encoded batches. A row for each link took four times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import StoreError

from .database import START_OVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A receiver takes whole batches, and what it takes is one transaction.
MAX_LINKS = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Candidate]).decode


class LinkBatch(NamedTuple):
    """Some links for one shard, as a row of an outbox or an inbox holds them."""

    size: int
    links: bytes


def encode_links(candidates: Sequence[Candidate]) -> Iterator[LinkBatch]:
    """Yield the batches that it takes to send these."""
    for start in range(0, len(candidates), MAX_LINKS):
        part = candidates[start : start + MAX_LINKS]
        yield LinkBatch(len(part), _encode(part))


def decode_links(links: bytes) -> list[Candidate]:
    """Return the links of a batch.

    Raises:
        StoreError: it is damaged.
    """
    try:
        return _decode(links)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"a batch of links between two shards is damaged ({error}): {START_OVER}"
        ) from error
