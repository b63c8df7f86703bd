"""May this entry be fetched? The frontier asks; the answer comes from memory alone.

only requisites may start             Later: when the host is woken
the host's record is not in memory    Unknown: it is brought in, and the host is asked again
the host was given up                 Drop
its latest request still connects     Later: the gap begins when that request leaves
the URL was excluded meanwhile        Drop
a request with a label replaces it    Drop
it is sent once, and was sent         Drop
a plug-in does not admit it           Drop
a sitemap beyond its host's limits    Drop, or Later while one is under way
robots.txt                            GO, Drop, Later, or Unknown where the rules are missing
--max-per-host                        GO, Drop or Later
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS, Limit
from mannerly.crawler.model import GO, UNANSWERED, Drop, Later, Unknown
from mannerly.crawler.page.requisites import PRIORITY
from mannerly.crawler.web.scope import SkipReason

from .given_up import dropped_because

if TYPE_CHECKING:
    from mannerly.crawler.host.budget import Budget
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Entry, Judgement
    from mannerly.crawler.robots.gate import RobotsGate
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness.model import Instant

    from .contacts import Contacts
    from .plugin import Plugins
    from .routes import Routes
    from .sitemaps import SitemapQuota

CONNECTING_POLL_S = 0.05  # how often to look whether a request that is still connecting has left

_PAGES, _SITEMAPS = Limit.PAGES, Limit.SITEMAPS
_USED_UP = Drop("max_per_host")
_HELD_BACK = Later(None)  # a request under way may still fail
REPLACED = "replaced"  # a link whose URL is asked for with a label

_REPLACED = Drop(REPLACED)
_UNANSWERED = Drop(UNANSWERED)
_EXCLUDED = Drop(SkipReason.EXCLUDED.value)


class Judge:
    """The judge of one shard's entries.

    Attributes:
        replaced: links in memory, by seq, in whose place requests with a label came.
        ignores_robots: what rendered pages ask for is not judged by robots.txt.
        holds_pages: nothing but requisites may start now.
        held: the hosts whose pages were held. Each has to be woken when pages may start, or when
            there is something else to ask it for.
    """

    def __init__(
        self,
        contacts: Contacts,
        gate: RobotsGate,
        routes: Routes,
        sitemaps: SitemapQuota,
        plugins: Plugins,
        max_per_host: int | None,
        store: ShardStore,
    ) -> None:
        self._store = store
        self.replaced: set[int] = set()
        self.holds_pages = False
        self.held: set[str] = set()
        self.ignores_robots = False
        self._host, self._politeness = contacts.hosts.get, contacts.politeness
        self._robots = gate
        self._is_excluded = routes.is_excluded
        self._sitemaps, self._plugins = sitemaps, plugins
        self._max_per_host = max_per_host

    def __call__(self, entry: Entry, now: Instant) -> Judgement:
        """Return whether an entry may be fetched."""
        if self.holds_pages and not KINDS[entry.kind].is_requisite:
            # Requisites sort first: if a linked page is next, its host has no requisite queued.
            self.held.add(entry.host)
            return Later(None, is_for_host=entry.priority > PRIORITY)
        host = self._host(entry.host)
        if host is None or host.budget is None:
            url = entry.url
            return Unknown(url[: url.index("/", 8)])
        if host.given_up is not None:
            return Drop(dropped_because(host.given_up))
        if host.budget.connecting is not None and self._is_connecting(host.budget):
            return Later(now + CONNECTING_POLL_S, is_for_host=True)
        if self._is_excluded(entry):
            return _EXCLUDED
        if self.replaced and entry.seq in self.replaced:
            return _REPLACED
        row = KINDS[entry.kind]
        if row.is_sent_once and entry.seq in self._store.unanswered:
            return _UNANSWERED
        for admits in self._plugins.admit:
            if (drop := admits(entry)) is not None:
                return drop
        if row.limit is _SITEMAPS:
            return self._judge_sitemap(entry, host, now)
        is_free = self.ignores_robots and entry.seq < 0
        ruling = GO if is_free else self._robots.judge(entry, now)
        if ruling is GO and self._max_per_host is not None and row.limit is _PAGES:
            # A page that has a record was counted when it was fetched first.
            return GO if self._plugins.was_counted(entry) else self._judge_number(host)
        return ruling

    def _judge_sitemap(self, entry: Entry, host: Host, now: Instant) -> Judgement:
        ruling = self._sitemaps.judge(host, now)
        return self._robots.judge(entry, now) if ruling is GO else ruling

    def _judge_number(self, host: Host) -> Judgement:
        """Return whether one more page of a host may go, however many are under way at once."""
        limit = self._max_per_host
        assert limit is not None
        if host.fetched >= limit:
            return _USED_UP
        return _HELD_BACK if host.fetched + host.pages >= limit else GO

    def _is_connecting(self, budget: Budget) -> bool:
        is_paced = self._politeness.settings_of(budget.key).enabled
        return is_paced and budget.is_connecting
