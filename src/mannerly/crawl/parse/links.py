"""Raw hrefs become unique canonical URLs, in the order of the page, and every refusal is counted.

The links of a site repeat: its menu stands on each of its pages. What such an href means depends
only on the origin it is read at, unless it is relative to the page's path, so the answer can be
kept per origin (`HrefMemory`): a dictionary look-up in place of a parse. Only the *meaning* is
kept, never whether the URL was seen, so forgetting any of it changes nothing.

This file knows no parser and no scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.crawl.urls import DEFAULT_RULES, LinkBase, UrlRefusal, UrlRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .page import Page

# About 200 bytes an href: 10 MB when full. A site's menu and footer rarely pass some hundreds.
DEFAULT_ORIGINS = 128
DEFAULT_HREFS_PER_ORIGIN = 400

_NOT_RELATIVE_TO_PATH = ("/", "http://", "https://")


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Where a page leads."""

    urls: list[str]  # canonical, unique, in page order
    nofollow_urls: list[str]  # the same for rel=nofollow, without those that are in `urls`
    canonical: str | None
    refresh: str | None
    refused: dict[UrlRefusal, int] = field(default_factory=dict)


class HrefMemory:
    """What root-relative and absolute hrefs meant, for the origins used last.

    One memory serves one set of `UrlRules`. An origin that is full takes no more: the menu comes
    with its first pages, and what comes later is mostly seen once.
    """

    __slots__ = ("_by_origin", "_hrefs_per_origin", "_origins")

    def __init__(
        self,
        origins: int = DEFAULT_ORIGINS,
        hrefs_per_origin: int = DEFAULT_HREFS_PER_ORIGIN,
    ) -> None:
        self._origins = origins
        self._hrefs_per_origin = hrefs_per_origin
        self._by_origin: dict[str, dict[str, str]] = {}

    def at(self, base: str) -> dict[str, str]:
        """The known hrefs of a base URL's origin."""
        origin = base[: base.find("/", 8)]
        known = self._by_origin.pop(origin, None)
        if known is None:
            known = {}
            if len(self._by_origin) >= self._origins:
                del self._by_origin[next(iter(self._by_origin))]
        self._by_origin[origin] = known  # last in the dictionary: used last
        return known

    def keep(self, known: dict[str, str], href: str, url: str) -> None:
        """Remember one answer in what `at` gave, if it holds on every page of the origin."""
        if len(known) < self._hrefs_per_origin and href.startswith(_NOT_RELATIVE_TO_PATH):
            known[href] = url


def resolve_links(
    page: Page, rules: UrlRules = DEFAULT_RULES, memory: HrefMemory | None = None
) -> PageLinks:
    """Normalise all links of one page."""
    resolver = _Resolver(LinkBase(page.base, rules=rules), memory)
    urls = resolver.unique(page.links)
    nofollow_urls = resolver.unique(page.nofollow_links)
    for url in urls.keys() & nofollow_urls.keys():
        del nofollow_urls[url]
    return PageLinks(
        urls=list(urls),
        nofollow_urls=list(nofollow_urls),
        canonical=resolver.one(page.canonical),
        refresh=resolver.one(page.refresh),
        refused=resolver.refused,
    )


class _Resolver:
    __slots__ = ("_base", "_known", "_memory", "refused")

    def __init__(self, base: LinkBase, memory: HrefMemory | None) -> None:
        self._base = base
        self._memory = memory
        self._known = {} if memory is None else memory.at(base.text)
        self.refused: dict[UrlRefusal, int] = {}

    def unique(self, hrefs: Iterable[str]) -> dict[str, None]:
        """The canonical URLs as the keys of a dictionary, which keeps the order."""
        known, memory, resolve = self._known, self._memory, self._base.resolve
        urls: dict[str, None] = {}
        for href in hrefs:
            url = known.get(href)
            if url is None:
                found = resolve(href)
                if not isinstance(found, str):
                    self.refused[found] = self.refused.get(found, 0) + 1
                    continue
                url = found
                if memory is not None:
                    memory.keep(known, href, url)
            urls[url] = None
        return urls

    def one(self, href: str | None) -> str | None:
        """A URL that is also among the links, where it was counted if it was refused."""
        if href is None:
            return None
        found = self._base.resolve(href)
        return found if isinstance(found, str) else None
