"""The ordinary pages of a site, generated on request: page N is always the same.

The pages form a tree, so that every page can be reached from the root: the first half of the links
of page N lead to its children, `fan_out·N + 1 … fan_out·N + fan_out`, the others to random pages.
Random choices are an integer hash of (seed, page, slot) instead of a generator's state, so a site
of 200,000 pages needs no more memory than one of ten.

All functions are pure. Limits, robots.txt and traps are in other modules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sites import Feature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sites import Site

SECTIONS = 7
ODDITIES_EVERY = 4  # one page in four has the links of the site's features

_PAGE = re.compile(r"/section-(\d)/page-([1-9]\d{0,8})\.html")
_WORDS = (
    "river", "harbour", "lantern", "meadow", "copper", "winter", "garden", "window", "marble",
    "thunder", "paper", "island", "forest", "silver", "morning", "bridge", "market", "candle",
    "valley", "orchard", "mirror", "feather", "anchor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WebMap:
    """All hosts of the web, as seen from one of them.

    origins: of all hosts in order, for example `http://127.0.0.2:8080`.
    own: index of this host.
    canary: netloc of the host that a crawler must never contact.
    """

    origins: tuple[str, ...]
    own: int
    canary: str = "127.0.0.1:9"

    @property
    def origin(self) -> str:
        """The origin of this host."""
        return self.origins[self.own]

    def other(self, number: int) -> str:
        """Return the origin of another host, or of this one if it is the only one."""
        others = len(self.origins) - 1
        if not others:
            return self.origin
        return self.origins[(self.own + 1 + number % others) % len(self.origins)]


def path_of(number: int) -> str:
    """Return the path of a page; page 0 is the root."""
    return f"/section-{number % SECTIONS}/page-{number}.html" if number else "/"


def number_of(path: str) -> int | None:
    """Return the number of the page at a path, or None if it is no path of a page."""
    if path == "/":
        return 0
    match = _PAGE.fullmatch(path)
    if match is None or int(match[2]) % SECTIONS != int(match[1]):
        return None
    return int(match[2])


def paths(site: Site) -> Iterator[str]:
    """Return the paths of all ordinary pages of a site: a complete crawl fetches each of them."""
    return map(path_of, range(site.pages))


def fan_out(site: Site) -> int:
    """Return the number of children of a page; the last pages have fewer."""
    return max(1, site.links // 2)


def linked_pages(site: Site, number: int) -> list[int]:
    """Return the pages of the same host that a page links to: its children, then random ones."""
    width = fan_out(site)
    first = number * width + 1
    targets = list(range(min(first, site.pages), min(first + width, site.pages)))
    others = (_hash(site.seed, number, slot) % site.pages for slot in range(site.links - width))
    return targets + list(others)


def render(site: Site, number: int, web: WebMap) -> bytes:
    """Return the HTML of a page."""
    links = [
        _anchor(_spelling(site, number, target, slot, web), f"page {target}")
        for slot, target in enumerate(linked_pages(site, number))
    ]
    links += [
        _anchor(web.other(_hash(site.seed, number, 90 + slot)) + "/", "another host")
        for slot in range(site.neighbours)
    ]
    if number % ODDITIES_EVERY == 0:
        links += _oddities(site, number, web)
    head = ""
    if Feature.CANONICAL in site.features:
        head = f'<link rel="canonical" href="{web.origin}{path_of(number)}">'
    title = f"{site.name}: page {number}"
    return document(title, links, head=head, prose=_prose(site, number))


def document(title: str, links: list[str], *, head: str = "", prose: str = "") -> bytes:
    """Return an HTML page with these anchors."""
    items = "".join(f"<li>{link}</li>\n" for link in links)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"{head}</head>\n<body><h1>{title}</h1>\n<p>{prose}</p>\n<ul>\n{items}</ul></body></html>\n"
    ).encode()


def _anchor(href: str, text: str, rel: str = "") -> str:
    return f'<a href="{href}"{f" rel={rel}" if rel else ""}>{text}</a>'


def _spelling(site: Site, number: int, target: int, slot: int, web: WebMap) -> str:
    path = path_of(target)
    if Feature.VARIANTS not in site.features:
        return path
    relative = ("../" if number else "./") + path[1:]
    variants = (
        path,
        web.origin + path,
        relative,
        f"{path}#part-{slot}",
        f"{path}?utm_source=demo&amp;utm_medium=page-{number}",
        f" {web.origin.replace('http', 'HTTP')}{path} ",
    )
    return variants[(number + slot) % len(variants)]


def _oddities(site: Site, number: int, web: WebMap) -> list[str]:
    spot = number // ODDITIES_EVERY
    target = _hash(site.seed, number, 80) % site.pages
    hrefs: dict[Feature, tuple[str, ...]] = {
        Feature.VARIANTS: (path_of(target), path_of(target), f"{path_of(target)}#twice"),
        Feature.CANONICAL: (f"{path_of(target)}?view=print",),
        Feature.NOFOLLOW: (f"/noindex/{spot}", f"/dead-end/{spot}"),
        Feature.BROKEN: (f"/missing/{spot}", f"/gone/{spot}"),
        Feature.FAILING: (f"/error/{spot}",),
        Feature.REDIRECTS: (
            f"/r/to/{target}",
            f"/r/chain/{2 + spot % 4}",
            "/r/loop/a",
            f"/r/away/{spot}",
            "/r/file",
            "/r/empty",
        ),
        Feature.PRIVATE: tuple(f"/private/{number}-{n}" for n in range(site.links)),
        Feature.CALENDAR: ("/calendar/2026/1",),
        Feature.MAZE: ("/maze/x/",),
        Feature.SLOW: ("/slow/page", "/slow/drip"),
        Feature.ENDLESS: ("/endless",),
        Feature.BOMB: ("/bomb",),
        Feature.INTERNAL: internal_urls(web.canary),
    }
    links = [
        _anchor(href, feature)
        for feature, found in hrefs.items()
        if feature in site.features
        for href in found
    ]
    if Feature.NOFOLLOW in site.features:
        links.append(_anchor(f"/nofollow/{spot}", "nofollow", rel="nofollow"))
    return links


def internal_urls(canary: str) -> tuple[str, ...]:
    """Return links into the crawler's own network, which it must not follow.

    The canary's address in several spellings, and the metadata service of cloud machines.
    """
    port = canary.rpartition(":")[2]
    spellings = ("127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]")
    return (
        *(f"http://{host}:{port}/canary" for host in spellings),
        "http://169.254.169.254/latest/meta-data/",
    )


def _prose(site: Site, number: int) -> str:
    count = max(12, site.size // 8)  # a word and its space have about seven letters
    start = _hash(site.seed, number, 70)
    text = " ".join(_WORDS[(start + i * i) % len(_WORDS)] for i in range(count))
    return text + " " * max(0, site.size - len(text))


def _hash(seed: int, number: int, slot: int) -> int:
    mixed = (number * 0x9E3779B1 + seed * 0x85EBCA77 + slot * 0xC2B2AE3D + 1) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    return mixed ^ (mixed >> 13)
