"""Run a crawl in several processes: start workers, add up their reports, find the end.

**Finished** is found in rounds of questions. A round begins when all answers to the one before have
arrived. The crawl is finished after two rounds in a row in which every worker was idle with an
empty inbox and outbox, if no worker received a link in between: then there was an instant with
nothing to do and nothing in transit. Idle twice is not enough by itself, since a link can pass from
one worker to another and back between two questions.

That only hosts are left which would be given up before they are due is found in the same way, and
then the workers are told to give them up.

A worker that dies is started again and continues with its shards from the store, as after a crash
of the whole crawl. Pages that it was granted are lost to this run, never fetched twice (`budget`).
One that gives no sign of life is named, then killed and replaced (`member`). If a worker dies too
often within an hour, the run ends. A worker that reports an error ends the crawl with that error.

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

from .budget import SharedBudget
from .child import Child
from .ending import WATCH_S, Draining, Ending, RunLimits, require
from .member import RESTARTS, Member
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
        limit = run.settings.max_urls if run.member is None else None
        self._budget = SharedBudget(limit, count)
        self._limits = RunLimits(run, self._budget)
        self._members = [Member(index, list(range(index, shards, count))) for index in range(count)]
        self._round = self._launched = 0
        self._draining: Draining | None = None
        self._end_by: Instant | None = None  # for workers that were told to end
        self._died: str | None = None  # why the run ends with CRASHED
        self._received: list[int] | None = None  # in the round before, if all were idle then
        self._was_spent = False
        self._next_alive = self._next_poll = -inf
        self._acknowledged: WakingQueue[Delivered] = WakingQueue()
        self._selector.register(self._acknowledged, selectors.EVENT_READ)
        self._waker = run.interrupts.waker = Waker()
        self._selector.register(self._waker, selectors.EVENT_READ)
        if run.pages is not None:
            run.pages.route = self.acknowledge

    def launch(self, now: Instant) -> None:
        """Start the workers."""
        for member in self._members:
            self._launch(member, now, is_resumed=self._run.is_resumed)

    def stats(self, now: Instant) -> Stats:
        """Return the totals of all workers, past ones included."""
        total = Stats()
        for member in self._members:
            total.add(member.stats)
        total.trouble = self._trouble(now) or total.trouble
        if self._draining is not None:
            total.in_flight = sum(member.report.in_flight for member in self._alive())
            total.grace_s = self._draining.grace_s(now)
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
            for member in self._alive():
                self._hear(member, now)
                if member.is_stuck(now):
                    member.child.kill()
                if member.child.channel.is_ended:
                    self._reap(member)
                    if ending is None and not self._restart(member, now):
                        ending = self._drain(Ending.CRASHED, now)
            self._spread(now)
            if now >= self._next_poll:
                self._poll(now)
                stats = self.stats(now)
                self._limits.check(stats)
                self._run.show(stats, now - began)
            if ending is None:
                finished = self._poll_idle()
                ending = self._limits.ending(now - began, is_spent=False) or finished
                if ending is not None:
                    self._drain(ending, now)
            if ending is not None:
                self._end_workers(ending, now)
        return ending

    def _excuse(self, turn_s: float) -> None:
        """After a turn in which this process was stopped, its workers may need a moment, too."""
        if turn_s > STALLED_S:
            for member in self._alive():
                member.excuse(turn_s)

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
            for member in self._alive():
                member.child.kill()

    def acknowledge(self, page: Delivered) -> None:
        """Note that the program is done with a page. Any thread may call this."""
        self._acknowledged.put([page])

    def close(self, clock: Clock) -> None:
        """End all workers."""
        self._tell(End())
        by = clock.now() + STOP_S
        for member in self._alive():
            member.child.end(max(0.0, by - clock.now()))
            with suppress(StoreError):  # the first error that was reported ends the crawl
                self._hear(member, by)
            self._reap(member)
        self._selector.close()
        self._acknowledged.close()
        self._run.interrupts.waker = None
        self._waker.close()

    # ------------------------------------------------------------------ messages from workers

    def _hear(self, member: Member, now: Instant) -> None:
        for message in member.child.channel.receive():
            member.heard_at = now
            member.has_spoken = True
            self._take(member, message)

    def _take(self, member: Member, message: ToSupervisor) -> None:
        match message:
            case Report():
                member.report = message
                if message.news is not None and self._run.hear is not None:
                    self._run.hear(message.news)
                self._budget.reported(member.index, message.used)
            case Ask():
                self._budget.asked(member.index)
            case Returned(pages):
                self._budget.returned(member.index, pages)
            case Pages(pages):
                if self._run.pages is not None:
                    self._run.pages.put(pages)
            case Failed(error):
                require(self._run.store)  # else that is the cause, whatever a worker noticed of it
                raise error

    # ------------------------------------------------------------------ messages to workers

    def _tell(self, message: ToWorker) -> None:
        for member in self._alive():
            member.child.channel.send(message)

    def _spread(self, now: Instant) -> None:
        """Grant pages to the workers that asked for them, and send `Alive` when it is due."""
        self._pass_on_acknowledged()
        for index, pages in self._budget.grants():
            self._members[index].child.channel.send(GrantPages(pages))
        if now >= self._next_alive:
            self._next_alive = now + ALIVE_S
            self._tell(Alive())

    def _pass_on_acknowledged(self) -> None:
        tokens: dict[int, list[int]] = {}
        for page in self._acknowledged.take():
            tokens.setdefault(page.worker, []).append(page.token)
        for member in self._alive() if tokens else ():
            # A restarted worker has another number, and its tokens begin at 0 again.
            if member.worker in tokens:
                member.child.channel.send(Acknowledged(tokens[member.worker]))

    def _poll(self, now: Instant) -> None:
        """Read control records and recall unused pages: four times a second."""
        self._next_poll = now + WATCH_S
        self._limits.read_orders()
        for index in self._budget.recalls():
            if self._members[index].is_alive:
                self._members[index].child.channel.send(Recall())

    def _poll_idle(self) -> Ending | None:
        """Return the ending if all workers have answered and are idle; else begin a new round."""
        reports = [member.report for member in self._members]
        if any(report.round != self._round for report in reports):
            return None
        is_quiet = all(report.is_idle or report.has_only_unreachable for report in reports)
        received = [report.received for report in reports]
        if self._run.member is not None:
            if all(report.is_idle for report in reports):
                return Ending.FINISHED  # each has asked the store
            if all(report.is_spent and not report.in_flight for report in reports):
                return Ending.MAX_URLS
        elif is_quiet and received == self._received:
            if all(report.is_idle for report in reports):
                return Ending.FINISHED
            self._tell(GiveUpUnreachable())
        self._received = received if is_quiet else None
        is_spent = self._budget.is_spent
        if is_spent and self._was_spent and not any(report.in_flight for report in reports):
            return Ending.MAX_URLS
        self._was_spent = is_spent
        self._next_round()
        return None

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
        reports = [member.report for member in self._alive()]
        return (
            ending in (Ending.FINISHED, Ending.CRASHED)
            or self._draining.is_over(now, self._run.interrupts)
            or all(report.round == self._round and report.in_flight == 0 for report in reports)
        )

    def _trouble(self, now: Instant) -> str | None:
        """Return what the operator should know: a worker does not answer, or died."""
        if self._died is not None:
            return self._died
        return next((words for each in self._members if (words := each.trouble(now))), None)

    # ------------------------------------------------------------------ processes

    def _alive(self) -> list[Member]:
        return [member for member in self._members if member.is_alive]

    def _launch(self, member: Member, now: Instant, *, is_resumed: bool) -> None:
        self._launched += 1
        order = Start(
            self._run.store.location,
            self._run.settings,
            member.shards,
            is_resumed,
            delivers=self._run.pages is not None,
            worker=self._launched,
            watched=self._run.watched,
            member=None if self._run.member is None else self._run.member.of_process(member.index),
        )
        member.begin(Child(WORKER, order, directory=self._directory), self._launched, now)
        self._selector.register(member.child.channel, selectors.EVENT_READ)
        member.child.channel.send(Round(self._round))

    def _reap(self, member: Member) -> None:
        """Reap a worker that has ended, expected or not."""
        member.is_alive = False
        if self._run.pages is not None:
            self._run.pages.lost(member.worker)
        self._selector.unregister(member.child.channel)
        member.child.end(STOP_S)
        member.child.close()
        self._budget.died(member.index)
        self._received = None
        with suppress(StoreError):  # the heartbeat expires by itself
            self._run.store.retire(worker_id(member.child.pid))

    def _restart(self, member: Member, now: Instant) -> bool:
        """Replace a worker that ended; return False if its like died too often lately."""
        member.died(now)
        if len(member.deaths) > RESTARTS:
            if member.child.exit_status == OUT_OF_MEMORY:
                raise MemoryError
            self._died = (
                f"the worker process of shards {member.shards} died {len(member.deaths)} times "
                f"within an hour, lastly with {member.last_status}"
            )
            return False
        require(self._run.store)
        self._launch(member, now, is_resumed=True)
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
