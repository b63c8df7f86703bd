"""A site that never serves a page: the command ends by itself, says why, and exits with 1 or 3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.harness.commands import run_at

if TYPE_CHECKING:
    import socket
    from pathlib import Path

pytestmark = pytest.mark.processes

PAGES = b"".join(b"<a href=/%d>" % number for number in range(6))
PAGE = answer(PAGES, "200 OK", "Content-Type: text/html")
OPTIONS = (
    "--seeding-strategy",
    "none",
    "--data-dir",
    "mine",
    "--json",
    "--quiet",
    "--processes",
    "1",
    "--strategy",
    "fixed",
)


class Site:
    """Answers 404 for robots.txt, with its links for the first page, and badly for all others."""

    def __init__(self, bad: bytes, *, has_home: bool, has_robots: bool = True) -> None:
        self.bad = bad
        self.has_home = has_home
        self.has_robots = has_robots
        self.asked: list[str] = []

    def __call__(self, connection: socket.socket, path: str) -> bool:
        self.asked.append(path)
        if path == "/robots.txt" and self.has_robots:
            connection.sendall(answer(b"", "404 Not Found"))
        elif path == "/" and self.has_home:
            connection.sendall(PAGE)
        else:
            connection.sendall(self.bad)
        return True


REFUSAL = answer(b"", "429 Too Many Requests")
PAUSE = answer(b"", "503 Service Unavailable", "Retry-After: 3600")


@pytest.mark.parametrize(
    ("bad", "options", "reason"),
    [
        (REFUSAL, ("--give-up-after", "2"), "(latest: 429)"),
        (PAUSE, ("--processes", "2"), "no request allowed for 3"),
        (answer(b"", "429 No", "Retry-After: 172800"), (), "no request allowed for 172"),
        (
            answer(b"", "429 No", f"Retry-After: {'9' * 5000}"),
            (),
            "its Retry-After is 100 years or longer",
        ),
    ],
    ids=["refuses", "pauses", "two-days", "unreadable"],
)
def test_a_site_that_stops_serving_is_given_up(
    tmp_path: Path, bad: bytes, options: tuple[str, ...], reason: str
) -> None:
    """The home page was fetched, so the exit code is 1; the URLs are kept with the reason."""
    site = Site(bad, has_home=True)
    with RawServer(site) as one, RawServer(site, "127.0.0.2") as other:
        seeds = (one.url(), other.url())
        told = run_at(tmp_path, "crawl", *seeds, *OPTIONS, *options, "--delay", 0.1)

    result = json.loads(told.stdout)
    assert (told.returncode, result["ending"]) == (1, "finished")
    assert result["hosts_given_up"] == 2
    assert result["fetched"] == 2
    assert result["pending"] == 0
    explained = run_at(tmp_path, "explain", "mine", one.url("/5"), "--json")
    assert reason in explained.stdout


@pytest.mark.parametrize(
    ("has_robots", "asked"), [(True, ["/robots.txt", "/"]), (False, ["/robots.txt"])]
)
def test_a_site_that_never_served_anything_is_no_seed(
    tmp_path: Path, has_robots: bool, asked: list[str]
) -> None:
    """Nothing was fetched: the exit code is 3, after the one request that was refused."""
    site = Site(PAUSE, has_home=False, has_robots=has_robots)
    with RawServer(site) as server:
        told = run_at(tmp_path, "crawl", server.url(), *OPTIONS)

    assert (told.returncode, json.loads(told.stdout)["ending"]) == (3, "no_seed")
    assert site.asked == asked


def test_a_crawl_with_a_last_page_elsewhere_waits_no_longer_than_for_that(tmp_path: Path) -> None:
    """A host that asks for an hour is left in the queue while another one is busy."""
    busy, stuck = Site(PAGE, has_home=True), Site(PAUSE, has_home=True)
    with RawServer(busy) as one, RawServer(stuck, "127.0.0.2") as other:
        told = run_at(tmp_path, "crawl", one.url(), other.url(), *OPTIONS, "--delay", 0.2)

    result = json.loads(told.stdout)
    assert told.returncode == 1
    assert result["fetched"] == 1 + 6 + 1
    assert result["skipped"]["host_retired"] == 6
