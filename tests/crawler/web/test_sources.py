"""Public indexes as seeds, and pages too big for the loop: both end to end, on real sockets."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.harness.sites import Request, serving

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.seeds import COMMONCRAWL, CT, read_commoncrawl, read_ct
from mannerly.politeness import Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

QUICK = Settings(strategy="fixed", max_rate="unlimited", min_delay_s=0.0)


@contextmanager
def site_of(pages: Mapping[str, tuple[str, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A web of one host: path → (content type, body). Yields its origin and what was asked for."""
    asked: list[str] = []

    def respond(request: Request) -> None:
        asked.append(request.path)
        kind, body = pages.get(request.path, ("text/plain", b""))
        status = 200 if request.path in pages else 404
        request.answer(status, body, {"Content-Type": kind})

    with serving(respond) as origin:
        yield origin, asked


def test_certificates_name_hosts_and_wildcards_are_none() -> None:
    """Each host once, as a home page; wildcards, mail addresses and other values do not count."""
    rows = [
        {"name_value": "a.example\n*.example\nB.example"},
        {"name_value": "a.example"},
        {"name_value": "me@a.example"},
        {"name": 1},
        "x",
    ]

    found = list(read_ct(json.dumps(rows).encode()))

    assert found == ["https://a.example/", "https://b.example/"]
    assert list(read_ct(b"<html>busy</html>")) == []


def test_index_lines_name_pages() -> None:
    """One JSON object a line; a line that is none is passed over."""
    body = b'{"url": "http://e.example/a"}\nrate limited\n{"url": "mailto:x"}\n[]\n'

    assert list(read_commoncrawl(body)) == ["http://e.example/a"]


def test_address_needs_a_place_for_the_site() -> None:
    """A mirror's address without {site} would ask the same for every site: it is refused."""
    assert CT.address("https://m.example/?q={site}", "e.com") == "https://m.example/?q=e.com"
    with pytest.raises(ValueError, match=r"commoncrawl needs \{site\}"):
        COMMONCRAWL.address("https://m.example/", "e.com")
    with pytest.raises((ValueError, SettingsError), match="ct"):
        CrawlSettings(ct_url="https://m.example/")


def test_pages_of_an_index_are_seeds(tmp_path: Path) -> None:
    """What the index names is fetched although no page links to it, and only what is in scope."""
    pages = {"/": ("text/html", b"<p>home"), "/hidden": ("text/html", b"<p>hidden")}
    with site_of(pages) as (site, asked):
        lines = [{"url": f"{site}/hidden"}, {"url": "http://elsewhere.example/"}]
        listing = "\n".join(map(json.dumps, lines)).encode()
        with site_of({"/index?url=127.0.0.1": ("text/plain", listing)}) as (index, wanted):
            settings = CrawlSettings(
                seeding="commoncrawl",
                commoncrawl_url=index + "/index?url={site}",
                allow_net=(index.removeprefix("http://"),),
                politeness=QUICK,
            )
            result = crawl(settings, [site + "/"], tmp_path / "c")

    assert result.ending is Ending.FINISHED
    assert sorted(asked) == ["/", "/hidden", "/robots.txt"]
    assert sorted(wanted) == ["/index?url=127.0.0.1", "/robots.txt"]


def test_big_page_is_parsed_elsewhere_and_its_links_are_followed(tmp_path: Path) -> None:
    """More than a megabyte of markup goes to another process, and nothing of it is lost."""
    links = b'<a href="/a">a</a><a href="/b">b</a>'
    big = b"<title>big</title>" + b"<p>filler</p>" * 100_000 + links
    pages = {
        "/": ("text/html", big),
        "/a": ("text/html", b"<p>a"),
        "/b": ("text/html", b"<p>b"),
    }
    with site_of(pages) as (site, asked):
        settings = CrawlSettings(seeding="none", politeness=QUICK)
        result = crawl(settings, [site + "/"], tmp_path / "c")

    assert (result.ending, result.stats.fetched, result.pending) == (Ending.FINISHED, 3, 0)
    assert sorted(asked) == ["/", "/a", "/b", "/robots.txt"]
