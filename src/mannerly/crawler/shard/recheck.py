"""The second look at pages: what is asked of the server, and what an answer shows.

In a recrawl a page that has a record is asked for with its validators (If-None-Match,
If-Modified-Since), so that a server which knows it unchanged answers 304 without a body. The answer
is compared with the record (`page.record`), and with what the sitemap of the host said: how often
that was right decides whether it is believed (`store.lastmod`).

Sitemaps are asked for without validators: what they say now is needed for every page. So is a page
whose answer should be kept and is not, and one whose record is on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry, PageChange
from mannerly.crawler.page.record import compared

if TYPE_CHECKING:
    from mannerly.crawler.model import RobotsRequest
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.store.base import Batch, Earlier, ShardStore

Headers = tuple[tuple[str, str], ...]


class Rechecks:
    """The pages of one shard that are checked again; `is_on` is false if there can be none."""

    __slots__ = ("_keeps_bodies", "_store", "is_on")

    def __init__(self, store: ShardStore, *, keeps_bodies: bool) -> None:
        self._store = store
        self._keeps_bodies = keeps_bodies
        counts = store.counts()
        self.is_on = counts.round > 0 or counts.rechecks > 0 or counts.retries > 0

    def has_record(self, item: Entry | RobotsRequest) -> bool:
        """Return whether an entry has a record of an earlier crawl."""
        earlier = self._earlier(item) if self.is_on else None
        return earlier is not None and earlier.record is not None

    def validators(self, item: Entry | RobotsRequest) -> Headers:
        """Return the headers by which a server can tell that a page is the same."""
        earlier = self._earlier(item)
        record = None if earlier is None else earlier.record
        if earlier is None or record is None or not 200 <= (record.status or 0) < 300:
            return ()
        if self._keeps_bodies and not earlier.is_kept:
            return ()
        given = (("If-None-Match", record.etag), ("If-Modified-Since", record.last_modified))
        return tuple((name, value) for name, value in given if value)

    def compared(self, entry: Entry, found: Harvest) -> Harvest:
        """Return what an answer brought, compared with the record of an earlier crawl."""
        earlier = self._earlier(entry)
        if earlier is None:
            return found
        if earlier.record is not None:
            return compared(found, earlier.record)
        # It may be new, same or changed: told when both records are read (`store.records`).
        return found._replace(record=found.record._replace(change=None))

    def settled(self, entry: Entry, found: Harvest, batch: Batch) -> None:
        """Keep what an unchanged page has, and count whether its sitemap told the truth."""
        record = found.record
        if found.is_unchanged:
            batch.unchanged.add(entry.seq)
        if record.change not in (PageChange.SAME, PageChange.CHANGED):
            return
        earlier = self._store.earlier(entry.seq)
        if earlier is None or earlier.lastmods is None:
            return
        before, now = earlier.lastmods
        is_right = (before == now) == (record.change == PageChange.SAME)
        right, wrong = batch.lastmods.get(record.host, (0, 0))
        batch.lastmods[record.host] = (right + is_right, wrong + (not is_right))

    def _earlier(self, item: Entry | RobotsRequest) -> Earlier | None:
        if not isinstance(item, Entry) or not KINDS[item.kind].is_page:
            return None
        return self._store.earlier(item.seq)
