"""The HTTP API of jobs: one function for each operation, JSON in and out.

    POST   /api/jobs                      GET /api/jobs[?state=…]
    GET    /api/jobs/{id}                 PATCH, DELETE /api/jobs/{id}
    POST   /api/jobs/{id}/pause, resume, stop, retry, seeds
    GET    /api/jobs/{id}/status, hosts, explain, pages
    PATCH  /api/jobs/{id}/hosts/{host}

A request is decoded into a value of `model` first, so that unknown fields and wrong types are
refused with the path of the field. Reading a store may take long: it is done in a thread.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from mannerly.crawler.inspection.hosts import HostSort
from mannerly.crawler.store.base import StoreError, StoreMissing
from mannerly.crawler.stored import open_crawl
from mannerly.exports import export

from .jobs.model import CHANGEABLE, Job, NewJob
from .jobs.states import ENDED, JobEvent, JobState
from .problems import Problem, bad_request, not_found

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request

    from mannerly.crawler.inspection.hosts import HostLine
    from mannerly.crawler.stored import StoredCrawl

    from .service import Service

MOST_HOSTS = 1000  # in one answer
PAGE_FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv"}

T = TypeVar("T")


class Operation(NamedTuple):
    """One operation of the API; the first line of its function's docstring describes it."""

    method: str
    path: str
    handler: Callable[[Request], Awaitable[Response]]
    request: type | None = None  # the JSON that it takes
    answer: type | None = None  # the JSON that it returns; None: described in words
    status: HTTPStatus = HTTPStatus.OK
    query: tuple[str, ...] = ()

    def route(self) -> Route:
        """Return the route of starlette."""
        return Route(self.path, self.handler, methods=[self.method])


class NewSeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seeds for a job that exists."""

    urls: list[str]


class JobChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New values of options of a job: max_rate, max_urls, duration, workers, exclude."""

    options: dict[str, Any]


class HostChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New values for one host of a job; those that are left out stay as they are."""

    paused: bool | None = None
    delay_s: float | None = None
    max_rate: float | None = None
    per_host: int | None = None
    forget: bool = False


class JobsApi:
    """The operations of the API on one service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        """Return all operations: the routes and the OpenAPI document are made of them."""
        one = "/api/jobs/{id}"
        return [
            Operation("POST", "/api/jobs", self.create, NewJob, Job, HTTPStatus.CREATED),
            Operation("GET", "/api/jobs", self.jobs, query=("state",)),
            Operation("GET", one, self.job, None, Job),
            Operation("PATCH", one, self.change, JobChange, Job),
            Operation("DELETE", one, self.delete, status=HTTPStatus.NO_CONTENT),
            Operation("POST", f"{one}/pause", self.pause, None, Job),
            Operation("POST", f"{one}/resume", self.resume, None, Job),
            Operation("POST", f"{one}/stop", self.stop, None, Job),
            Operation("POST", f"{one}/retry", self.retry, None, Job),
            Operation("POST", f"{one}/seeds", self.add_seeds, NewSeeds, Job),
            Operation("GET", f"{one}/status", self.status),
            Operation("GET", f"{one}/hosts", self.hosts, query=("sort", "limit", "after")),
            Operation(
                "PATCH",
                f"{one}/hosts/{{host}}",
                self.change_host,
                HostChange,
                status=HTTPStatus.NO_CONTENT,
            ),
            Operation("GET", f"{one}/explain", self.explain, query=("url",)),
            Operation("GET", f"{one}/pages", self.pages, query=("format",)),
        ]

    # ------------------------------------------------------------------ jobs

    async def create(self, request: Request) -> Response:
        """Create a job; it is started when it is its turn."""
        wanted = await _decoded(request, NewJob)
        with _wrong_values():
            job = self._service.create(wanted)
        return _json(self._described(job), HTTPStatus.CREATED, {"Location": f"/api/jobs/{job.id}"})

    async def jobs(self, request: Request) -> Response:
        """List all jobs, or those in the states that are named."""
        states = []
        for text in request.query_params.getlist("state"):
            try:
                states.append(JobState(text))
            except ValueError:
                raise bad_request(f"state is {text!r}; allowed: {', '.join(JobState)}") from None
        return _json({"jobs": [self._described(job) for job in self._service.book.jobs(*states)]})

    async def job(self, request: Request) -> Response:
        """Describe a job, with its latest runs."""
        job = self._job(request)
        runs = msgspec.to_builtins(self._service.book.runs(job.id))
        return _json({**self._described(job), "runs": runs})

    async def change(self, request: Request) -> Response:
        """Change options of a job, whether it runs or not."""
        job = self._job(request)
        change = await _decoded(request, JobChange)
        for name in change.options:
            if name not in CHANGEABLE:
                raise bad_request(f"{name} cannot be changed; allowed: {', '.join(CHANGEABLE)}")
        with _wrong_values():
            job = self._service.change(job, change.options)
        return _json(self._described(job))

    async def delete(self, request: Request) -> Response:
        """Delete a job that has ended, with its data."""
        job = self._job(request)
        if job.state not in ENDED or self._service.runner.has_process(job.id):
            raise Problem(HTTPStatus.CONFLICT, f"the job is {job.state}: stop it first")
        await run_in_threadpool(self._service.runner.remove_data, job)
        self._service.book.remove(job.id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def pause(self, request: Request) -> Response:
        """Pause a job: its process ends, and it goes on when it is resumed."""
        return self._moved(request, JobEvent.PAUSED)

    async def resume(self, request: Request) -> Response:
        """Let a job go on that was paused or has ended."""
        return self._moved(request, JobEvent.RESUMED)

    async def stop(self, request: Request) -> Response:
        """Stop a job; it can be resumed."""
        return self._moved(request, JobEvent.STOPPED)

    async def retry(self, request: Request) -> Response:
        """Queue URLs again that failed or were given up, and let the job go on."""
        self._service.retry(self._job(request))
        return _json(self._described(self._job(request)))

    async def add_seeds(self, request: Request) -> Response:
        """Add seeds to a job."""
        job = self._job(request)
        wanted = await _decoded(request, NewSeeds)
        with _wrong_values():
            self._service.add_seeds(job, wanted.urls)
        return _json(self._described(self._job(request)))

    # ------------------------------------------------------------------ a job's crawl

    async def status(self, request: Request) -> Response:
        """Return what `mannerly status --json` prints for the job's crawl."""
        status = await self._read(request, lambda crawl: crawl.status())
        return _json(status._asdict())

    async def hosts(self, request: Request) -> Response:
        """List hosts of a job: `sort`, `limit` (50), and `after`, the `next` of an answer."""
        query = request.query_params
        sort = query.get("sort", HostSort.QUEUED.value)
        limit = _number(query.get("limit"), "limit", default=50, most=MOST_HOSTS)
        after = _number(query.get("after"), "after", default=0, most=10**9)
        with _wrong_values():
            lines = await self._read(request, lambda crawl: crawl.hosts(sort, after + limit + 1))
        shown = [_host(line) for line in lines[after : after + limit]]
        more = str(after + limit) if len(lines) > after + limit else None
        return _json({"hosts": shown, "next": more})

    async def change_host(self, request: Request) -> Response:
        """Pause, resume or set the pace of one host of a job."""
        change = await _decoded(request, HostChange)
        if change == HostChange():
            raise bad_request("nothing to change: give paused, delay_s, max_rate, per_host, forget")

        def apply(crawl: StoredCrawl) -> None:
            host = crawl.host(request.path_params["host"])
            pace = (change.delay_s, change.max_rate, change.per_host)
            if any(value is not None for value in pace):
                host.set(delay_s=change.delay_s, max_rate=change.max_rate, per_host=change.per_host)
            if change.paused is not None:
                host.pause() if change.paused else host.resume()
            if change.forget:
                host.forget()

        with _wrong_values():
            await self._read(request, apply)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def explain(self, request: Request) -> Response:
        """Explain the state of one URL of a job."""
        url = request.query_params.get("url")
        if not url:
            raise bad_request("name the URL: ?url=https://example.org/page")
        with _wrong_values():
            found = await self._read(request, lambda crawl: crawl.explain(url))
        return _json(found._asdict())

    async def pages(self, request: Request) -> Response:
        """Return the records of all pages so far: `format` jsonl (default) or csv."""
        fmt = request.query_params.get("format", "jsonl")
        if fmt not in PAGE_FORMATS:
            raise bad_request(f"format is {fmt!r}; allowed: {', '.join(PAGE_FORMATS)}")
        directory = Path(await run_in_threadpool(mkdtemp, prefix="mannerly-"))
        file = directory / f"pages.{fmt}"
        gone = BackgroundTask(shutil.rmtree, directory, ignore_errors=True)
        try:
            await self._read(request, lambda crawl: export(crawl.location, str(file)))
        except BaseException:
            await gone()
            raise
        return FileResponse(file, media_type=PAGE_FORMATS[fmt], filename=file.name, background=gone)

    # ------------------------------------------------------------------ helpers

    def _job(self, request: Request) -> Job:
        job = self._service.book.get(request.path_params["id"])
        if job is None:
            raise not_found("job with this id")
        return job

    def _moved(self, request: Request, event: JobEvent) -> Response:
        job = self._job(request)
        if not self._service.move(job.id, event):
            raise Problem(HTTPStatus.CONFLICT, f"a job that is {job.state} cannot be {event.value}")
        return _json(self._described(self._job(request)))

    def _described(self, job: Job) -> dict[str, Any]:
        described: dict[str, Any] = msgspec.to_builtins(job)
        latest = self._service.runner.stats(job.id)
        if latest is not None:
            stats, elapsed_s = latest
            described["run"] |= {
                "fetched": stats.fetched,
                "failed": sum(stats.failed.values()),
                "pending": stats.queued,
                "seconds": round(elapsed_s, 3),
            }
        return described

    async def _read(self, request: Request, ask: Callable[[StoredCrawl], T]) -> T:
        """Ask the store of a job's crawl something, in a thread."""
        location = self._service.runner.location(self._job(request))

        def read() -> T:
            with open_crawl(location) as crawl:
                return ask(crawl)

        try:
            return await run_in_threadpool(read)
        except StoreMissing:
            raise Problem(HTTPStatus.CONFLICT, "the job has not been started yet") from None
        except StoreError as error:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error


@contextmanager
def _wrong_values() -> Iterator[None]:
    """Turn a ValueError into a problem."""
    try:
        yield
    except ValueError as error:
        raise bad_request(str(error)) from error


async def _decoded(request: Request, shape: type[T]) -> T:
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise bad_request(f"the JSON of this request is wrong: {error}") from error


def _number(text: str | None, name: str, *, default: int, most: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise bad_request(f"{name} is {text!r}; allowed: a whole number up to {most:,}")
    return int(text)


def _host(line: HostLine) -> dict[str, Any]:
    return {**line.record._asdict(), "queued": line.queued, "given_up": line.given_up}


def _json(
    value: object,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    return Response(
        msgspec.json.encode(value), status, headers=headers, media_type="application/json"
    )
