"""Many names, one address: the server behind them sees the pace of one, or 64 requests a second."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.frontier.trap_webs import HOST, PAGES, SEED, page_of, real_pages, tree
from tests.crawler.frontier.virtual_crawl import Asked, Crawled, html, virtual_crawl

from mannerly.crawler.frontier.addresses import Addresses
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Politeness, Settings
from mannerly.politeness.model import Grant, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from virtual.fetcher import FakeReply

ADDRESS = "192.0.2.1"
NAMES = 60


def fixed(delay_s: float) -> Settings:
    return Settings(strategy="fixed", delay_s=delay_s, max_rate="unlimited", seed=1)


def settings(delay_s: float, **options: Any) -> CrawlSettings:
    usual = {"politeness": fixed(delay_s), "seeding": "none", "scope": ScopeMode.SITE}
    return CrawlSettings(**usual | options)


def ten_pages(_host: str, path: str) -> FakeReply:
    """Each page links to the next."""
    number = int(path[1:] or 0)
    return html(f"Page {number}", [f"/{number + 1}"] if number < 9 else [])


def at_one_address(_host: str) -> str:
    return ADDRESS


def most_within(log: list[Asked], window_s: float, *, after_s: float = 0.0) -> int:
    """The largest number of requests in any such time."""
    times = [asked.t for asked in log if asked.t >= after_s]
    return max(sum(start <= t < start + window_s for t in times) for start in times)


def crawl_names(seeds: list[str], delay_s: float, **options: Any) -> Crawled:
    address_of: Callable[[str], str] = options.pop("address_of", at_one_address)
    shards = options.pop("shards", 1)
    return virtual_crawl(
        ten_pages, seeds, settings(delay_s, **options), address_of=address_of, shards=shards
    )


def test_names_of_one_site_share_a_pace() -> None:
    """60 names at one address get as many requests as one of them would, but for the first four."""
    seeds = [f"https://n{number}.site.example/" for number in range(NAMES)]

    crawled = crawl_names(seeds, 0.5)

    assert len(crawled.pages) == 10 * NAMES
    assert most_within(crawled.log, 10.0) <= 10 / 0.5 + 4
    assert most_within(crawled.log, 10.0, after_s=1.0) <= 10 / 0.5 + 1


def test_names_that_share_a_pace_learn_it_together() -> None:
    """60 names with ten pages each reach the pace that one name with 600 pages reaches."""
    seeds = [f"https://n{number}.site.example/" for number in range(NAMES)]

    crawled = crawl_names(seeds, 1.0, politeness=Settings(seed=1))

    assert len(crawled.pages) == 10 * NAMES
    assert 70 <= most_within(crawled.log, 10.0) <= 81


def test_four_names_of_one_site_have_a_pace_each() -> None:
    """A site with a shop and a blog is not slowed down."""
    seeds = [f"https://n{number}.site.example/" for number in range(4)]

    together = crawl_names(seeds, 0.5)
    apart = crawl_names(seeds, 0.5, address_of=lambda host: f"address of {host}")

    assert together.log == apart.log


@pytest.mark.parametrize("shards", [1, 2])
def test_names_of_several_sites_share_an_address(shards: int) -> None:
    """60 sites at one address get 64 requests a second in all, whatever each of them could get."""
    seeds = [f"https://www.s{number}.example/" for number in range(NAMES)]

    crawled = crawl_names(seeds, 0.1, shards=shards)

    assert len(crawled.pages) == 10 * NAMES
    assert most_within(crawled.log, 1.0) <= 64 + shards
    assert most_within(crawled.log, 1.0) > 50 / shards


def test_the_rate_of_an_address_is_an_option() -> None:
    """`address_max_rate` holds instead of 64."""
    seeds = [f"https://www.s{number}.example/" for number in range(20)]

    crawled = crawl_names(seeds, 0.1, address_max_rate=10.0)

    assert most_within(crawled.log, 1.0) <= 12  # two before it is known that they share it


@pytest.mark.parametrize(
    "seeds",
    [
        [f"http://192.0.2.{number}/" for number in range(1, 30)],
        [f"http://[2001:db8::{number}]/" for number in range(1, 30)],
        [f"http://www.site.example:{8000 + number}/" for number in range(30)],
    ],
    ids=["IPv4", "IPv6", "ports"],
)
def test_addresses_in_place_of_names_and_ports_do_not_count(seeds: list[str]) -> None:
    """Each of them has a pace of its own, as without this limit."""
    together = crawl_names(seeds, 0.5)
    apart = crawl_names(seeds, 0.5, address_of=lambda host: f"address of {host}")

    assert together.log == apart.log


def subdomains(*, mirrors: bool) -> Callable[[str, str], FakeReply]:
    """A site whose every page names five more hosts; as mirrors, each of them has all its pages."""
    rng = random.Random(5)

    def answer(host: str, path: str) -> FakeReply:
        names = [f"https://x{rng.getrandbits(40):x}.site.example/" for _ in range(5)]
        page = page_of(Asked(0.0, HOST if mirrors else host, path))
        if page is None or page >= PAGES:
            return html(f"Welcome to {host}", names)
        links = [f"/p/{further}" for further in tree(page) if further < PAGES]
        return html(f"Page {page}", links + names)

    return answer


@pytest.mark.parametrize("politeness", [Settings(seed=1), fixed(0.01)], ids=["learned", "fixed"])
@pytest.mark.parametrize("mirrors", [False, True], ids=["only names", "mirrors"])
def test_real_pages_are_reached_beside_subdomains_without_end(
    mirrors: bool, politeness: Settings
) -> None:
    """With --scope site 285 of 300 pages of the seed's host are within 4,000 requests."""
    chosen = settings(1.0, politeness=politeness, max_urls=4000)

    crawled = virtual_crawl(
        subdomains(mirrors=mirrors),
        [SEED],
        chosen,
        address_of=at_one_address,
        until=lambda log: len(log) >= 4000 or (len(log) > 285 and len(real_pages(log)) >= 285),
    )

    assert len(real_pages(crawled.log)) >= 0.95 * PAGES


@pytest.mark.parametrize("address_of", [at_one_address, lambda host: f"address of {host}"])
def test_names_that_were_only_met_as_links_are_looked_up_slowly(
    address_of: Callable[[str], str],
) -> None:
    """20 at once, then one a second, wherever they lead."""
    chosen = settings(0.01, max_urls=600)

    crawled = virtual_crawl(subdomains(mirrors=False), [SEED], chosen, address_of=address_of)

    firsts: dict[str, float] = {}
    for asked in crawled.log:
        firsts.setdefault(asked.host, asked.t)
    del firsts[HOST]
    assert all(count <= 20 + t + 1 for count, t in enumerate(sorted(firsts.values()), start=1))
    assert len(firsts) > 40


def test_names_of_a_list_are_looked_up_at_once() -> None:
    """Seeds were asked for: they wait for nothing but their pace."""
    seeds = [f"https://n{number}.site.example/" for number in range(NAMES)]

    crawled = crawl_names(seeds, 0.5, address_of=lambda host: f"address of {host}")

    assert {asked.t for asked in crawled.log[:NAMES]} == {0.0}


def test_memory_of_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that share nothing are forgotten first; those that share a limit keep it."""
    monkeypatch.setattr("mannerly.crawler.frontier.addresses._MAX_NAMES", 100)
    politeness = Politeness(fixed(1.0))
    site_pacing = Politeness(fixed(1.0))
    addresses = Addresses(politeness, site_pacing, lambda host: True, max_rate=64.0)

    def meet(host: str, address: str) -> bool:
        decision = politeness.reserve(host, now=0.0)
        assert isinstance(decision, Grant)
        left = addresses.may_leave(host, address, decision.permit, now=0.0)
        politeness.report(decision.permit, Response(200, 0.1), now=0.0)
        return left

    names = [meet(f"n{number}.site.example", ADDRESS) for number in range(7)]
    for number in range(1000):
        meet(f"www.s{number}.example", f"address {number}")

    assert names == [True] * 5 + [False] * 2
    assert len(addresses) <= 100
    assert not meet("another.site.example", ADDRESS)


def test_gap_between_names_of_one_address_counts_from_the_departure() -> None:
    """A request that took long to connect delays the next one of another name, too."""
    core, site_pacing = Politeness(fixed(0.1)), Politeness(fixed(0.1))
    limits = Addresses(core, site_pacing, lambda _: True, max_rate=1.0)
    left: list[float] = []
    now = 0.0
    for host in ("a.example", "b.example"):  # their addresses become known
        decision = limits.reserve(host, now=now)
        assert isinstance(decision, Grant)
        assert limits.may_leave(host, ADDRESS, decision.permit, now=now)
        now += 2.0

    for host, connects_s in (("a.example", 0.9), ("b.example", 0.0), ("a.example", 0.0)):
        while not isinstance(decision := limits.reserve(host, now=now), Grant):
            assert decision.until is not None
            now = decision.until
        if limits.may_leave(host, ADDRESS, decision.permit, now=now + connects_s):
            left.append(now + connects_s)

    assert all(later - earlier >= 1.0 for earlier, later in pairwise(left))
    assert len(left) == 3
