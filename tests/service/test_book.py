"""The book of jobs: changes that were asked for earlier undo nothing that happened since."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request
from tests.service.jobs import FINISHED, Desk

from mannerly.crawler.settings import CrawlSettings
from mannerly.service.jobs.model import JobEnd, JobEvent, JobRun, JobState, NewJob
from mannerly.service.jobs_api import JobsApi
from mannerly.service.operations import Problem
from mannerly.service.service import Service

if TYPE_CHECKING:
    from pathlib import Path

HOOK = "https://hook.example/"


def request_to(job_id: str, body: object, meanwhile: Any) -> Request:
    """Return a request whose body arrives after something else has happened."""

    async def receive() -> dict[str, Any]:
        meanwhile()
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    scope = {"type": "http", "method": "PATCH", "headers": [], "path_params": {"id": job_id}}
    return Request(scope, receive)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("change", {"options": {"max_rate": 2}}),
        ("add_seeds", {"urls": ["https://b.example/"]}),
    ],
)
def test_run_that_ends_while_a_request_arrives_keeps_its_result(
    tmp_path: Path, operation: str, body: object
) -> None:
    """Its counts, and the undelivered webhook; the change is made as well."""
    service = Service(tmp_path, CrawlSettings())
    book = service.book
    job = service.create(NewJob(seeds=["https://a.example/"], webhook=HOOK))
    book.move(job.id, JobEvent.STARTED, now=1.0)

    def ends() -> None:
        run = JobRun(number=1, ended_at=2.0, ending="finished", fetched=7)
        assert book.move(job.id, JobEvent.FINISHED, now=2.0, run=run)

    asyncio.run(getattr(JobsApi(service), operation)(request_to(job.id, body, ends)))

    found = book.get(job.id)
    assert found is not None
    assert (found.state, found.run.fetched) == (JobState.FINISHED, 7)
    assert [run.fetched for run in found.undelivered] == [7]
    assert (len(found.seeds), found.options.get("max_rate")) in ((2, None), (1, 2))


@pytest.mark.parametrize("again", [False, True])
def test_result_of_a_stopped_run_is_that_of_its_own_run(tmp_path: Path, again: bool) -> None:
    """Also when the next run was asked for before its process had ended."""
    desk = Desk(tmp_path)
    job = desk.add(webhook=HOOK)
    desk.tick()
    desk.started[0].obeys = False
    desk.book.move(job, JobEvent.STOPPED, now=desk.now)
    desk.tick()
    if again:
        desk.book.run_again(job, now=desk.now)

    desk.started[0].ends(JobEnd("stopped", fetched=4))
    desk.tick()

    (kept,) = desk.book.runs(job)
    assert (kept.number, kept.fetched, kept.state) == (1, 4, JobState.STOPPED)
    assert desk.job(job).undelivered == [kept]
    assert desk.job(job).run == (JobRun(number=2, started_at=desk.now) if again else kept)


def test_cancelled_job_has_a_state_and_a_count(tmp_path: Path) -> None:
    """It is neither stopped by the operator nor failed, and it can be resumed."""
    desk = Desk(tmp_path)
    job = desk.add()
    desk.tick()

    desk.started[0].ends(JobEnd("cancelled", error="20 answers in a row were 429"))
    desk.tick()

    assert desk.job(job).state is JobState.CANCELLED
    assert desk.book.ends == {JobState.CANCELLED: 1}
    assert desk.book.move(job, JobEvent.RESUMED, now=desk.now)


def test_only_the_host_that_was_named_is_retried(tmp_path: Path) -> None:
    """A job that has ended retries at its next start what was asked for, once."""
    service = Service(tmp_path / "service", CrawlSettings())
    job = service.create(NewJob(seeds=["https://a.example/"]))
    service.move(job.id, JobEvent.STOPPED)

    asyncio.run(
        JobsApi(service).retry(request_to(job.id, {"host": "https://A.example/x"}, lambda: None))
    )

    found = service.book.get(job.id)
    assert found is not None
    assert (found.state, found.retries) == (JobState.QUEUED, ["a.example"])


def test_retries_are_handed_to_the_process_once(tmp_path: Path) -> None:
    """The run after it retries nothing by itself."""
    desk = Desk(tmp_path)
    job = desk.add(retries=["a.example"])

    desk.tick()
    desk.started[0].ends(FINISHED)
    desk.tick()
    desk.book.run_again(job, now=desk.now)
    desk.tick()

    assert [process.order.retries for process in desk.started] == [["a.example"], []]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": ["http://10.0.0.1/"]}, "seeds"),
        ({"seeds": ["https://a.example/"], "schedule": "daily"}, "schedule"),
        ({"seeds": ["https://a.example/"], "name": ""}, "name"),
        ({"seeds": ["https://a.example/"], "options": {"max_urls": -1}}, "options.max_urls"),
        ({"seeds": ["https://a.example/"], "options": {"proxy": "x"}}, "options.proxy"),
        ({"seeds": ["https://a.example/"], "throttle_delay": 0}, "throttle_delay"),
        ({"seeds": ["https://a.example/"], "webhook": "ftp://a/"}, "webhook"),
        ({"seeds": ["https://a.example/"], "host_concurrency": {"a b": 1}}, "host_concurrency"),
    ],
)
def test_problem_names_the_field_that_is_wrong(
    tmp_path: Path, request_: dict[str, object], field: str
) -> None:
    """So that a form can show it where it was typed."""
    service = Service(tmp_path, CrawlSettings())

    with pytest.raises(Problem) as raised:
        asyncio.run(JobsApi(service).create(request_to("", request_, lambda: None)))

    assert (raised.value.status, raised.value.field) == (400, field)
    assert json.loads(bytes(raised.value.response().body))["field"] == field
    assert service.book.jobs() == []
