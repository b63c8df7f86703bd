"""The numbers on screens, compared with the log of the server: requests, pages, gaps, states."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.steering import DIR, Said, Shell, until_requests
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.runtime.harness import page_requests
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.host_view import HostStatus
from mannerly.demo import DemoWeb, Site, gaps_s

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.host_view import HostView
    from mannerly.demo import Record

pytestmark = pytest.mark.processes

LOG_TELLS_S = 0.03  # a server's process notes a request when it gets to read it


@dataclass
class Seen:
    """A crawl that was stopped, what was said of it while it ran and after, and the log."""

    running: HostView
    sent_per_s: float  # in the seconds before
    stopped: Said
    host: dict[str, object]  # host show --json
    status: dict[str, dict[str, int]]
    log: list[Record]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    shell = Shell(tmp_path_factory.mktemp("seen"))
    with DemoWeb([Site(name="a", pages=400, disallow=(), latency_s=0.02)]) as web:
        words = ("crawl", web.url("a"), "--data-dir", DIR, "--processes", 1)
        with shell.start(*words, "--strategy", "gradient", "--max-rate", "8") as run:
            until_requests(web, 30)
            with mannerly.open(shell.crawl_dir) as crawl:
                running = crawl.hosts("queued", 1)[0]
            latest = [record.t for record in page_requests(web.log())][-16:]
            run.interrupt()
            run.end()
        stopped = shell.say("hosts", DIR)
        host = json.loads(shell.say("host", "show", DIR, web.host("a"), "--json").out)
        status = json.loads(shell.say("status", DIR, "--json").out)
        sent_per_s = (len(latest) - 1) / (latest[-1] - latest[0])
        return Seen(running, sent_per_s, stopped, host, status, web.log())


def test_counts_are_those_of_the_log(seen: Seen) -> None:
    """Pages and requests, in `status` and `host show`."""
    pages = page_requests(seen.log)

    assert seen.status["total"]["fetched"] == len(pages)
    assert (seen.host["fetched"], seen.host["requests"]) == (len(pages), len(seen.log))


def test_smallest_gap_is_that_of_the_log(seen: Seen) -> None:
    """As well as a log can tell."""
    assert seen.host["smallest_gap_s"] == pytest.approx(min(gaps_s(seen.log)), abs=LOG_TELLS_S)


def test_pace_is_that_of_the_log(seen: Seen) -> None:
    """While a strategy changes it, too."""
    assert 1.0 / seen.running.delay_s == pytest.approx(seen.sent_per_s, rel=0.5)


def test_host_of_a_stopped_crawl_is_not_fetching(seen: Seen) -> None:
    """Nothing is sent to it."""
    assert "fetching" not in seen.stopped.out


def test_failing_host_is_backing_off_and_a_limiting_one_has_asked(tmp_path: Path) -> None:
    """A plain 500 asks for nothing: only a Retry-After does."""
    page = answer(b"<a href=/1>1</a><a href=/2>2</a>", "200 OK", "Content-Type: text/html")
    broken = answer(b"", "500 Internal Server Error")
    full = answer(b"", "429 Too Many Requests", "Retry-After: 50")
    shell = Shell(tmp_path)
    with (
        RawServer(routes({"/": page, "/1": broken, "/2": broken}), "127.0.0.2") as failing,
        RawServer(routes({"/": page, "/1": full, "/2": full}), "127.0.0.3") as limiting,
    ):
        words = ("crawl", failing.url(), limiting.url(), "--data-dir", DIR, "--processes", 1)
        with shell.start(*words, "--start-rate", 20, "--seeding-strategy", "none"):

            def states() -> dict[str, HostStatus]:
                with mannerly.open(shell.crawl_dir) as crawl:
                    return {each.host: each.state for each in crawl.hosts("queued", 5)}

            eventually(lambda: shell.crawl_dir.exists() and len(limiting.heads) >= 3)
            eventually(lambda: HostStatus.ASKED_TO_WAIT in states().values())
            eventually(lambda: HostStatus.BACKING_OFF in states().values())
            found = states()

    assert found[f"127.0.0.2:{failing.port}"] is HostStatus.BACKING_OFF
    assert found[f"127.0.0.3:{limiting.port}"] is HostStatus.ASKED_TO_WAIT
