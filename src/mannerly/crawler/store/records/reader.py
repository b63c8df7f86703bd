"""The records of a shard, from the logs of all its claims.

The logs are read once, frame by frame, into an index: where the record of each URL is, and whether
it still holds. `update` reads what was committed since. A shard is a small part of a crawl, so its
index fits in memory: about 200 bytes a page.

**One history.** A frame counts unless the URL is done already: it has a record or a reason of the
same round, and was not returned to the queue since. That is the rule by which the server takes URLs
out of its queue, so both agree, also where an owner offered a batch twice.

**Compared later.** The record before may be on another machine when a page is fetched again. Then
its change is told here, when both are read.

Logs may be in several folders, one for each machine. A segment that is in none of them is missing:
`missing_segments` has its name, and its URLs are unknown here.
"""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING

from mannerly.crawler.changes import compared_later, is_good
from mannerly.crawler.kinds import KINDS, Form, Kind
from mannerly.crawler.model import PageChange, PageRecord, Skipped, Traffic, is_given_up
from mannerly.crawler.payload import identity_of
from mannerly.crawler.store.base import Earlier, Extra, RecordReader, Stored
from mannerly.crawler.store.lastmod import as_read, said_again, unchanged
from mannerly.database.files import open_regular

from .elements import LoggedElements
from .frames import (
    AskedFrame,
    CheckedFrame,
    DroppedFrame,
    ElementsFrame,
    ListedFrame,
    LogDamaged,
    RecordedFrame,
    ReturnedFrame,
    TrafficFrame,
    read_frame,
    read_frames,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from mannerly.crawler.model import ArchivePlace, Entry, PageItems
    from mannerly.crawler.store.lastmod import SitemapSays

    from .elements import ElementsPlace
    from .frames import Frame
    from .writer import Extent

_by_position = attrgetter("position")


class _Url:
    """A URL that left the queue, as the logs have it."""

    __slots__ = (
        *("checked_round", "earlier_at", "elements_at", "error", "items_at", "kind", "place"),
        *("position", "reason_at", "record_at", "round", "seq"),
    )

    def __init__(self, seq: int, kind: Kind) -> None:
        self.seq = seq
        self.kind = kind
        self.round = -1  # of the last frame that counted; -1: it is queued
        self.checked_round = 0  # a sitemap said in this round that it is unchanged; 0: none did
        self.position = 0
        # Places of frames: the number of the segment and the offset in it.
        self.record_at: tuple[int, int] | None = None
        self.earlier_at: tuple[int, int] | None = None  # a record that was not compared with
        self.reason_at: tuple[int, int] | None = None
        self.elements_at: ElementsPlace | None = None
        self.items_at: tuple[int, int] | None = None
        self.place: ArchivePlace | None = None
        self.error: str | None = None  # it was dropped when it was checked again


class LogReader(RecordReader):
    """The record half of a `ShardReader`: what left the queue, and what is known of it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.missing_segments: list[str] = []  # in no folder
        self.round = 0
        self._folders = folders
        self._urls: dict[int, _Url] = {}  # by seq
        self._seqs: dict[str, int] = {}  # by URL; of requisites by identity
        self._listed: dict[str, SitemapSays] = {}
        self._traffic: dict[int, tuple[int, int]] = {}
        self._files: list[BinaryIO] = []
        self._logged_elements = LoggedElements(self._files)
        self._numbers: dict[str, int] = {}  # of segments that were found, by name
        self._read_to: dict[str, int] = {}

    # ------------------------------------------------------------------ reading logs

    def update(self, committed: Mapping[str, Extent], round_number: int) -> None:
        """Read what was committed since the last time; segments come in their order.

        Raises:
            LogDamaged: a committed part of a segment cannot be read.
        """
        self.round = round_number
        self.missing_segments = []
        for name, extent in committed.items():
            number = self._number(name, extent.length)
            if number is None:
                self.missing_segments.append(name)
                continue
            start = self._read_to.get(name, 0)
            for offset, frame in read_frames(self._files[number], start, extent.length):
                self._take(frame, (number, offset))
                self._read_to[name] = offset
            self._read_to[name] = extent.length

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _number(self, name: str, length: int) -> int | None:
        """Open a segment; return its number, or None if no folder has as much of it."""
        if name in self._numbers:
            return self._numbers[name]
        for folder in self._folders:
            path = folder / name
            if path.is_file() and path.stat().st_size >= length:
                self._files.append(_open(path))
                self._numbers[name] = len(self._files) - 1
                return self._numbers[name]
        return None

    def _take(self, frame: Frame, at: tuple[int, int]) -> None:
        match frame:
            case ElementsFrame():
                self._logged_elements.meet(frame, at)
            case RecordedFrame():
                self._recorded(frame, at)
            case DroppedFrame():
                self._dropped(frame, at)
            case ReturnedFrame(seqs):
                for seq in seqs:
                    self._returned(seq)
            case AskedFrame(seqs):
                self._asked_again(seqs)
            case TrafficFrame(sums):
                self._add_traffic(sums)
            case CheckedFrame(round_number, seqs):
                for seq in seqs:
                    self._urls[seq].round = self._urls[seq].checked_round = round_number
            case ListedFrame(round_number, pages):
                for page, lastmod in pages:
                    self._listed[page] = said_again(self._listed.get(page), lastmod, round_number)

    def _recorded(self, frame: RecordedFrame, at: tuple[int, int]) -> None:
        url = self._url(frame.entry)
        elements_at = self._logged_elements.place_of(frame)
        # Of a page that is offered again, the latest answer and items count.
        url.place = frame.place or url.place
        if frame.items is not None:
            url.items_at = at
        if url.round >= frame.round:
            return
        url.round = frame.round
        url.checked_round = 0
        url.position = url.position or frame.position
        url.earlier_at = url.record_at if _is_uncompared(frame) else None
        url.record_at, url.reason_at, url.error = at, None, None
        if elements_at is not None or not frame.keeps_elements:
            url.elements_at = elements_at

    def _dropped(self, frame: DroppedFrame, at: tuple[int, int]) -> None:
        url = self._url(frame.entry)
        if url.round < frame.round:
            url.round = frame.round
            if url.record_at is not None:
                url.error = frame.reason
            elif not is_given_up(frame.reason):
                url.reason_at = at

    def _returned(self, seq: int) -> None:
        url = self._urls.get(seq)
        if url is not None:  # else its segment is missing
            self._urls[seq] = _Url(seq, url.kind)

    def _asked_again(self, seqs: list[int]) -> None:
        for seq in seqs:
            if seq in self._urls:  # else its segment is missing
                self._urls[seq].round = -1

    def _add_traffic(self, sums: dict[int, list[int]]) -> None:
        for interval, (requests, refused) in sums.items():
            so_far = self._traffic.get(interval, (0, 0))
            self._traffic[interval] = so_far[0] + requests, so_far[1] + refused

    def _url(self, entry: Entry) -> _Url:
        self._seqs[identity_of(entry.kind, entry.url)] = entry.seq
        return self._urls.setdefault(entry.seq, _Url(entry.seq, entry.kind))

    # ------------------------------------------------------------------ questions

    def stored(
        self,
        form: Form = Form.PAGE,
        *,
        after: int = 0,
        last: int | None = None,
        extra: Extra = Extra.NOTHING,
    ) -> Iterator[Stored]:
        """Yield the records of URLs of a form between two positions, the second included."""
        wants_elements = extra is Extra.ELEMENTS
        for url in self._in_order(after, last):
            if KINDS[url.kind].form is form and (record := self._record(url)) is not None:
                elements = self._elements(url) if wants_elements else None
                yield url.position, record, elements, url.place, url.seq

    def elements_of(self, page: str) -> bytes | None:
        """Return the elements of one page; None if there are none, or no such page."""
        url = self._find(page)
        return None if url is None else self._elements(url)

    def position_of(self, page: str) -> int | None:
        """Return the position of the record of a URL; None: it has none."""
        url = self._find(page)
        return None if url is None or url.record_at is None else url.position

    def kept_at(self, identity: str) -> ArchivePlace | None:
        """Return where the answer of one URL is kept; None: nowhere."""
        url = self._find(identity)
        return None if url is None else url.place

    def is_kept(self, seq: int) -> bool:
        """Return whether the answer of a page is kept."""
        url = self._urls.get(seq)
        return url is not None and url.place is not None

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        """Yield what every page was extracted to, with its position and its URL."""
        for url in self._in_order(after, None):
            frame = None if url.items_at is None else self._frame(url.items_at)
            if isinstance(frame, RecordedFrame) and frame.items is not None:
                yield url.position, frame.entry.url, frame.items

    def traffic(self) -> Iterator[Traffic]:
        """Yield the answers and refusals of every interval that had any, in order."""
        for interval, sums in sorted(self._traffic.items()):
            yield Traffic(interval, *sums)

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped, in the order of arrival."""
        for entry, reason in self.skipped_entries():
            yield Skipped(entry.url, reason, entry.depth, entry.parent)

    def skipped_entries(self) -> Iterator[tuple[Entry, str]]:
        """Yield every URL that is skipped as it was queued, with the reason."""
        for seq in sorted(self._urls):
            frame = self._reason(self._urls[seq])
            if frame is not None:
                yield frame.entry, frame.reason

    def recorded_entries(self) -> Iterator[tuple[Entry, PageRecord]]:
        """Yield every page and list that has a record as it was queued, in the order of records."""
        for url in self._in_order(0, None):
            frame = self._frame(url.record_at) if url.record_at is not None else None
            if isinstance(frame, RecordedFrame) and (record := self._record(url)) is not None:
                yield frame.entry, record

    def unchecked_entries(self) -> Iterator[tuple[Entry, PageRecord]]:
        """Yield those of `recorded_entries` that were not checked in this round."""
        for url in self._in_order(0, None):
            frame = self._frame(url.record_at) if url.record_at is not None else None
            if isinstance(frame, RecordedFrame) and url.round < self.round:
                record = self._record(url)
                if record is not None:
                    yield frame.entry, record

    def has_left(self, seq: int) -> bool:
        """Return whether the logs have a record of a URL, or a reason why it is skipped."""
        url = self._urls.get(seq)
        return url is not None and not (url.record_at is None and url.reason_at is None)

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a URL has of an earlier crawl; None: nothing that is here."""
        url = self._urls.get(seq)
        record = None if url is None else self._record(url)
        if url is None or record is None:
            return None
        says = self._listed.get(record.url)
        return Earlier(record, url.place is not None, says and says.both(self.round))

    def find(self, page: str) -> PageRecord | Skipped | None:
        """Return the record of a URL, or why it is skipped; None: the logs do not say."""
        url = self._find(page)
        if url is None:
            return None
        frame = self._reason(url)
        if frame is None:
            return self._record(url)
        return Skipped(frame.entry.url, frame.reason, frame.entry.depth, frame.entry.parent)

    def listed(self, page: str) -> SitemapSays | None:
        """Return what sitemaps say about a page."""
        return self._listed.get(page)

    def urls(self) -> Iterator[str]:
        """Yield every URL that ever left the queue."""
        yield from dict.fromkeys(identity.partition(" ")[0] for identity in self._seqs)

    # ------------------------------------------------------------------ one URL

    def _in_order(self, after: int, last: int | None) -> list[_Url]:
        end = (
            max((url.position for url in self._urls.values()), default=0) if last is None else last
        )
        return sorted(
            (
                url
                for url in self._urls.values()
                if url.record_at is not None and after < url.position <= end
            ),
            key=_by_position,
        )

    def _find(self, page: str) -> _Url | None:
        return self._urls.get(self._seqs.get(page, 0))

    def _record(self, url: _Url) -> PageRecord | None:
        """Return a record with what sitemaps say; what was not checked yet has no change."""
        if self._urls.get(url.seq) is not url or url.record_at is None:
            return None  # it was returned to the queue meanwhile, or is skipped
        frame = self._frame(url.record_at)
        assert isinstance(frame, RecordedFrame)
        record = frame.record
        if url.earlier_at is not None:
            earlier = self._frame(url.earlier_at)
            assert isinstance(earlier, RecordedFrame)
            record = compared_later(record, earlier.record)
        elif _is_uncompared(frame) and is_good(record) and not self.missing_segments:
            record = record._replace(change=PageChange.NEW)
        if url.checked_round:
            record = unchanged(record)
        if url.error is not None:
            record = record._replace(error=url.error)
        is_checked = url.round >= self.round
        return as_read(record, self._listed.get(record.url), self.round, is_checked=is_checked)

    def _elements(self, url: _Url) -> bytes | None:
        return None if url.elements_at is None else self._logged_elements.read(url.elements_at)

    def _reason(self, url: _Url) -> DroppedFrame | None:
        frame = None if url.reason_at is None else self._frame(url.reason_at)
        return frame if isinstance(frame, DroppedFrame) else None

    def _frame(self, at: tuple[int, int]) -> Frame:
        number, offset = at
        if number >= len(self._files):
            raise LogDamaged("the logs are closed")
        return read_frame(self._files[number], offset)


def _is_uncompared(frame: RecordedFrame) -> bool:
    """Return whether a record of a recrawl was written by a worker without the one before it."""
    record = frame.record
    return frame.round > 0 and record.change is None and record.previous_fetched_at is None


def _open(path: Path) -> BinaryIO:
    # `Path.open` takes no opener; the file is to know its name.
    return open(path, "rb", opener=lambda *_: open_regular(path, os.O_RDONLY))
