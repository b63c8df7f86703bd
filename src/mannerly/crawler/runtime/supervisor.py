"""Run a crawl in several processes: start workers, add up their reports, find the end.

The end of the work is found in rounds of questions (`agreement`).

A worker that dies is started again and continues with its shards from the store, as after a crash
of the whole crawl. Pages that it was granted are lost to this run, never fetched twice (`budget`).
One that gives no sign of life is named, then killed and replaced (`supervised`). If a worker dies
too often within an hour, the run ends. A worker that reports an error ends the crawl with it.

Workers are children (`child`) in process groups of their own, so a terminal's Ctrl-C reaches this
process only. It does not import the engine, so the workers start sooner.
"""

from __future__ import annotations

import selectors
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from mannerly.crawler.stats import Stats
from mannerly.crawler.store.base import StoreError
from mannerly.politeness.clock import MonotonicClock

from .agreement import Agreement
from .budget import SharedBudget
from .child import Child
from .ending import WATCH_S, Draining, Ending, RunLimits, require
from .messages import (
    OUT_OF_MEMORY,
    Acknowledged,
    Alive,
    Ask,
    Drain,
    End,
    Failed,
    GiveUpUnreachable,
    GrantPages,
    Pages,
    Recall,
    Report,
    Returned,
    Round,
    Start,
    worker_id,
)
from .supervised import RESTARTS, WorkerProcess
from .waking import Waker, WakingQueue

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

    from .delivery import Delivered
    from .engine import Clock
    from .messages import ToSupervisor, ToWorker
    from .run import Run

WORKER = "mannerly.crawler.runtime.worker_process"
STOP_S = 5.0  # a worker that takes longer to end is killed; its store survives that
STOP_AT_ONCE_S = 0.3  # the same after the second interrupt
STALLED_S = 2.0  # of a turn: this process was stopped, and its workers perhaps with it
ALIVE_S = 1.0  # between two messages to a worker, at most: see `worker_process.SILENCE_S`


class Supervisor:
    """The workers of one run. Only `run` and `close` wait, by the clock that they are given."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._directory = str(Path.cwd())  # a location may be relative to it
        self._selector = selectors.DefaultSelector()
        shards, count = run.store.manifest.shards, run.settings.processes
        # Members of a shared crawl take their pages from its store.
        limit = run.settings.max_urls if run.membership is None else None
        self._budget = SharedBudget(limit, count)
        self._limits = RunLimits(run, self._budget)
        self._workers = [
            WorkerProcess(index, list(range(index, shards, count))) for index in range(count)
        ]
        # Members of a shared crawl pass no links to each other: each asks its store.
        self._agreement = Agreement(rounds=2 if run.membership is None else 1)
        self._round = self._launched = 0
        self._draining: Draining | None = None
        self._end_by: Instant | None = None  # for workers that were told to end
        self._died: str | None = None  # why the run ends with CRASHED
        self._next_alive = self._next_poll = -inf
        self._acknowledged: WakingQueue[Delivered] = WakingQueue()
        self._selector.register(self._acknowledged, selectors.EVENT_READ)
        self._waker = run.interrupts.waker = Waker()
        self._selector.register(self._waker, selectors.EVENT_READ)
        if run.pages is not None:
            run.pages.route = self.acknowledge

    def launch(self, now: Instant) -> None:
        """Start the workers."""
        for worker in self._workers:
            self._launch(worker, now, is_resumed=self._run.is_resumed)

    def stats(self, now: Instant) -> Stats:
        """Return the totals of all workers, past ones included."""
        total = Stats()
        for worker in self._workers:
            total.add(worker.stats)
        total.now.trouble = self._trouble(now) or total.now.trouble
        if self._draining is not None:
            total.now.in_flight = sum(worker.report.progress.in_flight for worker in self._alive())
            total.now.grace_s = self._draining.grace_s(now)
        return total

    def run(self, clock: Clock) -> Ending:
        """Run until all workers have ended; return the reason.

        Raises:
            StoreError: a worker cannot continue.
            MemoryError: a worker died too often for lack of memory.
        """
        began = turned_at = clock.now()
        ending: Ending | None = None
        while ending is None or self._alive():
            self._selector.select(WATCH_S)
            self._run.interrupts.clear()
            now = clock.now()
            self._excuse(now - turned_at)
            turned_at = now
            for worker in self._alive():
                self._hear(worker, now)
                if worker.is_stuck(now):
                    worker.child.kill()
                if worker.child.channel.is_ended:
                    self._reap(worker)
                    if ending is None and not self._restart(worker, now):
                        ending = self._drain(Ending.CRASHED, now)
            self._spread(now)
            if now >= self._next_poll:
                self._poll(now)
                stats = self.stats(now)
                self._limits.check(stats)
                self._run.show(stats, now - began)
            if ending is None:
                finished = self._end_of_work()
                ending = self._limits.ending(now - began) or finished
                if ending is not None:
                    self._drain(ending, now)
            if ending is not None:
                self._end_workers(ending, now)
        return ending

    def _excuse(self, turn_s: float) -> None:
        """After a turn in which this process was stopped, its workers may need a moment, too."""
        if turn_s > STALLED_S:
            for worker in self._alive():
                worker.excuse(turn_s)

    def _end_workers(self, ending: Ending, now: Instant) -> None:
        """Tell workers to end when they may, and kill those that do not."""
        if self._end_by is None and self._is_drained(ending, now):
            self._pass_on_acknowledged()  # what came before the wish to end counts
            self._tell(End())
            self._end_by = now + STOP_S
        if self._end_by is None:
            return
        if self._run.interrupts.wants_end_now:
            self._end_by = min(self._end_by, now + STOP_AT_ONCE_S)
        if now >= self._end_by:
            for worker in self._alive():
                worker.child.kill()

    def acknowledge(self, page: Delivered) -> None:
        """Note that the program is done with a page. Any thread may call this."""
        self._acknowledged.put([page])

    def close(self, clock: Clock) -> None:
        """End all workers."""
        self._tell(End())
        by = clock.now() + STOP_S
        for worker in self._alive():
            worker.child.end(max(0.0, by - clock.now()))
            with suppress(StoreError):  # the first error that was reported ends the crawl
                self._hear(worker, by)
            self._reap(worker)
        self._selector.close()
        self._acknowledged.close()
        self._run.interrupts.waker = None
        self._waker.close()

    # ------------------------------------------------------------------ messages from workers

    def _hear(self, worker: WorkerProcess, now: Instant) -> None:
        for message in worker.child.channel.receive():
            worker.heard_at = now
            worker.has_spoken = True
            self._take(worker, message)

    def _take(self, worker: WorkerProcess, message: ToSupervisor) -> None:
        match message:
            case Report():
                worker.report = message
                if message.events is not None and self._run.hear is not None:
                    self._run.hear(message.events)
                self._budget.reported(worker.index, message.used)
            case Ask():
                self._budget.asked(worker.index)
            case Returned(pages):
                self._budget.returned(worker.index, pages)
            case Pages(pages):
                if self._run.pages is not None:
                    self._run.pages.put(pages)
            case Failed(error):
                require(self._run.store)  # else that is the cause, whatever a worker noticed of it
                raise error

    # ------------------------------------------------------------------ messages to workers

    def _tell(self, message: ToWorker) -> None:
        for worker in self._alive():
            worker.child.channel.send(message)

    def _spread(self, now: Instant) -> None:
        """Grant pages to the workers that asked for them, and send `Alive` when it is due."""
        self._pass_on_acknowledged()
        for index, pages in self._budget.grants():
            self._workers[index].child.channel.send(GrantPages(pages))
        if now >= self._next_alive:
            self._next_alive = now + ALIVE_S
            self._tell(Alive())

    def _pass_on_acknowledged(self) -> None:
        tokens: dict[int, list[int]] = {}
        for page in self._acknowledged.take():
            tokens.setdefault(page.worker, []).append(page.token)
        for worker in self._alive() if tokens else ():
            # A restarted worker has another number, and its tokens begin at 0 again.
            if worker.number in tokens:
                worker.child.channel.send(Acknowledged(tokens[worker.number]))

    def _poll(self, now: Instant) -> None:
        """Read control records and recall unused pages: four times a second."""
        self._next_poll = now + WATCH_S
        self._limits.read_orders()
        for index in self._budget.recalls():
            if self._workers[index].is_alive:
                self._workers[index].child.channel.send(Recall())

    def _end_of_work(self) -> Ending | None:
        """Return the ending if all workers have answered and agree; else begin a new round."""
        reports = [worker.report for worker in self._workers]
        if any(report.round != self._round for report in reports):
            return None
        progresses = [report.progress for report in reports]
        ending = self._agreement.ask(progresses, is_spent=self._budget.is_spent)
        if ending is None:
            if self._agreement.gives_up:
                self._tell(GiveUpUnreachable())
            self._next_round()
        return ending

    def _next_round(self) -> None:
        self._round += 1
        self._tell(Round(self._round))

    def _drain(self, ending: Ending, now: Instant) -> Ending:
        """Let workers start no more requests. Reports of the next round are from after that."""
        self._draining = Draining(ending, self._run.settings, now)
        self._tell(Drain())
        self._next_round()
        return ending

    def _is_drained(self, ending: Ending, now: Instant) -> bool:
        """Return whether workers may end: nothing is under way, or it is not waited for."""
        assert self._draining is not None
        reports = [worker.report for worker in self._alive()]
        return (
            ending in (Ending.FINISHED, Ending.CRASHED)
            or self._draining.is_over(now, self._run.interrupts)
            or all(
                report.round == self._round and report.progress.in_flight == 0 for report in reports
            )
        )

    def _trouble(self, now: Instant) -> str | None:
        """Return what the operator should know: a worker does not answer, or died."""
        if self._died is not None:
            return self._died
        return next((words for each in self._workers if (words := each.trouble(now))), None)

    # ------------------------------------------------------------------ processes

    def _alive(self) -> list[WorkerProcess]:
        return [worker for worker in self._workers if worker.is_alive]

    def _launch(self, worker: WorkerProcess, now: Instant, *, is_resumed: bool) -> None:
        self._launched += 1
        place = self._run.membership
        order = Start(
            self._run.store.location,
            self._run.settings,
            worker.shards,
            is_resumed or place is not None,
            delivers=self._run.pages is not None,
            worker=self._launched,
            watched=self._run.watched,
            membership=None if place is None else place.of_process(worker.index),
        )
        worker.begin(Child(WORKER, order, directory=self._directory), self._launched, now)
        self._selector.register(worker.child.channel, selectors.EVENT_READ)
        worker.child.channel.send(Round(self._round))

    def _reap(self, worker: WorkerProcess) -> None:
        """Reap a worker that has ended, expected or not."""
        worker.is_alive = False
        if self._run.pages is not None:
            self._run.pages.lost(worker.number)
        self._selector.unregister(worker.child.channel)
        worker.child.end(STOP_S)
        worker.child.close()
        self._budget.died(worker.index)
        self._agreement.begin_again()
        with suppress(StoreError):  # the heartbeat expires by itself
            self._run.store.retire(worker_id(worker.child.pid))

    def _restart(self, worker: WorkerProcess, now: Instant) -> bool:
        """Replace a worker that ended; return False if its like died too often lately."""
        worker.died(now)
        if len(worker.deaths) > RESTARTS:
            if worker.child.exit_status == OUT_OF_MEMORY:
                raise MemoryError
            self._died = (
                f"the worker process of shards {worker.shards} died {len(worker.deaths)} times "
                f"within an hour, lastly with {worker.last_status}"
            )
            return False
        require(self._run.store)
        self._launch(worker, now, is_resumed=True)
        return True


def supervise(run: Run) -> tuple[Ending, Stats]:
    """Run a crawl in several processes, until it ends."""
    clock = MonotonicClock()
    supervisor = Supervisor(run)
    try:
        supervisor.launch(clock.now())
        ending = supervisor.run(clock)
    finally:
        supervisor.close(clock)
    return ending, supervisor.stats(clock.now())
