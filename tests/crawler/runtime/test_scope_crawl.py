"""Which URLs a whole crawl fetches, by the servers' log: each at most once, and every one in scope.

The demonstration web has a tree of pages under every host, so what a complete crawl must have
fetched is known exactly. Names under `.localhost` are loopback to the client, which gives a site
with more than one host.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.runtime.harness import kept, modest, page_requests

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.runtime.offload import Offload
from mannerly.crawler.web.choices import ScopeMode
from mannerly.demo import DemoWeb, Feature, Record, Site, SitemapKind, paths, plain_sites
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


pytestmark = pytest.mark.processes

HTML = "Content-Type: text/html"
EAGER = Settings(strategy="fixed", delay_s=0.02, max_rate="unlimited")


def asked(records: Iterable[Record]) -> list[str]:
    """The paths of the pages that were asked for, in order of their names."""
    return sorted(record.path for record in page_requests(records))


def paths_of(server: RawServer) -> list[str]:
    """What a raw server was asked for, robots.txt aside."""
    found = (head.split()[1] for head in server.heads)
    return sorted(path for path in found if path != "/robots.txt")


def test_every_page_is_found_and_fetched_once(tmp_path: Path) -> None:
    """Relative, absolute, with fragments and tracking parameters, twice on a page: one request."""
    site = Site(name="site", pages=60, features=frozenset({Feature.VARIANTS, Feature.CANONICAL}))

    with DemoWeb([site]) as web:
        result = crawl(modest(politeness=EAGER), web.seeds(), tmp_path / "crawl")
        log = web.log()

    plain = [path for path in asked(log) if "?" not in path]
    assert result.ending is Ending.FINISHED
    assert plain == sorted(paths(site))
    assert max(Counter(asked(log)).values()) == 1
    records = kept(tmp_path / "crawl").pages
    assert Counter(page.url for page in records) == Counter(
        f"http://{record.host}{record.path}" for record in page_requests(log)
    )
    printed = [page for page in records if page.url.endswith("?view=print")]
    assert printed
    assert all(page.canonical == page.url.removesuffix("?view=print") for page in printed)


def test_a_host_scope_stays_and_any_scope_goes(tmp_path: Path) -> None:
    """With neighbours linked from every page, `host` keeps to the seed and `any` takes all."""
    sites = plain_sites(3, pages=8, neighbours=2)

    with DemoWeb(sites) as web:
        seed = [web.url("plain-0")]
        crawl(modest(politeness=EAGER), seed, tmp_path / "host")
        at_home = {record.host for record in web.log()}
        settings = modest(politeness=EAGER, scope=ScopeMode.ANY, allow_net=("127.0.0.0/8",))
        crawl(settings, seed, tmp_path / "any")
        everywhere = web.log()
        hosts = web.hosts

    assert at_home == {hosts[0]}
    for host in hosts[1:]:
        assert asked(record for record in everywhere if record.host == host) == sorted(
            paths(sites[1])
        )


def test_a_prefix_scope_and_globs_draw_the_border(tmp_path: Path) -> None:
    """Below the seed's folder; but not what is excluded, and only what is included."""
    site = Site(name="site", pages=60)
    within = [path for path in paths(site) if path.startswith("/section-3/")]

    with DemoWeb([site]) as web:
        crawl(
            modest(politeness=EAGER, scope=ScopeMode.PREFIX),
            [web.url("site", path) for path in within[:2]],
            tmp_path / "prefix",
        )
        below = len(web.log())
        prefixed = asked(web.log())
        crawl(
            modest(politeness=EAGER, include=("*/section-*",), exclude=("*/section-1/*",)),
            web.seeds(),
            tmp_path / "globs",
        )
        globbed = asked(web.log()[below:])

    assert set(within[:2]) <= set(prefixed) <= set(within)
    assert "/" in globbed
    assert not any(path.startswith("/section-1/") for path in globbed)
    assert {path.split("/")[1] for path in globbed if path != "/"} == {
        f"section-{number}" for number in (0, 2, 3, 4, 5, 6)
    }


def test_what_is_excluded_is_not_fetched_even_as_a_seed_or_a_sitemap(tmp_path: Path) -> None:
    """Never means never: neither the operator's own list nor robots.txt leads there."""
    site = Site(name="site", pages=4, sitemap=SitemapKind.INDEX)

    with DemoWeb([site]) as web:
        seeds = [*web.seeds(), web.url("site", "/r/secret")]
        settings = modest(politeness=EAGER, exclude=("*/r/*", "*.xml"), seeding="sitemap")
        result = crawl(settings, seeds, tmp_path / "crawl")
        found = [record.path for record in web.log()]

    assert result.ending is Ending.FINISHED
    assert sorted(found) == sorted(["/robots.txt", *paths(site)])


def test_a_site_scope_takes_the_other_hosts_of_the_site(tmp_path: Path) -> None:
    """www.shop and blog.shop are one site; another host is not."""
    pages: dict[str, bytes] = {"/blog": answer(), "/alien": answer()}

    with RawServer(routes(pages)) as server:
        home = (
            f'<a href="{server.url("/blog", host="blog.shop.localhost")}">blog</a>'
            f'<a href="{server.url("/alien", host="alien.localhost")}">alien</a>'
        )
        pages["/"] = answer(home.encode(), "200 OK", HTML)
        settings = modest(scope=ScopeMode.SITE, allow_net=("127.0.0.0/8", "::1/128"))
        result = crawl(settings, [server.url(host="www.shop.localhost")], tmp_path / "crawl")

    assert paths_of(server) == ["/", "/blog"]
    assert result.stats.skipped["off_site"] == 1


def test_limits_of_depth_and_number_hold_exactly(tmp_path: Path) -> None:
    """max_depth counts links from the seed; max_per_host counts pages, however many are at once."""
    deep = Site(name="deep", pages=40, links=4)
    many = Site(name="many", pages=200, latency_s=0.3)

    with DemoWeb([deep, many]) as web:
        crawl(modest(politeness=EAGER, max_depth=2), [web.url("deep")], tmp_path / "deep")
        settings = modest(
            politeness=EAGER, max_per_host=10, exclude=("*.xml",), seeding="sitemap", concurrency=64
        )
        result = crawl(settings, [web.url("many")], tmp_path / "many")
        shallow, few = asked(web.log_of("deep")), asked(web.log_of("many"))

    depths = {page.depth for page in kept(tmp_path / "deep").pages}
    assert depths == {0, 1, 2}
    assert 1 < len(shallow) < 40
    assert len(few) == 10
    assert result.ending is Ending.FINISHED
    assert result.stats.skipped["max_per_host"] > 0
    assert set(kept(tmp_path / "many").skipped.values()) == {"max_per_host"}


def test_pages_that_are_read_elsewhere_count_against_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long page is neither fetched nor under way while another process reads it, and counts."""
    big = Site(name="big", pages=20, size=BIG_BYTES + 1, disallow=())
    given: list[object] = []
    give = Offload[object].give
    monkeypatch.setattr(
        Offload, "give", lambda self, tag, *work: (given.append(tag), give(self, tag, *work))
    )

    with DemoWeb([big]) as web:
        settings = modest(politeness=EAGER, max_per_host=4, seeding="sitemap")
        result = crawl(settings, web.seeds(), tmp_path / "crawl")
        fetched = asked(web.log())

    assert result.ending is Ending.FINISHED
    assert len(fetched) == len(given) == 4
    assert result.stats.skipped["max_per_host"] > 0


def test_nofollow_is_kept_to(tmp_path: Path) -> None:
    """A link marked nofollow, and every link of a page that says so, is not followed."""
    site = Site(name="site", pages=5, features=frozenset({Feature.NOFOLLOW}))

    with DemoWeb([site]) as web:
        crawl(modest(politeness=EAGER), web.seeds(), tmp_path / "crawl")
        found = {record.path.split("/")[1] for record in web.log()}

    assert {"noindex", "dead-end"} <= found
    assert not {"nofollow", "hidden"} & found


def test_links_are_read_from_the_base_that_a_page_names(tmp_path: Path) -> None:
    """<base href> moves relative links; header and meta forbid following alike."""
    pages = {
        "/": answer(b'<base href="/deep/er/"><a href="page"><a href="/closed">', "200 OK", HTML),
        "/deep/er/page": answer(b'<a href="../up">', "200 OK", HTML),
        "/deep/up": answer(),
        "/closed": answer(b'<a href="/never">', "200 OK", HTML, "X-Robots-Tag: nofollow"),
        "/never": answer(),
    }

    with RawServer(routes(pages), "127.0.0.2") as server:
        crawl(modest(), [server.url()], tmp_path / "crawl")

    # The second page names no base, so its links are relative to itself.
    assert paths_of(server) == ["/", "/closed", "/deep/er/page", "/deep/up"]


def test_a_seed_that_moves_takes_the_scope_along(tmp_path: Path) -> None:
    """shop.localhost redirects to www.shop.localhost: a crawl of one page would be useless."""
    pages: dict[str, bytes] = {"/two": answer()}

    with RawServer(routes(pages)) as server:
        moved = server.url("/home", host="www.shop.localhost")
        pages["/"] = answer(b"", "301 Moved Permanently", f"Location: {moved}")
        pages["/home"] = answer(b'<a href="/two">', "200 OK", HTML)
        settings = modest(allow_net=("127.0.0.0/8", "::1/128"))
        result = crawl(settings, [server.url(host="old.shop.localhost")], tmp_path / "crawl")

    assert result.ending is Ending.FINISHED
    assert paths_of(server) == ["/", "/home", "/two"]
