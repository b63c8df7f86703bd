"""Append what a batch brought to the log of one claim of a shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.store.element_streams import in_blocks, packed
from mannerly.crawler.store.segments import SegmentWriter

from .frames import (
    AskedFrame,
    CheckedFrame,
    DroppedFrame,
    ElementsFrame,
    ListedFrame,
    RecordedFrame,
    ReturnedFrame,
    TrafficFrame,
    pack,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mannerly.crawler.store.base import Batch

    from .frames import Frame

SUFFIX = ".log"
ROTATE_AT = 1 << 30  # bytes
_CLAIM_BITS = 32  # of a position: the number of the record within its claim


class Extent(NamedTuple):
    """The part of a segment that is committed."""

    length: int  # bytes
    pages: int  # records of pages in it


class RecordWriter:
    """Appends frames to the log of one claim.

    Args:
        folder: the directory of the log.
        stem: the beginning of its name; no other claim of any shard has it.
        claim: the number of the claim: larger than that of every earlier claim of the shard.
        durable: wait for the disk before every commit.
    """

    def __init__(self, folder: Path, stem: str, claim: int, *, durable: bool = False) -> None:
        self._next_position = (claim << _CLAIM_BITS) + 1
        self._pages: dict[str, int] = {}  # by segment
        self._segments = SegmentWriter(
            folder,
            stem,
            {},
            suffix=SUFFIX,
            rotate_at=ROTATE_AT,
            begin=lambda _name: b"",
            durable=durable,
        )

    @property
    def waiting_bytes(self) -> int:
        """Return how many bytes of frames are not written yet."""
        return self._segments.waiting_bytes

    def add(self, batch: Batch, round_number: int) -> None:
        """Append the pages, dropped URLs, lists and traffic of a batch."""
        if batch.elements:
            self._add_elements(batch)
        for entry, record in batch.pages:
            seq = entry.seq
            frame = RecordedFrame(
                self._next_position,
                round_number,
                entry._replace(attempts=0),
                record,
                seq in batch.unchanged,
                True if seq in batch.elements else None,
                batch.kept.get(seq),
                batch.items.get(seq),
            )
            self._next_position += 1
            self._append(frame, is_page=KINDS[entry.kind].is_page)
        for entry, reason in batch.dropped:
            self._append(DroppedFrame(round_number, entry._replace(attempts=0), reason))
        if batch.listed:
            self._append(ListedFrame(round_number, batch.listed))
        if batch.traffic:
            self._append(TrafficFrame(batch.traffic))

    def _add_elements(self, batch: Batch) -> None:
        """Append the elements of a batch's pages; those of other pages are not written again."""
        seqs = {entry.seq for entry, _ in batch.pages}
        kept = {seq: each for seq, each in batch.elements.items() if seq in seqs}
        for block in in_blocks(kept):
            self._append(ElementsFrame(list(block), packed(list(block.values()))))

    def returned(self, seqs: Iterable[int]) -> None:
        """Note that URLs are queued again, without what was recorded of them."""
        self._append(ReturnedFrame(list(seqs)))

    def asked_again(self, seqs: Iterable[int]) -> None:
        """Note that URLs are queued again, and keep what was recorded of them meanwhile."""
        self._append(AskedFrame(list(seqs)))

    def checked(self, seqs: Iterable[int], round_number: int) -> None:
        """Note that a sitemap says of these pages that they have not changed."""
        self._append(CheckedFrame(round_number, list(seqs)))

    def flush(self) -> dict[str, Extent]:
        """Write everything; return what to commit of the segments that have grown.

        Raises:
            StoreFull: there is no room; nothing is lost, try again later.
            StoreError: a segment cannot be written.
        """
        grown = self._segments.flush()
        return {name: Extent(length, self._pages.get(name, 0)) for name, length in grown.items()}

    def committed(self) -> None:
        """Note that the last `flush` is committed."""
        self._segments.committed()

    def close(self) -> None:
        """Close the files; what was not committed does not count."""
        self._segments.close()

    def _append(self, frame: Frame, *, is_page: bool = False) -> None:
        place = self._segments.append(pack(frame))
        if is_page:
            self._pages[place.segment] = self._pages.get(place.segment, 0) + 1
