"""A web of any size for simulated crawls, generated on request: pages, links and hosts.

    host n    https://h<n>.example, with one of the `limits` and one of the `crawl_delays_s`
    page p    `/` or `/p<p>`; links to its children in the host's tree of pages and to random pages
    page 0    also links to the host's children in the tree of hosts: host 0 leads to all hosts

Most pages have a random link to them besides the link in the tree, so that one failed page does not
cut off the rest. A web with `is_listed` has no links: every page is a seed, as in a crawl that
starts from a list of sites, and pages are plain text. Random choices are a hash of (seed, page,
slot) instead of a generator's state: a million hosts need no memory before they are visited, and
after a crawl `links` returns the same links again, to check what the crawl should have found.

All functions are pure; this module knows no time, no client and no crawl.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FORBIDDEN = "/private/"
ROBOTS, ELSEWHERE = -1, -2  # instead of a page's number: robots.txt, and any other path

_FIRST_DIGIT = len("https://h")
_DOMAIN = ".example/"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedWeb:
    """The pages of many hosts.

    Args:
        hosts: number of hosts; all can be reached from host 0.
        pages: number of pages of each host.
        fan_out: children of a page in its host's tree of pages, and of a host in the tree of hosts.
        host_fan_out: children of a host in the tree of hosts, if that is another number.
        others: links to random pages of random hosts on each page.
        forbids: whether page 0 of every host links to a path that robots.txt disallows.
        limits: server specs of the simulator; each host has one of them. "": no limit.
        crawl_delays_s: each host has one of them in its robots.txt. 0: no Crawl-delay.
        is_listed: whether every page is a seed and has no links.
        seed_hosts: hosts whose home page is a seed, from host 0 on.
        seed: changes the random links, and which host has which limit and Crawl-delay.
    """

    hosts: int
    pages: int = 1
    fan_out: int = 4
    host_fan_out: int | None = None
    others: int = 2
    forbids: bool = False
    limits: tuple[str, ...] = ("",)
    crawl_delays_s: tuple[float, ...] = (0.0,)
    is_listed: bool = False
    seed_hosts: int = 1
    seed: int = 1

    @property
    def start(self) -> str:
        """The URL from which all pages can be reached."""
        return _url(0, 0)

    def seeds(self) -> Iterator[str]:
        """Return the seeds of a crawl of this web."""
        if not self.is_listed:
            yield from map(_url, range(min(self.seed_hosts, self.hosts)), repeat(0))
            return
        for page in range(self.pages):
            yield from map(_url, range(self.hosts), repeat(page))

    @property
    def content_type(self) -> str:
        """The Content-Type of all pages."""
        return "text/plain" if self.is_listed else "text/html; charset=utf-8"

    def limit_and_delay(self, host: int) -> tuple[str, float]:
        """Return the server spec of a host, and the Crawl-delay of its robots.txt."""
        drawn = _hash(self.seed, host, 1)
        limits, delays_s = self.limits, self.crawl_delays_s
        return limits[drawn % len(limits)], delays_s[(drawn >> 32) % len(delays_s)]

    def links(self, host: int, page: int) -> list[str]:
        """Return the links of a page as absolute URLs."""
        if self.is_listed:
            return []
        urls = [_url(host, child) for child in _children(page, self.pages, self.fan_out)]
        if page == 0:
            fan_out = self.host_fan_out or self.fan_out
            urls += [_url(child, 0) for child in _children(host, self.hosts, fan_out)]
            if self.forbids:
                urls.append(f"https://h{host}.example{FORBIDDEN}")
        number = host * self.pages + page
        for slot in range(3, 3 + self.others):
            drawn = _hash(self.seed, number, slot)
            urls.append(_url(drawn % self.hosts, (drawn // self.hosts) % self.pages))
        return urls

    def body(self, host: int, page: int) -> bytes:
        """Return the body of a page."""
        if self.is_listed:
            return b"page %d of host %d" % (page, host)
        anchors = "".join([f'<a href="{url}">x</a>' for url in self.links(host, page)])
        return f"<!doctype html><title>{host}/{page}</title>{anchors}".encode()


def place_of(url: str) -> tuple[int, int]:
    """Return host and page of a URL of this web; for other paths `ROBOTS` or `ELSEWHERE`."""
    number, _, path = url[_FIRST_DIGIT:].partition(_DOMAIN)
    if not path:
        return int(number), 0
    if path == "robots.txt":
        return int(number), ROBOTS
    return int(number), int(path[1:]) if path[0] == "p" and path[1:].isdigit() else ELSEWHERE


@lru_cache(maxsize=64)
def robots_txt(delay_s: float) -> bytes:
    """Return the robots.txt of a host with this Crawl-delay; 0: without one."""
    asked = f"Crawl-delay: {delay_s:g}\n" if delay_s else ""
    return f"User-agent: *\nDisallow: {FORBIDDEN}\n{asked}".encode()


def _url(host: int, page: int) -> str:
    return f"https://h{host}.example/p{page}" if page else f"https://h{host}.example/"


def _children(number: int, count: int, fan_out: int) -> range:
    """Return the children of a number in the tree of the numbers below `count`."""
    first = number * fan_out + 1
    return range(min(first, count), min(first + fan_out, count))


def _hash(seed: int, number: int, slot: int) -> int:
    """Return a 64-bit hash (the finaliser of SplitMix64, by Vigna)."""
    mixed = (
        number * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03 + slot * 0x8CB92BA72F3D8DD7
    ) & (_MASK)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


_MASK = (1 << 64) - 1
