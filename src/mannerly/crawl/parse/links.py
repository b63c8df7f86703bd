"""Raw hrefs become unique canonical URLs, and every refusal is counted.

The links of a site repeat: its menu stands on each of its pages. What an href means depends on
little of the page that it stands on,

    http://…             on nothing; if a URL of that spelling was met before, it means just that
    /path                on the origin alone
    page.html, ../x      on the folder of the page
    ?query, #fragment    on the page itself

so most are known without parsing (`HrefMemory`): a dictionary look-up in place of a parse.
Only the *meaning* is kept, never whether the URL was seen, so forgetting any of it changes nothing.

This file knows no parser and no scope.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawl.dedup import Recent
from mannerly.crawl.urls import DEFAULT_RULES, LinkBase, UrlRefusal, UrlRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .page import Page

# About 250 bytes an href: 20 MB when full. A site's menu and footer rarely pass some hundreds.
DEFAULT_HREFS = 80_000
DEFAULT_HREFS_PER_PLACE = 500

_NOTHING_MET = Recent()


class PageLinks(NamedTuple):
    """Where a page leads."""

    urls: list[str]  # canonical, unique, in page order
    nofollow_urls: list[str]  # the same for rel=nofollow, without those that are in `urls`
    canonical: str | None
    refresh: str | None
    refused: dict[UrlRefusal, int]


class HrefMemory:
    """What hrefs meant at the places (origins, folders) used last.

    One memory serves one set of `UrlRules`. A place that is full starts over: a menu is back with
    the next page, and what else it held was mostly seen once.
    """

    __slots__ = ("_hrefs_per_place", "_places", "_room")

    def __init__(
        self, hrefs: int = DEFAULT_HREFS, hrefs_per_place: int = DEFAULT_HREFS_PER_PLACE
    ) -> None:
        self._room = hrefs
        self._hrefs_per_place = hrefs_per_place
        # A plain dict finds its first key the slower the more were removed before it.
        self._places: OrderedDict[str, dict[str, str]] = OrderedDict()

    def at(self, place: str) -> dict[str, str]:
        """The known hrefs of a place, to be read only."""
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = {}
            self._take_room()
        else:
            self._places.move_to_end(place)
        return known

    def keep(self, known: dict[str, str], href: str, url: str) -> None:
        """Remember one answer in what `at` gave."""
        if len(known) >= self._hrefs_per_place:
            self._room += len(known)
            known.clear()
        known[href] = url
        self._take_room()

    def _take_room(self) -> None:
        """An empty place counts as an href, or folders without number would cost nothing."""
        self._room -= 1
        # The last two are in use: a page's folder and its origin.
        while self._room < 0 and len(self._places) > 2:
            self._room += 1 + len(self._places.popitem(last=False)[1])


def resolve_links(
    page: Page,
    rules: UrlRules = DEFAULT_RULES,
    memory: HrefMemory | None = None,
    met: Recent = _NOTHING_MET,
) -> PageLinks:
    """Normalise all links of one page. `met` holds canonical URLs by the same rules."""
    resolver = _Resolver(LinkBase(page.base, rules=rules), memory or HrefMemory(), met)
    urls = resolver.unique(page.links)
    nofollow_urls = resolver.unique(page.nofollow_links) if page.nofollow_links else {}
    for url in urls.keys() & nofollow_urls.keys():
        del nofollow_urls[url]
    return PageLinks(
        list(urls),
        list(nofollow_urls),
        resolver.one(page.canonical),
        resolver.one(page.refresh),
        resolver.refused,
    )


class _Resolver:
    """The links of one page. `_origin` and `_folder` are what is known of its places."""

    __slots__ = ("_base", "_folder", "_memory", "_met", "_origin", "refused")

    def __init__(self, base: LinkBase, memory: HrefMemory, met: Recent) -> None:
        self._base = base
        self._memory = memory
        self._met = met
        text = base.text.partition("?")[0]
        self._folder = memory.at(text[: text.rfind("/") + 1])
        # Asked for last, and so forgotten last. Without its slash it is no folder's name.
        self._origin = memory.at(text[: text.find("/", 8)])
        self.refused: dict[UrlRefusal, int] = {}

    def unique(self, hrefs: Sequence[str]) -> dict[str, None]:
        """The canonical URLs as the keys of a dictionary, which keeps the order."""
        urls: dict[str, None] = {}
        of_origin, of_folder, met = self._origin.get, self._folder.get, self._met
        for href in hrefs:
            url = of_origin(href) or of_folder(href)
            if url is None:
                found = href if href in met else self._meaning(href)
                if not isinstance(found, str):
                    self.refused[found] = self.refused.get(found, 0) + 1
                    continue
                url = found
            urls[url] = None
        return urls

    def one(self, href: str | None) -> str | None:
        """A URL that is also among the links, where it was counted if it was refused."""
        found = None if href is None else self._meaning(href)
        return found if isinstance(found, str) else None

    def _meaning(self, href: str) -> str | UrlRefusal:
        """What one href means, remembered if other pages can mean the same by it."""
        mark = href.find("#")
        if mark > 0:
            href = href[:mark]
        if href.startswith("/"):
            known = self._origin
        elif _is_of_the_folder(href):
            known = self._folder
        else:
            return self._base.resolve(href)
        url = known.get(href)
        if url is not None:
            return url
        found = self._base.resolve(href)
        if isinstance(found, str):
            self._memory.keep(known, href, found)
        return found


def _is_of_the_folder(href: str) -> bool:
    """Surely: `http:?q` looks like a name, and blanks before a query are passed over."""
    first = href[:1]
    return (first.isalnum() or first in ("_", ".")) and ":" not in href
