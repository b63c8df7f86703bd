"""Names that cannot be resolved cost their own host only, and links cannot be used as a weapon.

Whole crawls in virtual time; the servers' log is the judge.
"""

from __future__ import annotations

from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.frontier.virtual_crawl import Asked, Crawled, html, virtual_crawl
from virtual.fetcher import FakeReply

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Settings
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = [f"https://www.good{number}.example/" for number in range(10)]
BAD = [f"https://www.bad{number}.example/" for number in range(30)]
NOT_RESOLVED = FakeReply(error=ErrorKind.DNS, detail="name_not_resolved", latency_s=0.005)
TIMED_OUT = FakeReply(error=ErrorKind.DNS, detail="dns_timeout", latency_s=10.0)
FIXED = Settings(strategy="fixed", delay_s=0.5, max_rate="unlimited", seed=1)


def crawl(seeds: list[str], bad: Callable[[], FakeReply | None], **options: object) -> Crawled:
    """Ten pages on each host; what `bad` returns is the answer of bad hosts, robots.txt too."""

    def answer(host: str, path: str) -> FakeReply:
        failure = bad() if host.startswith("www.bad") else None
        if failure is not None:
            return failure
        if path == "/robots.txt":
            return FakeReply(404, latency_s=0.01)
        number = int(path[1:] or 0)
        return html(f"Page {number}", [f"/{number + 1}"] if number < 9 else [])

    settings = CrawlSettings(politeness=FIXED, seeding="none", **options)  # type: ignore[arg-type]
    return virtual_crawl(answer, seeds, settings, answers_robots=True)


def good(crawled: Crawled) -> list[Asked]:
    return [asked for asked in crawled.log if asked.host.startswith("www.good")]


@pytest.mark.parametrize("failure", [NOT_RESOLVED, TIMED_OUT], ids=["no such name", "timeout"])
def test_names_without_an_address_delay_no_other_host(failure: FakeReply) -> None:
    """Three of four hosts have no address; the others are asked at the same instants as alone."""
    alone = crawl(GOOD, lambda: None)

    together = crawl([*BAD, *GOOD], lambda: failure)

    assert together.is_finished
    assert sorted(good(together)) == sorted(good(alone))


def test_a_name_that_resolves_now_and_then_loses_no_page() -> None:
    """Every third look-up fails: it is tried again, and all pages come."""
    numbers = count(1)

    crawled = crawl(BAD[:3], lambda: NOT_RESOLVED if next(numbers) % 3 == 0 else None)

    fetched = {record.url for _, record in crawled.store.pages() if record.status == 200}
    assert fetched == {f"{seed}{number or ''}" for seed in BAD[:3] for number in range(10)}


def test_a_name_without_an_address_is_not_asked_without_end() -> None:
    """A handful of look-ups, then its URL has a result and the crawl ends."""
    crawled = crawl(BAD[:1], lambda: NOT_RESOLVED)

    assert crawled.is_finished
    assert len(crawled.log) <= 20


def aimed(links: list[str]) -> Callable[[str, str], FakeReply]:
    """A page that consists of links to others; behind them is a page each."""
    return lambda host, path: html("evil", links if host == "evil.example" else [])


def crawl_anywhere(links: list[str]) -> list[Asked]:
    settings = CrawlSettings(
        politeness=Settings(seed=1), seeding="none", scope=ScopeMode.ANY, max_urls=300
    )
    log = virtual_crawl(aimed(links), ["https://evil.example/"], settings).log
    return [asked for asked in log if asked.host != "evil.example"]


def test_a_page_cannot_aim_the_crawler_at_a_host() -> None:
    """A host that is met as a link only is asked once a second at first, however many links."""
    log = crawl_anywhere([f"https://www.victim.example/{number}" for number in range(2000)])

    gaps = [later.t - earlier.t for earlier, later in pairwise(log)]
    assert len(log) > 100
    assert min(gaps[:3]) >= 0.999
    assert min(gaps) >= 1 / 8 - 1e-6


def test_a_page_cannot_aim_the_crawler_at_a_site_by_inventing_names() -> None:
    """Two thousand names of one site: the site sees 20 of them and one more a second."""
    log = crawl_anywhere([f"https://x{number}.victim.example/" for number in range(2000)])

    firsts: dict[str, float] = {}
    for asked in log:
        firsts.setdefault(asked.host, asked.t)
    assert len(firsts) > 100
    assert all(number <= 20 + t + 1 for number, t in enumerate(sorted(firsts.values()), start=1))
