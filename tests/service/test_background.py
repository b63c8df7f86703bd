"""Background tasks go on after any error, and the server says which of them fails, and why."""

from __future__ import annotations

import asyncio
import resource
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.waiting import eventually
from tests.service.running import ServiceProcess
from tests.service.test_serve import SLOW

from mannerly.crawler.store.base import StoreFull
from mannerly.demo import DemoWeb, plain_sites
from mannerly.live.meter import Limits
from mannerly.service.app import dashboard_app
from mannerly.service.background import (
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    Background,
    RepeatedStep,
    TaskHealth,
)
from mannerly.service.dashboard import OneCrawlApi
from mannerly.service.live_crawl import LiveCrawl
from mannerly.service.server import LastAnswers

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

INTERVAL_S = 0.25


class Steps:
    """A step that raises each of these in turn; None: it succeeds."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.done = asyncio.Event()

    async def __call__(self) -> None:
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if outcome is not None:
            raise outcome
        self.done.set()


def test_failed_step_is_repeated_after_longer_and_longer_waits() -> None:
    """Up to a bound, whatever was raised; the first success ends the waits and the failure."""
    errors = [StoreFull("no room"), *(ZeroDivisionError() for _ in range(5))]
    task = RepeatedStep("jobs", Steps(*errors), INTERVAL_S)

    async def run() -> list[tuple[float, str | None]]:
        return [(await task.attempt(), task.error) for _ in range(7)]

    waits, reasons = zip(*asyncio.run(run()), strict=True)

    assert waits == (FIRST_WAIT_S, 2.0, 4.0, 8.0, LONGEST_WAIT_S, LONGEST_WAIT_S, INTERVAL_S)
    assert reasons == ("no room", *["ZeroDivisionError"] * 5, None)
    assert task.failures == 6


def test_task_that_fails_keeps_no_other_from_its_steps() -> None:
    """Each is named with its reason while it fails, and counted for good."""

    async def run() -> dict[str, TaskHealth]:
        background, fine = Background(), Steps()
        background.repeat("jobs", Steps(StoreFull("no room")), INTERVAL_S)
        background.repeat("webhooks", fine, INTERVAL_S)
        await fine.done.wait()
        try:
            return background.health()
        finally:
            await background.close()

    assert asyncio.run(run()) == {"jobs": (1, "no room"), "webhooks": (0, None)}


def test_readiness_names_the_task_that_fails(tmp_path: Path) -> None:
    """With the reason, as long as it fails; the process is alive all the same."""
    live = LiveCrawl("c", str(tmp_path), Limits())

    async def run() -> list[tuple[int, bytes]]:
        ending = LastAnswers()
        api = OneCrawlApi(live, ending)
        app, fine = dashboard_app(api, ending), Steps()
        api.background.repeat("hosts", Steps(StoreFull("no room")), INTERVAL_S)
        api.background.repeat("orders", fine, INTERVAL_S)
        before = await asked(app, "/readyz")
        await fine.done.wait()
        try:
            return [before, await asked(app, "/readyz"), await asked(app, "/healthz")]
        finally:
            await api.background.close()

    before, during, alive = asyncio.run(run())

    assert (before[0], during[0], alive[0]) == (200, 503, 200)
    assert b'"not working: hosts: no room"' in during[1]


async def asked(app: ASGIApp, path: str) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    sent: list[Any] = []
    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


@pytest.mark.processes
def test_service_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    """A job that ends meanwhile ends in the book, too, once the book can be written."""
    unlimited = (resource.RLIM_INFINITY,) * 2
    with DemoWeb(plain_sites(1, pages=30)) as web, ServiceProcess(tmp_path / "jobs") as service:
        job = service.create(web.url("plain-0"), options={**SLOW, "delay": 0.2, "max_urls": 5})
        eventually(lambda: len(web.log()) >= 2)

        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        eventually(lambda: service.call("GET", "/readyz")[0] == 503)
        refused = service.call("GET", "/readyz")
        created = service.call("POST", "/api/jobs", {"seeds": [web.url("plain-0")]})
        alive = service.call("GET", "/healthz")[0]
        counted = service.call("GET", "/metrics")[1].decode()
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, unlimited)
        eventually(lambda: service.call("GET", "/readyz")[0] == 200)
        described = service.call("GET", f"/api/jobs/{job}")[1]

    assert refused[1]["detail"].startswith("not working: jobs: no room to write")
    assert (created[0], alive) == (507, 200)
    assert "free some disk space" in created[1]["detail"]
    assert 'mannerly_background_working{task="jobs"} 0.0' in counted
    assert (described["state"], described["run"]["fetched"]) == ("finished", 5)
