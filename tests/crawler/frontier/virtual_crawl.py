"""A whole crawl in virtual time on a web that is a function, and the log of its servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock
from virtual.store.memory import MemoryStore

from mannerly.crawler.events import Event, Events
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Now, Request
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.web.seeds import seed_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.exchange import StoreExchange
    from mannerly.crawler.store.fleet import Rhythm

EPOCH_S = 1_700_000_000.0
HTML = {"content-type": "text/html"}
NOT_FOUND = FakeReply(404, latency_s=0.01)


class Asked(NamedTuple):
    """One request, as a server sees it."""

    t: float
    host: str
    path: str  # with the query


class Crawled(NamedTuple):
    """What was requested, in its order, and what was told."""

    log: list[Asked]  # with requests for robots.txt
    events: list[Event]
    store: MemoryStore
    is_finished: bool

    @property
    def pages(self) -> list[Asked]:
        return [asked for asked in self.log if asked.path != "/robots.txt"]


def html(title: str, links: Sequence[str]) -> FakeReply:
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    body = f"<!doctype html><title>{title}</title><p>{title}</p>{anchors}".encode()
    return FakeReply(200, body, HTML, latency_s=0.01)


def virtual_crawl(
    answer: Callable[[str, str], FakeReply],
    seeds: Sequence[str],
    settings: CrawlSettings,
    *,
    address_of: Callable[[str], str] | None = None,
    answers_robots: bool = False,
    shards: int = 1,
    store: MemoryStore | None = None,
    rhythm: Rhythm | None = None,
    exchange: StoreExchange | None = None,
    clock: VirtualClock | None = None,
    until: Callable[[list[Asked]], bool] = lambda log: False,
) -> Crawled:
    """Crawl until the end, `settings.max_urls`, or what `until` says of the log.

    `answer` gets the host and the path of a request; a robots.txt is 404 unless it answers for
    that, too. With the store of an
    earlier crawl that one is resumed.
    """
    clock = clock or VirtualClock()
    log: list[Asked] = []
    told: list[Event] = []

    def ask(request: Request) -> FakeReply:
        parts = urlsplit(request.url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        log.append(Asked(clock.now, request.host, path))
        is_plain = path == "/robots.txt" and not answers_robots
        return NOT_FOUND if is_plain else answer(request.host, path)

    stores = [store] if store else MemoryStore.group(shards, frontier_limit=5_000_000)
    sharding = Sharding(shards)
    rules = LinkRules(settings.scope_of(seeds), settings.agent_token, settings.max_redirects)
    shard_list = [
        Shard(
            *(number, each, sharding, settings, rules),
            is_resumed=store is not None,
            now=Now(0.0, EPOCH_S),
            events=Events(told.append),
        )
        for number, each in enumerate(stores)
    ]
    engine = Engine(
        FakeFetcher(clock, ask, address_of=address_of),
        shard_list,
        _Time(clock),
        PageBudget(settings.max_urls),
        concurrency=settings.concurrency,
        rhythm=rhythm,
        exchange=exchange,
    )
    for shard in shard_list:
        owned = [each for each in seed_candidates(seeds) if shard.routes.owns(each.host)]
        shard.offer(owned)
    engine.commit()
    most = settings.max_urls
    while not until(log) and not (engine.in_flight == 0 and engine.is_idle):
        engine.turn(1.0)
        if most is not None and not engine.in_flight and engine_is_spent(log, most):
            break
    engine.stop()
    return Crawled(log, told, stores[0], engine.is_idle)


def engine_is_spent(log: list[Asked], most: int) -> bool:
    """Whether all pages of the budget were asked for."""
    return len(log) >= most and sum(asked.path != "/robots.txt" for asked in log) >= most


class _Time:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now

    def wall(self) -> float:
        return EPOCH_S + self._clock.now
