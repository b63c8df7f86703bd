"""`--requisites` and `--max-requests` at the edge of the command, judged by the servers' logs."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import run
from tests.harness.sites import serving

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from tests.harness.sites import Request

pytestmark = pytest.mark.processes

PAGES, SHARED = 200, 12
GAP_S = 0.05
FAST = (
    "--strategy",
    "fixed",
    "--max-rate",
    "unlimited",
    "--memory",
    "none",
    "--seeding-strategy",
    "none",
)
_TYPES = {"css": "text/css", "js": "text/javascript", "png": "image/png", "html": "text/html"}


def crawl(url: str, place: Path, *options: object, delay: float = 0.001) -> CompletedProcess[str]:
    return run("crawl", url, "--data-dir", place, *FAST, "--delay", delay, "--requisites", *options)


def test_pages_with_the_same_requisites_share_them(tmp_path: Path) -> None:
    """200 pages with 12 files each: every file is fetched once, a little over a request a page."""
    names = [*(f"{n}.css" for n in range(4)), *(f"{n}.js" for n in range(4))]
    names += [f"{n}.png" for n in range(4)]
    tags = {"css": "<link rel=stylesheet href={}>", "js": "<script src={}></script>"}
    head = "".join(tags.get(name[2:], "<img src={}>").format("/" + name) for name in names)
    asked: Counter[str] = Counter()

    def respond(request: Request) -> None:
        asked[request.path] += 1
        kind = _TYPES.get(request.path.rpartition(".")[2])
        if kind:
            request.answer(200, b"x" * 500, {"Content-Type": kind})
        elif request.path == "/robots.txt":
            request.answer(404)
        else:
            links = "".join(f"<a href=/{number}>p</a>" for number in range(1, PAGES))
            request.answer(200, head + (links if request.path == "/" else ""))

    with serving(respond) as site:
        origin = site + "/"
        ended = crawl(origin, tmp_path / "crawl")
        told = run("status", tmp_path / "crawl", "--json")

    assert ended.returncode == 0, ended.stderr
    assert {asked[f"/{name}"] for name in names} == {1}
    assert len(asked) == PAGES + SHARED + 1, "pages, files, robots.txt"
    assert "12 files that pages need to be shown" in " ".join(ended.stderr.split())
    total = json.loads(told.stdout)["total"]
    assert (total["fetched"], total["requisites"], total["failed"]) == (PAGES, SHARED, 0)


def test_requisites_keep_the_manners_of_their_host(tmp_path: Path) -> None:
    """The gap, a Retry-After that comes for a style, and a robots.txt: by the log of the server."""
    log: list[tuple[float, str, int]] = []

    def respond(request: Request) -> None:
        path, refused = request.path, any(status == 503 for _, _, status in log)
        status, body, headers = 200, b"x", {"Content-Type": "image/png"}
        if path == "/robots.txt":
            body, headers = b"User-agent: *\nDisallow: /closed/", {"Content-Type": "text/plain"}
        elif path == "/":
            images = "".join(
                f"<img src=/{each}/{n}.png>" for n in "abc" for each in ("o", "closed")
            )
            body, headers = (
                f"<link rel=stylesheet href=/s.css>{images}".encode(),
                {"Content-Type": "text/html"},
            )
        elif path == "/s.css" and not refused:
            status, headers = 503, {"Retry-After": "2"}
        log.append((request.arrived_at, path, status))
        request.answer(status, body, headers)

    with serving(respond) as site:
        origin = site + "/"
        ended = crawl(origin, tmp_path / "crawl", delay=GAP_S)

    assert ended.returncode == 0, ended.stderr
    paths = [path for _, path, _ in log]
    assert paths == ["/robots.txt", "/", "/s.css", "/s.css", "/o/a.png", "/o/b.png", "/o/c.png"]
    gaps = [after[0] - before[0] for before, after in pairwise(log)]
    assert min(gaps) >= GAP_S - 0.005
    assert gaps[2] >= 2.0 - 0.005
    assert "3 forbidden by robots.txt" in " ".join(ended.stderr.split())


def _page_with_images(request: Request) -> None:
    if request.path in ("/", "/b"):
        request.answer(200, "<img src=/gone.png><img src=/x.png?utm_source=a><a href=/b>b</a>")
    elif request.path.startswith("/x.png"):
        request.answer(200, b"x", {"Content-Type": "image/png"})
    else:
        request.answer(404)


def test_a_missing_image_is_broken_in_the_report(tmp_path: Path) -> None:
    """With the page that needs it; `explain` tells the same, and exports of pages have neither."""
    with serving(_page_with_images) as site:
        origin = site + "/"
        crawl(origin, tmp_path / "crawl", "-o", tmp_path / "pages.jsonl")
        told = run("explain", tmp_path / "crawl", origin + "x.png?utm_source=a")
        run("report", tmp_path / "crawl", "-o", tmp_path / "r.html", "--csv", tmp_path / "csv")

    broken = (tmp_path / "csv" / "broken.csv").read_text()
    assert f"{origin}gone.png,404,{origin}," in broken
    assert f"needed by {origin} to be shown; status 200" in told.stdout
    pages = [
        json.loads(line)["url"] for line in (tmp_path / "pages.jsonl").read_text().splitlines()
    ]
    assert pages == [origin, origin + "b"]


def test_a_long_page_is_read_in_a_helper(tmp_path: Path) -> None:
    """It leads to its requisites like any other one."""
    asked: list[str] = []

    def respond(request: Request) -> None:
        asked.append(request.path)
        body = "<p>" + "long " * 300_000 + "<img src=/x.png>"
        request.answer(200 if request.path == "/" else 404, body if request.path == "/" else "")

    with serving(respond) as origin:
        ended = crawl(origin, tmp_path / "crawl")

    assert ended.returncode == 0, ended.stderr
    assert asked == ["/robots.txt", "/", "/x.png"]


def test_requests_of_every_kind_can_be_limited(tmp_path: Path) -> None:
    """Exactly so many are sent, the crawl ends well, and says why; a resume goes on."""
    asked: list[str] = []

    def respond(request: Request) -> None:
        asked.append(request.path)
        _page_with_images(request)

    with serving(respond) as site:
        origin = site + "/"
        first = crawl(origin, tmp_path / "crawl", "--max-requests", 3)
        sent = len(asked)
        second = run("resume", tmp_path / "crawl", "--max-requests", 100)

    assert (first.returncode, sent) == (0, 3), first.stderr
    assert "Stopped at --max-requests 3" in first.stderr
    assert second.returncode == 0
    assert Counter(asked).most_common(1)[0][0] == "/robots.txt" or max(Counter(asked).values()) == 1
    assert {"/", "/b", "/gone.png", "/x.png?utm_source=a"} <= set(asked)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_last_pages_of_max_urls_are_whole(tmp_path: Path, processes: int) -> None:
    """Their requisites are fetched when no further page may be, behind seeds that wait, too."""
    asked: Counter[str] = Counter()

    def respond(request: Request) -> None:
        asked[request.path] += 1
        if request.path == "/s.css":
            request.answer(200, "a{b:url(f.png)}", {"Content-Type": "text/css"})
        elif request.path.endswith(".png"):
            request.answer(200, b"x", {"Content-Type": "image/png"})
        elif request.path == "/robots.txt":
            request.answer(404)
        else:
            own = f"<img src={request.path}.png>"
            request.answer(200, f"<link rel=stylesheet href=s.css>{own}<a href=/deep>d</a>")

    with serving(respond) as site:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("".join(f"{site}/{number}\n" for number in range(6)))
        ended = crawl(
            str(seeds), tmp_path / "crawl", "--max-urls", 2, "--processes", processes,
            "--allow-net", "127.0.0.0/8",
        )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    assert "Stopped at --max-urls 2" in ended.stderr
    pages = {path for path in asked if path.strip("/").isdigit()}
    assert len(pages) == 2
    assert asked.keys() - pages == {"/robots.txt", "/s.css", "/f.png", *(f"{p}.png" for p in pages)}
    assert set(asked.values()) == {1}


def test_a_requisite_of_another_shard_is_fetched_once(tmp_path: Path) -> None:
    """Two processes, and hosts that belong to either."""
    asked: Counter[tuple[str, str]] = Counter()
    sites: list[str] = []

    def respond(request: Request) -> None:
        asked["http://" + request.headers["Host"], request.path] += 1
        if request.path == "/robots.txt":
            request.answer(404)
        elif request.path.endswith(".css"):
            request.answer(200, f"a{{b:url({sites[-1]}/f.png)}}", {"Content-Type": "text/css"})
        elif request.path.endswith(".png"):
            request.answer(200, b"x", {"Content-Type": "image/png"})
        else:
            styles = "".join(f"<link rel=stylesheet href={site}/s.css>" for site in sites[1:])
            request.answer(200, f"{styles}<a href=/b>b</a><a href=/c>c</a>")

    with ExitStack() as stack:
        for number in range(1, 7):
            sites.append(stack.enter_context(serving(respond, (f"127.0.0.{number}", 0))))
        ended = crawl(
            sites[0], tmp_path / "crawl", "--processes", 2, "--allow-net", "127.0.0.0/8"
        )  # fmt: skip
        told = run("status", tmp_path / "crawl", "--json")

    assert ended.returncode == 0, ended.stderr
    assert set(asked.values()) == {1}
    assert {site for site, path in asked if path == "/s.css"} == set(sites[1:])
    assert (sites[-1], "/f.png") in asked
    status = json.loads(told.stdout)
    assert status["total"]["requisites"] == 6
    assert sum(bool(shard["requisites"]) for shard in status["shards"]) == 2
