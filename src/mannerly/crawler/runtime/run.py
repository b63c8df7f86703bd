"""One run of a crawl: `run`, on a store that is open, and `crawl`, which opens one.

With one process the worker is here. With more, every one is a child, and here is only the
`supervisor`: it sums up their reports, restarts one that died, decides when all is finished, and
passes on that the run has to end. Either way the calling thread never blocks for long.

A run that is interrupted once drains: nothing new starts, what is under way may finish. Twice stops
at once. Both leave a crawl that can be resumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl, exists, open_crawl, wipe
from mannerly.crawler.store.base import Manifest
from mannerly.crawler.web.urls import canonical
from mannerly.politeness.clock import MonotonicClock

from .budget import LocalBudget
from .ending import WATCH_S, Ending, RunLimits, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore

    from .ending import Interrupts


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """How a crawl ended, and with what."""

    ending: Ending
    stats: Stats
    seconds: float
    pending: int


def crawl(
    settings: CrawlSettings,
    seeds: Sequence[str],
    location: str | Path,
    *,
    fresh: bool = False,
    watch: Callable[[Stats, float], None] | None = None,
) -> CrawlResult:
    """Crawl from `seeds`, or resume the crawl that is at a location. Ctrl-C and SIGTERM end it.

    Raises:
        StoreError: the crawl is in use, damaged, or something else is there.
        ValueError: a seed is no URL, a setting is out of its range.
    """
    if fresh:
        wipe(location)
    is_resumed = exists(location)
    if is_resumed:
        store = open_crawl(location)
        settings = stored_settings(store.manifest, settings)
    else:
        store = create_crawl(location, _manifest(settings, seeds))
    clock = MonotonicClock()
    began = clock.now()
    try:
        with Signals() as signals:
            ending, stats = run(
                store, settings, is_resumed=is_resumed, interrupts=signals, watch=watch
            )
            return CrawlResult(ending, stats, clock.now() - began, pending(store))
    finally:
        store.close()


def run(
    store: CrawlStore,
    settings: CrawlSettings,
    *,
    is_resumed: bool,
    interrupts: Interrupts,
    watch: Callable[[Stats, float], None] | None = None,
) -> tuple[Ending, Stats]:
    """Run a crawl until something ends it, and return what. The store is held until its `close`.

    `watch` gets the totals and the seconds since the start, four times a second. No signal is
    taken here: `interrupts` is asked instead, and may be changed by any thread.

    Raises:
        StoreError: another run has the crawl, or its state cannot be used.
    """
    store.hold()
    processes = min(settings.processes, store.manifest.shards)
    settings = replace(settings, processes=processes)
    watch = watch or _ignore
    if processes == 1:
        ending, stats = _run_here(store, settings, interrupts, watch, is_resumed=is_resumed)
    else:
        from .supervisor import supervise

        ending, stats = supervise(store, settings, interrupts, watch, is_resumed=is_resumed)
    if ending is Ending.MAX_URLS and not pending(store):
        ending = Ending.FINISHED
    if ending is Ending.FINISHED and not is_resumed and not stats.fetched:
        ending = Ending.NO_SEED
    return ending, stats


def pending(store: CrawlStore) -> int:
    """Return how many URLs of a crawl are not fetched yet, wherever they wait."""
    total = 0
    for number in range(store.manifest.shards):
        with store.read(number) as reader:
            counts = reader.counts()
        total += counts.queued + counts.outgoing + store.unread(number)
    return total


def _run_here(
    store: CrawlStore,
    settings: CrawlSettings,
    interrupts: Interrupts,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats]:
    """Run all shards in this process until something ends the crawl."""
    from .engine import TICK_S
    from .worker import Worker

    clock = MonotonicClock()
    budget = LocalBudget(settings.max_urls)
    limits = RunLimits(settings, store, budget, interrupts)
    began = next_watch = clock.now()
    ending: Ending | None = None
    numbers = list(range(store.manifest.shards))
    worker = Worker(store, settings, numbers, budget, is_resumed=is_resumed)
    engine = worker.engine
    try:
        while ending is None or (engine.in_flight and not interrupts.wants_end_now):
            engine.turn(TICK_S)
            now = clock.now()
            # With nothing under way this may be the end, and then there is nothing to wait for.
            if now < next_watch and engine.in_flight and not interrupts.wants_end_now:
                continue
            if now >= next_watch:
                next_watch = now + WATCH_S
                limits.read_orders()
                worker.look(now)
                watch(engine.stats(), now - began)
            if ending is None:
                is_spent = budget.is_spent and engine.in_flight == 0
                ending = limits.ending(now - began, is_spent=is_spent)
                engine.is_draining = ending is not None
            if ending is None and worker.is_idle:
                ending = Ending.FINISHED
    except BaseException:
        worker.abandon()
        raise
    worker.close()
    return ending, engine.stats()


def _ignore(_stats: Stats, _elapsed_s: float) -> None:
    """Tell nothing."""


def _manifest(settings: CrawlSettings, seeds: Sequence[str]) -> Manifest:
    texts = [_seed(seed) for seed in seeds]
    if not texts:
        raise ValueError("a crawl needs at least one URL to start from")
    settings.scope_of(texts)
    return Manifest.new(
        seeds=list(dict.fromkeys(texts)),
        settings=msgspec.to_builtins(settings),
        shards=settings.processes,
        created_at=MonotonicClock().wall(),
    )


def _seed(text: str) -> str:
    url = canonical(text)
    if url is None:
        raise ValueError(f"{text!r} is not an http or https URL")
    return url


def stored_settings(manifest: Manifest, now: CrawlSettings) -> CrawlSettings:
    """Return the settings of a resumed crawl: what decides about URLs stays as it was."""
    kept: CrawlSettings = msgspec.convert(manifest.settings, CrawlSettings, strict=False)
    return replace(
        now,
        scope=kept.scope,
        include=kept.include,
        exclude=kept.exclude,
        max_depth=kept.max_depth,
        seeding=kept.seeding,
        drop_tracking=kept.drop_tracking,
    )
