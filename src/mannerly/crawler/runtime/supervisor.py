"""Several processes, one crawl: start them, add up what they report, agree on the end.

**Finished** is agreed in rounds. A round is asked when every answer to the one before has come in.
Two rounds in a row in which every child was idle, its inbox and outbox empty, and in between which
none of them received anything: then at any instant between the two rounds nobody had anything to do
and nothing was on its way. Idle twice is not enough by itself, since a link can pass from one child
to another and back behind the asker's back.

A child that dies is started again and takes its shards up from the store, as after a crash of the
whole crawl. Pages that it had on loan from the budget are lost to this run, never fetched twice.
One that says why it cannot go on ends the crawl with that reason.

Children are forked: everything is imported by then, so they begin at once and share that memory. Of
a process with several threads a fork would copy locks without the threads that hold them; there
children are spawned, and import everything themselves.

SIGINT and SIGTERM are blocked while a child is started, and it inherits that: what a terminal sends
to the whole group is for the conductor alone, even while the child is not up yet.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mannerly.crawler.stats import Stats
from mannerly.crawler.store.base import StoreError
from mannerly.politeness.clock import MonotonicClock

from .budget import SharedBudget
from .ending import WATCH_S, Ending, told_to_end
from .process import work
from .report import Report, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext, ForkProcess, SpawnContext, SpawnProcess

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.sqlite.directory import CrawlDirectory

    from .ending import Signals

RESTARTS = 5  # of one child, before the crawl gives up
STOP_S = 5.0  # a child that takes longer to stop is killed; its store bears that
_OURS = (signal.SIGINT, signal.SIGTERM)


class _Child:
    """One child process, as the conductor sees it."""

    pipe: Connection
    process: ForkProcess | SpawnProcess

    def __init__(self, index: int, shards: list[int]) -> None:
        self.index = index
        self.shards = shards
        self.restarts = 0
        self.is_buried = False
        self._past = Stats()  # of its predecessors
        self.report = Report(Stats(), -1, is_idle=False, in_flight=0, received=0)

    def listen(self) -> None:
        """Take the latest report; raises what the child could not go on with."""
        try:
            while self.pipe.poll():
                message = self.pipe.recv()
                if isinstance(message, StoreError):
                    raise message
                self.report = message
        except (EOFError, OSError):
            pass  # it is dead

    def start_over(self) -> None:
        """Keep what the dead one has done."""
        self.restarts += 1
        self._past.add(replace(self.report.stats, in_flight=0, queued=0, hosts=0))
        self.report = Report(Stats(), -1, is_idle=False, in_flight=0, received=0)
        self.pipe.close()

    @property
    def stats(self) -> Stats:
        total = Stats()
        total.add(self._past)
        total.add(self.report.stats)
        return total


class Conductor:
    """The children of one crawl."""

    def __init__(
        self, settings: CrawlSettings, directory: CrawlDirectory, *, is_resumed: bool
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._context = _context()
        self._ends: list[Connection] = []  # ours, of all pipes
        self._budget = SharedBudget(self._context, settings.max_urls, settings.processes)
        shards, count = directory.manifest.shards, settings.processes
        self._children = [
            _Child(index, list(range(index, shards, count))) for index in range(count)
        ]
        self._round = 0
        self._received: list[int] | None = None  # in the round before, if all were idle then
        self._was_spent = False
        for child in self._children:
            self._launch(child, is_resumed=is_resumed)

    def stats(self) -> Stats:
        """The totals of all children, past ones included."""
        total = Stats()
        for child in self._children:
            total.add(child.stats)
        return total

    def run(self, signals: Signals, watch: Callable[[Stats, float], None]) -> Ending:
        """Stay until all children are gone."""
        clock = MonotonicClock()
        began = clock.now()
        ending: Ending | None = None
        is_stopping = False
        while ending is None or self._alive():
            alive = self._alive()
            ears = [child.pipe for child in alive] + [child.process.sentinel for child in alive]
            connection.wait(ears, timeout=WATCH_S)
            for child in self._children:
                child.listen()
                if not child.is_buried and not child.process.is_alive():
                    self._bury(child)
                    if ending is None:
                        self._restart(child)
            elapsed_s = clock.now() - began
            watch(self.stats(), elapsed_s)
            if ending is None:
                round_says = self._ask_around()
                ending = told_to_end(self._settings, signals, elapsed_s, is_spent=False)
                ending = ending or round_says
                if ending is not None:
                    self._tell("drain")
            if ending is not None and not is_stopping:
                is_stopping = signals.wants_end_now or self._is_quiet(ending)
                if is_stopping:
                    self._tell("stop")
        return ending

    def _alive(self) -> list[_Child]:
        return [child for child in self._children if child.process.is_alive()]

    def _is_quiet(self, ending: Ending) -> bool:
        """Whether nothing is under way any more in those who are alive."""
        return ending is Ending.FINISHED or not any(
            child.report.in_flight for child in self._alive()
        )

    def _ask_around(self) -> Ending | None:
        """When all have answered: is this the end? If not, ask again."""
        reports = [child.report for child in self._children]
        if any(report.round != self._round for report in reports):
            return None
        is_idle = all(report.is_idle for report in reports)
        received = [report.received for report in reports]
        if is_idle and received == self._received:
            return Ending.FINISHED
        self._received = received if is_idle else None
        is_spent = self._budget.is_spent
        if is_spent and self._was_spent and not any(report.in_flight for report in reports):
            return Ending.MAX_URLS
        self._was_spent = is_spent
        self._round += 1
        self._tell("round", self._round)
        return None

    def _tell(self, *words: object) -> None:
        for child in self._children:
            tell(child.pipe, words)

    def _launch(self, child: _Child, *, is_resumed: bool) -> None:
        child.pipe, theirs = multiprocessing.Pipe()
        self._ends.append(child.pipe)
        directory = self._directory
        child.process = self._context.Process(
            target=_work,
            args=(
                self._ends if self._context.get_start_method() == "fork" else (),
                self._settings,
                directory.path,
                directory.manifest,
                child.shards,
                self._budget.share(child.index),
                theirs,
                is_resumed,
            ),
            daemon=False,
        )
        child.is_buried = False
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)
        try:
            child.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def _bury(self, child: _Child) -> None:
        child.is_buried = True
        self._budget.bury(child.index)
        self._received = None

    def _restart(self, child: _Child) -> None:
        child.start_over()
        if child.restarts > RESTARTS:
            raise RuntimeError(f"the process of shards {child.shards} died {child.restarts} times")
        self._launch(child, is_resumed=True)
        tell(child.pipe, ("round", self._round))

    def close(self) -> None:
        """Leave no child behind."""
        self._tell("stop")
        for child in self._children:
            child.process.join(timeout=STOP_S)
            child.process.kill()
            child.process.join()
            with suppress(StoreError):  # the first one that was heard ends the crawl
                child.listen()
            child.pipe.close()


def _context() -> ForkContext | SpawnContext:
    threads = Path("/proc/self/task")  # not only those that Python knows
    if threads.is_dir() and len([*threads.iterdir()]) == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _work(inherited: Iterable[Connection], *order: Any) -> None:
    """A child's life. A pipe ends with the conductor only if nobody else holds its other end."""
    for end in inherited:
        end.close()
    work(*order)


def conduct(
    settings: CrawlSettings,
    directory: CrawlDirectory,
    signals: Signals,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats]:
    """Run the shards in several children, and stay responsive."""
    conductor = Conductor(settings, directory, is_resumed=is_resumed)
    try:
        ending = conductor.run(signals, watch)
    finally:
        conductor.close()
    return ending, conductor.stats()
