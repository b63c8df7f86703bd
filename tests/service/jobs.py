"""Jobs and processes for tests: a process that does what the test says, in no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.stats import Stats
from mannerly.crawler.store.base import StoreFull
from mannerly.service.jobs.book import JobBook
from mannerly.service.jobs.model import (
    JobEnd,
    JobOrder,
    JobReport,
    NewJob,
    StopJob,
    new_job,
    next_due,
)
from mannerly.service.jobs.runner import JobRunner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mannerly.service.jobs.model import Job, JobEvent, JobRun, ToService

FINISHED = JobEnd("finished", fetched=3)


class FakeProcess:
    """A job's process: it ends when the test says so, or when it is told to."""

    def __init__(self, order: JobOrder) -> None:
        self.order = order
        self.is_alive = True
        self.is_told = self.is_killed = False
        self.obeys = True
        self._said: list[ToService] = []

    def reports(self, fetched: int) -> None:
        self._said.append(JobReport(Stats(fetched=fetched), 1.0, []))

    def ends(self, end: JobEnd | None = FINISHED) -> None:
        """End with these last words; None: it was killed."""
        self._said += [] if end is None else [end]
        self.is_alive = False

    def messages(self) -> list[ToService]:
        said, self._said = self._said, []
        return said

    def tell(self, _message: StopJob) -> None:
        self.is_told = True
        if self.obeys:
            self.ends(JobEnd("stopped", fetched=1, pending=5))

    def kill(self) -> None:
        self.is_killed = True
        self.ends(None)

    def close(self) -> None:
        self.is_alive = False


class FillingBook(JobBook):
    """A book whose disk is full while the test says so."""

    is_full = False

    def move(self, job_id: str, event: JobEvent, *, now: float, run: JobRun | None = None) -> bool:
        if self.is_full:
            raise StoreFull("no room")
        return super().move(job_id, event, now=now, run=run)


class Desk:
    """A book, a runner whose processes are fakes, and a clock that the test turns."""

    def __init__(self, root: Path, *, jobs: int = 2) -> None:
        self.now = 1000.0
        self.book = FillingBook(root / "jobs.db")
        self.started: list[FakeProcess] = []
        self.runner = JobRunner(
            self.book, root, CrawlSettings(), jobs=jobs, failure_threshold=20, launch=self._launch
        )

    def _launch(self, order: JobOrder) -> FakeProcess:
        self.started.append(FakeProcess(order))
        return self.started[-1]

    def add(
        self,
        name: str = "a",
        schedule: str | None = None,
        webhook: str | None = None,
        retries: Sequence[str] = (),
    ) -> str:
        """Create a job; return its id."""
        self.now += 1.0
        seeds = [f"https://{name}.example/"]
        wanted = NewJob(seeds=seeds, name=name, schedule=schedule, webhook=webhook)
        due = None if schedule is None else next_due(schedule, self.now)
        job = new_job(wanted, now=self.now, next_due=due)
        job = msgspec.structs.replace(job, retries=list(retries))
        self.book.add(job)
        return job.id

    def tick(self, after_s: float = 0.25) -> None:
        self.now += after_s
        self.runner.tick(self.now)

    def job(self, job_id: str) -> Job:
        job = self.book.get(job_id)
        assert job is not None
        return job

    def running(self) -> list[str]:
        """Return the names of the hosts whose processes are alive, in the order of their start."""
        alive = [process for process in self.started if process.is_alive]
        return [process.order.seeds[0].split("/")[2].split(".")[0] for process in alive]
