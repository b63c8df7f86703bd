"""`mannerly serve` as a real process: jobs are created, steered, killed and go on."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import real_pages
from tests.harness.commands import run
from tests.harness.sites import free_port
from tests.harness.waiting import eventually
from tests.report.site import Planted, html, served
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

QUICK = {"strategy": "fixed", "delay": 0.02, "max_rate": 50, "seeding_strategy": "none"}
PUBLIC = "https://a.example/"
SLOW = {**QUICK, "delay": 0.5}


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(3, pages=30)) as opened:
        yield opened


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service") / "jobs"


@pytest.fixture(scope="module")
def service(root: Path) -> Iterator[ServiceProcess]:
    """One service for all tests that do not kill it; each leaves no job behind that runs."""
    with ServiceProcess(root, "--jobs", "4") as running:
        yield running


def test_job_is_run_and_its_pages_can_be_read(web: DemoWeb, service: ServiceProcess) -> None:
    """From the request to the records: every page once, in both formats."""
    job = service.create(web.url("plain-0"), options=QUICK, name="first")
    eventually(lambda: service.state(job) == "finished")

    described = service.call("GET", f"/api/jobs/{job}")[1]
    records = service.call("GET", f"/api/jobs/{job}/pages")[1]
    sheet = service.call("GET", f"/api/jobs/{job}/pages?format=csv")[1]

    urls = [json.loads(line)["url"] for line in records.splitlines()]
    assert described["name"] == "first"
    assert described["run"]["fetched"] == len(urls) == len(set(urls))
    assert described["runs"][0]["ending"] == "finished"
    assert len(sheet.splitlines()) == len(urls) + 1


def test_paused_job_sends_nothing_and_goes_on(web: DemoWeb, service: ServiceProcess) -> None:
    """The server's log is silent until the job is resumed; then nothing is fetched twice."""
    job = service.create(web.url("plain-0"), options={**SLOW, "max_urls": 6, "delay": 0.3})
    eventually(lambda: len(web.log()) >= 3)

    paused = service.call("POST", f"/api/jobs/{job}/pause")
    time.sleep(0.5)
    before = len(web.log())
    time.sleep(1.5)
    silent = len(web.log()) == before
    resumed = service.call("POST", f"/api/jobs/{job}/resume")
    eventually(lambda: service.state(job) == "finished")

    pages = Counter(record.path for record in web.log() if record.path != "/robots.txt")
    assert paused[0] == resumed[0] == 200
    assert paused[1]["state"] == "paused"
    assert silent
    assert set(pages.values()) == {1}


def test_one_host_is_paused_and_slowed_down(web: DemoWeb, service: ServiceProcess) -> None:
    """A paused host gets no request while the other one goes on."""
    job = service.create(web.url("plain-0"), web.url("plain-1"), options=SLOW)
    host = web.host("plain-0")
    eventually(lambda: len(web.log()) >= 6)

    status = service.call("PATCH", f"/api/jobs/{job}/hosts/{host}", {"paused": True})[0]
    time.sleep(1.0)
    before = [len(web.log_of(name)) for name in ("plain-0", "plain-1")]
    time.sleep(2.0)
    after = [len(web.log_of(name)) for name in ("plain-0", "plain-1")]

    listed = service.call("GET", f"/api/jobs/{job}/hosts?limit=1")[1]
    service.call("POST", f"/api/jobs/{job}/stop")
    assert status == 204
    assert after[0] == before[0]
    assert after[1] > before[1]
    assert len(listed["hosts"]) == 1
    assert listed["next"] == "1"


def test_wrong_requests_are_refused_with_a_reason(service: ServiceProcess) -> None:
    """As problem details that name the field, the value or the state."""
    job = service.create("https://a.invalid/", options={"give_up_after": 1})
    wrong = [
        ("POST", "/api/jobs", {"seeds": []}, 400, "at least one"),
        ("POST", "/api/jobs", {"seeds": ["ftp://a.example/"]}, 400, "ftp"),
        ("POST", "/api/jobs", {"seeds": [PUBLIC], "option": {}}, 400, "option"),
        ("POST", "/api/jobs", {"seeds": ["http://10.1.2.3/"]}, 400, "private"),
        ("POST", "/api/jobs", {"seeds": ["http://[::ffff:10.0.0.1]/"]}, 400, "private"),
        *(
            (
                "POST",
                "/api/jobs",
                {"seeds": [PUBLIC], "options": {name: "x"}},
                400,
                name,
            )
            for name in ("extract", "output", "data_dir", "allow_net", "proxy", "ca_file", "fresh")
        ),
        ("POST", "/api/jobs", {"seeds": [PUBLIC], "schedule": "soon"}, 400, "cron"),
        ("POST", "/api/jobs", {"seeds": [PUBLIC], "webhook": "x"}, 400, "webhook"),
        ("POST", "/api/jobs/nothing/pause", None, 404, "no job"),
        ("GET", "/api/jobs/..%2f..%2fetc/status", None, 404, "nothing"),
        ("PATCH", f"/api/jobs/{job}", {"options": {"scope": "any"}}, 400, "cannot be changed"),
        ("PATCH", f"/api/jobs/{job}/hosts/a.invalid", {}, 400, "nothing to change"),
        ("GET", f"/api/jobs/{job}/hosts?limit=x", None, 400, "limit"),
        ("GET", "/api/nowhere", None, 404, "/api/nowhere"),
        ("PUT", "/api/jobs", {}, 405, "PUT"),
    ]

    answers = [service.call(method, path, body) for method, path, body, _, _ in wrong]

    for (method, path, _, status, word), (got, problem) in zip(wrong, answers, strict=True):
        assert got == status, (method, path, problem)
        assert word in problem["detail"], (method, path, problem)


def test_failing_urls_in_a_row_fail_the_job(tmp_path: Path) -> None:
    """At the threshold, not before; pages of one host that are missing, and a host that is away."""
    links = "".join(f'<a href="/missing-{number}">m</a>' for number in range(60))
    site = {"/": Planted(html(links))}
    port = free_port()  # where no server is
    away = [f"http://127.0.0.1:{port}/{number}" for number in range(30)]
    hasty = {**QUICK, "timeout": 1, "robots_patience": 0, "retry_base": 0.01}
    with (
        served(site) as server,
        served({"/": Planted(html("Here"))}) as here,
        ServiceProcess(tmp_path, "--jobs", "4") as service,
    ):
        home = f"{server.home}/"
        missing = service.create(home, options=QUICK)
        patient = service.create(home, options={**QUICK, "max_urls": 40}, failure_threshold=50)
        checked = service.create(home, options={**QUICK, "max_urls": 40}, kind="check")
        gone = service.create(f"{here.home}/", *away, options=hasty)
        jobs = (missing, patient, checked, gone)
        eventually(lambda: all(service.state(job) in ("finished", "failed") for job in jobs))

        states = [service.state(job) for job in jobs]
        run = service.call("GET", f"/api/jobs/{missing}")[1]["run"]

    assert states == ["failed", "finished", "finished", "failed"]
    assert "URLs in a row failed" in run["error"]
    assert run["fetched"] < 60


def test_killed_service_goes_on_where_it_was(web: DemoWeb, tmp_path: Path) -> None:
    """Three jobs, two at a time, two kills: every page of each is recorded once."""
    names = ("plain-0", "plain-1", "plain-2")
    with ServiceProcess(tmp_path) as service:
        jobs = {name: service.create(web.url(name), options=QUICK) for name in names}
        for _ in range(2):
            enough = len(web.log()) + 10
            eventually(
                lambda enough=enough: (
                    len(web.log()) >= enough
                    or all(service.state(job) == "finished" for job in jobs.values())
                )
            )
            service.kill()
            service.start()
        eventually(lambda: all(service.state(job) == "finished" for job in jobs.values()))

        records = {
            name: service.call("GET", f"/api/jobs/{job}/pages")[1].splitlines()
            for name, job in jobs.items()
        }
        code = service.stop()

    for name, lines in records.items():
        urls = Counter(json.loads(line)["url"] for line in lines)
        assert set(urls.values()) == {1}
        assert {url for url in real_pages(web) if web.host(name) in url} <= set(urls)
    assert code in (0, 143, -15)


def test_children_end_with_the_service(web: DemoWeb, tmp_path: Path) -> None:
    """After kill -9 of the service no request comes any more."""
    service = ServiceProcess(tmp_path)
    service.create(web.url("plain-0"), options=SLOW)
    eventually(lambda: len(web.log()) >= 3)

    service.kill()
    time.sleep(1.5)
    before = len(web.log())
    time.sleep(1.5)

    assert len(web.log()) == before


@pytest.mark.usefixtures("service")
def test_second_service_on_one_directory_is_refused(root: Path) -> None:
    """Exit 4, with the process that has it."""
    second = run("serve", "--data-root", root, "--listen", f"127.0.0.1:{free_port()}")

    assert second.returncode == 4
    assert "in use by pid" in second.stderr
