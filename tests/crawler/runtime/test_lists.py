"""Hostile lists of URLs on real sockets: they cost little, and pages beside them are fetched."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.harness import kept, modest

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.politeness import Settings

if TYPE_CHECKING:
    import socket
    from pathlib import Path

EAGER = Settings(strategy="fixed", delay_s=0.002, max_rate="unlimited", seed=1)
HTML = "Content-Type: text/html"
PAGES = 40
LINKS = "".join(f'<a href="/p/{number}">' for number in range(PAGES)).encode()


class Site:
    """A host with some pages, and other answers by path; it notes what it was asked for."""

    def __init__(self, **others: bytes) -> None:
        self.asked: list[str] = []
        self.others = {f"/{name.replace('_', '.')}": body for name, body in others.items()}

    def __call__(self, connection: socket.socket, path: str) -> bool:
        self.asked.append(path)
        connection.sendall(self.answer(path))
        return True

    def answer(self, path: str) -> bytes:
        if path in self.others:
            return answer(self.others[path], "200 OK")
        if path == "/" or path.startswith("/p/"):
            return answer(path.encode() + LINKS, "200 OK", HTML)
        return answer(b"", "404 Not Found")

    @property
    def pages(self) -> list[str]:
        return [path for path in self.asked if path == "/" or path.startswith("/p/")]


class EndlessIndex(Site):
    """A site whose sitemaps are indexes of a thousand further ones."""

    def answer(self, path: str) -> bytes:
        if not path.startswith("/sitemap"):
            return super().answer(path)
        places = "".join(f"<sitemap><loc>{path}/{n}</loc></sitemap>" for n in range(1000))
        return answer(f"<sitemapindex>{places}</sitemapindex>".encode())


def test_page_limit_is_reached_beside_an_endless_index(tmp_path: Path) -> None:
    """The crawl fetches as many pages as it was asked for, few sitemaps, and ends there."""
    site = EndlessIndex()
    with RawServer(site) as server:
        settings = modest(politeness=EAGER, seeding="sitemap", max_urls=PAGES)
        result = crawl(settings, [server.url("/")], tmp_path / "c")

    sitemaps = [path for path in site.asked if path.startswith("/sitemap")]
    assert result.ending is Ending.MAX_URLS
    assert len(site.pages) == result.stats.fetched == PAGES
    assert len(sitemaps) <= 11


def test_endless_index_ends_at_its_limit_and_says_so(tmp_path: Path) -> None:
    """Without a page limit the crawl ends, too: all pages, and --max-sitemaps sitemaps."""
    site = EndlessIndex()
    with RawServer(site) as server:
        settings = modest(politeness=EAGER, seeding="sitemap", max_sitemaps=25)
        result = crawl(settings, [server.url("/")], tmp_path / "c")

    sitemaps = [path for path in site.asked if path.startswith("/sitemap")]
    assert (result.ending, result.pending) == (Ending.FINISHED, 0)
    assert len(site.pages) == PAGES + 1
    assert len(sitemaps) == 25
    assert result.stats.skipped["sitemap_limit"] > 10_000


def test_sitemap_with_declarations_costs_nothing(tmp_path: Path) -> None:
    """8 KB that a parser would multiply to gigabytes are refused; every page is fetched."""
    declaration = b'<!DOCTYPE urlset [<!ATTLIST x a CDATA "' + b"v" * 900_000 + b'">]>'
    bomb = gzip.compress(declaration + b"<urlset>" + b"<x/>" * 1_000_000 + b"</urlset>")
    site = Site(sitemap_xml=bomb)
    with RawServer(site) as server:
        result = crawl(
            modest(politeness=EAGER, seeding="sitemap"), [server.url("/")], tmp_path / "c"
        )

    assert len(bomb) < 20_000
    assert result.ending is Ending.FINISHED
    assert len(site.pages) == PAGES + 1
    assert result.seconds < 60.0  # about 1


def test_robots_sends_nothing_to_hosts_out_of_scope(tmp_path: Path) -> None:
    """10,000 Sitemap lines for another host bring it no request, not even for its robots.txt."""
    victim = Site()
    with RawServer(victim, "127.0.0.98") as other:
        lines = "".join(f"Sitemap: {other.url(f'/{n}.xml')}\n" for n in range(10_000))
        site = Site(robots_txt=lines.encode())
        with RawServer(site) as server:
            settings = modest(
                politeness=EAGER, seeding="sitemap", allow_net=("127.0.0.0/8",), max_urls=5
            )
            result = crawl(settings, [server.url("/")], tmp_path / "c")

    assert victim.asked == []
    assert result.stats.fetched == 5
    assert len(kept(tmp_path / "c").pages) == 5


def test_memory_of_a_large_list_is_free_when_it_was_read(tmp_path: Path) -> None:
    """Its URLs are committed in slices; meanwhile and afterwards pages are fetched."""
    names = "".join(f"<url><loc>/p/{'x' * 80}{n}</loc></url>" for n in range(12_000))
    site = Site(sitemap_xml=f"<urlset>{names}</urlset>".encode())
    settings = modest(
        politeness=EAGER, memory_limit=6_000_000, max_urls=300, duration_s=10.0, seeding="sitemap"
    )
    with RawServer(site) as server:
        result = crawl(settings, [server.url("/")], tmp_path / "c")

    assert result.ending is Ending.MAX_URLS
