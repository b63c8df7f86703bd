"""Lists of URLs: scope is asked first, limits count what is left, and no name is looked up."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.kinds import Kind
from mannerly.crawler.page.listings import SITEMAP_NESTING, read_list
from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.scope import Scope
from mannerly.crawler.web.seeds import MAX_HOSTS
from mannerly.crawler.web.urls import DEFAULT_RULES

if TYPE_CHECKING:
    from mannerly.crawler.page.listings import Listing

SEED = "https://www.e.example/"
SITE = Scope((SEED,), ScopeMode.SITE)
WALL = 1_700_000_000.0


def listing(kind: Kind, body: bytes, scope: Scope = SITE, nesting: int = 0) -> Listing:
    return read_list(kind, body, SEED + "list", nesting, scope, DEFAULT_RULES, WALL)


@pytest.fixture(autouse=True)
def no_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def names(count: int, domain: str) -> list[dict[str, str]]:
    return [{"name_value": f"h{number}.{domain}"} for number in range(count)]


def test_certificates_give_a_limited_number_of_hosts_in_scope() -> None:
    """Foreign names do not use up the limit, whatever their number."""
    rows = names(5000, "foreign.example") + names(5000, "e.example")

    found = listing(Kind.CT, json.dumps(rows).encode())

    assert len(found.pages) == MAX_HOSTS
    assert all(url.endswith(".e.example/") for url, _ in found.pages)
    assert found.passed_over == {"off_site": 5000, "list_limit": 5000 - MAX_HOSTS}


def test_public_index_gives_pages_of_a_limited_number_of_hosts() -> None:
    """Many pages of one host are taken, few of many hosts."""
    urls = [f"https://www.e.example/{number}" for number in range(3000)]
    urls += [f"https://h{number}.e.example/" for number in range(3000)]

    found = listing(Kind.COMMONCRAWL, "\n".join(json.dumps({"url": url}) for url in urls).encode())

    assert len(found.pages) == 3000 + MAX_HOSTS - 1
    assert found.passed_over == {"list_limit": 3000 - MAX_HOSTS + 1}


def test_index_of_sitemaps_leads_to_its_own_host_and_into_scope() -> None:
    """A sitemap of another host is taken only where the scope includes that host."""
    places = ("/own.xml", "https://cdn.e.example/a.xml", "https://foreign.example/b.xml", "//[")
    entries = "".join(f"<sitemap><loc>{place}</loc></sitemap>" for place in places)

    found = listing(Kind.SITEMAP, f"<sitemapindex>{entries}</sitemapindex>".encode())

    assert found.sitemaps == [SEED + "own.xml", "https://cdn.e.example/a.xml"]
    assert found.passed_over == {"off_site": 1, "malformed": 1}


def test_indexes_of_sitemaps_are_followed_two_levels_deep() -> None:
    """What a deeper index names is counted as beyond the limit."""
    body = b"<sitemapindex><sitemap><loc>/a.xml</loc></sitemap></sitemapindex>"

    found = [listing(Kind.SITEMAP, body, nesting=depth) for depth in range(SITEMAP_NESTING + 1)]

    assert [len(each.sitemaps) for each in found] == [1, 1, 0]
    assert found[-1].passed_over == {"sitemap_limit": 1}


def test_sitemap_tells_why_a_url_is_not_taken() -> None:
    """Reasons are those of links on a page."""
    places = ("/a", "mailto:x", "/" + "x" * 3000, "https://foreign.example/", "http://[")
    entries = "".join(f"<url><loc>{place}</loc></url>" for place in places)

    found = listing(Kind.SITEMAP, f"<urlset>{entries}</urlset>".encode())

    assert [url for url, _ in found.pages] == [SEED + "a"]
    assert found.passed_over == {"scheme": 1, "too_long": 1, "off_site": 1, "malformed": 1}
