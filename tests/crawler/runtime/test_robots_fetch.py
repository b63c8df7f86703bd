"""What a robots.txt is, and what a crawl makes of it (RFC 9309 §2.3.1), by the servers' log.

One web holds a host for every answer that there can be; one crawl goes over all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.runtime.harness import Kept, kept, modest

from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.demo import (
    DemoWeb,
    Feature,
    Record,
    RobotsFile,
    Site,
    before_robots,
    by_host,
    disallowed,
    paths,
    robots_fetches,
)
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

EAGER = Settings(strategy="fixed", delay_s=0.05, max_rate="unlimited")
PAGES = 6
# Redirected away means to the next host's robots.txt, so the order counts.
FORMS = (
    RobotsFile.REDIRECTED_AWAY,
    RobotsFile.RULES,
    *(form for form in RobotsFile if form not in {RobotsFile.REDIRECTED_AWAY, RobotsFile.RULES}),
)
NO_RULES = (RobotsFile.MISSING, RobotsFile.FORBIDDEN, RobotsFile.HTML)
RULES = (RobotsFile.RULES, RobotsFile.HUGE, RobotsFile.REDIRECTED, RobotsFile.REDIRECTED_AWAY)
NO_ANSWER = (RobotsFile.FAILING, RobotsFile.CLOSED, RobotsFile.HANGING)


def site_with(form: RobotsFile) -> Site:
    """A small site with a private area, whose robots.txt is of this form."""
    return Site(name=form, robots=form, pages=PAGES, features=frozenset({Feature.PRIVATE}))


class Crawled:
    """One crawl over every form, seen from both ends."""

    def __init__(self, web: DemoWeb, result: CrawlResult, store: Kept) -> None:
        self.web = web
        self.result = result
        self.store = store
        self._log = by_host(web.log())

    def log(self, form: RobotsFile) -> list[Record]:
        return self._log[self.web.host(form)]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    data_dir = tmp_path_factory.mktemp("robots") / "crawl"
    settings = modest(politeness=EAGER, robots_timeout_s=1.0, robots_patience_s=0.0)
    with DemoWeb(map(site_with, FORMS)) as web:
        result = crawl(settings, web.seeds(), data_dir)
        yield Crawled(web, result, kept(data_dir))


def test_a_crawl_ends_whatever_its_hosts_call_robots(crawled: Crawled) -> None:
    """A robots.txt that cannot be had keeps its own host waiting, and nobody else."""
    ending, pending = crawled.result.ending, crawled.result.pending

    assert (ending, pending) == (Ending.FINISHED, 0)


@pytest.mark.parametrize("form", RobotsFile)
def test_robots_is_asked_for_first_and_once(crawled: Crawled, form: RobotsFile) -> None:
    """Nothing is fetched before the rules are known, and nobody asks for them twice."""
    log = crawled.log(form)

    # The neighbour's file answers for both, but each host is asked on its own behalf.
    asked = 2 if form is RobotsFile.RULES else 1
    assert 1 <= robots_fetches(log) <= asked
    assert before_robots(log) == []


@pytest.mark.parametrize("form", NO_RULES)
def test_no_rules_forbid_nothing(crawled: Crawled, form: RobotsFile) -> None:
    """4xx and a page in the place of rules: everything may be fetched (§2.3.1.3)."""
    asked = {record.path for record in crawled.log(form)}

    assert {*paths(site_with(form))} <= asked
    assert any(path.startswith("/private/") for path in asked)


@pytest.mark.parametrize("form", RULES)
def test_rules_are_kept_wherever_they_are(crawled: Crawled, form: RobotsFile) -> None:
    """10 MB of them, or behind redirects, on another host even: they hold for who was asked."""
    log = crawled.log(form)

    assert {*paths(site_with(form))} <= {record.path for record in log}
    assert disallowed(log, ["/private/"]) == []
    private = [url for url in crawled.store.skipped if url.startswith(crawled.web.url(form))]
    assert {crawled.store.skipped[url] for url in private} == {"robots"}


@pytest.mark.parametrize("form", NO_ANSWER)
def test_no_answer_forbids_everything(crawled: Crawled, form: RobotsFile) -> None:
    """5xx, a closed connection, a timeout: nothing may be fetched (§2.3.1.4), and it says why."""
    log = crawled.log(form)

    assert [record.path for record in log] == ["/robots.txt"]
    reason = crawled.store.skipped[crawled.web.url(form)]
    assert reason.partition(":")[0] == "robots_unreachable"


def test_unauthorized_forbids_nothing(tmp_path: Path) -> None:
    """401 is unavailable, not unreachable (§2.3.1.3)."""
    pages = {
        "/robots.txt": answer(b"who are you?", "401 Unauthorized"),
        "/": answer(b'<a href="/next">', "200 OK", "Content-Type: text/html"),
        "/next": answer(),
    }

    with RawServer(routes(pages), "127.0.0.2") as server:
        result = crawl(modest(), [server.url()], tmp_path / "crawl")

    assert result.ending is Ending.FINISHED
    assert [head.split()[1] for head in server.heads] == ["/robots.txt", "/", "/next"]


def test_pages_wait_for_a_robots_that_may_come_back(tmp_path: Path) -> None:
    """Unreachable is not forbidden: the pages stay queued, and robots.txt is not hammered."""
    sites = [site_with(form) for form in NO_ANSWER]
    settings = modest(duration_s=2.5, robots_timeout_s=0.5)

    with DemoWeb(sites) as web:
        result = crawl(settings, web.seeds(), tmp_path / "crawl")
        log = web.log()

    assert result.ending is Ending.DURATION
    assert result.pending == len(sites)
    assert [record.path for record in log] == ["/robots.txt"] * len(sites)
    assert kept(tmp_path / "crawl").skipped == {}


def test_the_operator_may_ask_for_less(tmp_path: Path) -> None:
    """Document 003's fallback lets an unreachable robots.txt pass, and it may be ignored whole."""
    sites = [Site(name="failing", robots=RobotsFile.FAILING, pages=PAGES)]

    with DemoWeb(sites) as web:
        crawl(
            modest(politeness=EAGER, robots_unreachable="allow"),
            [web.url("failing")],
            tmp_path / "allow",
        )
        lenient = web.log_of("failing")
        crawl(
            modest(politeness=EAGER, ignore_robots=True), [web.url("failing")], tmp_path / "ignore"
        )
        ignorant = web.log_of("failing")[len(lenient) :]

    wanted = {*paths(sites[0])}
    assert robots_fetches(lenient) == 1
    assert wanted <= {record.path for record in lenient}
    assert robots_fetches(ignorant) == 0
    assert wanted <= {record.path for record in ignorant}
