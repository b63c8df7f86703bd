"""Real pages beside a trap without end are reached, and a large site is not taken for one."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.frontier.trap_webs import (
    HOST,
    PAGES,
    TRAPS,
    chain,
    crawl,
    real_pages,
    soft_404,
)

from mannerly.crawler.events import UrlsHeldBack
from mannerly.crawler.frontier.shares import Shares
from mannerly.crawler.model import Candidate, Entry, PageRecord
from mannerly.crawler.web.priority import is_held_back, place_of

if TYPE_CHECKING:
    from tests.crawler.frontier.virtual_crawl import Crawled

NEARLY_ALL = int(0.95 * PAGES)


def held_back(crawled: Crawled) -> Counter[str]:
    """How many URLs of each pattern were said to be held back."""
    told: Counter[str] = Counter()
    for event in crawled.events:
        if isinstance(event, UrlsHeldBack):
            told.update(event.patterns)
    return told


@pytest.mark.parametrize("name", TRAPS)
def test_real_pages_are_reached_beside_a_trap(name: str) -> None:
    """Of 300 real pages 285 are among the first 4,000 requests, whatever the trap."""
    crawled = crawl(TRAPS[name], until=NEARLY_ALL)

    assert len(real_pages(crawled.log)) >= NEARLY_ALL
    assert len(crawled.pages) <= 4000


@pytest.mark.parametrize("name", ["calendar", "nesting"])
def test_a_chain_of_pages_is_followed_beside_a_trap(name: str) -> None:
    """A page that each page before it leads to is reached, although it is 285 links away."""
    crawled = crawl(TRAPS[name], chain, until=NEARLY_ALL)

    assert len(real_pages(crawled.log)) >= NEARLY_ALL
    assert len(crawled.pages) <= 4000


@pytest.mark.parametrize("name", ["calendar", "session in the query"])
def test_a_restart_does_not_give_the_trap_its_way(name: str) -> None:
    """Stopped and resumed four times, 285 pages are still within 4,000 requests."""
    crawled = crawl(TRAPS[name], most=300)
    requests, real = len(crawled.pages), real_pages(crawled.log)
    for _ in range(3):
        crawled = crawl(TRAPS[name], most=300, store=crawled.store)
        requests, real = requests + len(crawled.pages), real | real_pages(crawled.log)

    crawled = crawl(TRAPS[name], until=NEARLY_ALL - len(real), store=crawled.store)

    assert len(real | real_pages(crawled.log)) >= NEARLY_ALL
    assert requests + len(crawled.pages) <= 4000


def test_a_large_site_of_one_pattern_is_crawled_in_as_many_requests() -> None:
    """5,000 pages take 5,000 requests, and none of them is held back."""
    crawled = crawl(None, pages=5000, most=6000)

    assert crawled.is_finished
    assert sorted(asked.path for asked in crawled.pages) == sorted(
        ["/", *(f"/p/{page}" for page in range(1, 5000))]
    )
    assert not held_back(crawled)


@pytest.mark.parametrize("name", ["soft 404", "sort orders"])
def test_a_large_site_keeps_its_share_beside_a_trap_that_repeats_itself(name: str) -> None:
    """Pages that are all new get more requests than those of the trap, once that is known."""
    crawled = crawl(TRAPS[name], pages=10_000, most=4000)

    later = crawled.pages[2000:]
    assert sum(asked.path.startswith("/p/") for asked in later) > 0.5 * len(later)


def test_urls_that_are_held_back_are_told_and_kept() -> None:
    """They are queued with a priority that says so, by host and pattern, and nothing is dropped."""
    crawled = crawl(TRAPS["calendar"], most=1500)

    told = held_back(crawled)
    queued = crawled.store.queued(HOST, after=(-1, -1), limit=100_000)
    marked = [entry for entry in queued if is_held_back(entry.priority)]
    assert set(told) == {f"{HOST}/calendar/*/*"}
    assert told.total() == len(marked) > 1000
    assert not list(crawled.store.skipped())


def test_what_is_held_back_is_fetched_when_nothing_else_is_left() -> None:
    """A crawl with a trap that has an end finishes, and fetches all of it."""
    words: set[str] = set()

    def small(path: str, rng: object) -> tuple[str, list[str]]:
        # Every page of the trap is linked from the first, so there are as many as there are links.
        title, links = soft_404(path, rng) or ("", [])  # type: ignore[arg-type]
        if len(words) < 900:
            words.update(links)
        return title, [link for link in links if link in words]

    crawled = crawl(small, most=4000)

    assert crawled.is_finished
    assert words <= {asked.path for asked in crawled.pages}
    assert held_back(crawled)


def page(number: int, title: str | None = None) -> tuple[Entry, PageRecord]:
    url = f"https://{HOST}/p/{number}"
    entry = Entry(number, url, HOST, 1, 64 * 2 + 29, None, 0)
    record = PageRecord(
        *(url, 200, 1, None, title or f"Page {number}", "text/html", 100, 1.0, 0.0, 1, 10, None),
        *(None, None, HOST, "0" * 32),
    )
    return entry, record


def links(*urls: str) -> list[Candidate]:
    return [Candidate(f"https://{HOST}{url}", HOST, 2, 64 * 3 + 29, None) for url in urls]


def test_a_pattern_that_nothing_is_known_of_goes_before_a_long_line() -> None:
    """However many URLs of one pattern wait, a page of another is next."""
    shares = Shares()
    many, _ = shares.place(*page(1), links(*(f"/calendar/{day}" for day in range(3000))))

    (one,), _ = shares.place(*page(2), links("/team/contact"))

    assert one.priority < many[100].priority
    later = [link.priority for link in many[3:]]  # the first were in the line of new patterns
    assert later == sorted(later)


def test_invented_patterns_share_one_line() -> None:
    """A trap that makes a folder for every URL does not get a turn for each of them."""
    shares = Shares()

    invented, _ = shares.place(*page(1), links(*(f"/f{'x' * n}o/page" for n in range(20))))

    places = [place_of(link.priority) for link in invented]
    assert places == sorted(set(places))


def test_only_the_hosts_that_were_served_last_are_kept() -> None:
    """Large hosts without end take no more memory than some hundred of them."""
    shares = Shares()

    for host in range(300):
        entry, record = page(host)
        shares.place(entry._replace(host=f"h{host}.example"), record, [])

    assert [f"h{host}.example" in shares for host in (0, 43, 44, 299)] == [False, False, True, True]


def test_patterns_and_contents_without_end_are_not_kept() -> None:
    """A host that invents a folder and a title for every page takes less than a megabyte."""
    shares = Shares()
    tracemalloc.start()

    for number in range(5000):
        folder = f"/{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}{'z' * (number // 676)}/x"
        shares.place(*page(number, "Title " * 20 + str(number)), links(*[folder] * 3))

    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000
