"""One run of a crawl whose store is open.

With one process the worker is in this process. With more, every worker is a child process, and this
process has the `supervisor`: it adds up their reports, restarts one that died, finds out when all
is finished, and ends the run. Either way the calling thread never blocks for long.

The first interrupt drains the run: no request is started, those under way may finish. The second
stops it at once. Either way the crawl can be resumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import Retry
from mannerly.crawler.inspection.status import totals
from mannerly.politeness.clock import MonotonicClock

from .budget import LocalBudget
from .ending import WATCH_S, Ending, RunLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore

    from .delivery import PageQueue
    from .ending import Interrupts


def run(
    store: CrawlStore,
    settings: CrawlSettings,
    *,
    is_resumed: bool,
    interrupts: Interrupts,
    watch: Callable[[Stats, float], None] | None = None,
    pages: PageQueue | None = None,
    last_order: int = 0,
) -> tuple[Ending, Stats]:
    """Run a crawl until it ends; return the reason and the totals. The store stays held.

    `watch` gets the totals and the seconds since the start, four times a second. No signal is
    taken here: `interrupts` is asked instead, and any thread may change it. `pages` gets every
    page, which is settled when the program acknowledges it. A Stop up to the control record
    `last_order` is from before this run.

    Raises:
        StoreError: another run has the crawl, or its state cannot be used.
    """
    store.hold()
    processes = min(settings.processes, store.manifest.shards)
    settings = replace(settings, processes=processes)
    watch = watch or _ignore
    if is_resumed and not totals(store)["fetched"]:
        store.order(Retry())  # no seed could be fetched yet
    if processes == 1:
        ending, stats = _run_here(
            store,
            settings,
            interrupts,
            watch,
            is_resumed=is_resumed,
            pages=pages,
            last_order=last_order,
        )
    else:
        from .supervisor import supervise

        ending, stats = supervise(
            store,
            settings,
            interrupts,
            watch,
            is_resumed=is_resumed,
            pages=pages,
            last_order=last_order,
        )
    total = totals(store)
    if ending is Ending.MAX_URLS and not total["pending"]:
        ending = Ending.FINISHED
    if ending is Ending.FINISHED and not total["fetched"]:
        ending = Ending.NO_SEED
    return ending, stats


def _run_here(
    store: CrawlStore,
    settings: CrawlSettings,
    interrupts: Interrupts,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
    pages: PageQueue | None,
    last_order: int,
) -> tuple[Ending, Stats]:
    """Run all shards in this process until something ends the crawl."""
    from .engine import TICK_S
    from .worker import Worker

    clock = MonotonicClock()
    budget = LocalBudget(settings.max_urls)
    limits = RunLimits(settings, store, budget, interrupts, last_order=last_order)
    began = next_watch = clock.now()
    ending: Ending | None = None
    numbers = list(range(store.manifest.shards))
    deliver = None if pages is None else pages.put
    worker = Worker(store, settings, numbers, budget, is_resumed=is_resumed, deliver=deliver)
    if pages is not None:
        pages.route = lambda page: worker.acknowledge([page.token])
    engine = worker.engine
    try:
        while ending is None or (engine.in_flight and not interrupts.wants_end_now):
            engine.turn(TICK_S)
            now = clock.now()
            # With nothing under way the run may be finished: check at once.
            if now < next_watch and engine.in_flight and not interrupts.wants_end_now:
                continue
            if now >= next_watch:
                next_watch = now + WATCH_S
                limits.read_orders()
                worker.look(now)
                watch(worker.stats(), now - began)
            if ending is None:
                is_spent = budget.is_spent and engine.in_flight == 0
                ending = limits.ending(now - began, is_spent=is_spent)
                engine.is_draining = ending is not None
            if ending is None and worker.is_idle:
                ending = Ending.FINISHED
            elif ending is None and not engine.in_flight and worker.is_stuck:
                engine.give_up_stuck()
    except BaseException:
        worker.abandon()
        raise
    worker.close()
    return ending, engine.stats()


def _ignore(_stats: Stats, _elapsed_s: float) -> None:
    """Ignore the totals."""
