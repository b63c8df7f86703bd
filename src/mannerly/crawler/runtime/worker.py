"""An engine with everything it needs: shards, stores and a fetcher, and where the crawl begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from mannerly.crawler.events import Events
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.poller import max_sockets
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate, Now
from mannerly.crawler.page.links import HrefMemory
from mannerly.crawler.page.rules import LinkRules
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.sqlite.inbox import unread
from mannerly.crawler.store.sqlite.shard import SqliteStore
from mannerly.crawler.web.seeds import moved_seeds, seed_candidates, sitemap_candidates
from mannerly.crawler.web.sources import COMMONCRAWL, CT
from mannerly.crawler.web.urls import Url, UrlRules, host_key_of, site_of
from mannerly.politeness.clock import MonotonicClock

from .engine import Engine
from .offload import Offload

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.elsewhere import Reading
    from mannerly.crawler.store.sqlite.directory import Manifest

    from .engine import Budget

HEADROOM = 256  # descriptors for what is not a page: the store, connections kept alive


class Workplace:
    """An engine with everything it needs, and the way to put it away again."""

    def __init__(
        self,
        settings: CrawlSettings,
        path: Path,
        manifest: Manifest,
        numbers: list[int],
        budget: Budget,
        *,
        is_resumed: bool,
    ) -> None:
        clock = MonotonicClock()
        self._path = path
        self._numbers = numbers
        workers = min(max(1, settings.workers // settings.processes), max_sockets())
        rules = rules_of(settings, manifest)
        sharding = Sharding(manifest.shards)
        self._stores = [
            SqliteStore.open(
                path,
                number,
                shards=manifest.shards,
                frontier_limit=max(1, settings.frontier_limit // manifest.shards),
                durable=settings.durable,
                check_limit=settings.check_limit,
            )
            for number in numbers
        ]
        if is_resumed:
            for store in self._stores:
                for url in moved_seeds(store.find, manifest.seeds):
                    rules.widen(url)
        self._fetcher = CurlFetcher(
            NetworkGuard(seeds=manifest.seeds, allow_net=settings.allow_net),
            FetchSettings(
                user_agent=settings.user_agent,
                max_connections=workers + HEADROOM,
                proxy=settings.proxy,
                ca_file=settings.ca_file,
                insecure_hosts=settings.insecure_hosts,
            ),
        )
        self._offload: Offload[Reading] = Offload(settings.parse_limit)
        now = Now(clock.now(), clock.wall())
        events = Events()
        self._shards = [
            Shard(
                number,
                store,
                sharding,
                settings,
                rules,
                is_resumed=is_resumed,
                now=now,
                events=events,
                reader=self._offload,
            )
            for number, store in zip(numbers, self._stores, strict=True)
        ]
        self.engine = Engine(
            self._fetcher,
            self._shards,
            clock,
            budget,
            workers=workers,
            governed=settings.governor,
            offload=self._offload,
            events=events,
        )
        # Every time: a crawl may have died before its seeds were committed. Known ones stay known.
        first = first_candidates(settings, manifest)
        for shard in self._shards:
            shard.offer([each for each in first if sharding.shard_of(each.host) == shard.number])
        self.engine.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of sockets and files; after an error a half-made batch must not be committed."""
        try:
            if error is None:
                self.engine.stop()
        finally:
            self._offload.close()
            self._fetcher.close()
            for store in self._stores:
                store.close()

    @property
    def is_idle(self) -> bool:
        """Nothing to do, and nothing in the inboxes."""
        return self.engine.is_idle and all(
            unread(self._path, number) == 0 for number in self._numbers
        )

    @property
    def received(self) -> int:
        """Links that came in from other shards so far."""
        return sum(shard.received for shard in self._shards)

    def listen_to(self, descriptor: int) -> None:
        """Do not sleep while there is something to read here."""
        self._fetcher.watch(descriptor)


def rules_of(settings: CrawlSettings, manifest: Manifest) -> LinkRules:
    """What decides about links in this crawl."""
    urls = (
        UrlRules()
        if settings.drop_tracking
        else UrlRules(drop_params=frozenset(), drop_prefixes=())
    )
    scope = settings.scope_of(manifest.seeds)
    return LinkRules(scope, settings.agent_token, settings.max_redirects, urls, HrefMemory())


def first_candidates(settings: CrawlSettings, manifest: Manifest) -> list[Candidate]:
    """The seeds, where their sitemaps usually are, and public indexes of their sites."""
    candidates = seed_candidates(manifest.seeds)
    if settings.seeding in ("sitemap", "all"):
        origins = dict.fromkeys(url[: url.index("/", 8)] for url in manifest.seeds)
        candidates += sitemap_candidates([f"{origin}/sitemap.xml" for origin in origins], None)
    for source, template in ((CT, settings.ct_url), (COMMONCRAWL, settings.commoncrawl_url)):
        if settings.seeding in (source.name, "all"):
            # Asked for here only: the first question reads the list of public suffixes.
            sites = dict.fromkeys(site_of(Url.of(url).host) for url in manifest.seeds)
            urls = (source.address(template, site) for site in sites)
            candidates += [
                Candidate(url, host_key_of(url), 0, 0, None, kind=source.kind) for url in urls
            ]
    return candidates
