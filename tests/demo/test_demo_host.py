from __future__ import annotations

import gzip
import json
import zlib
from email.utils import parsedate_to_datetime
from itertools import islice
from math import inf

import pytest

from mannerly.demo import Feature, RobotsFile, Site, SitemapKind
from mannerly.demo.host import DemoHost
from mannerly.demo.pages import WebMap
from mannerly.demo.traps import BOMB_BYTES
from mannerly.demo.wire import SiteReply

ORIGIN = "http://127.0.0.2:8000"
WEB = WebMap((ORIGIN, "http://127.0.0.3:8000"), own=0, canary="127.0.0.1:9999")


def host(**description: object) -> DemoHost:
    plain = Site(name="host").to_json() | description
    return DemoHost(Site.from_json(plain), WEB, netloc="127.0.0.2:8000")


def location(reply: SiteReply) -> str:
    return dict(reply.headers)["Location"]


def test_limit_starts_with_the_first_request_whatever_the_clock_says() -> None:
    """A burst of two at second 5,000 is full, and the third is refused."""
    limited = host(limit="bucket:1:2")
    limited.in_flight = 1

    statuses = [limited.decide(5000.0, wall=0.0).status for _ in range(3)]

    assert statuses == [200, 200, 429]


def test_retry_after_in_seconds_names_the_instant_of_silence() -> None:
    """Counted from when the refusal is sent, not from when the request came."""
    limited = host(limit="bucket:0.1:1+retry-after")
    limited.decide(100.0, wall=0.0)

    answer = limited.decide(100.0, wall=0.0)

    assert answer.headers == {"retry-after": "10"}
    assert answer.silent_until == 100.0 + answer.latency_s + 10


def test_retry_after_date_is_on_the_wall_clock() -> None:
    """Both the date and the instant of silence mean the same moment of today."""
    limited = host(limit="bucket:0.1:1+retry-after-date")
    wall = 1_800_000_000.75
    limited.decide(100.0, wall)

    answer = limited.decide(100.0, wall)

    until = parsedate_to_datetime(answer.headers["retry-after"]).timestamp()
    assert 10 <= until - wall <= 12
    assert answer.silent_until is not None
    assert answer.silent_until - 100.0 == pytest.approx(until - wall)
    assert "date" not in answer.headers


def test_quota_is_announced_with_every_answer() -> None:
    """The model's RateLimit headers are passed on."""
    announced = host(limit="bucket:4:8+headers").decide(0.0, wall=0.0)

    assert announced.headers["ratelimit"] == '"default";r=7;t=1'
    assert announced.silent_until is None


def test_outage_is_counted_from_the_first_request() -> None:
    """Down from second 4 to 6 of the host's own time."""
    down = host(limit="bucket:100:100+outage=4-6")

    statuses = [down.decide(50.0 + t, wall=0.0).status for t in (0, 3, 4, 5.9, 6)]

    assert statuses == [200, 200, 503, 503, 200]


def test_robots_txt_without_rules() -> None:
    """Each form answers as its name says, and none gives away a rule."""
    cases = {"missing": 404, "forbidden": 403, "failing": 503, "html": 200, "closed": 0}
    for robots, status in cases.items():
        reply = host(robots=robots).content("/robots.txt")

        assert reply.status == status, robots
        assert b"Disallow" not in reply.body, robots


def test_robots_txt_with_rules_says_what_the_site_is_known_to_want() -> None:
    """Disallow, Crawl-delay and Sitemap, in a file for everyone."""
    site = host(disallow=["/private/", "/tmp"], crawl_delay_s=2.0, sitemap="plain")

    lines = site.content("/robots.txt").body.decode().splitlines()

    assert lines[1:] == [
        "User-agent: *",
        "Disallow: /private/",
        "Disallow: /tmp",
        "Crawl-delay: 2",
        f"Sitemap: {ORIGIN}/sitemap.xml",
    ]


def test_huge_robots_txt_has_its_rules_in_front() -> None:
    """Whoever reads the first 500 KiB knows them all."""
    body = host(robots="huge").content("/robots.txt").body

    assert body.index(b"Disallow: /private/") < 1_000
    assert len(body) > 9_900_000


def test_robots_txt_that_moved_is_found_where_it_points() -> None:
    """On the same host, or on the next one."""
    moved = host(robots="redirected")

    assert b"Disallow" in moved.content(location(moved.content("/robots.txt"))).body
    away = host(robots="redirected-away").content("/robots.txt")
    assert location(away) == "http://127.0.0.3:8000/robots.txt"


def test_robots_txt_that_hangs_never_answers() -> None:
    """Silence, not a slow answer."""
    assert host(robots=RobotsFile.HANGING).content("/robots.txt") == SiteReply(0, delay_s=inf)


@pytest.mark.parametrize("kind", [SitemapKind.INDEX, SitemapKind.GZIP])
def test_sitemap_parts_hold_every_page_once(kind: SitemapKind) -> None:
    """The index names files that together are the whole site."""
    site = host(sitemap=kind, pages=2_345)
    index = site.content("/sitemap.xml").body.decode()

    parts = [row.partition("</loc>")[0] for row in index.split(f"<loc>{ORIGIN}")[1:]]
    bodies = [site.content(part).body for part in parts]
    texts = [gzip.decompress(body) if kind is SitemapKind.GZIP else body for body in bodies]
    pages = b"".join(texts).split(b"<loc>")[1:]

    assert len(parts) == 3
    assert len(pages) == len(set(pages)) == 2_345
    assert site.content("/sitemap-3.xml").status == 404


def test_plain_sitemap_is_one_file_and_an_absent_one_is_404() -> None:
    """What robots.txt does not name does not exist."""
    assert host(sitemap="plain", pages=10).content("/sitemap.xml").body.count(b"<loc>") == 10
    assert host(sitemap="plain", pages=10).content("/sitemap-0.xml").status == 404
    assert host().content("/sitemap.xml").status == 404


def test_calendar_goes_on_for_ever() -> None:
    """After December comes January of the next year, before January the December before."""
    trapped = host(features=[Feature.CALENDAR])

    december = trapped.content("/calendar/2026/12").body
    january = trapped.content("/calendar/99999/1").body

    assert b"/calendar/2026/11" in december
    assert b"/calendar/2027/1" in december
    assert b"/calendar/99998/12" in january
    assert trapped.content("/calendar/2026/13").status == 404


def test_redirects_point_where_they_should() -> None:
    """To a page, along a chain, around a loop, away, or to what must not be followed."""
    redirecting = host(features=[Feature.REDIRECTS])
    cases = (
        ("/r/to/13", 301, "/section-6/page-13.html"),
        ("/r/chain/3", 302, "/r/chain/2"),
        ("/r/chain/1", 302, "/section-1/page-99.html"),
        ("/r/loop/a", 307, "/r/loop/b"),
        ("/r/loop/b", 307, "/r/loop/a"),
        ("/r/away/0", 308, "http://127.0.0.3:8000/"),
        ("/r/file", 301, "file:///etc/hostname"),
        ("/r/empty", 301, ""),
        ("/r/canary", 301, "http://127.0.0.1:9999/canary"),
    )
    for path, status, target in cases:
        reply = redirecting.content(path)

        assert (reply.status, location(reply)) == (status, target), path


def test_places_exist_only_with_their_feature() -> None:
    """A plain site answers 404 everywhere but on its pages."""
    plain, odd = host(), host(features=sorted(Feature))
    places = (
        *("/r/to/1", "/calendar/2026/1", "/maze/x/", "/slow/page", "/endless", "/bomb"),
        *("/private/1", "/nofollow/1", "/noindex/1", "/dead-end/1", "/hidden/1", "/gone/1"),
    )

    assert {plain.content(place).status for place in places} == {404}
    assert 404 not in {odd.content(place).status for place in places}
    assert [odd.content(p).status for p in ("/missing/1", "/gone/1", "/error/1")] == [404, 410, 500]


def test_nofollow_and_noindex_are_said_in_both_ways() -> None:
    """In the head of the page, and in a header."""
    odd = host(features=[Feature.NOFOLLOW])

    assert b'content="noindex, nofollow"' in odd.content("/dead-end/1").body
    assert b"/hidden/1" in odd.content("/dead-end/1").body
    assert odd.content("/noindex/1").headers == (("X-Robots-Tag", "noindex"),)


def test_bomb_is_small_until_it_is_unpacked() -> None:
    """A thousandfold, in one gzip member."""
    bomb = host(features=[Feature.BOMB]).content("/bomb")

    assert len(bomb.body) < 100_000
    unpacked = zlib.decompressobj(31).decompress(bomb.body)
    assert len(unpacked) == BOMB_BYTES


def test_endless_body_has_no_end() -> None:
    """However much is taken, there is more."""
    stream = host(features=[Feature.ENDLESS]).content("/endless").stream

    assert stream is not None
    assert len(b"".join(islice(stream.chunks(), 1_000))) > 10_000_000


def test_description_of_a_host_is_plain_json() -> None:
    """Whoever starts a server in another language could read it."""
    assert json.loads(json.dumps(host().site.to_json()))["robots"] == "rules"
