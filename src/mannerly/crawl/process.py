"""Where an engine runs: in this process, or as one of several children of a conductor.

A child owns its shards alone. It reports to the conductor four times a second over a pipe, at once
when it is asked and has nothing to do, and does what the conductor says:

    conductor → child     drain · stop · round k: are you idle?
    child → conductor     stats · idle or not (round k) · what it cannot go on with

A child takes no signals: the conductor does, and says what follows. If the conductor is gone, its
end of the pipe is closed, and that means stop.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from mannerly.politeness.clock import MonotonicClock

from .budget import LocalBudget
from .engine import TICK_S, Engine
from .fetch.curl import CurlFetcher
from .fetch.guard import NetworkGuard
from .fetch.settings import FetchSettings
from .frontier.sharding import Sharding
from .parse.offload import Offload
from .run import WATCH_S, Ending, first_candidates, moved_seeds, rules_of
from .shard import Shard
from .store.base import StoreError
from .store.inbox import unread
from .store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path
    from types import TracebackType

    from .engine import Budget
    from .run import Signals
    from .settings import CrawlSettings
    from .shard import Work
    from .stats import Stats
    from .store.directory import CrawlDirectory, Manifest

HEADROOM = 256  # descriptors for what is not a page: the store, connections kept alive


class Report(NamedTuple):
    """What a child tells its conductor."""

    stats: Stats
    round: int
    is_idle: bool
    in_flight: int
    received: int  # links that other shards sent, since the child was started


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
                check_limit=settings.check_limit,
            )
            for number in numbers
        ]
        if is_resumed:
            for store in self._stores:
                for url in moved_seeds(store, manifest.seeds):
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
                store,
                sharding,
                settings,
                rules,
                max_in_flight=workers,
                is_resumed=is_resumed,
                now=now,
                offload=self._offload,
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
        )
        # Every time: a crawl may have died before its seeds were committed. Known ones stay known.
        for shard in self._shards:
            mine = [
                candidate
                for candidate in first_candidates(settings, manifest)
                if sharding.shard_of(candidate.host) == shard.number
            ]
            shard.offer(mine)
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


def run_alone(
    settings: CrawlSettings,
    directory: CrawlDirectory,
    signals: Signals,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats]:
    """Run all shards in this process until something ends the crawl."""
    clock = MonotonicClock()
    budget = LocalBudget(settings.max_urls)
    manifest = directory.manifest
    numbers = list(range(manifest.shards))
    began = next_watch = clock.now()
    ending: Ending | None = None
    with Workplace(
        settings, directory.path, manifest, numbers, budget, is_resumed=is_resumed
    ) as place:
        engine = place.engine
        while ending is None or (engine.in_flight and not signals.wants_end_now):
            engine.turn(TICK_S)
            now = clock.now()
            # With nothing under way this may be the end, and nobody should wait for it.
            if now < next_watch and engine.in_flight and not signals.wants_end_now:
                continue
            if now >= next_watch:
                next_watch = now + WATCH_S
                watch(engine.stats(), now - began)
            if ending is None:
                is_spent = budget.is_spent and engine.in_flight == 0
                ending = told_to_end(settings, signals, now - began, is_spent=is_spent)
                engine.is_draining = ending is not None
            if ending is None and place.is_idle:
                ending = Ending.FINISHED
    return ending, engine.stats()


def told_to_end(
    settings: CrawlSettings, signals: Signals, elapsed_s: float, *, is_spent: bool
) -> Ending | None:
    """What the operator, the clock or the budget say."""
    if signals.wants_end:
        return signals.ending
    if settings.duration_s is not None and elapsed_s >= settings.duration_s:
        return Ending.DURATION
    return Ending.MAX_URLS if is_spent else None


def work(
    settings: CrawlSettings,
    path: Path,
    manifest: Manifest,
    numbers: list[int],
    budget: Budget,
    pipe: Connection,
    is_resumed: bool,  # noqa: FBT001 - a process takes no keywords from its starter
) -> None:
    """A child's life. Signals are blocked: see `conductor`."""
    try:
        with Workplace(settings, path, manifest, numbers, budget, is_resumed=is_resumed) as place:
            number = _obey(place, pipe)
        last = place.engine.stats()
        tell(pipe, Report(last, number, is_idle=False, in_flight=0, received=place.received))
    except StoreError as error:
        tell(pipe, error)


def _obey(place: Workplace, pipe: Connection) -> int:
    """Crawl and report until told to stop; returns the last round."""
    clock, engine = MonotonicClock(), place.engine
    number, next_report, was_asked = 0, clock.now(), False
    place.listen_to(pipe.fileno())
    while True:
        try:
            while pipe.poll():
                word, *rest = pipe.recv()
                if word == "stop":
                    return number
                if word == "drain":
                    engine.is_draining = True
                else:
                    number, was_asked = rest[0], True
        except (EOFError, OSError):
            return number
        engine.turn(TICK_S)
        is_due = clock.now() >= next_report
        if not is_due and not was_asked:
            continue
        is_idle = place.is_idle
        if is_due or is_idle:
            next_report, was_asked = clock.now() + WATCH_S, False
            report = Report(engine.stats(), number, is_idle, engine.in_flight, place.received)
            tell(pipe, report)


def tell(pipe: Connection, message: object) -> None:
    """Send, unless nobody listens any more: whoever waits for the other end will notice."""
    with suppress(OSError):
        pipe.send(message)
