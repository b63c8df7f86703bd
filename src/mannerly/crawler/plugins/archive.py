"""Keep the answers of a shard: each becomes a pair of records in its segment.

A payload that was kept lately is not kept again: the second answer becomes a revisit, which names
the URL and the date of the first, and its page has the place of the first. Only payloads since the
last start are known, and the last `REMEMBERED` of them: a copy more costs disk, nothing else.

Of a page that a browser has shown, its final DOM is kept, too, and that is its place: handlers that
run later and exports get what the crawl has read.

robots.txt files and sitemaps are kept like pages: they show what the site allowed and announced
when it was archived. Refusals that are tried again (429, 503) and failures are not: an archive has
each page once, with the answer that its record describes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.archive.warc import (
    Original,
    answer_records,
    payload_digest,
    shown_record,
    warcinfo,
)
from mannerly.crawler.model import Entry
from mannerly.crawler.shard.follows import LearnRules, Settled
from mannerly.crawler.shard.plugin import Plugin
from mannerly.crawler.store.segments import SegmentWriter
from mannerly.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mannerly.crawler.model import (
        ArchivePlace,
        Fetched,
        Now,
        RawExchange,
        RobotsRequest,
    )
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.follows import Follows
    from mannerly.crawler.shard.pending import Pending
    from mannerly.crawler.store.base import Manifest, ShardStore

REMEMBERED = 20_000  # payloads: 6 MB
WORTH_BYTES = 1024  # a revisit record is not much shorter than a small page


class _Payload(NamedTuple):
    original: Original
    place: ArchivePlace


class Archive(Plugin):
    """Keeps the answers of one shard."""

    def __init__(self, segments: SegmentWriter) -> None:
        self._segments = segments
        self._payloads: OrderedDict[str, _Payload] = OrderedDict()

    @classmethod
    def beside(cls, store: ShardStore, stem: str, folder: Path, facts: Facts) -> Archive:
        """Open the segments of a shard, by the stem of their names; what was not committed is cut.

        Raises:
            StoreError: they are shorter than what was committed.
        """
        return cls(
            SegmentWriter(
                folder,
                stem,
                store.segments(),
                rotate_at=facts.segment_bytes,
                begin=lambda name: warcinfo(name, facts.info, facts.wall),
                durable=facts.durable,
            )
        )

    def after_answer(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Keep a robots.txt, and what a browser has asked for: they get no record."""
        if answer.exchange is not None:
            is_of_browser = isinstance(item, Entry) and item.seq < 0
            if isinstance(follows, LearnRules) or (is_of_browser and isinstance(follows, Settled)):
                self.keep(item.url, answer.exchange, now.wall)
        return follows

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Keep the answer of a page or list; of one that is unchanged the last whole one stays."""
        if exchange is not None and not found.is_unchanged:
            place = self.keep(entry.url, exchange, found.record.fetched_at)
            pending.keep_answer(entry, place)

    def held_bytes(self) -> int:
        """Return how many bytes of records are not written yet."""
        return self._segments.waiting_bytes

    def keep(self, url: str, exchange: RawExchange, wall: float) -> ArchivePlace:
        """Keep an answer that was complete at `wall`; return where the body is that was read."""
        body = exchange.body
        digest = payload_digest(body)
        known = None
        is_worth = len(body) >= WORTH_BYTES and exchange.cut is None
        if is_worth:
            known = self._payloads.get(digest)
        original = None if known is None else known.original
        records = answer_records(url, exchange, wall, digest, original)
        place = self._segments.append(records.response)
        self._segments.append(records.request)
        if known is not None:
            self._payloads.move_to_end(digest)
            place = known.place
        elif is_worth:
            origin = Original(url, records.date, records.record_id)
            self._payloads[digest] = _Payload(origin, place)
            if len(self._payloads) > REMEMBERED:
                self._payloads.popitem(last=False)
        if exchange.shown is None:
            return place
        shown = shown_record(url, exchange, exchange.shown, wall, records.record_id)
        return self._segments.append(shown)

    def flush(self, pending: Pending) -> None:
        """Write everything, and have the lengths committed. Raises StoreFull."""
        pending.keep_segments(self._segments.flush())

    def committed(self) -> None:
        """Note that the lengths are committed."""
        self._segments.committed()

    def close(self) -> None:
        """Close the files."""
        self._segments.close()


class Facts(NamedTuple):
    """The facts that a segment needs of its crawl."""

    info: Mapping[str, str]  # the lines of its first record
    wall: float  # the beginning of this run
    segment_bytes: int
    durable: bool


def facts_of(settings: CrawlSettings, manifest: Manifest, wall: float) -> Facts:
    """Return the facts for the first record of segments: who crawls, by which rules."""
    info = {
        "software": f"mannerly/{VERSION}",
        "format": "WARC File Format 1.1",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "http-header-user-agent": settings.user_agent,
        "robots": "ignore" if settings.ignore_robots else "obey",
        "isPartOf": manifest.id,
    }
    if settings.contact:
        info["operator"] = info["http-header-from"] = settings.contact
    return Facts(info, wall, settings.segment_bytes, settings.durable)
