"""One run of a crawl whose store is open.

With one process the worker is in this process. With more, every worker is a child process, and this
process has the `supervisor`: it adds up their reports, restarts one that died, finds out when all
is finished, and ends the run. Either way the calling thread never blocks for long.

The first interrupt drains the run: no request is started, those under way may finish within
`grace_s`. The second stops it at once. Either way the crawl can be resumed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.events import Watched
from mannerly.crawler.inspection.status import totals
from mannerly.politeness.clock import MonotonicClock

from .agreement import Agreement
from .budget import PageBudget
from .coordinator import coordinator_of
from .ending import WATCH_S, Draining, Ending, RunLimits, StopSwitch
from .waking import Waker

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.politeness.model import Instant

    from .coordinator import Membership
    from .delivery import PageQueue
    from .event_batches import EventBatch
    from .worker import Worker


LONG_CALL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that one run of a crawl is given."""

    store: CrawlStore
    settings: CrawlSettings
    is_resumed: bool
    interrupts: StopSwitch = field(default_factory=StopSwitch)
    # Gets the totals and the seconds since the start, four times a second.
    watch: Callable[[Stats, float], None] | None = None
    # Gets every page, which is settled when the program acknowledges it.
    pages: PageQueue | None = None
    # Gets the events that are worth a log line, with every report; `watched` says which.
    hear: Callable[[EventBatch], None] | None = None
    watched: Watched = Watched.NO
    membership: Membership | None = None  # the place of this run in a crawl that several runs share
    last_order: int = 0  # a Stop up to this control record is from before the run

    def show(self, stats: Stats, elapsed_s: float) -> None:
        """Call `watch`, and warn if it takes long: no host is served meanwhile."""
        if self.watch is None:
            return
        clock = MonotonicClock()
        began = clock.now()
        self.watch(stats, elapsed_s)
        took_s = clock.now() - began
        if took_s >= LONG_CALL_S:
            name = getattr(self.watch, "__qualname__", type(self.watch).__qualname__)
            text = f"the callback {name} took {took_s:.1f} s, in which the crawl did nothing"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


def run(this: Run) -> tuple[Ending, Stats]:
    """Run a crawl until it ends; return the reason and the totals. The store stays held.

    No signal is taken here: `interrupts` is asked instead, and any thread may change it.

    Raises:
        StoreError: another run has the crawl, or its state cannot be used.
    """
    again = _again(this)
    if this.membership is None:
        this.store.hold()
    elif this.store.fleet is not None and this.settings.processes == 1:
        this.store.fleet.join(this.membership.data_dir, this.membership.segments)
    processes = min(this.settings.processes, this.store.manifest.shards)
    this = replace(this, settings=replace(this.settings, processes=processes))
    if again is not None:
        this.store.order(again)
    if processes == 1:
        ending, stats = _run_here(this)
    else:
        from .supervisor import supervise

        ending, stats = supervise(this)
    # In a crawl that is shared, another run may have the rest of the limit, not used yet.
    is_alone = this.store.fleet is None
    if ending is Ending.MAX_URLS and is_alone and not totals(this.store)["pending"]:
        ending = Ending.FINISHED
    return ending, stats


def _again(this: Run) -> RetryUrls | None:
    """Return the order to try URLs again with which a crawl that is run again begins.

    Everything, if there is no page yet; else, if it was finished, the seeds that gave none. A crawl
    that others are running is joined as it is.
    """
    if not this.is_resumed:
        return None
    total = totals(this.store)
    if not any(total.values()):  # another member has just created it
        return None
    if this.membership is not None and (total["pending"] or this.store.is_running()):
        return None
    if not total["fetched"]:
        return RetryUrls(skipped="robots")
    if total["pending"]:
        return None
    return RetryUrls(seeds=True) if total["failed"] or total["given_up"] else None


def _run_here(this: Run) -> tuple[Ending, Stats]:
    """Run all shards in this process until something ends the crawl."""
    waker = this.interrupts.waker = Waker()
    try:
        return _run_shards(this, waker)
    finally:
        this.interrupts.waker = None
        waker.close()


def _run_shards(this: Run, waker: Waker) -> tuple[Ending, Stats]:
    from .engine import TICK_S

    settings, pages, interrupts = this.settings, this.pages, this.interrupts
    clock = MonotonicClock()
    began = next_watch = clock.now()
    ending: Ending | None = None
    draining: Draining | None = None
    worker, agreement = _worker(this), Agreement(rounds=1)
    limits = RunLimits(this, worker.coordinator.budget)
    if pages is not None:
        pages.route = lambda page: worker.acknowledge([page.token])
    engine = worker.engine
    worker.watch(waker.fileno())
    try:
        while ending is None or engine.in_flight:
            engine.turn(TICK_S)
            interrupts.clear()
            now = clock.now()
            # With nothing under way the run may be finished: check at once.
            if now < next_watch and engine.in_flight and not interrupts.wants_end:
                continue
            if ending is None:
                ending = limits.ending(now - began)
                if ending is not None:
                    engine.drain()
                    draining = Draining(ending, settings, now)
            if now >= next_watch:
                next_watch = now + WATCH_S
                worker.poll(now)
                limits.act_on(worker.orders.after(limits.last_order))
                _tell(this, worker)
                stats = _shown(worker, draining, now)
                limits.check(stats)
                this.show(stats, now - began)
            if draining is not None and draining.is_over(now, interrupts):
                break
            if ending is None:
                ending = agreement.ask([worker.progress])
                if ending is None and agreement.gives_up:
                    engine.give_up_unreachable()
    except BaseException:
        worker.abandon()
        raise
    assert ending is not None
    worker.close()
    _tell(this, worker)
    return ending, engine.stats()


def _worker(this: Run) -> Worker:
    """Return the worker of this process."""
    from .worker import Worker

    store, settings = this.store, this.settings
    shards, budget = range(store.manifest.shards), PageBudget(settings.max_urls)
    return Worker(
        store,
        settings,
        coordinator_of(store, this.membership, shards, budget),
        is_resumed=this.is_resumed or this.membership is not None,
        deliver=None if this.pages is None else this.pages.put,
        watched=this.watched,
    )


def _tell(this: Run, worker: Worker) -> None:
    if this.hear is not None and worker.events is not None:
        this.hear(worker.events.take())


def _shown(worker: Worker, draining: Draining | None, now: Instant) -> Stats:
    """Return the totals to show, with the time that is left for requests under way."""
    stats = worker.stats()
    if draining is not None:
        stats.now.in_flight = worker.engine.in_flight
        stats.now.grace_s = draining.grace_s(now)
    return stats
