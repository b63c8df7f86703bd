"""The second visit to pages: what is asked of the server, and what an answer shows.

In a recrawl a page that has a record is asked for with its validators (If-None-Match,
If-Modified-Since), so that a server which knows it unchanged answers 304 without a body. The answer
is compared with the record (`page.record`), and with what the sitemap of the host said: how often
that was right decides whether it is believed (`store.lastmod`).

Sitemaps are asked for without validators: what they say now is needed for every page. So is a page
whose answer should be kept and is not, and one whose record is on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.control import Recrawl, RetryUrls
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import PageChange
from mannerly.crawler.page.record import compared
from mannerly.crawler.shard.plugin import Plugin

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Entry, Fetched, RawExchange, Request
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.pending import Pending
    from mannerly.crawler.store.base import Earlier, ShardStore


class Recheck(Plugin):
    """Checks pages again that have a record. It is on if there can be any."""

    def __init__(self, store: ShardStore, settings: CrawlSettings, rules: LinkRules) -> None:
        self._store = store
        self._rules = rules
        self._keeps_bodies = settings.keep_bodies
        self._has_validators = not settings.warm  # a 304 would not show what a cache has
        counts = store.counts()
        self.is_on = counts.round > 0 or counts.rechecks > 0 or counts.retries > 0
        if counts.round:
            self._begin_round()

    def ordered(self, order: Control, *, is_new: bool) -> None:
        """Begin with a recrawl, or when pages that have a record are asked for again."""
        if not is_new:
            return
        if isinstance(order, Recrawl):
            self._begin_round()
        elif isinstance(order, RetryUrls) and (order.missing or order.lost):
            self.is_on = True

    def _begin_round(self) -> None:
        self.is_on = True
        if self._rules.text_digest == "auto":
            self._rules.text_digest = "all"

    def was_counted(self, entry: Entry) -> bool:
        """Return whether an entry has a record of an earlier crawl."""
        earlier = self._earlier(entry)
        return earlier is not None and earlier.record is not None

    def ask(self, entry: Entry, request: Request) -> None:
        """Add the headers by which a server can tell that a page is the same."""
        earlier = self._earlier(entry) if self._has_validators else None
        record = None if earlier is None else earlier.record
        if earlier is None or record is None or not 200 <= (record.status or 0) < 300:
            return
        if self._keeps_bodies and not earlier.is_kept:
            return
        given = (("If-None-Match", record.etag), ("If-Modified-Since", record.last_modified))
        request.headers += tuple((name, value) for name, value in given if value)

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest:
        """Return what an answer brought, compared with the record of an earlier crawl."""
        earlier = self._earlier(entry)
        if earlier is None:
            return found
        if earlier.record is not None:
            return compared(found, earlier.record)
        # It may be new, same or changed: told when both records are read (`store.records`).
        return found._replace(record=found.record._replace(change=None))

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Keep what an unchanged page has, and count whether its sitemap told the truth."""
        record = found.record
        if found.is_unchanged:
            pending.keep_earlier(entry)
        if record.change not in (PageChange.SAME, PageChange.CHANGED):
            return
        earlier = self._store.earlier(entry.seq)
        if earlier is None or earlier.lastmods is None:
            return
        before, now = earlier.lastmods
        is_right = (before == now) == (record.change == PageChange.SAME)
        pending.count_lastmod(record.host, is_right=is_right)

    def _earlier(self, entry: Entry) -> Earlier | None:
        row = KINDS[entry.kind]
        return self._store.earlier(entry.seq) if row.is_page or row.is_requisite else None
