"""RSS and Atom feeds: their entries are links, and a hostile one harms nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.page import ParsedPage, checks, parse_page, scan
from mannerly.crawler.page.elements import KeptElements
from mannerly.crawler.web.feeds import is_feed, read_feed
from mannerly.crawler.web.sitemaps import Listed, SitemapProblem, read_sitemap

if TYPE_CHECKING:
    from mannerly.crawler.page.parsed import Reader

RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>News &amp; more</title>
<link>https://example.com/</link>
<item><title>One</title><link>https://example.com/one</link>
<pubDate>Sun, 01 Nov 2026 10:00:00 GMT</pubDate></item>
<item><link> https://example.com/two </link></item><item><title>none</title></item>
</channel></rss>"""
RDF = b"""<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><channel><title>Old</title></channel>
<item><link>https://example.com/one</link><dc:date>2026-11-01T10:00:00Z</dc:date></item>
<item><link>https://example.com/two</link></item></rdf:RDF>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title>
<link href="https://example.com/" rel="self"/>
<entry><link rel="enclosure" href="https://example.com/x.mp3"/>
<link href="https://example.com/one"/><updated>2026-11-01T10:00:00Z</updated></entry>
<entry><link rel="alternate" href="https://example.com/two"/></entry></feed>"""
LISTED = [
    Listed("https://example.com/one", "2026-11-01T10:00:00Z"),
    Listed("https://example.com/two"),
]
FEEDS = {"rss": RSS, "rdf": RDF, "atom": ATOM}


@pytest.mark.parametrize("feed", FEEDS.values(), ids=FEEDS)
def test_a_feed_is_read_like_a_sitemap(feed: bytes) -> None:
    """Its entries with their dates, not the site's own link."""
    found = read_sitemap(feed)

    assert found.urls == LISTED
    assert found.problem is None


@pytest.mark.parametrize("reader", [scan.read_all, checks.read_with_anchors])
@pytest.mark.parametrize("feed", FEEDS.values(), ids=FEEDS)
def test_a_feed_that_is_a_page_has_links(feed: bytes, reader: Reader) -> None:
    """A feed is found by the links of a site, or is a seed: its entries are followed and kept."""
    url, kind = "https://example.com/feed", "application/xml; charset=utf-8"
    page = parse_page(feed, kind, url, reader=reader, keeps_links=True)

    assert isinstance(page, ParsedPage)
    assert page.links == [each.loc for each in LISTED]
    assert page.elements is not None
    assert KeptElements.of(page.elements).fields == page.links
    assert page.title in ("News & more", "Old", "Atom")


def test_a_feed_is_known_by_its_type_or_by_its_beginning() -> None:
    """Other XML is left alone."""
    assert is_feed("application/rss+xml", b"")
    assert is_feed("text/xml", RSS)
    assert not is_feed("text/xml", b"<svg/>")
    assert not is_feed("image/svg+xml", RSS)


def test_a_broken_feed_gives_what_was_read() -> None:
    """Its beginning is kept, and attacks of XML end the reading."""
    bomb = b'<!DOCTYPE rss [<!ENTITY a "aa">]><rss><channel><item><link>&a;</link></item></channel>'

    assert read_feed(RSS[:-60], 10)[1] == ["https://example.com/one"]
    assert read_feed(bomb, 10) == (None, [])
    assert read_sitemap(bomb).problem is SitemapProblem.DTD
    assert len(read_feed(RSS, 1)[1]) == 1
