"""Run a whole crawl in virtual time, with the real frontier, politeness, shards and engine.

    Engine ─► Shard ─► FakeFetcher ─► Servers (a generated web, each host with its own limit)
       │        └────► MemoryStore
       └─ a clock that only `FakeFetcher.wait` moves

Only sockets, disk and clock are replaced, so an error seen here is an error of the real crawler. A
week takes seconds, a million hosts fit in one process, and the same seed gives the same requests at
the same instants. The servers count broken promises (`servers`), lost URLs are found by
comparing the stores with the links of the web, and the frontier's invariant is checked during the
crawl.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING
from uuid import uuid4

from mannerly.crawler.events import Events
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Now
from mannerly.crawler.page.links import HrefMemory, LinkRules
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.fleet import Rhythm
from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.scope import Scope
from mannerly.crawler.web.seeds import seed_candidates
from mannerly.hosts import open_host_memory
from mannerly.hosts.leases import Leases
from mannerly.simulation.servers import EPOCH
from virtual.fetcher import FakeFetcher, VirtualClock
from virtual.store.memory import MemoryStore

from .servers import Faults, Servers
from .web import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .web import GeneratedWeb

DAY_S = 86_400.0
TICK_S = 20.0  # the real 0.25 s would be 345,600 ticks a day, and there is no progress line
LEASE_TICK_S = 0.25
SLICE = 2_000  # seeds in one commit
ENOUGH = 10_000  # queued URLs; below that the next seeds are read
NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOutcome:
    """The figures of a simulated crawl."""

    is_finished: bool  # the crawl was complete before `duration_s` was over
    virtual_s: float
    requests: int  # counted by the servers: pages, robots.txt, refusals and retries
    robots: int
    refused: int
    pages: int  # records in the stores, of any status
    delivered: int  # of these, with status 200
    failed: int  # of these, without any status
    skipped: Counter[str]  # URLs that were not fetched on purpose, by reason
    given_up: Counter[str]  # URLs of hosts that were given up, by reason
    broken: Counter[str]  # broken promises by name, counted by the servers: see `servers`
    too_early: int  # requests that the crawler's own audit found too early (`host.audit`)
    duplicates: int  # URLs with more than one record
    lost: int  # links of delivered pages that no store knows, and URLs still queued at the end
    handed_over: int  # links sent from one shard to another
    checks: int  # number of times that the invariant of all frontiers was checked
    in_memory: int  # URLs in the windows of all hosts, the maximum over all checks
    fingerprint: int  # hash over all requests and their instants: equal for equal seeds


def simulate_crawl(
    web: GeneratedWeb,
    settings: CrawlSettings | None = None,
    *,
    seed: int = 1,
    shards: int = 1,
    faults: Faults = NO_FAULTS,
    latency_s: float = 0.15,
    step_s: float = 0.0,
    duration_s: float = 30 * DAY_S,
    check_every: int = 1000,
    memory: str | None = None,
    turn_s: float = TICK_S,
) -> CrawlOutcome:
    """Crawl a generated web from its seeds and return the figures.

    Args:
        web: the pages and the limits of the hosts.
        settings: the crawl's settings; scope, seeding and the politeness seed are replaced.
        seed: of all random numbers, in the servers and in the politeness core.
        shards: number of shards that share the hosts; one engine runs them all.
        faults: random timeouts, errors and refusals.
        latency_s: median latency of hosts without a limit.
        step_s: round arrivals up to multiples of this many seconds; fewer distinct instants make
            the simulation of a large web faster. 0: do not round.
        duration_s: virtual seconds after which an unfinished crawl is stopped.
        check_every: requests between two checks of the frontiers' invariant.
        memory: location of a memory of hosts; None: no other crawl can want these hosts.
        turn_s: longest turn of the loop; with a memory a quarter of a second, as in a real crawl.
    """
    chosen = settings or CrawlSettings()
    chosen = replace(
        chosen,
        scope=ScopeMode.ANY,
        seeding="none",
        politeness=replace(chosen.politeness, seed=seed),
    )
    clock = VirtualClock()
    servers = Servers(
        web,
        clock,
        chosen.politeness,
        faults=faults,
        latency_s=latency_s,
        step_s=step_s,
        seed=seed,
    )
    crawl = _Crawl(web, chosen, clock, servers, shards, memory)
    crawl.drive(duration_s, check_every, turn_s)
    return crawl.outcome()


class _VirtualTime:
    """The engine's clock, monotonic and wall time, both from the clock that the fetcher moves."""

    __slots__ = ("_clock",)

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now

    def wall(self) -> float:
        return _EPOCH_S + self._clock.now


_EPOCH_S = EPOCH.timestamp()
START = Now(0.0, _EPOCH_S)


class _Crawl:
    """The parts of one crawl, and the loop that runs its engine."""

    def __init__(
        self,
        web: GeneratedWeb,
        settings: CrawlSettings,
        clock: VirtualClock,
        servers: Servers,
        shards: int,
        memory: str | None,
    ) -> None:
        self._web = web
        self._clock = clock
        self._servers = servers
        self._sharding = Sharding(shards)
        self._stores = MemoryStore.group(shards, frontier_limit=settings.frontier_limit)
        rules = LinkRules(
            Scope((web.start,), settings.scope),
            settings.agent_token,
            settings.max_redirects,
            hrefs=HrefMemory(),
        )
        events = Events()
        self._leases: Leases | None = None
        if memory is not None:
            self._leases = Leases(
                # Its clock begins anew with every crawl, as that of a machine with every boot.
                open_host_memory(memory, boot=uuid4().hex),
                crawl="simulated",
                name="simulated",
                worker="1",
                now=START,
                clock=_VirtualTime(clock).now,
            )
        self._shards = [
            Shard(
                store.shard,
                store,
                self._sharding,
                settings,
                rules,
                is_resumed=False,
                now=START,
                events=events,
                leases=self._leases,
            )
            for store in self._stores
        ]
        self._engine = Engine(
            FakeFetcher(clock, servers.answer),
            self._shards,
            _VirtualTime(clock),
            PageBudget(settings.max_urls),
            concurrency=settings.concurrency,
            rhythm=Rhythm(tick_s=TICK_S),
            events=events,
            leases=self._leases,
        )
        self._seeds = web.seeds()
        self._checks = self._in_memory = 0
        self._is_finished = False

    def _offer_seeds(self) -> bool:
        """Add the next slice of the seeds, as if read from a file; False if there was none."""
        some = seed_candidates(islice(self._seeds, SLICE))
        shard_of = self._sharding.shard_of
        for shard in self._shards:
            shard.offer([each for each in some if shard_of(each.host) == shard.number])
        self._engine.commit()
        return bool(some)

    def drive(self, duration_s: float, check_every: int, turn_s: float) -> None:
        """Run the engine until the crawl is complete or `duration_s` is over."""
        engine, clock, seen = self._engine, self._clock, self._servers.seen
        next_check = check_every
        has_seeds, next_lease = True, 0.0
        while clock.now < duration_s:
            while has_seeds and sum(shard.frontier.queued for shard in self._shards) < ENOUGH:
                has_seeds = self._offer_seeds()
            engine.turn(turn_s if self._leases is None else LEASE_TICK_S)
            if self._leases is not None and clock.now >= next_lease:
                next_lease = clock.now + LEASE_TICK_S
                self._leases.tick(Now(clock.now, _EPOCH_S + clock.now))
            if seen.requests >= next_check:
                next_check = seen.requests + check_every
                self._check()
            is_idle = engine.in_flight == 0 and engine.is_idle
            has_news = any(store.has_unread for store in self._stores)
            if is_idle and not has_news:
                self._is_finished = True
                break
            if (
                engine.in_flight == 0
                and not has_news
                and not has_seeds
                and engine.has_only_unreachable
            ):
                engine.give_up_unreachable()
        self._check()  # before `stop`, which takes requests from hosts that others wait behind
        engine.stop()
        if self._leases is not None:
            self._leases.close(Now(clock.now, _EPOCH_S + clock.now))

    def _check(self) -> None:
        for shard in self._shards:
            shard.frontier.check()
        snapshots = [shard.frontier.snapshot(self._clock.now) for shard in self._shards]
        self._in_memory = max(self._in_memory, sum(seen.in_memory for seen in snapshots))
        self._checks += 1

    def outcome(self) -> CrawlOutcome:
        """Collect the figures from the servers, the stores and the links of the web."""
        seen = self._servers.seen
        counts = [store.counts() for store in self._stores]
        records = [record for store in self._stores for _, record in store.pages()]
        delivered = [record.url for record in records if record.status == 200]
        return CrawlOutcome(
            is_finished=self._is_finished,
            virtual_s=self._clock.now,
            requests=seen.requests,
            robots=seen.robots,
            refused=seen.refused,
            pages=len(records),
            delivered=len(delivered),
            failed=sum(count.failed for count in counts),
            skipped=Counter(skip.reason for store in self._stores for skip in store.skipped()),
            given_up=Counter(skip.reason for store in self._stores for skip in store.given_up()),
            broken=seen.broken,
            too_early=self._engine.stats().requests.too_early,
            duplicates=len(records) - len({record.url for record in records}),
            lost=self._lost(delivered) + sum(count.queued for count in counts),
            handed_over=sum(store.handed_over for store in self._stores),
            checks=self._checks,
            in_memory=self._in_memory,
            fingerprint=seen.fingerprint,
        )

    def _lost(self, delivered: list[str]) -> int:
        """Return the number of seeds, and of links of delivered pages, that no store knows."""
        web = self._web
        leading = () if web.is_listed else delivered
        links = chain.from_iterable(web.links(*place_of(url)) for url in leading)
        missing: Iterable[str] = chain(web.seeds(), links)
        for store in self._stores:
            missing = [url for url in missing if store.find(url) is None]
        return len(set(missing))
