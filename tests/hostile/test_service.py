"""The service and the live page under attack: names, other sites, tokens, floods, nonsense.

Everything goes through real sockets. One service and one crawl with a page serve most tests.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.harness.commands import live_page, started
from tests.harness.sites import free_port
from tests.harness.waiting import eventually
from tests.report.browser import browser, browser_ends, require_browser
from tests.report.site import Planted, html, served
from tests.service.asking import authorization
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, Site, plain_sites
from mannerly.service.access import MAX_BODY
from mannerly.service.stream import MOST_READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.processes

__all__ = ["browser_ends"]  # a fixture of this module, too

SLOW = {"strategy": "fixed", "delay": 0.5, "seeding_strategy": "none"}
EVIL_HOSTS = (
    *("evil.example", "evil.example:7465", "127.0.0.1.evil.example", "localhost.evil.example"),
    *("0.0.0.0", "127.0.0.1@evil.example", "[::ffff:1.2.3.4]", "127.1", "2130706433", ""),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("service")) as running:
        yield running


def raw(port: int, request: bytes, *, most: int = 65536) -> bytes:
    """Send bytes; return the beginning of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        with suppress(OSError):  # it was refused before everything was sent
            line.sendall(request)
        received = b""
        with suppress(OSError):
            while len(received) < most and b"\r\n\r\n" not in received:
                piece = line.recv(4096)
                if not piece:
                    break
                received += piece
    return received


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def asked(port: int, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> int:
    lines = [f"{method} {path} HTTP/1.1", *headers, f"Content-Length: {len(body)}"]
    if not any(each.lower().startswith("host:") for each in headers):
        lines.append(f"Host: 127.0.0.1:{port}")
    head = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
    return status_of(raw(port, head + body))


# ---------------------------------------------------------------------- S17, S18


def test_every_route_refuses_names_that_are_not_ours(service: ServiceProcess) -> None:
    """DNS rebinding: the page, its files, every operation, the event stream, metrics, health."""
    paths = service.call("GET", "/api/openapi.json")[1]["paths"]
    routes = [path.replace("{id}", "x").replace("{host}", "y") for path in paths]
    routes += ["/", "/static/main.js", "/metrics", "/healthz", "/readyz", "/api/openapi.json"]

    for route in routes:
        assert asked(service.port, route, "Host: evil.example:7465") == 421, route
    for host in EVIL_HOSTS:
        assert asked(service.port, "/api/jobs", f"Host: {host}") in (400, 421), host


@contextmanager
def reachable(root: Path) -> Iterator[tuple[int, str, subprocess.Popen[str]]]:
    """Run a service that listens beyond loopback; yield port, token and process."""
    port = free_port()
    words = ("serve", "--data-root", root, "--listen", f"0.0.0.0:{port}")
    with started(*words) as process:
        eventually((root / "token").exists)

        def is_up() -> bool:
            try:
                return asked(port, "/healthz") == 200
            except OSError:
                return False

        eventually(is_up)
        yield port, (root / "token").read_text().strip(), process


def test_beyond_loopback_everything_needs_the_token(tmp_path: Path) -> None:
    """Missing, wrong, in the query, in a cookie: refused. It is kept for its owner alone."""
    with reachable(tmp_path) as (port, token, process):
        attempts = {
            (): asked(port, "/api/jobs"),
            ("wrong",): asked(port, "/api/jobs", "Authorization: Bearer wrong"),
            ("query",): asked(port, f"/api/jobs?token={token}"),
            ("cookie",): asked(port, "/api/jobs", f"Cookie: token={token}"),
            ("basic",): asked(port, "/api/jobs", f"Authorization: Basic {token}"),
            ("metrics",): asked(port, "/metrics"),
            ("events",): asked(port, "/api/jobs/x/events"),
        }
        right = asked(port, "/api/jobs", f"Authorization: Bearer {token}")
        page = asked(port, "/")
        mode = stat.S_IMODE((tmp_path / "token").stat().st_mode)
        process.terminate()
        said = process.communicate(timeout=30)[1]

    assert set(attempts.values()) == {401}
    assert (right, page) == (200, 200)
    assert mode == 0o600
    assert said.count(token) == 1  # printed once, when it was made; in no line about a request
    assert len(token) >= 40


def test_page_keeps_the_token_out_of_addresses(tmp_path: Path) -> None:
    """It comes in the fragment, which no server sees, and goes out in a header only."""
    require_browser()
    with reachable(tmp_path) as (port, token, _process):
        page = browser().new_page()
        asked_for: list[str] = []
        page.on("request", lambda each: asked_for.append(each.url))
        page.goto(f"http://127.0.0.1:{port}/#token={token}")
        page.wait_for_selector("h1:has-text('No jobs yet')")
        shown = page.url
        page.close()

    assert asked_for
    assert not [url for url in asked_for if token in url.partition("#")[0]]
    assert token not in shown


# ---------------------------------------------------------------------- S19


def test_other_site_in_a_browser_changes_nothing(service: ServiceProcess) -> None:
    """A form, a fetch without CORS and a preflight from another origin create no job."""
    require_browser()
    target = f"http://127.0.0.1:{service.port}/api/jobs"
    form = (
        f'<form id="f" method="post" enctype="text/plain" action="{target}">'
        '<input name=\'{"seeds": ["https://a.example/"], "x": "\' value=\'"}\'></form>'
    )
    before = len(service.call("GET", "/api/jobs")[1]["jobs"])
    with served({"/": Planted(html(form))}) as server:
        page = browser().new_page()
        page.goto(f"{server.home}/")
        page.evaluate(
            """async (target) => {
              const body = JSON.stringify({ seeds: ["https://a.example/"] });
              const json = { "Content-Type": "application/json" };
              for (const each of [{ mode: "no-cors" }, { headers: json }])
                await fetch(target, { method: "POST", body, ...each }).catch(() => null);
            }""",
            target,
        )
        reads = page.evaluate("(target) => fetch(target).then(() => true, () => false)", target)
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_timeout(1000)
        page.close()

    assert not reads
    assert len(service.call("GET", "/api/jobs")[1]["jobs"]) == before


# ---------------------------------------------------------------------- S21


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../../../../etc/passwd", "/static/..%2f..%2f..%2fetc%2fpasswd"),
        *("/static/%2e%2e/pages.py", "/static//etc/passwd", "/static/vendor/../../pages.py"),
        *("/api/jobs/..%2f..%2fetc%2fpasswd", "/api/jobs/%00/status", "/jobs/../../etc/passwd"),
        *("/static/main.js%00.html", "/api/jobs/x/hosts/..%2f..%2fx", "//evil.example/"),
    ],
)
def test_path_tricks_find_nothing(service: ServiceProcess, path: str) -> None:
    """A request never names a file of the disk."""
    answer = raw(
        service.port,
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(),
    )

    assert status_of(answer) in (400, 404)
    assert b"root:" not in answer


def test_oversized_bodies_are_cut_off(service: ServiceProcess) -> None:
    """By their length, in chunks without one, and JSON that is nested too deep."""
    head = (
        f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
    )
    long = raw(service.port, f"{head}Content-Length: {MAX_BODY + 1}\r\n\r\n".encode())
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    chunked = raw(
        service.port,
        f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * (MAX_BODY // 0x10000 + 2),
    )
    deep = b"[" * 200_000
    nested = raw(service.port, f"{head}Content-Length: {len(deep)}\r\n\r\n".encode() + deep)

    assert status_of(long) == 413
    assert status_of(chunked) == 413
    assert status_of(nested) == 400
    assert service.call("GET", "/readyz")[0] == 200


@pytest.mark.parametrize(
    "seed",
    [
        *("http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/"),
        *(
            "http://[fd00::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://0x0a000001/",
            "http://[::1]:1/",
        ),
        *("file:///etc/passwd", "gopher://a/", "http://a b/"),
    ],
)
def test_seeds_at_private_addresses_are_refused(service: ServiceProcess, seed: str) -> None:
    """Of a new job and of one that exists, in every spelling; the operator allowed 127/8 only."""
    status, problem = service.call("POST", "/api/jobs", {"seeds": [seed]})

    assert status == 400, problem
    assert problem["detail"]


_values = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    *(st.just([]), st.just({})),
)


def test_nonsense_is_answered_with_a_problem(service: ServiceProcess) -> None:
    """Any JSON in any field: a problem in words or a change that is allowed, never an error."""
    with DemoWeb(plain_sites(1, pages=5)) as web:
        job = service.create(web.url("plain-0"), options=SLOW)
        eventually(lambda: service.call("GET", f"/api/jobs/{job}/status")[0] == 200)
        host = web.host("plain-0")

        @settings(max_examples=40, suppress_health_check=list(HealthCheck))
        @given(
            st.dictionaries(
                st.sampled_from(["paused", "delay_s", "max_rate", "per_host", "forget", "extra"]),
                _values,
                max_size=3,
            ),
            st.dictionaries(st.sampled_from(["max_rate", "max_urls", "x"]), _values, max_size=2),
        )
        def fuzz(change: dict[str, Any], options: dict[str, Any]) -> None:
            for path, body in (
                (f"/api/jobs/{job}/hosts/{host}", change),
                (f"/api/jobs/{job}", {"options": options}),
            ):
                status, answer = service.call("PATCH", path, body)
                assert status in (200, 204, 400, 429), (path, body, answer)
                time.sleep(0.03)

        fuzz()
        service.call("POST", f"/api/jobs/{job}/stop")


def test_no_order_sends_faster_than_robots_txt_allows(service: ServiceProcess) -> None:
    """A Crawl-delay of 2 s is kept, whatever the interface asks for; the log says who asked."""
    site = Site(name="slow", pages=50, crawl_delay_s=2.0)
    with DemoWeb([site]) as web:
        options = {"seeding_strategy": "none", "delay": 0.1}
        job = service.create(web.url("slow"), options=options)
        eventually(lambda: len(web.log()) >= 2)
        change = {"delay_s": 0.01, "max_rate": 1000, "per_host": 8, "forget": True}
        status = service.call("PATCH", f"/api/jobs/{job}/hosts/{web.host('slow')}", change)[0]
        before = len(web.log())
        eventually(lambda: len(web.log()) >= before + 3)
        service.call("POST", f"/api/jobs/{job}/stop")
        pages = [record.t for record in web.log() if record.path != "/robots.txt"]

    gaps = [later - earlier for earlier, later in pairwise(pages)]
    assert status == 204
    assert min(gaps) >= 2.0 * 0.98


def test_changes_are_logged_and_floods_of_them_refused(tmp_path: Path) -> None:
    """Twenty a second from one address; each that came through has a line with who and what."""
    with reachable(tmp_path) as (port, token, process):
        header = (f"Authorization: Bearer {token}", "Content-Type: application/json")
        statuses = [
            asked(port, "/api/jobs/nothing/pause", *header, method="POST", body=b"{}")
            for _ in range(80)
        ]
        process.terminate()
        said = process.communicate(timeout=30)[1]

    assert 404 in statuses
    assert 429 in statuses
    assert "change by 127.0.0.1: POST '/api/jobs/nothing/pause', answered 404" in said


# ---------------------------------------------------------------------- F30


@contextmanager
def crawl_with_page(directory: Path, web: DemoWeb) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Crawl with a page; yield the crawl's process and the printed address."""
    words = (
        *("crawl", *web.seeds(), "--dashboard", "--strategy", "fixed", "--delay", "0.2"),
        *("--seeding-strategy", "none", "--processes", "1", "--max-urls", "60"),
        *("--data-dir", directory / "crawl"),
    )
    with started(*words, stdout=subprocess.DEVNULL) as process:
        yield process, live_page(process)


def _readers(port: int, token: str, count: int) -> list[socket.socket]:
    """Open event streams that are never read."""
    head = ["GET /api/jobs/this/events HTTP/1.1", f"Host: 127.0.0.1:{port}", token, "", ""]
    request = "\r\n".join(head).encode()
    lines = []
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", port), timeout=20)
        line.sendall(request)
        lines.append(line)
    return lines


def test_thousand_readers_that_never_read_cost_the_crawl_nothing(tmp_path: Path) -> None:
    """200 are served, the others refused; the crawl ends as usual, its page stays small."""
    with DemoWeb(plain_sites(4, pages=100)) as web, crawl_with_page(tmp_path, web) as (crawl, page):
        port = urlsplit(page).port or 0
        token = f"Authorization: {authorization(page)['Authorization']}"
        lines = _readers(port, token, 1000)
        heads = []
        for line in lines:
            line.settimeout(30)
            with suppress(OSError):
                heads.append(status_of(line.recv(200)))
        is_served = asked(port, "/api/jobs", token) == 200
        size_mb = _resident_mb(_page_of(crawl.pid))
        code = crawl.wait(120)
        for line in lines:
            line.close()

    assert heads.count(200) <= MOST_READERS
    assert heads.count(503) >= 700
    assert is_served
    assert size_mb < 160
    assert code == 0


def test_page_of_a_crawl_obeys_its_operator_alone(tmp_path: Path) -> None:
    """Another user of the machine has no token: no seed of theirs is fetched, nothing is told."""
    header = "Content-Type: application/json"
    with (
        DemoWeb(plain_sites(1, pages=100)) as web,
        served({}) as private,
        crawl_with_page(tmp_path, web) as (crawl, page),
    ):
        port = urlsplit(page).port or 0
        token = f"Authorization: {authorization(page)['Authorization']}"
        seeds = "/api/jobs/this/seeds"
        theirs, ours = (
            json.dumps({"urls": [f"{private.home}/{name}"]}).encode() for name in ("them", "us")
        )
        eventually(lambda: asked(port, "/api/jobs/this/status", token) == 200)

        refused = [
            asked(port, seeds, header, method="POST", body=theirs),
            asked(port, "/api/jobs/this/pause", header, method="POST", body=b"{}"),
            asked(port, "/api/jobs/this/status"),
        ]
        metrics = asked(port, "/metrics")
        accepted = asked(port, seeds, header, token, method="POST", body=ours)
        eventually(lambda: "/us" in private.asked())
        crawl.send_signal(signal.SIGTERM)
        crawl.wait(60)

    assert refused == [401, 401, 401]
    assert (metrics, accepted) == (200, 204)
    assert "/them" not in private.asked()


def test_page_that_hangs_costs_the_crawl_nothing(tmp_path: Path) -> None:
    """Its process is frozen from the start: every page is fetched all the same."""
    with (
        DemoWeb(plain_sites(4, pages=100)) as web,
        crawl_with_page(tmp_path, web) as (crawl, _port),
    ):
        os.kill(_page_of(crawl.pid), signal.SIGSTOP)
        code = crawl.wait(120)
        pages = {(record.host, record.path) for record in web.log()}

    assert code == 0
    assert len(pages) >= 60


def _page_of(pid: int) -> int:
    """Return the process of the page: the child that listens."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0])


def _resident_mb(pid: int) -> float:
    line = next(
        each
        for each in Path(f"/proc/{pid}/status").read_text().splitlines()
        if each.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def test_json_of_the_stream_cannot_break_out(service: ServiceProcess) -> None:
    """Line ends in names of jobs do not begin a new event."""
    name = "evil\n\ndata: {}\n\n<script>"
    job = service.create("https://a.invalid/", name=name, options={"give_up_after": 1})
    answer = raw(
        service.port,
        f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
    )
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as line:
        line.sendall(f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        text = b""
        while b"}\n\n" not in text:
            text += line.recv(65536)

    assert status_of(answer) == 200
    data = text.partition(b"data: ")[2].partition(b"\n\n")[0]
    assert json.loads(data)["name"] == name
