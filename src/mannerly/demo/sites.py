"""A web on one page: every host is a `Site`, a frozen value that says all there is to know of it.

A site is pure description. Its hidden limit is a word of the simulator (`bucket:2:4+retry-after`,
see `mannerly.simulation.spec`), so the modelled servers on which strategies are tuned are the ones
that answer over real sockets here. A site can be written as JSON and read back, which is how it
reaches the server's process.

`demo_sites()` is the demonstration, `plain_sites()` a fast web without surprises for tests.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any

from mannerly.simulation.spec import parse_server

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIVATE_AREA = "/private/"  # where `Feature.PRIVATE` links to and robots.txt forbids to go


class RobotsFile(StrEnum):
    """What a request for /robots.txt meets."""

    RULES = "rules"  # a file with this site's rules
    MISSING = "missing"  # 404
    FORBIDDEN = "forbidden"  # 403
    FAILING = "failing"  # 503
    HUGE = "huge"  # the rules, then 10 MB of comments
    HTML = "html"  # a page that says "not found", with status 200
    CLOSED = "closed"  # the connection is closed without an answer
    HANGING = "hanging"  # no answer, ever
    REDIRECTED = "redirected"  # 301 to the rules on the same host
    REDIRECTED_AWAY = "redirected-away"  # 301 to the next host's robots.txt


class SitemapKind(StrEnum):
    """What robots.txt names as the site's map, if anything."""

    ABSENT = "absent"
    PLAIN = "plain"  # one file
    INDEX = "index"  # an index of files
    GZIP = "gzip"  # an index of gzipped files


class Feature(StrEnum):
    """What the pages hold beside plain links. The comment says where each leads."""

    VARIANTS = "variants"  # one page in many spellings: relative, fragment, utm_…, twice
    CANONICAL = "canonical"  # ?view=print, whose canonical is the page itself
    NOFOLLOW = "nofollow"  # /nofollow/N by rel, /noindex/N, /dead-end/N → /hidden/N by meta
    BROKEN = "broken"  # /missing/N: 404, /gone/N: 410
    FAILING = "failing"  # /error/N: 500
    REDIRECTS = "redirects"  # /r/to/N, /r/chain/3, /r/loop/a, /r/away/N, /r/file, /r/empty
    PRIVATE = "private"  # /private/N, disallowed by robots.txt
    CALENDAR = "calendar"  # /calendar/2026/1: a month links to the next, for ever
    MAZE = "maze"  # /maze/x/y/x/…: every path has longer ones below it
    SLOW = "slow"  # /slow/page after 3 s, /slow/drip one byte a second
    ENDLESS = "endless"  # /endless: a body without an end
    BOMB = "bomb"  # /bomb: 64 kB that unpack to 64 MB
    INTERNAL = "internal"  # the canary on 127.0.0.1 and 169.254.169.254, in many spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One host of the demonstration web.

    Args:
        name: a short word, unique in its web.
        about: one line for people.
        limit: a server spec of the simulator, or None: no limit, answers after `latency_s`. Its
            clock starts at the host's first request.
        latency_s: how long an answer takes when there is no limit.
        pages: how many real pages there are, all of which can be reached from `/`.
        links: links to pages of the same host on each page; half of them lead deeper.
        neighbours: links to other hosts of the web on each page.
        size: pages are filled up with prose to at least this many bytes.
        seed: another seed gives another web of links and words.
        gzip: pages are compressed for clients that accept it.
        robots, disallow, crawl_delay_s, sitemap: what robots.txt is and says.
        features: what else the pages hold.
    """

    name: str
    about: str = ""
    limit: str | None = None
    latency_s: float = 0.0
    pages: int = 100
    links: int = 8
    neighbours: int = 0
    size: int = 0
    seed: int = 1
    gzip: bool = False
    robots: RobotsFile = RobotsFile.RULES
    disallow: tuple[str, ...] = (PRIVATE_AREA,)
    crawl_delay_s: float | None = None
    sitemap: SitemapKind = SitemapKind.ABSENT
    features: frozenset[Feature] = frozenset()

    def __post_init__(self) -> None:
        if self.pages < 1 or self.links < 1:
            raise ValueError(f"site {self.name!r}: a site has a page, and a page has a link")
        if self.limit is not None:
            parse_server(self.limit)  # a bad spec is named here, not in another process

    @property
    def true_rate(self) -> float:
        """What the host bears in the long run, requests/s: its limit and its Crawl-delay."""
        rate = inf
        if self.limit is not None:
            day_s = 86_400.0  # far behind any burst, outage or step of a demonstration
            oracle = getattr(parse_server(self.limit), "allowed", None)
            rate = oracle(day_s, 2 * day_s) / day_s if oracle else inf
        if self.asked_delay_s:
            rate = min(rate, 1.0 / self.asked_delay_s)
        return float(rate)

    @property
    def asked_delay_s(self) -> float:
        """The gap that robots.txt asks for, 0 if none; one that nobody can read asks for none."""
        return (self.crawl_delay_s or 0.0) if self.robots in _KNOWN_RULES else 0.0

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The path prefixes that nobody may fetch, given what /robots.txt really is."""
        if self.robots in _KNOWN_RULES:
            return self.disallow
        return ("/",) if self.robots in _NO_ANSWER else ()

    def to_json(self) -> dict[str, object]:
        """Plain values, from which `from_json` makes an equal site."""
        return asdict(self) | {"features": sorted(self.features)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Site:
        """The site that `to_json` described."""
        known = {field.name: plain[field.name] for field in fields(cls) if field.name in plain}
        return cls(
            **known
            | {
                "robots": RobotsFile(known["robots"]),
                "sitemap": SitemapKind(known["sitemap"]),
                "disallow": tuple(known["disallow"]),
                "features": frozenset(map(Feature, known["features"])),
            }
        )


_KNOWN_RULES = frozenset({RobotsFile.RULES, RobotsFile.HUGE, RobotsFile.REDIRECTED})
# RFC 9309 §2.3.1.4: a robots.txt that cannot be reached forbids everything.
_NO_ANSWER = frozenset({RobotsFile.FAILING, RobotsFile.CLOSED, RobotsFile.HANGING})


# Listens beside every web, on 127.0.0.1: whoever comes has followed a link into our own network.
CANARY = Site(name="canary", about="nobody may come here", pages=1, disallow=("/",))


def demo_sites() -> tuple[Site, ...]:
    """The demonstration: thirteen hosts, no two alike.

    A crawler that starts at 1/s and grows by 1.3 each ten answers comes to about 2.5/s in half a
    minute, so the limits lie below that: all but the host without one can be found in the time.
    """
    return tuple(Site(pages=400, neighbours=1, seed=n, **site) for n, site in enumerate(_DEMO))


_VARIANTS = frozenset({Feature.VARIANTS, Feature.CANONICAL})
_DEMO: tuple[dict[str, Any], ...] = (
    {"name": "bucket", "about": "token bucket, says only 429", "limit": "bucket:2:4"},
    {
        "name": "retry-after",
        "about": "token bucket, says when to come back",
        "limit": "bucket:1.5:3+retry-after",
    },
    {
        "name": "window",
        "about": "8 requests in each 4 s, Retry-After as a date",
        "limit": "fixed:8:4+retry-after-date",
    },
    {
        "name": "sliding",
        "about": "12 requests in any 6 s; one page in many spellings",
        "limit": "sliding:12:6",
        "features": _VARIANTS,
    },
    {"name": "two-at-once", "about": "503 to a third at once", "limit": "concurrency:2:1.2"},
    {"name": "queue", "about": "refuses nobody, only slows down", "limit": "knee:1:0.5"},
    {
        "name": "announced",
        "about": "RateLimit headers tell the quota",
        "limit": "bucket:4:8+headers",
        "sitemap": SitemapKind.INDEX,
    },
    {
        "name": "crawl-delay",
        "about": "robots.txt asks for 2 s between requests",
        "crawl_delay_s": 2.0,
        "latency_s": 0.05,
    },
    {
        "name": "no-robots",
        "about": "robots.txt is 404 and there is no limit but your own",
        "robots": RobotsFile.MISSING,
        "latency_s": 0.05,
    },
    {
        "name": "private",
        "about": "a disallowed area, and links into your own network",
        "limit": "bucket:2:2+retry-after",
        "features": frozenset({Feature.PRIVATE, Feature.NOFOLLOW, Feature.INTERNAL}),
    },
    {
        "name": "redirects",
        "about": "chains, loops, and ways out of the host",
        "limit": "bucket:1:4",
        "features": frozenset({Feature.REDIRECTS, Feature.BROKEN}),
    },
    {
        "name": "calendar",
        "about": "a calendar without end, a body without end",
        "limit": "bucket:2:4",
        "features": frozenset({Feature.CALENDAR, Feature.ENDLESS, Feature.SLOW}),
    },
    {
        "name": "outage",
        "about": "down from second 4 to 6",
        "limit": "bucket:1:4+outage=4-6",
    },
)


def plain_sites(
    count: int,
    *,
    pages: int = 100,
    links: int = 8,
    neighbours: int = 0,
    latency_s: float = 0.0,
    size: int = 0,
    gzip: bool = False,
) -> tuple[Site, ...]:
    """Fast hosts without limits, traps or forbidden places, named plain-0, plain-1, …"""
    return tuple(
        Site(
            name=f"plain-{number}",
            about="no limit",
            latency_s=latency_s,
            pages=pages,
            links=links,
            neighbours=neighbours,
            size=size,
            seed=number,
            gzip=gzip,
            disallow=(),
        )
        for number in range(count)
    )
