"""Read RSS and Atom feeds: what they list are links, like those of a page or of a sitemap.

    RSS 2.0, 0.9x    <rss><channel><item><link>URL</link><pubDate>
    RSS 1.0          <rdf:RDF><item><link>URL</link><dc:date>
    Atom             <feed><entry><link href="URL"/><updated>

A feed that a site links to, or that is a seed, is read when it is fetched as a page; one that
robots.txt names as a sitemap is read as a sitemap. What may not be in a sitemap (declarations, deep
nesting, long names) may not be in a feed: `safe_xml`.
"""

from __future__ import annotations

from datetime import UTC
from xml.parsers import expat

from .charset import media_type
from .safe_xml import MAX_TEXT, Listed, SafeXml, SitemapProblem, StopReading

FEED_ROOTS = frozenset({"rss", "RDF", "feed"})
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
_XML_TYPES = frozenset({"application/xml", "text/xml"})
_ITEMS = frozenset({"item", "entry"})
_DATES = frozenset({"pubDate", "date", "updated"})
_HEAD_BYTES = 1024  # in which the root of a feed begins


class FeedPart:
    """Collects the links of a feed; `title` is that of the feed."""

    def __init__(self, max_urls: int) -> None:
        self.urls: list[Listed] = []
        self.children: list[str] = []
        self.title: str | None = None
        self._max_urls = max_urls
        self._link = ""
        self._date: str | None = None

    def started(self, path: list[str], attributes: dict[str, str]) -> bool:
        """Note a start tag; return whether its text is wanted."""
        name = path[-1]
        if name in _ITEMS:
            self._link, self._date = "", None
        if len(path) < 3 or path[-2] not in _ITEMS:
            return name == "title" and self.title is None and path[-2:-1] in (["channel"], ["feed"])
        if name == "link" and attributes.get("rel", "alternate") == "alternate":
            href = attributes.get("href", "").strip()
            if len(href) <= MAX_TEXT:
                self._link = self._link or href
        return name == "link" or name in _DATES

    def ended(self, path: list[str], text: str | None) -> None:
        """Take the text of an element; the end of an item completes it."""
        name = path[-1]
        if name in _ITEMS:
            self._take()
        elif not text:
            return
        elif name == "title":
            self.title = text
        elif name == "link":
            self._link = self._link or text
        else:
            self._date = self._date or _w3c_date(text)

    def _take(self) -> None:
        if not self._link:
            return
        if len(self.urls) >= self._max_urls:
            raise StopReading(SitemapProblem.TOO_MANY_URLS)
        self.urls.append(Listed(self._link, self._date))
        self._link = ""


def is_feed(content_type: str | None, body: bytes) -> bool:
    """Return whether an answer is a feed, by its header or, if that says XML, by its beginning."""
    media = media_type(content_type)
    if media in FEED_TYPES:
        return True
    head = body[:_HEAD_BYTES].lower()
    return media in _XML_TYPES and any(mark in head for mark in (b"<rss", b"<feed", b"<rdf:rdf"))


def read_feed(body: bytes, max_urls: int) -> tuple[str | None, list[str]]:
    """Return the title and the links of a feed; after an error those that were read before it."""
    part = FeedPart(max_urls)
    reader = SafeXml(lambda _: part)
    try:
        reader.feed(body.lstrip())
        reader.close()
    except (StopReading, expat.ExpatError):
        pass
    return part.title, [each.loc for each in part.urls]


def _w3c_date(text: str) -> str | None:
    """Return a date as sitemaps have it; that of an RSS feed is in the format of mail."""
    from email.utils import parsedate_to_datetime  # 4 ms, and most crawls meet no feed

    try:
        return parsedate_to_datetime(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return text[:40]
