"""The bytes of a response become a `ParsedPage`: 0.1 ms for a page of 45 KB.

    encoding  →  elements (a `Reader`)  →  one walk over a dozen kinds of them

Parsers are called through `Reader`: ordinary pages are scanned, odd ones get a tree (`scan.py`),
and tests compare a second parser. Any exception of a parser becomes `ParseFailed`: the page loses
its links, and the crawl goes on. Work is bounded by the body, which the fetcher has capped, and by
`max_links`.

This module knows no URL rules beyond `<base href>`, no scope and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.web.charset import HTML_TYPES, decoded, encoding, media_type
from mannerly.crawler.web.feeds import is_feed, read_feed
from mannerly.crawler.web.robots_meta import SILENT, RobotsMeta, robots_directives
from mannerly.crawler.web.urls import LinkBase

from . import scan
from .elements import bounded, kept_hrefs
from .parsed import MARK, PAGE_RELATIONS, ParsedPage, ParseFailed, as_link, clean_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .parsed import Element, Elements, Reader

# A page with more is a generated list or a trap; its record has the error "links_capped".
DEFAULT_MAX_LINKS = 10_000

MAX_LANGUAGE = 35  # characters; RFC 5646, 4.4.1


def parse_page(
    body: bytes,
    content_type: str | None,
    base_url: str,
    *,
    x_robots_tag: str | None = None,
    agent: str = "mannerly",
    max_links: int = DEFAULT_MAX_LINKS,
    reader: Reader = scan.read,
    keeps_links: bool = False,
) -> ParsedPage | ParseFailed:
    """Read one response. Content that is not HTML gives a page without links, not a failure.

    `base_url` is the canonical URL that the body came from; several X-Robots-Tag headers are joined
    by commas; `agent` is our name in directives that are addressed to one crawler. `keeps_links`
    keeps the links of a feed; those of a page are kept by its `reader`.
    """
    agent = agent.lower()
    robots = robots_directives(x_robots_tag, agent) if x_robots_tag else SILENT
    if not is_html(content_type, body):
        page = ParsedPage(base_url, noindex=robots.noindex, nofollow=robots.nofollow)
        if is_feed(content_type, body):
            return _with_feed(page, body, max_links, keeps_links=keeps_links)
        return page
    charset, mark = encoding(body, content_type)
    try:
        # One element more than allowed shows that there are more.
        elements = reader(body[mark:], charset, max_links + 1)
        collector = _Collector(robots, agent, max_links)
        collector.walk(elements)
    except MemoryError:  # says nothing about the page
        raise
    except Exception as error:  # noqa: BLE001 - an error of a parser costs this page only
        return ParseFailed(clean_line(f"{type(error).__name__}: {error}"))
    return collector.page(base_url, elements, charset)


def _with_feed(page: ParsedPage, body: bytes, max_links: int, *, keeps_links: bool) -> ParsedPage:
    """Return the page of a feed: its links are those of its entries."""
    title, links = read_feed(body, max_links)
    kept = bounded(kept_hrefs(links)) if keeps_links else None
    links = [as_link(href) for href in links]
    return page._replace(title=clean_line(title or "") or None, links=links, elements=kept)


def page_text(body: bytes, content_type: str | None) -> str:
    """Return a body as text, by its charset; undecodable bytes are replaced."""
    charset, mark = encoding(body, content_type)
    return decoded(body[mark:], charset)


def is_html(content_type: str | None, body: bytes) -> bool:
    """Return whether the header says HTML or, without a header, the body begins like markup."""
    if content_type is not None and (media := media_type(content_type)):
        return media in HTML_TYPES
    return body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n\f")[:1] == b"<"


class _Collector:
    """Collects the facts and the links of a page in one walk over its elements."""

    __slots__ = (
        "_agent",
        "_base_href",
        "_canonical",
        "_description",
        "_has_refresh",
        "_lang",
        "_links",
        "_max_links",
        "_robots",
    )

    def __init__(self, robots: RobotsMeta, agent: str, max_links: int) -> None:
        self._robots = robots
        self._agent = agent
        self._max_links = max_links
        self._links: list[str] = []
        self._base_href: str | None = None
        self._canonical: str | None = None
        self._has_refresh = False
        self._description: str | None = None
        self._lang: str | None = None

    def walk(self, elements: Elements) -> None:
        """Read all kinds of element, one after the other."""
        others = elements.others
        self._description, self._lang = elements.description, elements.lang
        if others:  # of most pages everything is known already
            self._take_facts(others)
        if elements.canonical is not None:
            self._canonical = elements.canonical
            self._links.append(as_link(elements.canonical))
        for element in others.get("link", ()):
            self._take_link(element)
        self._links += filter(None, elements.links)
        for tag in ("iframe", "frame"):
            for element in others.get(tag, ()):
                if href := element.attr("src"):
                    self._links.append(as_link(href))

    def _take_facts(self, others: Mapping[str, Sequence[Element]]) -> None:
        for element in others.get("html", ()):
            said = element.attr("lang") or ""
            if self._lang is None and is_language(said):
                self._lang = said.strip()
        for element in others.get("base", ()):
            # Browsers honour the first base that has an href.
            if self._base_href is None:
                self._base_href = element.attr("href")
        for element in others.get("meta", ()):
            self._take_meta(element)

    def page(self, base_url: str, elements: Elements, charset: str) -> ParsedPage:
        kept, described, heading = elements.kept, self._description, elements.heading
        base = base_url
        if self._base_href is not None:
            base = LinkBase(base_url, self._base_href).text
        links, room = self._links, self._max_links
        is_capped = len(links) > room
        if is_capped:
            links.sort(key=_is_marked)  # those that may be followed first
            del links[room:]
        title, robots = elements.title, self._robots
        return ParsedPage(  # by position: a dozen keywords would take a microsecond
            base,
            (clean_line(title) or None) if title else None,
            self._canonical,
            robots.noindex,
            robots.nofollow,
            charset,
            links,
            is_capped,
            (clean_line(described) or None) if described else None,
            (clean_line(heading) or None) if heading else None,
            self._lang,
            None if kept is None else bounded(kept),
        )

    def _take_link(self, element: Element) -> None:
        rel = element.attr("rel") or ""
        relations = rel.lower().split()
        href = element.attr("href")
        if not href or PAGE_RELATIONS.isdisjoint(relations):
            return
        # `rel="alternate stylesheet"` is no page.
        if "stylesheet" in relations:
            return
        if "canonical" in relations and self._canonical is None:
            self._canonical = href
        self._links.append(as_link(href, rel))

    def _take_meta(self, element: Element) -> None:
        name = (element.attr("name") or "").strip().lower()
        if name in ("robots", self._agent):
            self._robots = self._robots | robots_directives(element.attr("content"), self._agent)
        elif name == "description":
            self._description = self._description or element.attr("content")
        elif (element.attr("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(element.attr("content") or "")
            if target and not self._has_refresh:
                self._has_refresh = True
                self._links.append(as_link(target))


def _is_marked(link: str) -> bool:
    return link[0] == MARK


def is_language(text: str) -> bool:
    """Return whether text can be the name of a language, as in `de-CH`."""
    name = text.strip()
    return 0 < len(name) <= MAX_LANGUAGE and name.isascii() and name.replace("-", "").isalnum()


def refresh_target(content: str) -> str | None:
    """Return the URL in `5; url='/next'`, as tolerantly as browsers do; None if there is none."""
    rest = content.lstrip().lstrip("0123456789.").lstrip()
    if rest == content.lstrip() or not rest.startswith((";", ",")):
        return None
    rest = rest[1:].lstrip()
    if rest[:3].lower() == "url":
        after = rest[3:].lstrip()
        if after.startswith("="):
            rest = after[1:].lstrip()
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    return rest.strip() or None
