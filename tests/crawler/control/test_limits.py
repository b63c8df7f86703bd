"""`add` and `set workers|exclude|max_urls|duration`: what is fetched, by the servers' log."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.steering import (
    DIR,
    Shell,
    both,
    most_at_once,
    until_requests,
    window,
)
from tests.crawler.runtime.harness import kept, page_requests, real_pages, url_of
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.store import open_crawl
from mannerly.demo import DemoWeb, Site, SitemapKind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.control.steering import Said

    from mannerly.demo import Record

pytestmark = pytest.mark.processes

BOTH = pytest.mark.parametrize("processes", [1, 2])
OPTIONS = ("--strategy", "fixed", "--delay", "0.05", "--max-rate", "unlimited")
LATENCY_S = 0.1
PAGES = 2000  # more than can be fetched while commands are given on a busy machine
EXCLUDED = "/section-3/"


@dataclass
class Limited:
    """What was said and what the servers saw."""

    web_urls: list[str]
    hosts: dict[str, str]
    log: list[Record]
    skipped: dict[str, str]
    at_once: tuple[int, int, int]  # before, with two workers, with many
    added: Said
    known: Said
    wrong: Said
    orders: int  # control records before and after a wrong one: the difference
    excluded: Said
    too_few: tuple[Said, Said]  # the order, and the end of the run
    a_few: tuple[Said, list[Record]]  # the end of a run with max_urls=5, and its pages
    seconds: tuple[Said, float]  # the end of a run with a duration, and how long it took
    killed: Said
    last_began: float


def tell(processes: int, directory: Path) -> Limited:
    shell = Shell(directory)
    sites = [
        Site(name="seed", pages=PAGES, disallow=(), latency_s=LATENCY_S),
        Site(
            name="added", pages=PAGES, disallow=(), sitemap=SitemapKind.PLAIN, latency_s=LATENCY_S
        ),
        Site(name="by-file", pages=10, disallow=(), latency_s=LATENCY_S),
        Site(name="killed", pages=10, disallow=(), latency_s=LATENCY_S),
    ]
    with DemoWeb(sites) as web:

        def is_small(url: str) -> bool:
            return any(web.host(name) in url for name in ("by-file", "killed"))

        def all_at_once(since: float, seconds: float) -> int:
            return most_at_once(
                [each for part in window(web, since, seconds).values() for each in part]
            )

        words = ("crawl", web.url("seed"), "--data-dir", DIR, *OPTIONS, "--processes", processes)
        with shell.start(*words, "--concurrency", 12) as run:
            eventually(lambda: web.log_of("seed"))
            added = shell.say("add", DIR, web.url("added"))
            until_requests(web, 4, host=web.host("added"))
            excluded = shell.say("set", DIR, f"exclude=*{EXCLUDED}*", "concurrency=2")
            before = most_at_once(web.log())
            few = all_at_once(excluded.at, 0.7)
            many = all_at_once(shell.say("set", DIR, "concurrency=16").at, 0.5)
            too_few = shell.say("set", DIR, "max_urls=1")
            too_few_end = run.end()
        store = open_crawl(shell.crawl_dir)
        orders = len(store.orders())
        wrong = shell.say("add", DIR, web.url("by-file"), "no://where")
        orders = len(store.orders()) - orders
        store.close()
        (directory / "more.txt").write_text(f"# more\n{web.url('by-file')}\n")
        known, _ = shell.say_all(
            ("add", DIR, "more.txt", web.url("seed"), web.url("added")),
            ("set", DIR, "max_urls=5"),
        )
        seen = len(page_requests(web.log()))
        with shell.start("resume", DIR) as run:
            a_few_end = run.end()
        a_few = page_requests(web.log())[seen:]
        shell.say("set", DIR, "max-urls=none", "duration=1.5")
        began = time.monotonic()
        with shell.start("resume", DIR, "--delay", "0.3") as run:
            seconds_end = run.end()
        with mannerly.open(shell.crawl_dir) as crawl:
            crawl.set(duration=None)
        with shell.start("resume", DIR, "--delay", "0.3") as run:
            until_requests(web, 1)
            killed = shell.say("add", DIR, web.url("killed"))
            run.kill()
        last_began = time.monotonic()
        small = [url for url in real_pages(web) if is_small(url) and EXCLUDED not in url]
        with shell.start("resume", DIR, "--delay", "0.01"):
            eventually(lambda: set(small) <= {url_of(record) for record in web.log()})
            until_requests(web, 5, host=web.host("added"))
        return Limited(
            list(real_pages(web)),
            {site.name: web.host(site.name) for site in sites},
            web.log(),
            kept(shell.crawl_dir).skipped,
            (before, few, many),
            added,
            known,
            wrong,
            orders,
            excluded,
            (too_few, too_few_end),
            (a_few_end, a_few),
            (seconds_end, seconds_end.at - began),
            killed,
            last_began,
        )


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Limited]:
    return both(tell, tmp_path_factory.mktemp("limits"))


@BOTH
def test_added_seeds_are_crawled_like_the_first_ones(
    stories: dict[int, Limited], processes: int
) -> None:
    """While the crawl runs, while it does not, and right before a kill.

    All pages of the two small hosts are fetched, or the story would not have ended. The hosts are
    private addresses, so the guard lets exactly them in, in every later run; their pages are in
    scope; and their sitemaps are read.
    """
    story = stories[processes]
    assert story.added.err.startswith("Added http://")
    assert story.added.err.endswith(f" to {DIR}\n")
    assert story.killed.code == 0
    requested = {url_of(record) for record in page_requests(story.log)}
    assert requested <= set(story.web_urls)
    late = {record.host for record in story.log if record.t > story.last_began}
    assert late == set(story.hosts.values())
    assert any(r.host == story.hosts["added"] and r.path.endswith(".xml") for r in story.log)


@BOTH
def test_adding_a_known_url_changes_nothing(stories: dict[int, Limited], processes: int) -> None:
    """No page is fetched again, in this run or in a later one; nor is a robots.txt."""
    story = stories[processes]
    assert story.known.code == 0
    roots = Counter(record.host for record in story.log if record.path == "/")
    assert roots[story.hosts["seed"]] == roots[story.hosts["added"]] == 1
    robots = Counter(record.host for record in story.log if record.path == "/robots.txt")
    assert robots[story.hosts["seed"]] == robots[story.hosts["added"]] == 1


@BOTH
def test_malformed_url_adds_nothing(stories: dict[int, Limited], processes: int) -> None:
    """Not even the good ones beside it."""
    story = stories[processes]
    assert story.wrong.code == 2
    assert story.wrong.err == (
        "mannerly: no://where cannot be crawled: only http and https URLs can\n"
    )
    assert story.orders == 0


@BOTH
def test_excluded_urls_leave_the_queue_with_the_reason(
    stories: dict[int, Limited], processes: int
) -> None:
    """None is requested a second after the order, or in a later run."""
    story = stories[processes]
    late = [r for r in story.log if EXCLUDED in r.path and r.t > story.excluded.at + 1.0]
    assert late == []
    reasons = {reason for url, reason in story.skipped.items() if EXCLUDED in url}
    assert reasons == {"excluded"}


@BOTH
def test_workers_limit_the_requests_under_way_in_all(
    stories: dict[int, Limited], processes: int
) -> None:
    """Fewer, and more again; several options can be set at once."""
    story = stories[processes]
    before, few, many = story.at_once
    assert few <= 2 < before
    assert many > 2
    assert story.excluded.err == f"Set exclude=*{EXCLUDED}*, concurrency=2 for {DIR}\n"


@BOTH
def test_fewer_urls_than_were_fetched_end_the_run(
    stories: dict[int, Limited], processes: int
) -> None:
    """What was asked for was reached, so the exit code is 0."""
    order, end = stories[processes].too_few
    assert (order.code, end.code) == (0, 0)
    assert "Stopped at --max-urls" in end.err
    assert end.at - order.at < 5.0


@BOTH
def test_max_urls_set_for_a_stopped_crawl_holds_in_its_next_run(
    stories: dict[int, Limited], processes: int
) -> None:
    """Exactly, with two processes as well."""
    end, pages = stories[processes].a_few
    assert (end.code, "Stopped at --max-urls" in end.err) == (0, True)
    assert len(pages) == 5


@BOTH
def test_duration_holds_until_it_is_taken_away(stories: dict[int, Limited], processes: int) -> None:
    """Of a run that would have taken half a minute; the next one goes on."""
    end, lasted_s = stories[processes].seconds
    assert (end.code, "Stopped at --duration" in end.err) == (0, True)
    assert lasted_s < 15.0
