"""One shard on a store in memory, whose requests are answered by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virtual.store.memory import MemoryStore

from mannerly.crawler.events import Event, Events, Watched
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import Fetched, Now, Request, RobotsRequest
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.plugins import plugins_for
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.plugin import Plugins
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.stats_fold import StatsFold
from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.seeds import seed_candidates
from mannerly.hosts import open_host_memory
from mannerly.hosts.leases import Leases
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.model import FetchError
    from mannerly.crawler.shard.interfaces import Consumer, PageReader, Renderer
    from mannerly.crawler.shard.plugin import Plugin
    from mannerly.crawler.stats import Stats

EPOCH_S = 1_700_000_000.0
BRISK = Settings(strategy="fixed", delay_s=0.1, max_rate="unlimited", seed=1)


def brisk(**options: Any) -> CrawlSettings:
    return CrawlSettings(
        **{"politeness": BRISK, "seeding": "none", "scope": ScopeMode.ANY} | options
    )


class ShardWorld:
    """A shard that only moves when told to, and everything that it tells."""

    def __init__(
        self,
        *urls: str,
        settings: CrawlSettings | None = None,
        store: MemoryStore | None = None,
        is_resumed: bool = False,
        reader: PageReader | None = None,
        consumer: Consumer | None = None,
        number: int = 0,
        shards: int = 1,
        watched: Watched = Watched.NO,
        memory: str | None = None,
        crawl: str = "x",
        plugins: Iterable[Plugin] | None = None,
        renderer: Renderer | None = None,
        now: Now = Now(0.0, EPOCH_S),  # noqa: B008
    ) -> None:
        self.settings = settings or brisk()
        self.store = store or MemoryStore.group(shards, frontier_limit=1000)[number]
        self.now = now
        self.leases = None
        if memory is not None:
            self.leases = Leases(
                open_host_memory(memory),
                crawl=crawl,
                name=f"crawl-{crawl}",
                worker="1",
                now=now,
                clock=lambda: self.now.mono,
            )
        self.events: list[Event] = []
        self._fold = fold = StatsFold()
        scope = self.settings.scope_of(urls)
        rules = LinkRules(scope, self.settings.agent_token, self.settings.max_redirects)
        events = Events(self.events.append, fold)
        self.shard = Shard(
            number,
            self.store,
            Sharding(shards),
            self.settings,
            rules,
            is_resumed=is_resumed,
            now=self.now,
            events=events,
            plugins=(
                plugins_for(self.settings, rules, self.store, events.emit)
                if plugins is None
                else Plugins(plugins)
            ),
            reader=reader,
            consumer=consumer,
            watched=watched,
            leases=self.leases,
            renderer=renderer,
        )
        self.flights = self.shard.flights
        self.offer(*urls)

    @property
    def stats(self) -> Stats:
        return self._fold.summed()

    def host_views(self) -> list[HostView]:
        """The hosts that the live view shows now."""
        return self._fold.host_views(self.now.mono)

    def offer(self, *urls: str) -> None:
        self.shard.offer(seed_candidates(urls))
        self.shard.commit(self.now)

    def wait(self, seconds: float) -> None:
        self.shard.frontier.check()
        self.now = Now(self.now.mono + seconds, self.now.wall + seconds)

    def start(self, room: int = 99, *, pages: bool = True) -> list[Request]:
        """Start what is due, and let it leave at once."""
        requests = self.shard.start_due(self.now, room, pages=pages)
        for request in requests:
            self.shard.sent(flight_of(request), self.now.mono)
        return requests

    def answer(
        self,
        request: Request,
        status: int | None = 200,
        body: bytes = b"",
        *,
        error: FetchError | None = None,
        **headers: str,
    ) -> bool:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        status = None if error is not None else status
        answer = Fetched(request, status, named, body, 0.05, 0.05, error)
        return self.shard.answered(flight_of(request), answer, self.now)

    def pass_robots(self) -> None:
        """Answer 404 to every request for a robots.txt that is due."""
        for request in self.start():
            assert isinstance(flight_of(request).item, RobotsRequest)
            self.answer(request, 404)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if type(event) is kind]
