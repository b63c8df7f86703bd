"""What a supervisor knows of one worker, without a process: the time is an argument."""

from __future__ import annotations

from mannerly.crawler.runtime.agreement import WorkProgress
from mannerly.crawler.runtime.coordinator import HEARTBEAT_S
from mannerly.crawler.runtime.ending import WATCH_S
from mannerly.crawler.runtime.messages import OUT_OF_MEMORY, Report
from mannerly.crawler.runtime.supervised import (
    FORGIVEN_S,
    NAMED_S,
    SILENT_S,
    STARTING_S,
    STUCK_S,
    WorkerProcess,
)
from mannerly.crawler.runtime.supervisor import ALIVE_S, STALLED_S
from mannerly.crawler.runtime.worker_process import SILENCE_S
from mannerly.crawler.stats import OldestRequest, Present, Stats, Waits
from mannerly.crawler.store.sqlite.crawl import HEARTBEAT_VALID_S


class Process:
    """A child process that has ended, or not."""

    def __init__(self, pid: int, exit_status: int | None = None) -> None:
        self.pid = pid
        self.exit_status = exit_status


def running(pid: int = 7, at: float = 0.0) -> WorkerProcess:
    worker = WorkerProcess(0, [0, 2])
    worker.begin(Process(pid), 1, at)  # type: ignore[arg-type]
    return worker


def test_a_silent_worker_is_named_and_then_stuck() -> None:
    """Eight seconds after its last report, and twenty."""
    worker = running()
    worker.heard_at, worker.has_spoken = 100.0, True

    assert worker.trouble(100.0 + SILENT_S - 0.1) is None
    assert "worker process 7 (shards [0, 2]) has not answered for 8 s" in str(
        worker.trouble(100.0 + SILENT_S)
    )
    assert not worker.is_stuck(100.0 + STUCK_S - 0.1)
    assert worker.is_stuck(100.0 + STUCK_S)


def test_a_silence_counts_only_while_its_supervisor_listens() -> None:
    """Both may have been stopped: the worker gets as much time afterwards as before."""
    worker = running()
    worker.heard_at, worker.has_spoken = 100.0, True
    worker.excuse(3600.0)

    assert not worker.is_stuck(3700.0 + STUCK_S - 0.1)
    assert worker.is_stuck(3700.0 + STUCK_S)


def test_a_worker_that_opens_its_store_may_take_long() -> None:
    """It has not spoken yet, so it is not named."""
    worker = running()

    assert worker.trouble(STUCK_S) is None
    assert not worker.is_stuck(STARTING_S - 0.1)
    assert worker.is_stuck(STARTING_S)


def test_a_death_is_named_for_a_while_and_forgiven_after_an_hour() -> None:
    """With the process that died, and how."""
    worker = running(pid=7)
    worker.child.exit_status = OUT_OF_MEMORY  # type: ignore[misc]
    worker.died(50.0)
    worker.begin(Process(8), 2, 50.0)  # type: ignore[arg-type]

    named = worker.trouble(50.0 + NAMED_S - 0.1)
    worker.child.exit_status = -9  # type: ignore[misc]
    worker.died(50.0 + FORGIVEN_S)

    assert "worker process 7 (shards [0, 2]) died with a lack of memory" in str(named)
    assert len(worker.deaths) == 1
    assert worker.last_status == "signal 9"


def test_the_totals_of_a_dead_worker_stay_and_its_troubles_go() -> None:
    """What it waited for is over; what it fetched is not."""
    worker = running()
    stats = Stats(fetched=5, now=Present(in_flight=3, queued=9, hosts=2, trouble="paused"))
    stats.now.waits = Waits(pace=2)
    stats.now.oldest = OldestRequest(9.0, 20.0, 1, 3)
    worker.report = Report(stats, 1, WorkProgress(in_flight=3), used=5)

    worker.begin(Process(8), 2, 10.0)  # type: ignore[arg-type]

    total = worker.stats
    assert (total.fetched, total.now.in_flight, total.now.queued, total.now.hosts) == (5, 0, 0, 0)
    assert (total.now.trouble, total.now.oldest, total.now.waits) == (None, None, Waits())


def test_times_of_processes_fit_each_other() -> None:
    """Neither side takes the other for silent because of one message that came late."""
    assert 2 * ALIVE_S <= SILENCE_S
    assert 2 * WATCH_S <= SILENCE_S < SILENT_S < STUCK_S < STARTING_S
    assert STALLED_S <= SILENCE_S  # a supervisor that was stopped excuses workers that paused
    assert 2 * HEARTBEAT_S <= HEARTBEAT_VALID_S
