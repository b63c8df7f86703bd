"""Find the elements of pages in the logs, and read them.

Those of a batch are in one frame, or in a few, before the records of its pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.store.element_streams import StreamDamaged, unpacked

from .frames import ElementsFrame, LogDamaged, read_frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from .frames import RecordedFrame

_KEPT = 4  # frames whose elements are kept in memory: those of pages that changed lie apart


class ElementsPlace(NamedTuple):
    """The place of a page's elements."""

    segment: int
    offset: int  # of the frame
    place: int  # in the frame


class LoggedElements:
    """The elements of pages in some files."""

    def __init__(self, files: Sequence[BinaryIO]) -> None:
        self._files = files
        self._met: dict[int, ElementsPlace] = {}  # by seq: the record is not read yet
        self._frames: dict[tuple[int, int], list[bytes]] = {}

    def meet(self, frame: ElementsFrame, at: tuple[int, int]) -> None:
        """Take note of a frame with elements."""
        self._met |= {seq: ElementsPlace(*at, place) for place, seq in enumerate(frame.seqs)}

    def place_of(self, frame: RecordedFrame) -> ElementsPlace | None:
        """Return where the elements of a record are; None if it has none, or they are missing."""
        return self._met.pop(frame.entry.seq, None) if frame.has_elements else None

    def read(self, place: ElementsPlace) -> bytes:
        """Return the elements of a page.

        Raises:
            LogDamaged: they cannot be read.
        """
        at = place[:2]
        found = self._frames.get(at)
        if found is None:
            found = self._read(*at)
            if len(self._frames) >= _KEPT:
                del self._frames[next(iter(self._frames))]
            self._frames[at] = found
        return found[place.place]

    def _read(self, segment: int, offset: int) -> list[bytes]:
        if segment >= len(self._files):
            raise LogDamaged("the logs are closed")
        file = self._files[segment]
        frame = read_frame(file, offset)
        assert isinstance(frame, ElementsFrame)
        try:
            found = unpacked(frame.data)
        except StreamDamaged as error:
            raise _damaged(file, offset, error) from None
        if len(found) != len(frame.seqs):
            raise _damaged(file, offset, "elements are missing")
        return found


def _damaged(file: BinaryIO, offset: int, why: object) -> LogDamaged:
    return LogDamaged(f"{file.name} has invalid links at byte {offset:,}: {why}")
