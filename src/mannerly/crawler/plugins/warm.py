"""Warming: a page is asked for until its cache is seen to have it, once for each of its variants.

    first visit    HIT, uncacheable, unknown, or an error    the variant is done
                   MISS                                      a second visit, a second later
    second visit   whatever it shows                         the variant is done

When the last variant is done, the page is settled like any other. In between it stays queued: the
visits to a page are the same entry, put back. So a crash costs some visits and no page, and
whatever keeps a crawl polite holds for visits, too. Only pages under way are remembered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import PageVisited
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry
from mannerly.crawler.shard.follows import Again, Read, Settled
from mannerly.crawler.shard.plugin import Plugin
from mannerly.crawler.web.caches import CacheState, cache_state, variants_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.model import Fetched, Now, Request, RobotsRequest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.follows import Follows

SECOND_VISIT_S = 1.0  # after the first: some caches store an answer only when it is complete


class _Visits:
    """The progress of one page."""

    __slots__ = ("number", "variant")

    def __init__(self) -> None:
        self.variant = 0
        self.number = 1


class Warm(Plugin):
    """Visits each page of a shard until its cache has it."""

    def __init__(self, settings: CrawlSettings, emit: Callable[[Event], None]) -> None:
        self._variants = variants_of(settings.variants, settings.full_user_agent)
        self._emit = emit
        self._pages: dict[int, _Visits] = {}

    def ask(self, entry: Entry, request: Request) -> None:
        """Ask for the present variant of a page."""
        if KINDS[entry.kind].is_page:
            visits = self._pages.get(entry.seq)
            variant = self._variants[0 if visits is None else visits.variant]
            request.headers += variant.headers

    def after_answer(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Return the next visit to a page, or what follows if there is none."""
        if not isinstance(item, Entry) or not KINDS[item.kind].is_page:
            return follows
        if not isinstance(follows, Settled | Read):
            return follows  # it was refused or failed: this visit is made again, or never
        visits = self._pages.pop(item.seq, None) or _Visits()
        variant, number = self._variants[visits.variant], visits.number
        status = answer.status
        is_good = status is not None and 200 <= status < 400 and answer.error is None
        state = cache_state(answer.headers) if is_good else None
        due = now.mono
        if is_good and number == 1 and state is CacheState.MISS:
            visits.number, due = 2, now.mono + SECOND_VISIT_S
        elif is_good and visits.variant + 1 < len(self._variants):
            visits.variant, visits.number = visits.variant + 1, 1
        else:
            visits.number = 0  # the page is done; one that fails has no other variants
        is_last = visits.number == 0
        self._emit(
            PageVisited(
                item.url, variant.name, number, state, status, answer.latency_s, is_last=is_last
            )
        )
        if is_last:
            return follows
        self._pages[item.seq] = visits
        return Again(item._replace(attempts=0), due, is_visit=True)
