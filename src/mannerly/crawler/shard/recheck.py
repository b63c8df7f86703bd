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
    from mannerly.crawler.model import PageRecord, RobotsRequest
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.store.base import Batch, ShardStore

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
        return self.is_on and self._recorded(item) is not None

    def validators(self, item: Entry | RobotsRequest) -> Headers:
        """Return the headers by which a server can tell that a page is the same."""
        record = self._recorded(item)
        if record is None or record.status is None or not 200 <= record.status < 300:
            return ()
        assert isinstance(item, Entry)
        if self._keeps_bodies and not self._store.is_kept(item.seq):
            return ()
        given = (("If-None-Match", record.etag), ("If-Modified-Since", record.last_modified))
        return tuple((name, value) for name, value in given if value)

    def compared(self, entry: Entry, found: Harvest) -> Harvest:
        """Return what an answer brought, compared with the record of an earlier crawl."""
        before = self._recorded(entry)
        if before is not None:
            return compared(found, before)
        if (
            self.is_on
            and KINDS[entry.kind].is_page
            and self._store.is_recorded_elsewhere(entry.seq)
        ):
            # It may be new, same or changed: told when both records are read (`store.records`).
            return found._replace(record=found.record._replace(change=None))
        return found

    def settled(self, entry: Entry, found: Harvest, batch: Batch) -> None:
        """Keep what an unchanged page has, and count whether its sitemap told the truth."""
        record = found.record
        if found.is_unchanged:
            batch.unchanged.add(entry.seq)
        if record.change not in (PageChange.SAME, PageChange.CHANGED):
            return
        lastmods = self._store.lastmods(record.url)
        if lastmods is None:
            return
        is_right = (lastmods[0] == lastmods[1]) == (record.change == PageChange.SAME)
        right, wrong = batch.lastmods.get(record.host, (0, 0))
        batch.lastmods[record.host] = (right + is_right, wrong + (not is_right))

    def _recorded(self, item: Entry | RobotsRequest) -> PageRecord | None:
        if not isinstance(item, Entry) or not KINDS[item.kind].is_page:
            return None
        return self._store.recorded(item.seq)
