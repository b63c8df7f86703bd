"""The end of a live page and of a service, while requests are under way: none is answered 500."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.commands import SOURCE_PATH, run
from tests.harness.waiting import PATIENCE_S, eventually
from tests.service.asking import (
    Asked,
    children,
    ended,
    frozen_report,
    never_reading,
    page_of,
    page_process,
)
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.asking import Answer

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are frozen"),
]

THIS = "/api/jobs/this"
READS = ("hosts", "status", "errors", "queue", "proof", "history")


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A crawl that has ended."""
    directory = str(tmp_path_factory.mktemp("ended") / "c")
    with DemoWeb(plain_sites(3, pages=10)) as web:
        done = run("crawl", *web.seeds(), "--data-dir", directory, "--max-rate", "100")
    assert done.returncode == 0, done.stderr
    return directory


def is_problem(answer: Answer) -> bool:
    """Return whether a request was refused in words that a client can read."""
    return (
        answer.status == 503
        and answer.kind == "application/problem+json"
        and "ended" in json.loads(answer.body)["detail"]
    )


def test_report_under_way_is_refused_in_words(location: str) -> None:
    """A report that takes longer than the end of the crawl: 503, and its process is gone."""
    with (
        page_of(location) as (child, address),
        frozen_report(address, f"{THIS}/report", child.pid) as asked,
    ):
        writers = children(child.pid)

        status = ended(child)

        assert is_problem(asked.answer())
        assert status == 0
        assert not any(map(Crawler.is_alive, writers))


def test_requests_of_the_last_instant_get_their_answers(location: str) -> None:
    """Sixty reads that arrive together with the end: each is answered, or its connection closed."""
    with page_of(location) as (child, address):
        os.kill(child.pid, signal.SIGSTOP)
        asked = [Asked(address, f"{THIS}/{READS[n % len(READS)]}") for n in range(60)]
        child.channel.close()
        os.kill(child.pid, signal.SIGCONT)

        statuses = {each.answer().status for each in asked}
        status = ended(child)

    assert statuses <= {200, 503, None}
    assert 200 in statuses
    assert status == 0


def test_event_streams_end_whole(location: str) -> None:
    """The last piece of a stream says that it is the last: no browser calls it an error."""
    with page_of(location) as (child, address), Asked(address, f"{THIS}/events") as stream:
        first = stream.first_line()

        status = ended(child)
        answer = stream.answer()

    assert first.startswith(b"data: ")
    assert answer.is_whole
    assert status == 0


def test_reads_of_a_store_that_hangs_are_refused_in_words(tmp_path: Path) -> None:
    """The server of the crawl answers no more: the page ends all the same, and says why."""
    with LocalServer() as server, DemoWeb(plain_sites(1, pages=3)) as web:
        named = ("--redis-url", server.url, "--crawl", "slow", "--data-dir", str(tmp_path))
        done = run("crawl", *web.seeds(), *named, "--max-rate", "100")
        assert done.returncode == 0, done.stderr
        with page_of(f"{server.url}#slow") as (child, address):
            with Asked(address, f"{THIS}/hosts") as asked:
                assert asked.answer().status == 200
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            waiting = [Asked(address, f"{THIS}/{what}") for what in READS[:5]]
            child.channel.close()

            answers = [each.answer() for each in waiting]

    assert all(answer.status in (503, None) for answer in answers), answers


def test_reader_that_never_reads_does_not_hold_the_page(location: str) -> None:
    """Answers that nobody takes are dropped, and the process ends by itself."""
    path, times = "/static/vendor/uPlot.iife.min.js", 400  # 20 MB: more than all buffers hold
    with page_of(location) as (child, address), never_reading(address, path, times):
        Asked(address, "/healthz").answer()  # it has read them by now

        status = ended(child)

    assert status == 0


def test_signals_of_a_group_leave_the_page_to_its_crawl(location: str) -> None:
    """A system that stops a service tells all its processes; the page ends with the crawl alone."""
    with page_of(location) as (child, address):
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(child.pid, number)

        answers = [Asked(address, f"{THIS}/{what}").answer().status for what in READS]
        status = ended(child)

    assert answers == [200] * len(READS)
    assert status == 0


@pytest.mark.parametrize("how", ["limit", "stop", "SIGINT", "SIGTERM"])
def test_crawl_that_ends_answers_what_is_under_way(tmp_path: Path, how: str) -> None:
    """However it ends: streams end whole, a report is refused in words, the status is as ever."""
    directory = str(tmp_path / "c")
    with DemoWeb(plain_sites(2, pages=400)) as web:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "mannerly", "crawl", *web.seeds(), "--dashboard"),
                *("--strategy", "fixed", "--delay", "0.2", "--data-dir", directory),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": SOURCE_PATH},
        )
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            address = next(line.split()[-1] for line in lines if line.startswith("Live page:"))
            stream = Asked(address, f"{THIS}/events")
            stream.first_line()
            eventually(lambda: Asked(address, f"{THIS}/status").answer().status == 200)
            report = frozen_report(address, f"{THIS}/report", page_process(process.pid))

            if how == "limit":
                run("set", directory, "max_urls=1")
            elif how == "stop":
                run("stop", directory)
            else:
                process.send_signal(signal.Signals[how])
            answers = stream.answer(), report.answer()
        finally:
            process.communicate(timeout=PATIENCE_S)

    assert answers[0].is_whole
    assert is_problem(answers[1])
    assert process.returncode == {"limit": 0, "stop": 143, "SIGINT": 130, "SIGTERM": 143}[how]


def test_service_that_is_stopped_answers_what_is_under_way(tmp_path: Path) -> None:
    """With a page open and a report under way: SIGTERM ends it as usual, and nothing is 500."""
    with DemoWeb(plain_sites(1, pages=10)) as web, ServiceProcess(tmp_path) as service:
        job = service.create(web.url("plain-0"), options={"delay": 0.5, "seeding_strategy": "none"})
        stream = Asked(service.address, f"/api/jobs/{job}/events")
        stream.first_line()
        path = f"/api/jobs/{job}/report"
        eventually(lambda: service.call("GET", f"/api/jobs/{job}/status")[0] == 200)
        report = frozen_report(service.address, path, service.pid)

        code = service.stop()
        answers = stream.answer(), report.answer()

    assert answers[0].is_whole
    assert is_problem(answers[1])
    assert code in (0, 143, -15)
