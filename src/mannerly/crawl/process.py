"""Where engines run: one in this process, or one in each of several children.

A child owns its shards alone. It reports to the conductor four times a second over a pipe and does
what the conductor says:

    conductor → child     drain · stop · are you idle? (round k)
    child → conductor     stats · idle or not (round k)

**Finished** is agreed in two rounds. All children idle in round k means that nothing was under way
when each of them looked; a message that one had just sent to another is in that one's inbox, which
it looks into in round k + 1. Idle twice in a row is therefore idle for good.

A child that dies is started again and takes its shards up from the store, as after a crash of the
whole crawl. The pages of the budget that it had taken are lost to this run, never fetched twice.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from dataclasses import replace
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.politeness.clock import MonotonicClock

from .engine import TICK_S, Engine
from .fetch.curl import CurlFetcher
from .fetch.guard import NetworkGuard
from .fetch.settings import FetchSettings
from .frontier.sharding import Sharding
from .run import WATCH_S, Ending, first_candidates, moved_seeds, rules_of
from .shard import Shard, widen
from .stats import Stats
from .store.inbox import unread
from .store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from .run import Signals
    from .settings import CrawlSettings
    from .store.directory import CrawlDirectory, Manifest

RESTARTS = 5  # of one child, before the crawl gives up
HEADROOM = 256  # descriptors for what is not a page: the store, connections kept alive


class LocalBudget:
    """--max-urls, when there is one process."""

    def __init__(self, pages: int | None) -> None:
        self._left = pages

    def take(self, wanted: int) -> int:
        """As many as there are."""
        if self._left is None:
            return wanted
        granted = min(wanted, self._left)
        self._left -= granted
        return granted

    def give_back(self, unused: int) -> None:
        """What was taken and not used."""
        if self._left is not None:
            self._left += unused

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._left is not None and self._left <= 0


class SharedBudget:
    """--max-urls, shared by the children of one conductor."""

    def __init__(self, pages: int | None, counter: Any) -> None:
        self._is_limited = pages is not None
        self._counter = counter

    def take(self, wanted: int) -> int:
        """As many as there are."""
        if not self._is_limited:
            return wanted
        with self._counter.get_lock():
            granted = int(min(wanted, self._counter.value))
            self._counter.value -= granted
        return granted

    def give_back(self, unused: int) -> None:
        """What was taken and not used."""
        if self._is_limited and unused:
            with self._counter.get_lock():
                self._counter.value += unused

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._is_limited and int(self._counter.value) <= 0


class Report(NamedTuple):
    """What a child tells its conductor."""

    stats: Stats
    round: int
    is_idle: bool
    in_flight: int


class Workplace:
    """An engine with everything it needs, and the way to put it away again."""

    def __init__(
        self,
        settings: CrawlSettings,
        path: Path,
        manifest: Manifest,
        numbers: list[int],
        budget: LocalBudget | SharedBudget,
        *,
        is_resumed: bool,
    ) -> None:
        clock = MonotonicClock()
        self._path = path
        self._numbers = numbers
        workers = max(1, settings.workers // settings.processes)
        rules = rules_of(settings, manifest)
        sharding = Sharding(manifest.shards)
        self._stores = [
            SqliteStore.open(
                path,
                number,
                shards=manifest.shards,
                frontier_limit=max(1, settings.frontier_limit // manifest.shards),
                durable=settings.durable,
            )
            for number in numbers
        ]
        if is_resumed:
            for store in self._stores:
                for url in moved_seeds(store, manifest.seeds):
                    widen(rules, url)
        self._fetcher = CurlFetcher(
            NetworkGuard(seeds=manifest.seeds, allow_net=settings.allow_net),
            FetchSettings(user_agent=settings.user_agent, max_connections=workers + HEADROOM),
        )
        now = clock.now()
        shards = [
            Shard(
                number,
                store,
                sharding,
                settings,
                rules,
                max_in_flight=workers,
                is_resumed=is_resumed,
                now=now,
            )
            for number, store in zip(numbers, self._stores, strict=True)
        ]
        self.engine = Engine(
            self._fetcher, shards, clock, budget, workers=workers, governed=settings.governor
        )
        if not is_resumed:
            for shard in shards:
                mine = [
                    candidate
                    for candidate in first_candidates(settings, manifest)
                    if sharding.shard_of(candidate.host) == shard.number
                ]
                shard.offer(mine)
            self.engine.commit()

    @property
    def is_idle(self) -> bool:
        """Nothing to do, and nothing in the inboxes."""
        return self.engine.is_idle and all(
            unread(self._path, number) == 0 for number in self._numbers
        )

    @property
    def pending(self) -> int:
        """URLs that are queued or wait for a place in the queue."""
        return sum(
            counts.queued + counts.waiting for counts in (store.counts() for store in self._stores)
        )

    def close(self) -> None:
        """Commit what came in, let go of sockets and files."""
        self.engine.stop()
        self._fetcher.close()
        for store in self._stores:
            store.close()


def run_alone(
    settings: CrawlSettings,
    directory: CrawlDirectory,
    signals: Signals,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats, float, int]:
    """Run all shards in this process until something ends the crawl."""
    clock = MonotonicClock()
    budget = LocalBudget(settings.max_urls)
    manifest = directory.manifest
    numbers = list(range(manifest.shards))
    place = Workplace(settings, directory.path, manifest, numbers, budget, is_resumed=is_resumed)
    engine, began = place.engine, clock.now()
    next_watch = began
    ending: Ending | None = None
    while True:
        engine.turn(TICK_S)
        now = clock.now()
        if now < next_watch and not signals.wants_end_now:
            continue
        next_watch = now + WATCH_S
        watch(engine.stats(), now - began)
        if ending is None:
            ending = _ending(settings, signals, now - began, budget_is_spent=budget.is_spent)
            engine.is_draining = ending in (Ending.STOPPED, Ending.TERMINATED, Ending.DURATION)
        if ending is None and place.is_idle:
            ending = Ending.FINISHED
        if ending is not None and (engine.in_flight == 0 or signals.wants_end_now):
            break
    place.close()
    stats = engine.stats()
    if ending is Ending.MAX_URLS and engine.is_idle:
        ending = Ending.FINISHED
    return ending, stats, clock.now() - began, _pending(directory)


def _ending(
    settings: CrawlSettings, signals: Signals, elapsed_s: float, *, budget_is_spent: bool
) -> Ending | None:
    """What the clock, the operator or the budget say."""
    if signals.wants_end:
        return signals.ending
    if settings.duration_s is not None and elapsed_s >= settings.duration_s:
        return Ending.DURATION
    return Ending.MAX_URLS if budget_is_spent else None


def _pending(directory: CrawlDirectory) -> int:
    from .store.reader import SqliteReader

    total = 0
    for number in range(directory.manifest.shards):
        reader = SqliteReader.beside(directory.path, number)
        counts = reader.counts()
        total += counts.queued + counts.waiting + counts.outgoing
        total += unread(directory.path, number)
        reader.close()
    return total


# ---------------------------------------------------------------------- several processes


class _Child:
    """One child process, as the conductor sees it."""

    def __init__(self, numbers: list[int], start: Callable[[list[int], Connection], Any]) -> None:
        self.numbers = numbers
        self._start = start
        self.restarts = 0
        self.past = Stats()  # of its predecessors
        self.report = Report(Stats(), -1, is_idle=False, in_flight=0)
        self.launch()

    def launch(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = self._start(self.numbers, theirs)
        theirs.close()

    def tell(self, *message: object) -> None:
        try:
            self.pipe.send(message)
        except (BrokenPipeError, OSError):
            pass  # it died; whoever waits for it will notice

    def listen(self) -> None:
        try:
            while self.pipe.poll():
                self.report = self.pipe.recv()
        except (EOFError, OSError):
            pass

    @property
    def stats(self) -> Stats:
        total = Stats()
        total.add(self.past)
        total.add(self.report.stats)
        return total


def conduct(
    settings: CrawlSettings,
    directory: CrawlDirectory,
    signals: Signals,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats, float, int]:
    """Run the shards in several children, and stay responsive."""
    spawn = multiprocessing.get_context("spawn")
    counter = spawn.Value("q", settings.max_urls or 0)
    budget = SharedBudget(settings.max_urls, counter)
    manifest, path = directory.manifest, directory.path

    def start(numbers: list[int], pipe: Connection, *, again: bool = False) -> Any:
        arguments = (settings, path, manifest, numbers, counter, pipe, is_resumed or again)
        process = spawn.Process(target=_work, args=arguments, daemon=True)
        process.start()
        return process

    shares = [
        list(range(index, manifest.shards, settings.processes))
        for index in range(settings.processes)
    ]
    children = [_Child(share, start) for share in shares]
    clock = MonotonicClock()
    began = clock.now()
    ending: Ending | None = None
    number, idle_rounds, was_told_stop = 0, 0, False
    try:
        while True:
            connection.wait([child.pipe for child in children], timeout=WATCH_S)
            for child in children:
                child.listen()
                if not child.process.is_alive() and ending is None:
                    _restart(child, start)
            elapsed_s = clock.now() - began
            watch(_total(children), elapsed_s)
            if ending is None:
                ending = _ending(settings, signals, elapsed_s, budget_is_spent=budget.is_spent)
                if ending is not None:
                    for child in children:
                        child.tell("drain")
            if ending is None and all(child.report.round == number for child in children):
                idle_rounds = idle_rounds + 1 if all(c.report.is_idle for c in children) else 0
                if idle_rounds >= 2:
                    ending = Ending.FINISHED
                number += 1
                for child in children:
                    child.tell("round", number)
            if ending is not None and not was_told_stop:
                quiet = all(child.report.in_flight == 0 for child in children)
                if quiet or ending is Ending.FINISHED or signals.wants_end_now:
                    was_told_stop = True
                    for child in children:
                        child.tell("stop")
            if was_told_stop and not any(child.process.is_alive() for child in children):
                break
    finally:
        for child in children:
            child.listen()
            if child.process.is_alive():
                child.tell("stop")
                child.process.join(timeout=5.0)
                child.process.kill()
    return ending, _total(children), clock.now() - began, _pending(directory)


def _restart(child: _Child, start: Callable[..., Any]) -> None:
    child.restarts += 1
    if child.restarts > RESTARTS:
        raise RuntimeError(f"the process of shards {child.numbers} died {child.restarts} times")
    child.past.add(replace(child.report.stats, in_flight=0, queued=0, hosts=0))
    child._start = lambda numbers, pipe: start(numbers, pipe, again=True)  # noqa: SLF001
    child.report = Report(Stats(), -1, is_idle=False, in_flight=0)
    child.launch()


def _total(children: list[_Child]) -> Stats:
    total = Stats()
    for child in children:
        total.add(child.stats)
    return total


def _work(
    settings: CrawlSettings,
    path: Path,
    manifest: Manifest,
    numbers: list[int],
    counter: Any,
    pipe: Connection,
    is_resumed: bool,  # noqa: FBT001
) -> None:
    """A child's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    budget = SharedBudget(settings.max_urls, counter)
    place = Workplace(settings, path, manifest, numbers, budget, is_resumed=is_resumed)
    engine = place.engine
    number, next_report = 0, 0.0
    is_over = False
    while not is_over:
        engine.turn(TICK_S)
        try:
            while pipe.poll():
                message = pipe.recv()
                if message[0] == "round":
                    number = message[1]
                elif message[0] == "drain":
                    engine.is_draining = True
                else:
                    is_over = True
        except (EOFError, OSError):
            is_over = True  # the conductor is gone: what it would have said last
        now = time.monotonic()
        if now >= next_report and not is_over:
            next_report = now + WATCH_S
            _tell(pipe, Report(engine.stats(), number, place.is_idle, engine.in_flight))
    place.close()
    _tell(pipe, Report(engine.stats(), number, place.engine.in_flight == 0, 0))


def _tell(pipe: Connection, report: Report) -> None:
    try:
        pipe.send(report)
    except (BrokenPipeError, OSError):
        pass  # nobody listens any more
