"""The values of jobs: requests, jobs with their runs, states, answers, messages to processes.

A request is untrusted: its options are an allow-list (`Option.for_jobs`), and none of them opens
the network, reads or writes a file, or runs code. Everything is checked before a job exists.

A job with a cron expression is due in local time; `cronsim` reads the expression. An instant is due
once: the book keeps the last one that was served, in the transaction that queues the run. Instants
that passed while the service was down, or while the run before was still going, are served once
together, not each.

The states of a job, and the events that change them, are one table:

    state      event      → state      meaning of the event
    queued     started    running      its process was started
    queued     paused     paused       by the operator
    queued     stopped    stopped      by the operator
    queued     failed     failed       it could not be started
    running    paused     paused       its process is told to end; it can go on
    running    stopped    stopped      the same
    running    finished   finished     its crawl has ended by itself
    running    failed     failed       the crawl ended with work left, or too many URLs failed
    running    cancelled  cancelled    its hosts answered with 429 too often
    running    lost       queued       its process or the service died: it goes on when it can
    paused     resumed    queued       by the operator
    paused     stopped    stopped      by the operator
    finished   resumed    queued       run again: retried, or due by its schedule
    failed     resumed    queued       the same
    stopped    resumed    queued       the same
    cancelled  resumed    queued       the same

Every other event is late: a process that ends after its job was stopped changes nothing. A paused
or stopped job has no process (after the grace of the requests under way), so nothing of it has to
be kept in memory, and a restart of the service finds it as it was.

This module is long because it has every value of a job, and the checks of a request for one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping  # noqa: TC003 - msgspec reads them at run time
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from cronsim import CronSim, CronSimError

from mannerly.crawler.inspection.hosts import host_key
from mannerly.crawler.options.table import OPTIONS, main_name
from mannerly.crawler.options.values import Given, OptionError, from_keywords, nearest
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.crawler.web.seeds import canonical_seeds

from .kinds import KINDS, JobKind

if TYPE_CHECKING:
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


class JobEvent(StrEnum):
    """Something that happened to a job."""

    STARTED = "started"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


_S, _E = JobState, JobEvent
TRANSITIONS: dict[JobState, dict[JobEvent, JobState]] = {
    _S.QUEUED: {
        _E.STARTED: _S.RUNNING,
        _E.PAUSED: _S.PAUSED,
        _E.STOPPED: _S.STOPPED,
        _E.FAILED: _S.FAILED,
    },
    _S.RUNNING: {
        _E.PAUSED: _S.PAUSED,
        _E.STOPPED: _S.STOPPED,
        _E.FINISHED: _S.FINISHED,
        _E.FAILED: _S.FAILED,
        _E.CANCELLED: _S.CANCELLED,
        _E.LOST: _S.QUEUED,
    },
    _S.PAUSED: {_E.RESUMED: _S.QUEUED, _E.STOPPED: _S.STOPPED},
    _S.FINISHED: {_E.RESUMED: _S.QUEUED},
    _S.FAILED: {_E.RESUMED: _S.QUEUED},
    _S.STOPPED: {_E.RESUMED: _S.QUEUED},
    _S.CANCELLED: {_E.RESUMED: _S.QUEUED},
}

# States in which nothing more happens until the operator, or its schedule, asks for it.
ENDED = frozenset({JobState.FINISHED, JobState.FAILED, JobState.STOPPED, JobState.CANCELLED})


def after(state: JobState, event: JobEvent) -> JobState | None:
    """Return the state after an event; None if the event is late and changes nothing."""
    return TRANSITIONS[state].get(event)


class ScheduleError(ValueError):
    """The text is not a cron expression."""


def check_schedule(text: str) -> None:
    """Check a cron expression.

    Raises:
        ScheduleError: it is none, or it is never due.
    """
    next_due(text, 0.0)


def next_due(text: str, after: float) -> float:
    """Return the first instant after a wall time at which a cron expression is due.

    Raises:
        ScheduleError: it is no cron expression, or it is never due.
    """
    try:
        dues = (due.timestamp() for due in CronSim(text, datetime.fromtimestamp(after)))  # noqa: DTZ006
        # When clocks are put back, an hour of local time comes twice, and its first one counts.
        return next(due for due in dues if due > after)
    except (CronSimError, StopIteration) as error:
        raise ScheduleError(
            f"{text!r} is not a cron expression: write five fields, minute hour day month weekday, "
            'such as "0 3 * * *" for every day at 3:00'
        ) from error


FAILURE_THRESHOLD = 20  # URLs in a row that failed: then a job has failed
THROTTLE_DELAY_S = 60.0  # the wait after which an answer 429 counts for `throttle_threshold`
MAX_SEEDS = 10_000
MAX_NAME = 200
MAX_AT_ONCE = 64  # requests to one host

# Options of `crawl` that a request may set. The others are the operator's: they open the network,
# write files, run code, take the machine, or turn pacing off.
ALLOWED = tuple(name for name, option in OPTIONS.items() if option.for_jobs)


class FieldError(ValueError):
    """A value of a request is wrong; `field` is its place, such as seeds or options.max_urls."""

    def __init__(self, words: str, field: str) -> None:
        super().__init__(words)
        self.field = field


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Name the place of a value in the errors that it causes."""
    try:
        yield
    except FieldError:
        raise
    except ValueError as error:
        raise FieldError(str(error), field) from error


class NewJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A request for a job.

    Attributes:
        kind: what to do with the seeds: crawl, recrawl, check or warm (`kinds`).
        seeds: URLs to start from; with a spider they take the place of its own.
        spider: the name of a spider that the operator has installed; for crawl and recrawl.
        options: options of `mannerly crawl`, by their names with underscores.
        name: for people; the first seed's host by default.
        schedule: a cron expression; without one the job is run once.
        host_concurrency: requests at once for single hosts, instead of `per_host`.
        failure_threshold: the job fails after so many URLs in a row that ended in an error after
            their retries, in an answer of 400 or above, or with their host given up; the service's
            own threshold by default. Jobs that check links do not fail of it.
        throttle_threshold: the job is cancelled after so many answers 429 in a row that led to a
            long wait; the service's own threshold by default, which is 0: never.
        throttle_delay: the shortest of these waits, in seconds; the service's own by default: 60.
        webhook: a URL that gets a POST with the job when a run has ended.
    """

    seeds: list[str] = []
    kind: JobKind = JobKind.CRAWL
    spider: str | None = None
    options: dict[str, Any] = {}
    name: str | None = None
    schedule: str | None = None
    host_concurrency: dict[str, int] = {}
    failure_threshold: int | None = None
    throttle_threshold: int | None = None
    throttle_delay: float | None = None
    webhook: str | None = None


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job, from its start to its end; a resumed run is the same run."""

    number: int
    started_at: float | None = None
    ended_at: float | None = None
    state: JobState | None = None  # of the job, when this run had ended
    ending: str | None = (
        None  # finished, max_urls, max_requests, duration, stopped, no_seed, failed …
    )
    fetched: int = 0
    failed: int = 0
    pending: int = 0
    given_up: int = 0
    error: str | None = None  # in words
    counts: dict[str, int] = {}  # of its kind: broken and other links, new and changed pages


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the book keeps it."""

    id: str
    kind: JobKind
    name: str
    seeds: list[str]
    options: dict[str, Any]
    state: JobState
    created_at: float
    queued_at: float  # its place in the queue
    run: JobRun
    spider: str | None = None
    schedule: str | None = None
    next_due: float | None = None  # of its schedule
    host_concurrency: dict[str, int] = {}
    failure_threshold: int | None = None
    throttle_threshold: int | None = None
    throttle_delay: float | None = None
    webhook: str | None = None
    # Ended runs whose webhook is not delivered yet, oldest first; files and answers call it `owed`.
    undelivered: list[JobRun] = msgspec.field(name="owed", default_factory=list)
    wants_run: bool = False  # another run was asked for while this one is going
    # Hosts whose URLs that failed or were given up are queued when it starts again; None: all.
    retries: list[str | None] = []


class JobSpider(NamedTuple):
    """A spider that the operator has installed: `serve --spider NAME=FILE[:NAME]`."""

    place: str  # FILE:NAME
    seeds: tuple[str, ...]
    given: Mapping[str, Given]  # options

    def over(self, base: CrawlSettings) -> CrawlSettings:
        """Return the operator's settings with those of the spider on top."""
        return with_options(base, {**self.given, "extract": Given(self.place, "--spider")})


SPIDER_KINDS = (JobKind.CRAWL, JobKind.RECRAWL)


def base_of(
    spider: str | None, spiders: Mapping[str, JobSpider], base: CrawlSettings
) -> CrawlSettings:
    """Return the settings that the options of a job change.

    Raises:
        FieldError: no spider has this name.
    """
    if spider is None:
        return base
    if spider not in spiders:
        known = ", ".join(spiders) or "none"
        raise FieldError(f"{spider!r} is no spider of this service (there are: {known})", "spider")
    return spiders[spider].over(base)


def new_job(request: NewJob, *, now: float, next_due: float | None) -> Job:
    """Return a job that waits for its turn, from a checked request."""
    from mannerly.crawler.web.urls import host_key_of

    seeds = canonical_seeds(request.seeds)
    more = f" and {len(seeds) - 1:,} more" if len(seeds) > 1 else ""
    return Job(
        id=secrets.token_urlsafe(12),
        kind=request.kind,
        name=request.name or host_key_of(seeds[0]) + more,
        seeds=seeds,
        options=request.options,
        state=JobState.QUEUED,
        created_at=now,
        queued_at=now,
        run=JobRun(number=1),
        spider=request.spider,
        schedule=request.schedule,
        next_due=next_due,
        host_concurrency=request.host_concurrency,
        failure_threshold=request.failure_threshold,
        throttle_threshold=request.throttle_threshold,
        throttle_delay=request.throttle_delay,
        webhook=request.webhook,
    )


def check_request(request: NewJob, base: CrawlSettings) -> CrawlSettings:
    """Return the settings that a request asks for, on top of those of its spider.

    Raises:
        FieldError: a seed, an option or another value is wrong; the text says which, and why.
    """
    with naming("seeds"):
        seeds = _checked_seeds(request.seeds)
    if request.spider is not None and request.kind not in SPIDER_KINDS:
        raise FieldError(f"a spider is for jobs of kind {', '.join(SPIDER_KINDS)}", "spider")
    if request.name is not None and not 0 < len(request.name) <= MAX_NAME:
        raise FieldError(f"name must have 1 to {MAX_NAME} characters", "name")
    if request.schedule is not None:
        with naming("schedule"):
            check_schedule(request.schedule)
    for name in ("failure_threshold", "throttle_threshold"):
        threshold = getattr(request, name)
        if threshold is not None and threshold < 1:
            raise FieldError(f"{name} must be at least 1", name)
    if request.throttle_delay is not None and not 0 < request.throttle_delay < inf:
        raise FieldError("throttle_delay must be a number of seconds above 0", "throttle_delay")
    with naming("host_concurrency"):
        for host, count in request.host_concurrency.items():
            host_key(host)  # raises ValueError
            if not 1 <= count <= MAX_AT_ONCE:
                raise ValueError(f"host_concurrency of {host!r} must be 1 to {MAX_AT_ONCE}")
    for name, value in request.options.items():
        with naming(f"options.{name}"):
            settings_of({name: value}, base, request.kind)
    with naming("options"):
        settings = settings_of(request.options, base, request.kind)
    with naming("seeds"):
        settings.scope_of(seeds)
    return settings


def _checked_seeds(urls: list[str]) -> list[str]:
    if not urls:
        raise ValueError("seeds is empty: give at least one URL")
    if len(urls) > MAX_SEEDS:
        raise ValueError(f"seeds has {len(urls):,} URLs; at most {MAX_SEEDS:,}")
    return canonical_seeds(urls)


def settings_of(
    options: Mapping[str, Any], base: CrawlSettings, kind: JobKind = JobKind.CRAWL
) -> CrawlSettings:
    """Return the settings of a job: the operator's, changed by its kind and its request.

    Raises:
        OptionError: an option is unknown or not allowed, or its value is wrong.
    """
    for name in options:
        if main_name(name) in ALLOWED:
            continue
        if main_name(name) in OPTIONS:
            raise OptionError(f"{name} is an option of the operator, not of a job")
        raise OptionError(f"{name} is not an option of a job{nearest(name, ALLOWED)}")
    own = KINDS[kind].settings
    return with_options(base if own is None else own(base), from_keywords(options))


# How a crawl ends that did what was asked of it.
COMPLETE = ("finished", "max_urls", "max_requests", "duration")
CANCELLED = "cancelled"  # its hosts answered with nothing but 429


class JobOrder(NamedTuple):
    """Everything that the process of a job gets."""

    kind: JobKind
    run: int  # its number; the first is 1
    location: str
    seeds: list[str]
    settings: CrawlSettings
    host_concurrency: dict[str, int]
    failure_threshold: int  # URLs in a row that ended in an error; 0: any number
    throttle_threshold: int  # answers 429 in a row at a long wait; 0: any number
    throttle_delay_s: float  # the shortest of these waits
    retries: list[str | None]  # hosts whose failed and given-up URLs are queued; None: all


class StopJob(NamedTuple):
    """From the service: wait for requests under way as long as the grace is, then end."""


class JobReport(NamedTuple):
    """From the process, twice a second: the totals of this run so far."""

    stats: Stats
    elapsed_s: float
    batches: list[EventBatch]  # what happened since the last report


class JobEnd(NamedTuple):
    """The last message of the process. `error` says in words why the job failed."""

    ending: str
    fetched: int = 0
    failed: int = 0
    pending: int = 0
    given_up: int = 0
    error: str | None = None
    counts: dict[str, int] | None = None  # of this kind of job: broken links, changed pages

    @property
    def is_complete(self) -> bool:
        """Return whether the crawl did what was asked of it."""
        return self.error is None and self.ending in COMPLETE


ToService: TypeAlias = JobReport | JobEnd
