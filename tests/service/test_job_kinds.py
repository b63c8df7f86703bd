"""The kinds of jobs at the HTTP edge: a crawl again, a check of links, retry, exports, changes.

One service serves all tests of this module; the judge is what the crawled servers were asked for.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from bench.web.slow_site import SlowSite
from tests.harness.waiting import eventually
from tests.report.links_site import two_servers
from tests.report.site import Planted, html, served
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.processes

QUICK = {"start_rate": 50, "max_rate": 50, "seeding_strategy": "none"}
FIXED = {"strategy": "fixed", "delay": 0.02, "max_rate": 50, "seeding_strategy": "none"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("service"), "--jobs", "4") as running:
        yield running


def ended(service: ServiceProcess, job: str, state: str = "finished") -> dict[str, object]:
    """Wait for the end of a job's run; return it."""
    eventually(lambda: service.state(job) == state)
    run: dict[str, object] = service.call("GET", f"/api/jobs/{job}")[1]["run"]
    return run


def test_recrawl_asks_for_the_same_pages_and_tells_what_changed(service: ServiceProcess) -> None:
    """The second run of a recrawl finds a page that changed, a new one and one that is gone."""
    pages = {
        "/": Planted(html('<a href="/a">a</a><a href="/b">b</a>', "Home")),
        "/a": Planted(html("first", "A")),
        "/b": Planted(html("b", "B")),
    }
    with served(pages) as server:
        job = service.create(f"{server.home}/", kind="recrawl", options=QUICK)
        first = ended(service, job)
        server.pages["/"] = Planted(html('<a href="/a">a</a><a href="/c">c</a>', "Home"))
        server.pages["/a"] = Planted(html("second", "A"))
        server.pages["/b"] = Planted(html("gone"), 404)
        server.pages["/c"] = Planted(html("c", "C"))
        status = service.call("POST", f"/api/jobs/{job}/resume")[0]
        eventually(lambda: service.call("GET", f"/api/jobs/{job}")[1]["run"]["number"] == 2)
        second = ended(service, job)
        asked = Counter(server.asked())

    assert first["fetched"] == 3
    assert status == 200
    assert second["counts"] == {"changed": 2, "new": 1, "removed": 1}
    assert asked == {"/": 2, "/a": 2, "/b": 2, "/c": 1}


def test_check_counts_broken_links_and_its_report_lists_them(service: ServiceProcess) -> None:
    """The same links as by `mannerly check`, each asked for once."""
    with two_servers() as (home, other):
        job = service.create(f"{home.home}/", kind="check", options=QUICK)
        run = ended(service, job)
        status, report = service.call("GET", f"/api/jobs/{job}/report")
        asked = Counter(other.asked("GET", "HEAD"))

    counts = run["counts"]
    assert isinstance(counts, dict)
    assert counts["broken"] == 12
    assert status == 200
    assert b"/missing.gif" in report
    assert b"Content-Security-Policy" in report
    assert asked["/fine"] == asked["/gone"] == 1


def test_purge_starts_a_run_that_fills_the_cache_again(service: ServiceProcess) -> None:
    """A POST with whatever JSON a webhook sends: pages and variants are in the cache after it."""
    options = {"start_rate": 50, "max_rate": 50, "variant": ["mobile"]}
    with SlowSite(pages=8, page_s=0.001) as site:
        job = service.create(site.url, kind="warm", options=options)
        first = ended(service, job)
        site.purge()
        status = service.call("POST", f"/api/jobs/{job}/run", {"purged": ["/"]})[0]
        eventually(lambda: service.call("GET", f"/api/jobs/{job}")[1]["run"]["number"] == 2)
        second = ended(service, job)
        refused = service.call(
            "POST", "/api/jobs", {"seeds": [site.url], "kind": "warm", "options": {"variant": "x"}}
        )

    filled = {"pages": 18, "cacheable": 14, "hits_before": 0, "hits_after": 14, "failed": 0}
    assert status == 200
    assert first["counts"] == second["counts"] == filled
    assert refused[0] == 400
    assert any("Mobile" in each.agent for each in site.log)


def test_retry_asks_again_for_what_failed(service: ServiceProcess) -> None:
    """Only the URLs without an answer; those that were fetched are not asked for again."""
    pages = {
        "/": Planted(html('<a href="/a">a</a><a href="/slow">s</a>', "Home")),
        "/a": Planted(html("a")),
        "/slow": Planted(html("slow"), delay_s=3.0),
    }
    with served(pages) as server:
        options = {**QUICK, "timeout": 1}
        job = service.create(f"{server.home}/", options=options)
        first = ended(service, job)
        server.pages["/slow"] = Planted(html("quick now"))
        status = service.call("POST", f"/api/jobs/{job}/retry", {})[0]
        eventually(lambda: service.call("GET", f"/api/jobs/{job}")[1]["run"]["failed"] == 0)
        second = ended(service, job)
        asked = Counter(server.asked())

    assert first["failed"] == 1
    assert status == 200
    assert (second["fetched"], second["failed"]) == (3, 0)
    assert asked["/"] == asked["/a"] == 1


def test_override_of_a_host_limits_its_requests_at_once(service: ServiceProcess) -> None:
    """As the server's log counts them; the other host keeps the number of the options."""
    slow = {
        "/": Planted(html("".join(f'<a href="/{n}">{n}</a>' for n in range(12)))),
        **{f"/{n}": Planted(html(str(n)), delay_s=0.25) for n in range(12)},
    }
    with served(slow) as one, served(slow) as other:
        at_once = {server.host: _AtOnce(server.pages) for server in (one, other)}
        for server in (one, other):
            server.pages = at_once[server.host]  # type: ignore[assignment]
        options = {**QUICK, "strategy": "fixed", "delay": 0.01, "per_host": 6}
        job = service.create(
            *(f"{server.home}/" for server in (one, other)),
            options=options,
            host_concurrency={one.host: 1},
        )
        ended(service, job)

    assert at_once[one.host].most == 1
    assert at_once[other.host].most > 1


class _AtOnce(dict[str, Planted]):
    """Answers that know how many of them are being waited for, by the delay of each."""

    def __init__(self, pages: dict[str, Planted]) -> None:
        super().__init__(pages)
        self._lock = threading.Lock()
        self._until: list[float] = []
        self.most = 0

    def get(self, path: str, default: Planted | None = None) -> Planted:  # type: ignore[override]
        planted = super().get(path) or default or Planted()
        now = time.monotonic()
        with self._lock:
            self._until = [each for each in self._until if each > now] + [now + planted.delay_s]
            self.most = max(self.most, len(self._until))
        return planted


def test_changes_reach_a_running_job(service: ServiceProcess) -> None:
    """Seeds are added, the rate and the number of pages are changed, judged by the log."""
    with DemoWeb(plain_sites(2, pages=200)) as web:
        job = service.create(web.url("plain-0"), options={**FIXED, "delay": 0.1})
        eventually(lambda: len(web.log()) >= 4)

        added = service.call("POST", f"/api/jobs/{job}/seeds", {"urls": [web.url("plain-1")]})[0]
        eventually(lambda: len(web.log_of("plain-1")) >= 2)
        slowed = service.call("PATCH", f"/api/jobs/{job}", {"options": {"max_rate": 1}})
        time.sleep(1.5)
        before = len(web.log_of("plain-0"))
        time.sleep(3.0)
        sent = len(web.log_of("plain-0")) - before
        limited = service.call("PATCH", f"/api/jobs/{job}", {"options": {"max_urls": 5}})
        ended(service, job)

    assert added == slowed[0] == limited[0] == 200
    assert slowed[1]["options"]["max_rate"] == 1
    assert sent <= 4


def test_pages_are_streamed_while_the_crawl_runs(service: ServiceProcess) -> None:
    """Each record once, in both formats; a job that has not begun has none."""
    with DemoWeb(plain_sites(1, pages=40)) as web:
        job = service.create(web.url("plain-0"), options={**FIXED, "delay": 0.05})
        eventually(lambda: service.call("GET", f"/api/jobs/{job}/pages")[0] == 200)
        eventually(lambda: len(web.log()) >= 5)

        lines = service.call("GET", f"/api/jobs/{job}/pages?format=jsonl")[1].splitlines()
        sheet = service.call("GET", f"/api/jobs/{job}/pages?format=csv")[1].splitlines()
        wrong = service.call("GET", f"/api/jobs/{job}/pages?format=xml")
        service.call("POST", f"/api/jobs/{job}/stop")

    urls = [json.loads(line)["url"] for line in lines]
    assert len(set(urls)) == len(urls)
    assert sheet[0].startswith(b"url,")
    assert len(sheet) >= len(urls)
    assert wrong[0] == 400
    assert "jsonl, csv" in wrong[1]["detail"]


def test_job_tells_its_changes_of_state(service: ServiceProcess) -> None:
    """The latest first, with the event that caused each."""
    with DemoWeb(plain_sites(1, pages=5)) as web:
        job = service.create(web.url("plain-0"), options=FIXED)
        ended(service, job)

        moves = service.call("GET", f"/api/jobs/{job}")[1]["moves"]

    assert [(move["event"], move["was"], move["state"]) for move in moves] == [
        ("finished", "running", "finished"),
        ("started", "queued", "running"),
    ]
