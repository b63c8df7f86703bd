"""The part of the API that is about jobs: create, list, change, move and delete them.

POST   /api/jobs                      GET /api/jobs[?state=…]
GET    /api/jobs/{id}                 PATCH, DELETE /api/jobs/{id}
POST   /api/jobs/{id}/pause, resume, stop, retry, run, seeds
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from mannerly.crawler.options.table import CHANGEABLE, main_name

from .jobs.model import ENDED, Job, JobEvent, JobState, NewJob
from .operations import (
    Operation,
    Problem,
    bad_request,
    decoded,
    json_answer,
    not_found,
    wrong_values,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from .service import Service


SHOWN_MOVES = 20


class NewSeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seeds for a job that exists."""

    urls: list[str]


class JobChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New values of options of a job: max_rate, max_urls, duration, concurrency, exclude."""

    options: dict[str, Any]


class WhatToRetry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """URLs that are queued again: those that failed or were given up, of one host or of all."""

    host: str | None = None


def check_changes(change: JobChange) -> None:
    """Refuse options that cannot be changed while a crawl exists."""
    for name in change.options:
        if main_name(name) not in CHANGEABLE:
            raise bad_request(f"{name} cannot be changed; allowed: {', '.join(CHANGEABLE)}")


class JobsApi:
    """The operations on the jobs of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        """Return all operations."""
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
            Operation("POST", f"{one}/retry", self.retry, WhatToRetry, Job),
            Operation("POST", f"{one}/run", self.run, None, Job),
            Operation("POST", f"{one}/seeds", self.add_seeds, NewSeeds, Job),
        ]

    async def create(self, request: Request) -> Response:
        """Create a job; it is started when it is its turn."""
        wanted = await decoded(request, NewJob)
        with wrong_values():
            job = self._service.create(wanted)
        place = {"Location": f"/api/jobs/{job.id}"}
        return json_answer(self._described(job), HTTPStatus.CREATED, place)

    async def jobs(self, request: Request) -> Response:
        """List all jobs, or those in the states that are named."""
        states = []
        for text in request.query_params.getlist("state"):
            try:
                states.append(JobState(text))
            except ValueError:
                raise bad_request(f"state is {text!r}; allowed: {', '.join(JobState)}") from None
        jobs = self._service.book.jobs(*states)
        return json_answer({"jobs": [self._described(job) for job in jobs]})

    async def job(self, request: Request) -> Response:
        """Describe a job, with its latest runs and changes of state, the latest first."""
        job = self._job(request)
        book = self._service.book
        runs, moves = book.runs(job.id), book.moves(job.id, SHOWN_MOVES)
        more = msgspec.to_builtins({"runs": runs, "moves": moves})
        return json_answer({**self._described(job), **more})

    async def change(self, request: Request) -> Response:
        """Change options of a job, whether it runs or not."""
        change = await decoded(request, JobChange)
        check_changes(change)
        with wrong_values():
            job = self._service.change(self._job(request), change.options)
        return json_answer(self._described(job))

    async def delete(self, request: Request) -> Response:
        """Delete a job that has ended, with its data."""
        job = self._job(request)
        if job.state not in ENDED or self._service.runner.has_process(job.id):
            raise Problem(HTTPStatus.CONFLICT, f"the job is {job.state}: stop it first")
        await run_in_threadpool(self._service.runner.remove_data, job)
        self._service.forget(job)
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
        wanted = await decoded(request, WhatToRetry)
        with wrong_values():
            self._service.retry(self._job(request), wanted.host)
        return json_answer(self._described(self._job(request)))

    async def run(self, request: Request) -> Response:
        """Begin another run of a job, now or when its present run has ended: for webhooks."""
        self._service.run_again(self._job(request).id)
        return json_answer(self._described(self._job(request)))

    async def add_seeds(self, request: Request) -> Response:
        """Add seeds to a job."""
        wanted = await decoded(request, NewSeeds)
        with wrong_values():
            self._service.add_seeds(self._job(request), wanted.urls)
        return json_answer(self._described(self._job(request)))

    def _job(self, request: Request) -> Job:
        job = self._service.book.get(request.path_params["id"])
        if job is None:
            raise not_found("job with this id")
        return job

    def _moved(self, request: Request, event: JobEvent) -> Response:
        job = self._job(request)
        if not self._service.move(job.id, event):
            raise Problem(HTTPStatus.CONFLICT, f"a job that is {job.state} cannot be {event.value}")
        return json_answer(self._described(self._job(request)))

    def _described(self, job: Job) -> dict[str, Any]:
        described: dict[str, Any] = msgspec.to_builtins(job)
        latest = self._service.runner.latest(job.id)
        if latest is not None:
            stats, elapsed_s = latest.stats, latest.elapsed_s
            described["run"] |= {
                "fetched": stats.fetched,
                "failed": sum(stats.failed.values()),
                "pending": stats.now.queued,
                "seconds": round(elapsed_s, 3),
            }
        return described
