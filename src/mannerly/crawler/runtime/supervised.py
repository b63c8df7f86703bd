"""One worker process of a run, as its supervisor sees it: its totals and its deaths.

A worker reports four times a second. One that gives no sign of life is named after `SILENT_S` and
counts as stuck after `STUCK_S`; one that died is named for `NAMED_S`, and its deaths are forgotten
after `FORGIVEN_S`. This module kills and starts nothing, and reads no clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.stats import Stats

from .agreement import WorkProgress
from .messages import OUT_OF_MEMORY, Report

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

    from .child import Child

RESTARTS = 5  # of one worker within FORGIVEN_S; after that the run ends
FORGIVEN_S = 3600.0
SILENT_S = 8.0  # without a report: it is named
STUCK_S = 20.0  # and then it is killed and replaced
STARTING_S = 120.0  # the same for one that is just opening its store
NAMED_S = 10.0  # so long it is said that a worker died


class WorkerProcess:
    """One process with some shards, and its predecessors with the same shards."""

    child: Child

    def __init__(self, index: int, shards: list[int]) -> None:
        self.index = index
        self.shards = shards
        self.deaths: list[Instant] = []  # lately
        self.last_status = ""  # of the last one that died, in words
        self.heard_at: Instant = 0.0
        self.has_spoken = False  # it may take long to open a large store
        self.number = 0  # the number of its present process
        self.is_alive = False
        self._past = Stats()  # totals of its predecessors
        self._died_pid = 0
        self.report = _nothing_yet()

    @property
    def stats(self) -> Stats:
        """The totals of this process and its predecessors."""
        total = Stats()
        total.add(self._past)
        total.add(self.report.stats)
        return total

    def begin(self, child: Child, number: int, now: Instant) -> None:
        """Continue with a new process; keep the totals of the one before."""
        self.number = number
        self._past.add(_totals(self.report.stats))
        self.report = _nothing_yet()
        self.child = child
        self.heard_at, self.has_spoken = now, False
        self.is_alive = True

    def died(self, now: Instant) -> None:
        """Count the end of a process that was not ended by its supervisor."""
        self.deaths = [at for at in self.deaths if now - at < FORGIVEN_S] + [now]
        self._died_pid = self.child.pid
        self.last_status = _status_words(self.child.exit_status)

    def excuse(self, seconds: float) -> None:
        """Do not count a time in which its supervisor could not listen."""
        self.heard_at += seconds

    def is_stuck(self, now: Instant) -> bool:
        """Return whether it gives no sign of life: it is killed then, and replaced."""
        return now - self.heard_at >= (STUCK_S if self.has_spoken else STARTING_S)

    def trouble(self, now: Instant) -> str | None:
        """Return a sentence if it died lately, or does not answer."""
        if self.deaths and now - self.deaths[-1] < NAMED_S:
            return (
                f"worker process {self._died_pid} (shards {self.shards}) died with "
                f"{self.last_status} and is replaced; after {RESTARTS} deaths within an hour the "
                "next one ends the run"
            )
        silent_s = now - self.heard_at
        if self.is_alive and self.has_spoken and silent_s >= SILENT_S:
            return (
                f"worker process {self.child.pid} (shards {self.shards}) has not answered for "
                f"{silent_s:.0f} s; after {STUCK_S:.0f} s it is replaced"
            )
        return None


def _nothing_yet() -> Report:
    return Report(Stats(), -1, WorkProgress(), used=0)


def _totals(stats: Stats) -> Stats:
    """Return what is still true of a process that is gone: what it did, not how it stood."""
    return replace(stats.ended(), hosts_known=0)


def _status_words(status: int | None) -> str:
    if status == OUT_OF_MEMORY:
        return "a lack of memory"
    return f"signal {-status}" if status is not None and status < 0 else f"status {status}"
