"""Runs jobs: starts them when it is their turn, hears how they end, starts them again.

`tick(now)` does everything, and is called four times a second: it hears the processes, queues what
a schedule asks for, ends processes whose jobs were stopped, and starts the next ones. At most
`jobs` processes run at once; the others wait in the order in which they were queued.

A job whose process died without a word (killed, out of memory) is queued again and goes on from
its store, at most `RESTARTS` times in a row; then it has failed. One that the book calls running
and that has no process, because the service died, is queued again, too.

An error of one job (a full disk, for instance) does not affect the others:
`tick` does all it can, raises the first error in the end, and completes the work when it is called
again. A process is forgotten only when its end is in the book.
"""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Protocol

import msgspec

from mannerly.crawler.runtime.child import Child

from .kinds import KINDS
from .model import (
    CANCELLED,
    THROTTLE_DELAY_S,
    Job,
    JobEnd,
    JobEvent,
    JobOrder,
    JobReport,
    JobRun,
    JobState,
    StopJob,
    base_of,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats

    from .book import JobBook
    from .model import JobSpider, ToService

log = logging.getLogger("mannerly.service")

PROCESS = "mannerly.service.jobs.process"
RESTARTS = 5  # in a row, without a page in between
STOP_S = 10.0  # for a process to end that was told to; then it is killed, which its store survives
NO_SPIDERS: Mapping[str, JobSpider] = {}
KEPT_DATA = 3  # runs of a job whose data is kept


class JobProcess(Protocol):
    """The process of a job, as the runner sees it."""

    def messages(self) -> list[ToService]:
        """Return what it said since the last call."""

    def tell(self, message: StopJob) -> None:
        """Send a message to it."""

    @property
    def is_alive(self) -> bool: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


class _ChildProcess:
    """A job's process as a child of this one."""

    def __init__(self, order: JobOrder) -> None:
        self._child = Child(PROCESS, order)

    def messages(self) -> list[ToService]:
        return self._child.channel.receive()

    def tell(self, message: StopJob) -> None:
        self._child.channel.send(message)

    @property
    def is_alive(self) -> bool:
        return not self._child.channel.is_ended

    def kill(self) -> None:
        self._child.kill()

    def close(self) -> None:
        self._child.close()


class _Running:
    """A job that has a process."""

    def __init__(self, process: JobProcess, run: JobRun) -> None:
        self.process = process
        self.run = run
        self.report: JobReport | None = None
        self.end: JobEnd | None = None
        self.kill_at: float | None = None  # it was told to end


class JobRunner:
    """The jobs of a service that have a process, and those that wait for one."""

    def __init__(
        self,
        book: JobBook,
        root: Path,
        settings: CrawlSettings,
        *,
        jobs: int,
        failure_threshold: int,
        throttle_threshold: int = 0,
        throttle_delay_s: float = THROTTLE_DELAY_S,
        spiders: Mapping[str, JobSpider] = NO_SPIDERS,
        launch: Callable[[JobOrder], JobProcess] = _ChildProcess,
        reported: Callable[[Job, JobReport], None] | None = None,
        ended: Callable[[JobReport], None] | None = None,
        dispose: Callable[[Path, int], None] | None = None,
    ) -> None:
        self._book = book
        self._root = root
        self._settings = settings
        self._spiders = spiders
        self.jobs = jobs
        self._failure_threshold = failure_threshold
        self._throttle_threshold = throttle_threshold
        self._throttle_delay_s = throttle_delay_s
        self._launch = launch
        self._ended = ended  # called with the last report of a process
        self._dispose = dispose or remove_runs  # called with the data of old runs
        self._reported = reported  # called with every report of a job
        self._running: dict[str, _Running] = {}
        self._restarts: dict[str, int] = {}

    def tick(self, now: float) -> None:
        """Do everything that is due.

        Raises:
            Exception: something could not be done. All the rest was; the next tick tries again.
        """
        errors: list[Exception] = []

        def attempt(part: Callable[..., None], *arguments: object) -> None:
            try:
                part(*arguments, now)
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

        for job_id, running in list(self._running.items()):
            attempt(self._hear, job_id, running)
        attempt(self._queue_due)
        for job_id, running in list(self._running.items()):
            attempt(self._end_unwanted, job_id, running)
        attempt(self._start_waiting, attempt)
        if errors:
            raise errors[0]

    def close(self) -> None:
        """End all processes. Their jobs stay "running" in the book, and go on at the next start."""
        for running in self._running.values():
            running.process.tell(StopJob())
        for running in self._running.values():
            running.process.close()
        self._running.clear()

    def latest(self, job_id: str) -> JobReport | None:
        """Return the latest report of a job that runs."""
        running = self._running.get(job_id)
        return None if running is None else running.report

    def running_stats(self) -> list[Stats]:
        """Return the latest totals of the jobs that run."""
        return [each.report.stats for each in self._running.values() if each.report is not None]

    def location(self, job: Job) -> Path:
        """Return the data directory of a job's present run."""
        number = 1 if KINDS[job.kind].has_one_directory else job.run.number
        return self._root / job.id / f"run-{number}"

    def has_process(self, job_id: str) -> bool:
        """Return whether a process of this job is running or ending."""
        return job_id in self._running

    def is_on(self, job_id: str, run: int) -> bool:
        """Return whether a process works on this run of a job, or is ending."""
        running = self._running.get(job_id)
        return running is not None and running.run.number == run

    def remove_data(self, job: Job) -> None:
        """Delete everything that a job has written."""
        shutil.rmtree(self._root / job.id, ignore_errors=True)

    # ------------------------------------------------------------------ parts of a tick

    def _queue_due(self, now: float) -> None:
        """Queue what a schedule asks for, and jobs that are called running without a process."""
        for job in self._book.jobs(JobState.RUNNING):
            if job.id not in self._running:
                self._book.move(job.id, JobEvent.LOST, now=now)
        self._book.start_due(now)

    def _start_waiting(self, attempt: Callable[..., None], _now: float) -> None:
        waiting = self._book.jobs(JobState.QUEUED) if len(self._running) < self.jobs else []
        for job in waiting:
            if len(self._running) >= self.jobs:
                break
            if job.id not in self._running:  # else its last process is still ending
                attempt(self._start, job)

    # ------------------------------------------------------------------ one process

    def _start(self, job: Job, now: float) -> None:
        location = self.location(job)
        try:
            settings = settings_of(
                job.options, base_of(job.spider, self._spiders, self._settings), job.kind
            )
            location.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            order = JobOrder(
                job.kind,
                job.run.number,
                str(location),
                job.seeds,
                settings,
                job.host_concurrency,
                job.failure_threshold or self._failure_threshold,
                job.throttle_threshold or self._throttle_threshold,
                job.throttle_delay or self._throttle_delay_s,
                job.retries,
            )
            # A run that has begun is in the book before it has a process: if the book cannot be
            # written, nothing runs.
            run = msgspec.structs.replace(
                job.run, started_at=job.run.started_at or now, ended_at=None, state=None, error=None
            )
            self._book.move(job.id, JobEvent.STARTED, now=now, run=run)
            self._running[job.id] = _Running(self._launch(order), run)
        except (OSError, ValueError) as error:
            log.warning("job %s could not be started: %s", job.id, error)
            run = msgspec.structs.replace(job.run, ended_at=now, ending="error", error=str(error))
            self._book.move(job.id, JobEvent.FAILED, now=now, run=run)
            return
        if job.retries:
            self._book.change(job.id, lambda latest: msgspec.structs.replace(latest, retries=[]))
        if not KINDS[job.kind].has_one_directory:
            self._dispose(location.parent, job.run.number - KEPT_DATA)

    def _hear(self, job_id: str, running: _Running, now: float) -> None:
        reports = []
        for message in running.process.messages():
            if isinstance(message, JobEnd):
                running.end = message
            else:
                running.report = message
                reports.append(message)
                if message.stats.fetched:
                    self._restarts.pop(job_id, None)
        for report in reports:
            self._pass_on(job_id, report)
        if not running.process.is_alive:
            running.process.close()
            self._is_over(job_id, running, now)
            del self._running[job_id]
            if running.report is not None and self._ended is not None:
                self._ended(running.report)

    def _pass_on(self, job_id: str, report: JobReport) -> None:
        job = None if self._reported is None else self._book.get(job_id)
        if job is not None and self._reported is not None:
            self._reported(job, report)

    def _is_over(self, job_id: str, running: _Running, now: float) -> None:
        job, end = self._book.get(job_id), running.end
        if job is None:
            return
        if running.kill_at is not None:  # its job was stopped or paused, perhaps resumed since
            if end is not None:
                self._book.record(job_id, _ended(running.run, end, now))
            return
        if end is None:
            deaths = self._restarts.get(job_id, 0) + 1
            if deaths <= RESTARTS:
                self._book.move(job_id, JobEvent.LOST, now=now)
                self._restarts[job_id] = deaths
                return
            end = JobEnd("crashed", error=f"its process died {deaths} times in a row")
        event = JobEvent.FINISHED if end.is_complete else JobEvent.FAILED
        if end.ending == CANCELLED:
            event = JobEvent.CANCELLED
        self._book.move(job_id, event, now=now, run=_ended(running.run, end, now))
        self._restarts.pop(job_id, None)

    def _end_unwanted(self, job_id: str, running: _Running, now: float) -> None:
        """Tell a process to end if its job is not running any more, and kill one that does not."""
        job = self._book.get(job_id)
        if job is not None and job.state is JobState.RUNNING:
            return
        if running.kill_at is None:
            running.process.tell(StopJob())
            running.kill_at = now + STOP_S
        elif now >= running.kill_at:
            running.process.kill()


def remove_runs(directory: Path, latest: int) -> None:
    """Delete the data of a job's runs up to this number."""
    for path in directory.glob("run-*"):
        number = path.name.removeprefix("run-")
        if number.isdecimal() and int(number) <= latest:
            shutil.rmtree(path, ignore_errors=True)


def _ended(run: JobRun, end: JobEnd, now: float) -> JobRun:
    """Return a run with its result."""
    return JobRun(
        number=run.number,
        started_at=run.started_at,
        ended_at=now,
        ending=end.ending,
        fetched=end.fetched,
        failed=end.failed,
        pending=end.pending,
        given_up=end.given_up,
        error=end.error,
        counts=end.counts or {},
    )
