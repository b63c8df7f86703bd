"""No page makes the crawler talk to our own network: a canary listens there, and hears nothing.

The seeds of these crawls are private themselves (127.0.0.2), which opens exactly their host:port.
The canary listens on 127.0.0.1. Every way in which a page, a redirect, a sitemap or a robots.txt
can name it is tried, while the crawl of the seeds goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.runtime.harness import kept, modest

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.web.choices import ScopeMode
from mannerly.demo import DemoWeb, Feature, Site, paths
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from pathlib import Path

HTML = "Content-Type: text/html"
OWN_NETWORK = frozenset({Feature.INTERNAL, Feature.REDIRECTS})
EAGER = Settings(strategy="fixed", delay_s=0.02, max_rate="unlimited")
BLOCKED = {"blocked_address", "blocked_port"}


def internal(pages: int = 6) -> Site:
    """A host whose pages link into our own network in six spellings."""
    return Site(name="internal", pages=pages, features=OWN_NETWORK)


@pytest.mark.processes
@pytest.mark.parametrize("ignore_robots", [False, True])
def test_no_link_or_redirect_reaches_the_canary(tmp_path: Path, ignore_robots: bool) -> None:
    """Links in every spelling, and a redirect, are refused with a reason; the site is crawled."""
    settings = modest(politeness=EAGER, scope=ScopeMode.ANY, ignore_robots=ignore_robots)

    with DemoWeb([internal()]) as web:
        seeds = [web.url("internal"), web.url("internal", "/r/canary")]
        result = crawl(settings, seeds, tmp_path / "crawl")
        log = web.log()
        canary = web.canary

    store = kept(tmp_path / "crawl")
    # Without robots.txt the page itself is the first that is refused, and so has a record.
    reasons = store.skipped | {page.url: page.error for page in store.pages}
    refused = {url for url, reason in reasons.items() if reason in BLOCKED}
    port = canary.rpartition(":")[2]
    assert result.ending is Ending.FINISHED
    assert [record for record in log if record.host == canary] == []
    assert {*paths(internal())} <= {record.path for record in log}
    # Most spellings are one address, and the URL standard writes them as one.
    assert refused >= {
        f"http://127.0.0.1:{port}/canary",
        f"http://localhost:{port}/canary",
        f"http://[::ffff:7f00:1]:{port}/canary",
        "http://169.254.169.254/latest/meta-data/",
    }


@pytest.mark.processes
def test_allow_net_opens_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    """With the canary's own host:port allowed it is asked, and its robots.txt obeyed; the same
    place under another name stays closed.
    """
    with DemoWeb([internal()]) as web:
        settings = modest(politeness=EAGER, scope=ScopeMode.ANY, allow_net=(web.canary,))
        result = crawl(settings, web.seeds(), tmp_path / "crawl")
        log = web.log()
        canary = web.canary

    reasons = kept(tmp_path / "crawl").skipped
    assert result.ending is Ending.FINISHED
    assert [record.path for record in log if record.host == canary] == ["/robots.txt"]
    assert reasons[f"http://{canary}/canary"] == "robots"
    assert reasons[f"http://localhost:{canary.rpartition(':')[2]}/canary"] in BLOCKED


def hostile_pages(own: str, canary: str) -> dict[str, bytes]:
    """The site at `own`, which names the canary wherever a URL may stand."""
    home = (
        f'<base href="http://{canary}/"><meta http-equiv="refresh" content="0; url=/refreshed">'
        f'<link rel="canonical" href="/canonical"><a href="relative">on</a>'
        f'<iframe src="//{canary}/frame"></iframe><area href="http://{canary}/area">'
    )
    sitemap = (
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<url><loc>http://{canary}/from-sitemap</loc></url></urlset>"
    )
    index = (
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<sitemap><loc>http://{canary}/child.xml</loc></sitemap></sitemapindex>"
    )
    maps = (f"{canary}/sitemap.xml", f"{own}/index.xml", f"{own}/moved.xml")
    rules = "".join(f"Sitemap: http://{place}\n" for place in maps)
    return {
        "/robots.txt": answer(rules.encode()),
        "/": answer(home.encode(), "200 OK", HTML),
        "/sitemap.xml": answer(sitemap.encode()),
        "/index.xml": answer(index.encode()),
        "/moved.xml": answer(b"", "302 Found", f"Location: http://{canary}/sitemap.xml"),
    }


@pytest.mark.parametrize("scope", [ScopeMode.ANY, ScopeMode.HOST])
def test_no_other_way_reaches_the_canary(tmp_path: Path, scope: ScopeMode) -> None:
    """Sitemaps, what robots.txt lists, <base>, refresh, frames: all of it meets the same guard."""
    with RawServer(routes({}), "127.0.0.1") as canary:
        pages: dict[str, bytes] = {}
        with RawServer(routes(pages), "127.0.0.2") as server:
            pages |= hostile_pages(f"127.0.0.2:{server.port}", f"127.0.0.1:{canary.port}")
            result = crawl(modest(scope=scope, seeding="sitemap"), [server.url()], tmp_path / "c")

    asked = [head.split()[1] for head in server.heads]
    assert result.ending is Ending.FINISHED
    assert canary.connections == 0
    assert sorted(asked) == ["/", "/index.xml", "/moved.xml", "/robots.txt", "/sitemap.xml"]


def test_a_robots_that_redirects_to_the_canary_is_not_followed(tmp_path: Path) -> None:
    """A redirect into a place that may not be contacted leads nowhere, and so forbids nothing."""
    with RawServer(routes({}), "127.0.0.1") as canary:
        pages = {
            "/robots.txt": answer(b"", "301 Moved", f"Location: {canary.url('/robots.txt')}"),
            "/": answer(b"home", "200 OK", HTML),
        }
        with RawServer(routes(pages), "127.0.0.2") as server:
            result = crawl(modest(), [server.url()], tmp_path / "crawl")

    assert result.ending is Ending.FINISHED
    assert canary.connections == 0
    assert [head.split()[1] for head in server.heads] == ["/robots.txt", "/"]


def test_a_private_seed_opens_its_own_port_alone(tmp_path: Path) -> None:
    """A crawl of localhost:8000 must not become a crawl of localhost:6379."""
    with RawServer(routes({}), "127.0.0.2") as neighbour:
        home = f'<a href="{neighbour.url("/")}">next door</a><a href="/own">on</a>'
        pages = {"/": answer(home.encode(), "200 OK", HTML), "/own": answer()}
        with RawServer(routes(pages), "127.0.0.2") as server:
            crawl(modest(scope=ScopeMode.ANY), [server.url()], tmp_path / "crawl")

    assert neighbour.connections == 0
    assert [head.split()[1] for head in server.heads] == ["/robots.txt", "/", "/own"]
    assert kept(tmp_path / "crawl").skipped == {neighbour.url("/"): "blocked_address"}


def test_a_wrong_setting_is_named_before_a_crawl_is_made() -> None:
    """An operator's slip must not leave half a crawl behind, nor end one in its middle."""
    with pytest.raises(ValueError, match="--allow-net takes a network"):
        modest(allow_net=("next door",))
    with pytest.raises(ValueError, match="User-Agent"):
        modest(user_agent="two\r\nlines")
    with pytest.raises(ValueError, match="From"):
        modest(contact="two\nlines")
