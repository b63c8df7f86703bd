"""Descriptions of the hosts of a web: every host is a `Site`, a frozen value.

A site's hidden limit is a server spec of the simulator (`bucket:2:4+retry-after`, see
`mannerly.simulation.spec`), so the same model answers in a simulation and here over real sockets.
A site can be converted to JSON and back; that is how it reaches the server process.

`demo_sites()` returns the hosts of `mannerly demo`; `plain_sites()` fast hosts without limits, for
tests.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any

from mannerly.simulation.spec import parse_server

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIVATE_AREA = "/private/"  # `Feature.PRIVATE` links into it; robots.txt disallows it


class RobotsFile(StrEnum):
    """The answer to a request for /robots.txt."""

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
    """The sitemap that robots.txt names, if any."""

    ABSENT = "absent"
    PLAIN = "plain"  # one file
    INDEX = "index"  # an index of files
    GZIP = "gzip"  # an index of gzipped files


class Feature(StrEnum):
    """Further links on a site's pages. The comment says where each of them leads."""

    VARIANTS = "variants"  # one page in many spellings: relative, fragment, utm_…, twice
    CANONICAL = "canonical"  # ?view=print, whose canonical is the page itself
    NOFOLLOW = "nofollow"  # /nofollow/N by rel, /noindex/N, /dead-end/N → /hidden/N by meta
    BROKEN = "broken"  # /missing/N: 404, /gone/N: 410
    FAILING = "failing"  # /error/N: 500
    REDIRECTS = "redirects"  # /r/to/N, /r/chain/3, /r/loop/a, /r/away/N, /r/file, /r/empty
    PRIVATE = "private"  # /private/N, disallowed by robots.txt
    CALENDAR = "calendar"  # /calendar/2026/1: a month links to the next one, without end
    MAZE = "maze"  # /maze/x/y/x/…: every path links to longer ones
    SLOW = "slow"  # /slow/page after 3 s, /slow/drip one byte a second
    ENDLESS = "endless"  # /endless: a body without an end
    BOMB = "bomb"  # /bomb: 64 kB that unpack to 64 MB
    INTERNAL = "internal"  # the canary on 127.0.0.1 and 169.254.169.254, in many spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One host of the demonstration web.

    Args:
        name: a short word, unique in its web.
        about: one line of description for the table.
        limit: a server spec of the simulator, whose second 0 is the host's first request; None for
            a host without a limit.
        latency_s: seconds until an answer of a host without a limit.
        pages: number of ordinary pages; all of them can be reached from `/`.
        links: links to pages of the same host on each page; half of them lead to children.
        neighbours: links to other hosts of the web on each page.
        size: minimum length of a page in bytes; text is added to reach it.
        seed: changes the links and the words of the pages.
        gzip: compress pages for clients that accept it.
        robots: the answer to a request for /robots.txt.
        disallow, crawl_delay_s, sitemap: the content of robots.txt.
        features: further links and traps.
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
            raise ValueError(f"site {self.name!r}: pages and links must be at least 1")
        if self.limit is not None:
            parse_server(self.limit)  # raises SpecError here and not in the server process

    @property
    def true_rate(self) -> float:
        """Requests/s that the host's limit and its Crawl-delay allow in the long run."""
        rate = inf
        if self.limit is not None:
            day_s = 86_400.0  # after any burst, outage or change of the rate
            oracle = getattr(parse_server(self.limit), "allowed", None)
            rate = oracle(day_s, 2 * day_s) / day_s if oracle else inf
        if self.asked_delay_s:
            rate = min(rate, 1.0 / self.asked_delay_s)
        return float(rate)

    @property
    def asked_delay_s(self) -> float:
        """The Crawl-delay of robots.txt; 0 without one, or if robots.txt cannot be read."""
        return (self.crawl_delay_s or 0.0) if self.robots in _KNOWN_RULES else 0.0

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The path prefixes that a crawler may not fetch, given the answer to /robots.txt."""
        if self.robots in _KNOWN_RULES:
            return self.disallow
        return ("/",) if self.robots in _NO_ANSWER else ()

    def to_json(self) -> dict[str, object]:
        """Return plain values for JSON, from which `from_json` makes an equal site."""
        return asdict(self) | {"features": sorted(self.features)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Site:
        """Return the site that `to_json` described."""
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


# A further host of every web, on 127.0.0.1. A crawler that contacts it has followed a link into its
# own network, which it must not do.
CANARY = Site(name="canary", about="must never be contacted", pages=1, disallow=("/",))


def demo_sites() -> tuple[Site, ...]:
    """Return the thirteen hosts of the demonstration, each with another limit or feature.

    A crawler that starts at 1 request/s and raises its rate by a factor of 1.3 after ten answers
    reaches about 2.5/s in half a minute. All limits but one are below that, so they are found in
    that time.
    """
    return tuple(Site(pages=400, neighbours=1, seed=n, **site) for n, site in enumerate(_DEMO))


_VARIANTS = frozenset({Feature.VARIANTS, Feature.CANONICAL})
_DEMO: tuple[dict[str, Any], ...] = (
    {"name": "bucket", "about": "token bucket, 429 without Retry-After", "limit": "bucket:2:4"},
    {
        "name": "retry-after",
        "about": "token bucket, 429 with Retry-After",
        "limit": "bucket:1.5:3+retry-after",
    },
    {
        "name": "window",
        "about": "8 requests in each 4 s, Retry-After as a date",
        "limit": "fixed:8:4+retry-after-date",
    },
    {
        "name": "sliding",
        "about": "12 requests in any 6 s; one page under many URLs",
        "limit": "sliding:12:6",
        "features": _VARIANTS,
    },
    {
        "name": "two-at-once",
        "about": "503 to a third request at once",
        "limit": "concurrency:2:1.2",
    },
    {"name": "queue", "about": "never refuses, only gets slower", "limit": "knee:1:0.5"},
    {
        "name": "announced",
        "about": "announces its quota in RateLimit headers",
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
        "about": "robots.txt is 404, no limit",
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
        "about": "redirect chains, loops, and redirects to other hosts",
        "limit": "bucket:1:4",
        "features": frozenset({Feature.REDIRECTS, Feature.BROKEN}),
    },
    {
        "name": "calendar",
        "about": "an endless calendar and an endless body",
        "limit": "bucket:2:4",
        "features": frozenset({Feature.CALENDAR, Feature.ENDLESS, Feature.SLOW}),
    },
    {
        "name": "outage",
        "about": "503 from second 4 to 6",
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
    """Return fast hosts without limits, traps or disallowed paths, named plain-0, plain-1, …"""
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


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Sites to serve, their port (0: any free one), the first address, and the log file if any."""

    sites: tuple[Site, ...]
    port: int
    first_address: str
    log_path: str | None

    def to_json(self) -> str:
        """Return the configuration as one line of JSON."""
        return json.dumps(
            {
                "sites": [site.to_json() for site in self.sites],
                "port": self.port,
                "first_address": self.first_address,
                "log_path": self.log_path,
            }
        )

    @classmethod
    def from_json(cls, line: str) -> ServerConfig:
        """Return the configuration that `to_json` wrote."""
        plain = json.loads(line)
        sites = tuple(map(Site.from_json, plain["sites"]))
        return cls(sites, plain["port"], plain["first_address"], plain["log_path"])
