"""Warming: a page is asked for until its cache is seen to have it, once for each of its variants.

    first look    HIT, uncacheable, unknown, or an error    the variant is done
                  MISS                                      a second look, a second later
    second look   whatever it shows                         the variant is done

When the last variant is done, the page is settled like any other. In between it stays queued: the
looks of a page are the same entry, put back. So a crash costs some looks and no page, and whatever
keeps a crawl polite holds for looks, too. Only pages under way are remembered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import PageLooked
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry
from mannerly.crawler.web.caches import CacheState, cache_state, variants_of

from .follows import Again, Read, Settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.model import Fetched, Now, RobotsRequest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.web.caches import Headers

    from .follows import Follows

SECOND_LOOK_S = 1.0  # after the first: some caches store an answer only when it is complete


class _Looks:
    """The progress of one page."""

    __slots__ = ("number", "variant")

    def __init__(self) -> None:
        self.variant = 0
        self.number = 1


class Warming:
    """The looks at the pages of one shard."""

    def __init__(self, settings: CrawlSettings, emit: Callable[[Event], None]) -> None:
        self._variants = variants_of(settings.variants, settings.full_user_agent)
        self._emit = emit
        self._pages: dict[int, _Looks] = {}

    def headers(self, item: Entry | RobotsRequest) -> Headers:
        """Return the headers that ask for the present variant of a page."""
        if not isinstance(item, Entry) or not KINDS[item.kind].is_page:
            return ()
        looks = self._pages.get(item.seq)
        return self._variants[0 if looks is None else looks.variant].headers

    def next_look(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Again | None:
        """Return the next look at a page; None: there is none, and what follows, follows."""
        if not isinstance(item, Entry) or not KINDS[item.kind].is_page:
            return None
        if not isinstance(follows, Settled | Read):
            return None  # it was refused or failed: this look is made again, or never
        looks = self._pages.pop(item.seq, None) or _Looks()
        variant, number = self._variants[looks.variant], looks.number
        status = answer.status
        is_good = status is not None and 200 <= status < 400 and answer.error is None
        state = cache_state(answer.headers) if is_good else None
        due = now.mono
        if is_good and number == 1 and state is CacheState.MISS:
            looks.number, due = 2, now.mono + SECOND_LOOK_S
        elif is_good and looks.variant + 1 < len(self._variants):
            looks.variant, looks.number = looks.variant + 1, 1
        else:
            looks.number = 0  # the page is done; one that fails has no other variants
        is_last = looks.number == 0
        self._emit(
            PageLooked(
                item.url, variant.name, number, state, status, answer.latency_s, is_last=is_last
            )
        )
        if is_last:
            return None
        self._pages[item.seq] = looks
        return Again(item._replace(attempts=0), due, is_look=True)
