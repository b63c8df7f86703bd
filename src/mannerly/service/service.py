"""The service behind the API: its jobs, the runner of them, and what an operation does to both."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.crawler.fetch.guard import AddressVerdict, NetworkGuard, split_origin
from mannerly.crawler.inspection.hosts import host_key
from mannerly.crawler.stats import Stats
from mannerly.crawler.store import exists
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.sqlite.lock import OwnerLock
from mannerly.crawler.stored import open_crawl
from mannerly.crawler.web.seeds import canonical_seeds
from mannerly.live.meter import LimitUse, added_up, limits_of
from mannerly.politeness.clock import MonotonicClock

from .background import Background
from .jobs.book import JobBook
from .jobs.model import (
    ENDED,
    FAILURE_THRESHOLD,
    THROTTLE_DELAY_S,
    JobEvent,
    JobState,
    base_of,
    check_request,
    naming,
    new_job,
    next_due,
    settings_of,
)
from .jobs.runner import NO_SPIDERS, JobRunner, remove_runs
from .live_crawl import LiveCrawl
from .metrics import Reading
from .operations import not_found
from .webhook import Webhooks, check_webhook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    from mannerly.crawler.inspection.status import Status
    from mannerly.crawler.settings import CrawlSettings

    from .jobs.model import Job, JobReport, JobSpider, NewJob

TICK_S = 0.25


class Service:
    """The jobs in one directory. One process at a time has it.

    Args:
        root: the directory; it is made if need be.
        settings: of every crawl, as far as its job does not change them. Their `allow_net` is what
            the operator allows: seeds of a job open nothing.
        jobs: how many run at once.
        spiders: by name, those that jobs may have.

    Raises:
        StoreError: another service has the directory, or its file cannot be used.
    """

    def __init__(
        self,
        root: Path,
        settings: CrawlSettings,
        *,
        jobs: int = 2,
        failure_threshold: int = FAILURE_THRESHOLD,
        throttle_threshold: int = 0,
        throttle_delay_s: float = THROTTLE_DELAY_S,
        webhook_secret: str | None = None,
        spiders: Mapping[str, JobSpider] = NO_SPIDERS,
    ) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = OwnerLock(root / "lock", what=root)
        self.settings = settings
        self.spiders = spiders
        self.book = JobBook(root / "jobs.db")
        self.background = Background()
        self._removes = ThreadPoolExecutor(1, "removes")  # a large directory takes seconds
        self._live: dict[str, LiveCrawl] = {}
        self._past = Stats()  # totals of processes that have ended
        self.runner = JobRunner(
            self.book,
            root,
            settings,
            jobs=jobs,
            failure_threshold=failure_threshold,
            throttle_threshold=throttle_threshold,
            throttle_delay_s=throttle_delay_s,
            spiders=spiders,
            reported=self._report,
            ended=self._add_up,
            dispose=self._dispose,
        )
        self._guard = NetworkGuard((), settings.allow_net)
        self._webhooks = Webhooks(self.book, self._guard, webhook_secret, self.runner.is_on)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run jobs and send webhooks meanwhile; at the end, end the processes of all jobs.

        They go on at the next start.
        """
        self.background.repeat("jobs", self._run_jobs, TICK_S)
        self.background.repeat("webhooks", self._send_webhooks, TICK_S)
        try:
            yield
        finally:
            await self.background.close()
            self._webhooks.close()
            self._removes.shutdown(wait=False, cancel_futures=True)
            self.runner.close()
            self.book.close()
            self._lock.release()

    async def _run_jobs(self) -> None:
        self.runner.tick(time.time())

    async def _send_webhooks(self) -> None:
        self._webhooks.tick(MonotonicClock().now())

    # ------------------------------------------------------------------ operations

    def create(self, wanted: NewJob) -> Job:
        """Create a job.

        Raises:
            ValueError: the request is wrong; the text says what.
        """
        base = base_of(wanted.spider, self.spiders, self.settings)
        if wanted.spider is not None and not wanted.seeds:
            seeds = list(self.spiders[wanted.spider].seeds)
            wanted = msgspec.structs.replace(wanted, seeds=seeds)
        check_request(wanted, base)
        with naming("seeds"):
            self._check_seeds(wanted.seeds)
        if wanted.webhook is not None:
            with naming("webhook"):
                check_webhook(wanted.webhook, self._guard)
        now = time.time()
        due = None if wanted.schedule is None else next_due(wanted.schedule, now)
        job = new_job(wanted, now=now, next_due=due)
        self.book.add(job)
        return job

    def move(self, job_id: str, event: JobEvent) -> bool:
        """Apply an event to a job; return whether it changed anything."""
        return self.book.move(job_id, event, now=time.time())

    def run_again(self, job_id: str) -> None:
        """Begin another run of a job, now or when its present one has ended."""
        self.book.run_again(job_id, now=time.time())

    def live(self, job_id: str) -> LiveCrawl:
        """Return what the page shows of a job's present run.

        Raises:
            Problem: there is no such job.
        """
        job = self.book.get(job_id)
        if job is None:
            raise not_found("job with this id")
        live = self._live_of(job)
        if not self.runner.has_process(job.id):
            live.ended()
            live.stored(job.state.value, self._status(job), time.time(), words=job.run.error or "")
        return live

    def totals(self) -> Stats:
        """Return the totals of all jobs that run or ran since the service was started."""
        total = Stats()
        for stats in (self._past, *self.runner.running_stats()):
            total.add(stats)
        return total

    def reading(self) -> Reading:
        """Return totals, limits and jobs, for metrics."""
        jobs = Counter(job.state.value for job in self.book.jobs())
        live = [self._live[each] for each in self._live if self.runner.has_process(each)]
        limits = {
            "jobs": LimitUse(self.runner.jobs, jobs[JobState.RUNNING.value]),
            **added_up(each.limit_uses() for each in live),
        }
        states = {state.value: jobs[state.value] for state in JobState}
        ends = {state.value: self.book.ends[state] for state in sorted(ENDED)}
        return Reading(self.totals(), limits, time.time(), states, ends, self.background.health())

    def forget(self, job: Job) -> None:
        """Delete a job from the book."""
        self.book.remove(job.id)
        self._live.pop(job.id, None)

    def retry(self, job: Job, host: str | None = None) -> None:
        """Queue URLs of a job again that failed or were given up, and let the job go on.

        Raises:
            ValueError: `host` is not the name of a host.
        """
        host = None if host is None else host_key(host)
        if job.state is JobState.RUNNING:
            with open_crawl(self.runner.location(job)) as crawl:
                crawl.retry(host=host)
            return
        self.book.change(
            job.id, lambda known: msgspec.structs.replace(known, retries=[*known.retries, host])
        )
        self.move(job.id, JobEvent.RESUMED)

    def add_seeds(self, job: Job, urls: list[str]) -> None:
        """Add seeds to a job.

        Raises:
            ValueError: one of them is not a URL, or leads into a private network.
        """
        seeds = canonical_seeds(urls)
        self._check_seeds(seeds)
        location = self.runner.location(job)
        if exists(location):
            with open_crawl(location) as crawl:
                crawl.add(seeds)

        def apply(known: Job) -> Job:
            return msgspec.structs.replace(known, seeds=list(dict.fromkeys([*known.seeds, *seeds])))

        self.book.change(job.id, apply)

    def change(self, job: Job, options: dict[str, Any]) -> Job:
        """Change options of a job.

        Raises:
            ValueError: an option cannot be changed, or its value is wrong.
        """
        settings_of(_merged(job.options, options), self._base(job), job.kind)  # raises OptionError
        location = self.runner.location(job)
        if exists(location):
            with open_crawl(location) as crawl:
                crawl.set(**options)
        changed = self.book.change(
            job.id,
            lambda known: msgspec.structs.replace(known, options=_merged(known.options, options)),
        )
        return changed or job

    def _live_of(self, job: Job) -> LiveCrawl:
        location = str(self.runner.location(job))
        live = self._live.get(job.id)
        if live is None or live.location != location:
            # Runs of a spider that is gone can be read: only a start needs it.
            base = self._base(job) if job.spider in self.spiders else self.settings
            limits = limits_of(settings_of(job.options, base, job.kind))
            live = self._live[job.id] = LiveCrawl(job.name, location, limits)
        return live

    def _base(self, job: Job) -> CrawlSettings:
        return base_of(job.spider, self.spiders, self.settings)

    def _status(self, job: Job) -> Status | None:
        """Return the state of a job's crawl; None if it has not begun or cannot be read."""
        try:
            with open_crawl(self.runner.location(job)) as crawl:
                return crawl.status()
        except StoreError:
            return None

    def _report(self, job: Job, report: JobReport) -> None:
        live, now = self._live_of(job), time.time()
        for batch in report.batches:
            live.hear(batch, now)
        live.report(report.stats, report.elapsed_s, now)

    def _add_up(self, report: JobReport) -> None:
        self._past.add(report.stats.ended())

    def _dispose(self, directory: Path, latest: int) -> None:
        self._removes.submit(remove_runs, directory, latest)

    def _check_seeds(self, urls: Iterable[str]) -> None:
        """Refuse addresses and ports that the operator has not allowed.

        Names pass: the address that they lead to is judged when it is connected.
        """
        for url in canonical_seeds(list(urls)):
            origin = split_origin(url)
            if origin is None:
                raise ValueError(f"{url!r} is not an http or https URL")
            verdict = self._guard.judge_host(origin[1], origin[2])
            if verdict is not AddressVerdict.ALLOWED:
                raise ValueError(
                    f"{url} leads to a private address or an unusual port: the operator has to "
                    "allow it with --allow-net"
                )


def _merged(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with changes; None removes one."""
    merged = {**options, **changes}
    return {name: value for name, value in merged.items() if value is not None}
