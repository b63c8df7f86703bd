"""Route found URLs: into this shard's queue, to the shard that owns the host, or nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.events import UrlsDropped, UrlsHeldBack
from mannerly.crawler.frontier.shares import MANY_URLS, Shares
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.scope import SkipReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mannerly.crawler.events import Event
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Candidate, Entry, PageRecord
    from mannerly.crawler.page.links import LinkRules

    from .pending import Pending


class Routes:
    """The routes of one shard.

    Attributes:
        rules: what decides about links.
        recent: the URLs that were passed on lately.
        shares: the hosts with many URLs, whose requests are shared out by pattern.
    """

    def __init__(
        self,
        shard: int,
        sharding: Sharding,
        rules: LinkRules,
        hosts: Hosts,
        pending: Pending,
        emit: Callable[[Event], None],
    ) -> None:
        self._shard = shard
        self._sharding = sharding
        self._hosts = hosts
        self._queue = pending.queue
        self._emit = emit
        self._excludes_queued = False  # a pattern was excluded while URLs were queued
        self.rules = rules
        self.recent = Recent()
        self.shares = Shares()

    def owns(self, host: str) -> bool:
        """Return whether a host belongs to this shard."""
        return self._sharding.shard_of(host) == self._shard

    @property
    def leads_elsewhere(self) -> bool:
        """Return whether there are other shards."""
        return self._sharding.shards > 1

    def links(self, candidates: Iterable[Candidate]) -> None:
        """Pass on links, without those that were passed on lately."""
        self._queue(self._unmet(candidates))

    def of_page(self, entry: Entry, record: PageRecord, candidates: list[Candidate]) -> None:
        """Pass on the new links of a page, in their place if its host has many URLs."""
        links = self._unmet(candidates)
        if entry.host in self.shares or self._has_many(entry.host, len(links)):
            links, held_back = self.shares.place(entry, record, links)
            if held_back:
                self._emit(UrlsHeldBack(held_back))
        self._queue(links)

    def _has_many(self, host: str, more: int) -> bool:
        """Return whether a host is large enough for its queue to be shared out."""
        known = self._hosts.get(host)
        return known is not None and known.fetched + known.queued + more >= MANY_URLS

    def _unmet(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return links without those that were passed on lately, and note them."""
        is_new = self.recent.add
        return [candidate for candidate in candidates if is_new(candidate.url)]

    def seeds(self, candidates: Sequence[Candidate]) -> None:
        """Pass on seeds, sitemaps and requests of programs: they need not be in scope, and the
        store is asked about all of them. What is excluded is dropped. A seed keeps the tracking
        parameters that links lose, so it is not noted as passed on.
        """
        excludes = self.rules.scope.excludes
        wanted = [each for each in candidates if not excludes(each.url)]
        if excluded := len(candidates) - len(wanted):
            self._emit(UrlsDropped(SkipReason.EXCLUDED.value, excluded))
        self._queue(wanted)

    def exclude(self, glob: str) -> None:
        """Fetch nothing from now on that matches a pattern, queued URLs included."""
        scope = self.rules.scope
        if glob not in scope.exclude:
            self.rules.scope = replace(scope, exclude=(*scope.exclude, glob))
        self._excludes_queued = True

    def is_excluded(self, entry: Entry) -> bool:
        """Return whether a pattern was excluded that a queued URL matches."""
        return self._excludes_queued and self.rules.scope.excludes(entry.url)
