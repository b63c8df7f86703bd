"""The hostile web in one crawl: traps, bombs, broken answers; it ends, and says what it met.

Every hostile host is crawled at once with a plain one, whose pages must all be fetched as if it
were alone. The reasons are read from the store, the requests from the servers.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, reset, routes
from tests.crawler.runtime.harness import Kept, kept, modest, page_requests

from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.demo import DemoWeb, Feature, Record, Site, by_host, paths, plain_sites
from mannerly.exports import Choice, export
from mannerly.politeness import Settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

HTML = "Content-Type: text/html"
EAGER = Settings(strategy="fixed", delay_s=0.04, max_rate="unlimited", seed=1)
PER_HOST = 60
TIMEOUT_S = 2.0
HOPS = 10
MAX_BYTES = 16 * 1024 * 1024

TRAPS = Site(name="traps", pages=30, features=frozenset({Feature.CALENDAR, Feature.MAZE}))
BODIES = Site(
    name="bodies", pages=4, features=frozenset({Feature.ENDLESS, Feature.BOMB, Feature.SLOW})
)
REDIRECTS = Site(name="redirects", pages=8, features=frozenset({Feature.REDIRECTS}))
(PLAIN,) = plain_sites(1, pages=55)

BROKEN = {
    "/self": answer(b"", "302 Found", "Location: /self"),
    "/garbage": answer(b"", "302 Found", "Location: http://[::bad/"),
    "/script": answer(b"", "302 Found", "Location: javascript:alert(1)"),
    "/nowhere": answer(b"", "302 Found"),
    "/header": answer(b"", "200 OK", "X-Long: " + "x" * 1_000_000),
    "/status": b"HTTP/1.1 fine\r\n\r\n",
    "/lie": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nnot that long",
    "/title": answer(
        b"<title>\xff\xfe \x1b[31m\x00 \xed\xa0\x80 \xe2\x80\xae=cmd</title>", "200 OK", HTML
    ),
    "/links": answer(b"".join(b"<a href=/p/%d>" % n for n in range(1_000_000)), "200 OK", HTML),
}


def broken_host(connection: socket.socket, path: str) -> bool:
    """A host on which hardly anything is right."""
    if path in BROKEN:
        connection.sendall(BROKEN[path])
        return path != "/lie"
    if path == "/reset":
        return reset(connection)
    if path.startswith("/chain/"):
        onward = f"Location: /chain/{int(path.rpartition('/')[2]) + 1}"
        connection.sendall(answer(b"", "301 Moved", onward))
        return True
    if path == "/":
        places = (*BROKEN, "/reset", "/chain/0")
        home = "".join(f'<a href="{place}">{place}</a>' for place in places)
        connection.sendall(answer(home.encode(), "200 OK", HTML))
        return True
    connection.sendall(answer(b"", "404 Not Found"))
    return True


class Crawled(NamedTuple):
    """The one crawl, from both ends."""

    web: DemoWeb
    server: RawServer
    data_dir: Path
    result: CrawlResult
    store: Kept
    log: dict[str, list[Record]]

    def error(self, url: str) -> str | None:
        """The reason in a page's record."""
        return next(page.error for page in self.store.pages if page.url == url)

    def broken(self, path: str) -> str | None:
        return self.error(self.server.url(path))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    data_dir = tmp_path_factory.mktemp("hostile") / "crawl"
    settings = modest(
        politeness=EAGER,
        concurrency=64,
        max_depth=12,
        max_per_host=PER_HOST,
        max_bytes=MAX_BYTES,
        max_redirects=HOPS,
        timeout_s=TIMEOUT_S,
        exclude=("*/p/*",),
    )
    sites = (TRAPS, BODIES, REDIRECTS, PLAIN)
    with DemoWeb(sites) as web, RawServer(broken_host, "127.0.0.99") as server:
        result = crawl(settings, [*web.seeds(), server.url()], data_dir)
        named = {web.sites[host].name: log for host, log in by_host(web.log()).items()}
        yield Crawled(web, server, data_dir, result, kept(data_dir), named)


def test_a_crawl_of_the_hostile_web_ends(crawled: Crawled) -> None:
    """Nothing is left over, nothing hangs, and no manners are forgotten."""
    result = crawled.result

    assert (result.ending, result.pending) == (Ending.FINISHED, 0)
    assert result.stats.requests.too_early == 0


def test_a_plain_host_is_crawled_as_if_it_were_alone(crawled: Crawled) -> None:
    """All its pages, each once, and no hostile neighbour has two more turns while it waits."""
    log = crawled.log["plain-0"]
    turns = [
        sum(earlier.t < record.t < later.t for record in neighbour)
        for neighbour in crawled.log.values()
        for earlier, later in pairwise(log)
    ]

    assert sorted(record.path for record in page_requests(log)) == sorted(paths(PLAIN))
    assert max(turns) <= 2


def test_traps_take_no_more_than_their_share(crawled: Crawled) -> None:
    """A calendar and a maze without end cost `max_per_host`, and the real pages are fetched."""
    # A page that came too late on a busy machine is asked for again, and is still one page.
    asked = {record.path for record in page_requests(crawled.log["traps"])}

    assert len(asked) == PER_HOST
    assert len({*paths(TRAPS)} & asked) >= 0.95 * TRAPS.pages
    assert "max_per_host" in crawled.store.skipped.values()


def test_bodies_without_end_are_cut(crawled: Crawled) -> None:
    """An endless page and a bomb end at the cap, a slow one at the timeout; each says so."""
    url = crawled.web.url

    assert crawled.error(url("bodies", "/endless")) == "cut_at_cap"
    assert crawled.error(url("bodies", "/bomb")) == "cut_at_cap"
    assert crawled.error(url("bodies", "/slow/page")) == "timeout"
    assert crawled.error(url("bodies", "/slow/drip")) == "timeout"
    assert all(page.bytes <= MAX_BYTES for page in crawled.store.pages)
    assert {*paths(BODIES)} <= {record.path for record in crawled.log["bodies"]}


def test_redirects_end(crawled: Crawled) -> None:
    """A loop stops where it closes, a chain after ten hops, and nonsense is called nonsense."""
    asked = [record.path for record in crawled.log["redirects"]]
    chain = [head for head in crawled.server.heads if head.startswith("GET /chain/")]

    assert asked.count("/r/loop/a") == asked.count("/r/loop/b") == 1
    assert len(chain) == HOPS + 1
    assert crawled.broken(f"/chain/{HOPS}") == "too_many_redirects"
    assert crawled.broken("/self") == "redirect_loop"
    for path in ("/garbage", "/script", "/nowhere"):
        assert crawled.broken(path) == "bad_redirect"
    for path in ("/r/file", "/r/empty"):
        assert crawled.error(crawled.web.url("redirects", path)) in (
            "bad_redirect",
            "redirect_loop",
        )


def test_broken_answers_get_a_reason(crawled: Crawled) -> None:
    """What is no HTTP, too long or cut off is recorded; what may pass is tried three times."""
    tried = [head.split()[1] for head in crawled.server.heads]

    assert crawled.broken("/header") == "too_large"
    assert crawled.broken("/status") == "protocol"
    assert crawled.broken("/lie") == "reset"
    assert crawled.broken("/reset") == "reset"
    # A reset on a kept-alive connection may have been a stale one: that is tried once more.
    assert tried.count("/reset") in (Settings().max_attempts, Settings().max_attempts + 1)
    assert tried.count("/header") == tried.count("/status") == 1


def test_a_page_of_a_million_links_is_read_in_part(crawled: Crawled) -> None:
    """Ten thousand links of one page are enough, and the record tells that there were more."""
    page = next(page for page in crawled.store.pages if page.url == crawled.server.url("/links"))

    assert page.status == 200
    assert page.links == 10_000
    assert page.error == "links_capped"
    assert crawled.result.stats.skipped["excluded"] >= 10_000


def test_what_was_crawled_can_be_exported(crawled: Crawled, tmp_path: Path) -> None:
    """Whatever a page writes, an export is valid UTF-8 and JSON, without control characters."""
    target = tmp_path / "pages.jsonl"

    export(crawled.data_dir, str(target), choice=Choice(include_skipped=True))

    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    titles = [row["title"] for row in rows if row.get("title")]
    assert len(rows) == len(crawled.store.pages) + len(crawled.store.skipped)
    assert all(title.isprintable() for title in titles)


def test_a_host_that_only_fails_is_given_up(tmp_path: Path) -> None:
    """Its queue is emptied with the reason, what is found later too, and the crawl ends."""
    failing: dict[str, bytes] = {
        "/": answer(b"".join(b"<a href=/%d>" % n for n in range(40)), "200 OK", HTML),
        **{f"/{n}": answer(b"", "500 Oops") for n in range(40)},
    }
    pace = Settings(
        strategy="fixed",
        delay_s=0.02,
        max_rate="unlimited",
        max_attempts=1,
        breaker_consecutive=100,
        breaker_min_samples=100,
    )

    with RawServer(routes(failing), "127.0.0.2") as server:
        chain = {f"/{n}": answer(b"<a href=/%d>" % (n + 1), "200 OK", HTML) for n in range(15)}
        chain["/15"] = answer(f'<a href="{server.url("/late")}">'.encode(), "200 OK", HTML)
        with RawServer(routes(chain), "127.0.0.3") as other:
            seeds = [server.url(), other.url("/0")]
            settings = modest(politeness=pace, host_failure_limit=3)
            result = crawl(settings, seeds, tmp_path / "crawl")

    reasons = kept(tmp_path / "crawl").skipped
    assert result.ending is Ending.FINISHED
    assert len(server.heads) < 15
    assert reasons[server.url("/late")] == reasons[server.url("/39")]
    assert reasons[server.url("/late")].startswith("host_retired")
