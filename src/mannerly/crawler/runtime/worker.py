"""A worker: an engine with everything that it needs, for some shards of a crawl.

A crawl with one process has one worker, in this process (`run`). With more, each worker is a child
process (`main`), started by the supervisor. It opens the crawl's store by its location and owns its
shards alone. It reports four times a second, and at once when it is asked and has nothing under
way. It takes no signals: the supervisor does, and says what follows. When the supervisor is gone,
its channel ends, and so does the worker: it commits what came in, and leaves within a turn of the
loop. While the supervisor says nothing for `SILENCE_S` (it was stopped by Ctrl-Z, for instance),
the worker starts no request.

Control records are read four times a second. The worker acts on those about the whole crawl (pause
and the number of requests in flight) and hands those about URLs and hosts to its shards; what ends
the run is `RunLimits`'.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mannerly.crawler.control import Pause, SetOption, Stop, Unpause
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate
from mannerly.crawler.page.harvest import Rules, moved_seeds, seed_candidates, sitemap_candidates
from mannerly.crawler.page.links import HrefMemory
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import (
    ShardOptions,
    StoreError,
    StoreFull,
    StoreInUse,
    WorkerCard,
)
from mannerly.crawler.web.sources import COMMONCRAWL, CT
from mannerly.crawler.web.urls import Url, UrlRules, host_key_of, site_of
from mannerly.politeness.clock import MonotonicClock

from .budget import GrantedBudget
from .ending import WATCH_S
from .engine import TICK_S, Engine
from .messages import (
    Ask,
    Drain,
    End,
    Failed,
    Grant,
    Recall,
    Report,
    Returned,
    Round,
    Start,
    machine,
    worker_id,
)
from .offload import Offload

if TYPE_CHECKING:
    from mannerly.crawler.control import Control
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.shard import Work
    from mannerly.crawler.store.base import CrawlStore, Manifest, ShardStore
    from mannerly.politeness.model import Instant

    from .child import Channel
    from .engine import Budget
    from .messages import ToWorker

HEADROOM = 256  # descriptors for what is not a page: the store, connections kept alive
CARD_S = 1.0  # between two signs of life in the store
CARD_FAILURES = 5  # in a row that are borne: a card is less than a crawl
CLAIM_S = 2.0  # the workers of a run that was killed may need a moment to leave
SILENCE_S = 2.0  # twice the time between two messages of a supervisor that has nothing to say


class Worker:
    """An engine for some shards, their stores, and the worker's card."""

    def __init__(
        self,
        store: CrawlStore,
        settings: CrawlSettings,
        numbers: list[int],
        budget: Budget,
        *,
        is_resumed: bool,
    ) -> None:
        self._clock = clock = MonotonicClock()
        self._store = store
        self._settings = settings
        self._numbers = numbers
        manifest = store.manifest
        workers = self._share(settings.workers)
        rules = rules_of(settings, manifest)
        sharding = Sharding(manifest.shards)
        options = ShardOptions(
            max(1, settings.frontier_limit // manifest.shards),
            settings.durable,
            settings.check_limit,
        )
        self._stores = [_claim(store, number, options) for number in numbers]
        if is_resumed:
            for each in self._stores:
                for url in moved_seeds(each.find, manifest.seeds):
                    rules.widen(url)
        self._fetcher = CurlFetcher(
            NetworkGuard(seeds=manifest.seeds, allow_net=settings.allow_net),
            FetchSettings(user_agent=settings.user_agent, max_connections=workers + HEADROOM),
        )
        self._offload: Offload[Work] = Offload(settings.parse_limit)
        now = clock.now()
        self._shards = [
            Shard(
                number,
                each,
                sharding,
                settings,
                rules,
                max_in_flight=workers,
                is_resumed=is_resumed,
                now=now,
                offload=self._offload,
            )
            for number, each in zip(numbers, self._stores, strict=True)
        ]
        self.engine = Engine(
            self._fetcher,
            self._shards,
            clock,
            budget,
            workers=workers,
            governed=settings.governor,
            offload=self._offload,
        )
        # Every time: a crawl may have died before its seeds were committed. Known ones stay known.
        first = first_candidates(settings, manifest)
        for shard in self._shards:
            shard.offer([each for each in first if sharding.shard_of(each.host) == shard.number])
        self.engine.commit()
        self._is_paused = self._is_held = False
        self._last_order = 0
        self._next_orders = self._next_card = now
        self._failed_cards = 0
        self.look(now)

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to do, and nothing in the inboxes."""
        return self.engine.is_idle and all(self._store.unread(each) == 0 for each in self._numbers)

    @property
    def received(self) -> int:
        """Return how many links came in from other shards so far."""
        return sum(shard.received for shard in self._shards)

    def watch(self, descriptor: int) -> None:
        """Do not sleep while there is something to read from this descriptor."""
        self._fetcher.watch(descriptor)

    def hold(self, is_held: bool) -> None:  # noqa: FBT001 - a state, not an option
        """Start no request while held, whatever control records say."""
        self._is_held = is_held
        self._apply_pause()

    def look(self, now: Instant) -> None:
        """Act on new control records and renew the card, each when it is due."""
        if now >= self._next_orders:
            self._next_orders = now + WATCH_S
            for number, order in self._store.orders(after=self._last_order):
                self._last_order = number
                self._obey(number, order, now)
        if now >= self._next_card:
            self._next_card = now + CARD_S
            self._renew()

    def close(self, *, with_process: bool = False) -> None:
        """Break off what is under way, commit, and let go of everything.

        `with_process`: the process ends now. Sockets are left to the system then, because curl
        would wait for names that are still being looked up.
        """
        try:
            self.engine.stop()
        finally:
            self.abandon(with_process=with_process)

    def abandon(self, *, with_process: bool = False) -> None:
        """Let go of everything without a commit: after an error a batch may be half made."""
        try:
            self._offload.close()
            if not with_process:
                self._fetcher.close()
        finally:
            for each in self._stores:
                each.close()
            self._retire()

    def _obey(self, number: int, order: Control, now: Instant) -> None:
        match order:
            case Pause() | Unpause():
                self._is_paused = isinstance(order, Pause)
                self._apply_pause()
            case SetOption(name="workers", value=value):
                workers = self._settings.workers if value is None else int(value)
                set_workers = getattr(self.engine, "set_workers", None)
                if set_workers is not None:
                    set_workers(self._share(workers))
            case Stop() | SetOption(name="max_urls" | "duration"):
                pass  # for the run: `RunLimits`
            case _:
                for shard in self._shards:
                    control = getattr(shard, "control", None)
                    if control is not None:
                        control(number, order, now)

    def _apply_pause(self) -> None:
        self.engine.is_paused = self._is_paused or self._is_held  # type: ignore[attr-defined,unused-ignore]

    def _share(self, workers: int) -> int:
        """Return this process's part of the requests in flight."""
        return max(1, workers // self._settings.processes)

    def _renew(self) -> None:
        stats = self.engine.stats()
        card = WorkerCard(
            worker_id(os.getpid()),
            machine(),
            os.getpid(),
            self._numbers,
            stats.fetched,
            self._clock.wall(),
            "paused" if self._is_paused else stats.trouble,
        )
        try:
            self._store.renew(card)
            self._failed_cards = 0
        except StoreFull:
            pass  # the engine waits for room, and says so
        except StoreError:
            self._failed_cards += 1
            if self._failed_cards >= CARD_FAILURES:
                raise

    def _retire(self) -> None:
        with suppress(StoreError):  # the card becomes invalid by itself
            self._store.retire(worker_id(os.getpid()))


class _Conversation:
    """A worker's side of the channel to its supervisor."""

    def __init__(self, worker: Worker, budget: GrantedBudget, channel: Channel) -> None:
        self._worker = worker
        self._engine = worker.engine
        self._budget = budget
        self._channel = channel
        self._clock = MonotonicClock()
        self._heard_at = self._next_report = self._clock.now()
        self._round = -1
        self._is_asked = self._is_over = False
        worker.watch(channel.fileno())

    def serve(self) -> None:
        """Crawl and report until told to end, or until the supervisor is gone."""
        while True:
            self._listen()
            if self._is_over:
                return
            self._engine.turn(TICK_S)
            now = self._clock.now()
            self._worker.look(now)
            if now >= self._next_report or self._is_asked:
                self._report_if_due(now)

    def last_report(self) -> Report:
        """Return what there is to say at the end, when nothing is under way any more."""
        return self._report(is_idle=False, in_flight=0)

    def _listen(self) -> None:
        now = self._clock.now()
        for message in self._channel.receive():
            self._heard_at = now
            self._act(message)
        self._is_over |= self._channel.is_ended
        self._worker.hold(now - self._heard_at >= SILENCE_S)

    def _act(self, message: ToWorker) -> None:
        match message:
            case Round(number):
                self._round, self._is_asked = number, True
                self._engine.hurry()
            case Drain():
                self._engine.is_draining = True
            case End():
                self._is_over = True
            case Grant(pages):
                self._budget.granted(pages)
            case Recall():
                self._channel.send(Returned(self._budget.recalled()))

    def _report_if_due(self, now: Instant) -> None:
        is_idle, in_flight = self._worker.is_idle, self._engine.in_flight
        if not is_idle and self._engine.is_idle:
            self._engine.hurry()  # there is something in an inbox, and nothing else to do
        is_quiet = is_idle or (self._engine.is_draining and in_flight == 0)
        if now < self._next_report and not is_quiet:
            return
        if self._channel.has_unsent:
            return  # the supervisor does not read: it gets one report when it does
        self._next_report, self._is_asked = now + WATCH_S, False
        self._channel.send(self._report(is_idle=is_idle, in_flight=in_flight))

    def _report(self, *, is_idle: bool, in_flight: int) -> Report:
        stats, received = self._engine.stats(), self._worker.received
        return Report(stats, self._round, is_idle, in_flight, received, self._budget.used)


def main(channel: Channel) -> None:
    """Work for a supervisor: the whole life of a worker process."""
    order: Start = channel.wait()
    try:
        store = open_crawl(order.location)
        try:
            _work(store, order, channel)
        finally:
            store.close()
    except StoreError as error:
        channel.send(Failed(error))


def _work(store: CrawlStore, order: Start, channel: Channel) -> None:
    budget = GrantedBudget(lambda: channel.send(Ask()))
    worker = Worker(store, order.settings, order.shards, budget, is_resumed=order.is_resumed)
    conversation = _Conversation(worker, budget, channel)
    try:
        conversation.serve()
    except BaseException:
        worker.abandon(with_process=True)
        raise
    worker.close(with_process=True)
    channel.send(conversation.last_report())


def _claim(store: CrawlStore, number: int, options: ShardOptions) -> ShardStore:
    """Become a shard's owner; wait for a moment if it has one, since that may be leaving."""
    deadline = time.monotonic() + CLAIM_S
    while True:
        try:
            return store.claim(number, options)
        except StoreInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.02)


def rules_of(settings: CrawlSettings, manifest: Manifest) -> Rules:
    """Return what decides about links in this crawl."""
    urls = (
        UrlRules()
        if settings.drop_tracking
        else UrlRules(drop_params=frozenset(), drop_prefixes=())
    )
    scope = settings.scope_of(manifest.seeds)
    return Rules(scope, settings.agent_token, settings.max_redirects, urls, HrefMemory())


def first_candidates(settings: CrawlSettings, manifest: Manifest) -> list[Candidate]:
    """Return the seeds, the usual places of their sitemaps, and public indexes of their sites."""
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
