"""The division of a crawl among processes, as one of these processes sees it.

    a run of one process      has all shards and the whole limit of pages      `FixedShards`
    a process of a supervisor has the same shards always; the supervisor       `FixedShards`
                              grants pages, and restarts it when it dies
    a member of a fleet       claims and releases shards of the store, which   `FleetMember`
                              grants pages; no process is above members

A `Worker` asks its coordinator the same questions in each case: which shards are mine, how many
pages may I start, is it the end, what of the other processes. Its engine knows only the answers:
shards come and go, and a `PageBudget` has pages or not.

This module is cheap to import.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.store.base import StoreError, StoreFull

from .ending import WATCH_S, require
from .messages import worker_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.crawler.store.fleet import StoreAway
    from mannerly.politeness.model import Instant

    from .budget import PageBudget
    from .worker import Worker

HEARTBEAT_S = 1.0  # between two signs of life in the store
CHECK_S = 2.0  # between two checks that the crawl's directory was not removed: files stay open
HEARTBEAT_FAILURES = 5  # in a row that are tolerated: the crawl matters more


class Coordinator(ABC):
    """Tells one process of a crawl its shards, its pages and the end of the work."""

    budget: PageBudget  # the pages that this process may start
    first: Sequence[int] = ()  # the shards that it begins with
    orders_s = WATCH_S  # between two polls for control records

    @property
    @abstractmethod
    def id(self) -> str:
        """Return the name of this process among all of the crawl, on all machines."""

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Return whether there is nothing to do any more, as far as this process knows."""

    @property
    def has_only_unreachable(self) -> bool:
        """Return whether nothing is left but unreachable hosts (`agreement`).

        It is asked only while the work is not finished. A coordinator that returns False sees to it
        by itself.
        """
        return False

    def join(self, worker: Worker) -> None:
        """Coordinate this worker from now on."""
        self._worker = worker

    @abstractmethod
    def keep(self, now: Instant) -> None:
        """Keep what this process has: show that it lives, and drop what it has lost."""

    def share(self, now: Instant) -> None:  # noqa: B027 - only where something is shared
        """Take and hand over shards and pages, and find out about the end, each when it is due."""

    def store_away(self, error: StoreAway) -> None:
        """Note that the store does not answer; raise what ends the run."""
        raise error

    def leave(self) -> None:  # noqa: B027 - only where another process waits for it
        """Give back what was not used: the run ends, and what has come in is committed."""

    def describe(self, stats: Stats) -> None:  # noqa: B027 - a worker knows most of it
        """Add what this coordinator knows to the totals of the process."""


class FixedShards(Coordinator):
    """Shards that belong to one process for a whole run: all of them, or those of one of several.

    Their files are locked while it lives, so nothing has to be renewed.
    """

    def __init__(self, shards: Sequence[int], budget: PageBudget) -> None:
        self.first = shards
        self.budget = budget
        self._next_heartbeat = self._next_check = -inf
        self._failures = 0

    @property
    def id(self) -> str:
        """Return the name of this process."""
        return worker_id(os.getpid())

    def keep(self, now: Instant) -> None:
        """Show a sign of life, and see whether the crawl is still there.

        Raises:
            StoreError: the crawl's directory was removed, or a shard's store failed: no other
                process would work on it.
        """
        engine = self._worker.engine
        if engine.away is not None:
            raise engine.away
        if engine.dropped:
            raise StoreError(f"shard {engine.dropped[0].number} was lost")
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_S
            self._show()
        if now >= self._next_check:
            self._next_check = now + CHECK_S
            require(self._worker.store)

    def _show(self) -> None:
        try:
            self._worker.store.renew(self._worker.heartbeat())
            self._failures = 0
        except StoreFull:
            pass  # the engine waits for room and reports that
        except StoreError:
            self._failures += 1
            if self._failures >= HEARTBEAT_FAILURES:
                raise

    @property
    def is_finished(self) -> bool:
        """Return whether there is nothing to do, nothing in the inboxes and no order to act on."""
        engine = self._worker.engine
        return engine.is_idle and not engine.dropped and self._has_no_input

    @property
    def has_only_unreachable(self) -> bool:
        """Return whether nothing but unreachable hosts is left, and no input."""
        return self._worker.engine.has_only_unreachable and self._has_no_input

    @property
    def _has_no_input(self) -> bool:
        worker = self._worker
        unread = any(worker.store.unread(each) for each in worker.engine.shards.by_number)
        return not unread and not worker.orders.has_news  # they may add seeds


class Membership(NamedTuple):
    """The place of a run in a crawl that several runs share."""

    data_dir: Path  # of this run alone
    segments: Path | None = None  # where page records go; None: to the data directory
    store_patience_s: float = 300.0  # with a server that cannot be reached
    shards: int = 64  # of a crawl that does not exist yet

    def of_process(self, index: int) -> Membership:
        """Return the place of one of several processes: a member of its own, in a directory below.

        Processes of one run know nothing of each other, as those of several machines.
        """
        return self._replace(data_dir=self.data_dir / f"process-{index}")


def coordinator_of(
    store: CrawlStore, membership: Membership | None, shards: Sequence[int], budget: PageBudget
) -> Coordinator:
    """Return the coordinator of one process: of `shards` and `budget`, if it is in no fleet."""
    if membership is None:
        return FixedShards(shards, budget)
    from .fleet_member import FleetMember

    assert store.fleet is not None, "only a crawl that can be shared has members"
    return FleetMember(store.fleet, membership.store_patience_s)
