"""A worker as a process of its own, with messages to and from its supervisor.

It opens the crawl's store by its location and is the only owner of its shards. It reports four
times a second, and at once when it is asked and has nothing under way. Signals are handled by the
supervisor. When the supervisor is gone, the channel ends: the worker then commits what came in and
ends within a turn of the loop. If no message comes for `SILENCE_S` (the supervisor was stopped by
Ctrl-Z, for instance), the worker starts no request.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import StoreError
from mannerly.politeness.clock import MonotonicClock

from .agreement import WorkProgress
from .budget import PageBudget
from .coordinator import coordinator_of
from .ending import WATCH_S
from .engine import TICK_S
from .messages import (
    OUT_OF_MEMORY,
    Acknowledged,
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
)
from .worker import Worker

if TYPE_CHECKING:
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.politeness.model import Instant

    from .child import Channel
    from .messages import ToWorker

SILENCE_S = 2.0  # twice ALIVE_S, the longest time between two messages of a supervisor


class _Conversation:
    """A worker's side of the channel to its supervisor."""

    def __init__(self, worker: Worker, channel: Channel) -> None:
        self._worker = worker
        self._engine = worker.engine
        self._budget = worker.coordinator.budget
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
            self._worker.poll(now)
            if now >= self._next_report or self._is_asked:
                self._report_if_due(now)

    def last_report(self) -> Report:
        """Return the report for the end of the process."""
        return self._report(WorkProgress())

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
            case GiveUpUnreachable():
                self._engine.give_up_unreachable()
            case Drain():
                self._engine.drain()
            case End():
                self._is_over = True
            case GrantPages(pages):
                self._budget.granted(pages)
            case Recall():
                self._channel.send(Returned(self._budget.recalled()))
            case Acknowledged(tokens):
                self._worker.acknowledge(tokens)

    def _report_if_due(self, now: Instant) -> None:
        progress = self._worker.progress
        if not progress.is_idle and self._engine.is_idle:
            self._engine.hurry()  # there is something in an inbox, and nothing else to do
        is_quiet = progress.is_idle or (self._engine.is_draining and progress.in_flight == 0)
        if now < self._next_report and not is_quiet:
            return
        if self._channel.has_unsent:
            return  # the supervisor does not read: send the next report when it does
        self._next_report, self._is_asked = now + WATCH_S, False
        self._channel.send(self._report(progress))

    def _report(self, progress: WorkProgress) -> Report:
        worker = self._worker
        events = None if worker.events is None else worker.events.take()
        return Report(worker.stats(), self._round, progress, self._budget.used, events)


def _worker(store: CrawlStore, order: Start, channel: Channel) -> Worker:
    if order.membership is not None:
        assert store.fleet is not None, "only a crawl that can be shared has members"
        store.fleet.join(order.membership.data_dir, order.membership.segments)
    budget = PageBudget(0, ask=lambda: channel.send(Ask()))
    return Worker(
        store,
        order.settings,
        coordinator_of(store, order.membership, order.shards, budget),
        is_resumed=order.is_resumed,
        deliver=(lambda pages: channel.send(Pages(pages))) if order.delivers else None,
        number=order.worker,
        watched=order.watched,
    )


def main(channel: Channel) -> None:
    """Run a worker process until its supervisor ends it."""
    order: Start = channel.wait()
    try:
        store = open_crawl(order.location)
        try:
            _work(store, order, channel)
        finally:
            store.close()
    except (StoreError, OSError) as error:
        channel.send(Failed(error))
    except MemoryError:  # a new process may have more: the supervisor starts one
        os._exit(OUT_OF_MEMORY)


def _work(store: CrawlStore, order: Start, channel: Channel) -> None:
    worker = _worker(store, order, channel)
    conversation = _Conversation(worker, channel)
    try:
        conversation.serve()
    except BaseException:
        worker.abandon(with_process=True)
        raise
    worker.close(with_process=True)
    channel.send(conversation.last_report())
