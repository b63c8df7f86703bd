"""Sitemaps: every shape is read, and no file can make the reader work without end."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.sitemaps import Listed, SitemapContents, SitemapProblem, read_sitemap

XML = b'<?xml version="1.0" encoding="UTF-8"?>'
URLSET = (
    XML
    + b"""
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://x/image">
  <url>
    <loc> https://e.com/a?x=1&amp;y=2 </loc>
    <image:image><image:loc>https://e.com/a.png</image:loc></image:image>
    <lastmod>2026-01-02</lastmod><priority>0.8</priority>
  </url>
  <url><loc>https://e.com/b</loc><priority>9</priority></url>
  <url><lastmod>2026-01-02</lastmod></url>
</urlset>"""
)
ENTRIES = [Listed("https://e.com/a?x=1&y=2", "2026-01-02", 0.8), Listed("https://e.com/b")]


def urlset(count: int) -> bytes:
    rows = b"".join(b"<url><loc>https://e.com/%d</loc></url>" % n for n in range(count))
    return b"<urlset>" + rows + b"</urlset>"


WRAPPINGS = {
    "plain": URLSET,
    "bom": b"\xef\xbb\xbf" + URLSET,
    "blank lines first": b"\n\n  " + URLSET,
    "gzip": gzip.compress(URLSET),
    "gzip members": gzip.compress(URLSET[:90]) + gzip.compress(URLSET[90:]) + b"\0\0",
    "utf-16": URLSET.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
    "prefixes": URLSET.replace(b"<url", b"<s:url").replace(b"</url", b"</s:url"),
}


def test_urlset_is_read_in_every_wrapping() -> None:
    """Encoding, compression and prefixes do not matter; images are no pages."""
    for name, body in WRAPPINGS.items():
        assert read_sitemap(body) == SitemapContents(urls=ENTRIES), name


def test_index_names_its_children() -> None:
    """An index gives sitemaps to fetch, and no pages."""
    body = XML + b"<sitemapindex><sitemap><loc>https://e.com/1.xml</loc></sitemap></sitemapindex>"

    assert read_sitemap(body) == SitemapContents(children=["https://e.com/1.xml"])


def test_text_sitemap_has_one_url_a_line() -> None:
    """Lines that are no web address are passed over."""
    body = b"https://e.com/a\r\n# note\n\nHTTPS://e.com/\xc3\xbc\nftp://e.com/\nhttp://e.com/b"

    found = read_sitemap(body)

    expected = ["https://e.com/a", "HTTPS://e.com/ü", "http://e.com/b"]
    assert [entry.loc for entry in found.urls] == expected
    assert found.problem is None


BROKEN = [
    (urlset(3).removesuffix(b"</urlset>"), 3, SitemapProblem.MALFORMED),
    (urlset(3).replace(b"/2<", b"/2&nbsp;<"), 2, SitemapProblem.MALFORMED),
    (gzip.compress(urlset(3))[:-12], 3, SitemapProblem.BAD_GZIP),
    (b"\x1f\x8b rubbish", 0, SitemapProblem.BAD_GZIP),
    (b"<html><a href='/'>not found</a></html>", 0, SitemapProblem.NOT_A_SITEMAP),
    (b"<!DOCTYPE html><p>not found", 0, SitemapProblem.NOT_A_SITEMAP),
    (b"<!doctype html><p>not found", 0, SitemapProblem.MALFORMED),
    (b"not found", 0, SitemapProblem.NOT_A_SITEMAP),
    (b"", 0, SitemapProblem.NOT_A_SITEMAP),
    (b" " * 100_000, 0, SitemapProblem.NOT_A_SITEMAP),
]


def test_what_was_read_before_a_fault_is_kept() -> None:
    """A broken file gives its good beginning and the reason it ended there."""
    for body, urls, problem in BROKEN:
        found = read_sitemap(body)
        assert (len(found.urls), found.problem) == (urls, problem), body[:80]


BILLION_LAUGHS = (
    b'<!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    b"<urlset><url><loc>&b;</loc></url></urlset>"
)
LOCAL_FILE = (
    b'<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    b"<urlset><url><loc>&x;</loc></url></urlset>"
)


DEFAULTS = (
    b'<!DOCTYPE urlset [<!ATTLIST x a CDATA "' + b"v" * 900_000 + b'">]>'
    b"<urlset>" + b"<x/>" * 100_000 + b"</urlset>"
)
EMPTY_SUBSET = b"<!DOCTYPE urlset []><urlset><url><loc>a</loc></url></urlset>"
PARAMETER = (
    b'<!DOCTYPE urlset [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x.dtd"> %x;]>'
    b"<urlset><url><loc>a</loc></url></urlset>"
)


def assert_refused(*bodies: bytes) -> None:
    for body in bodies:
        for sent in (body, gzip.compress(body), body.decode().encode("utf-16")):
            found = read_sitemap(sent)
            assert found == SitemapContents(problem=SitemapProblem.DTD), body[:80]


def test_entities_are_refused() -> None:
    """No declaration of an entity is accepted, so none can grow or read a file."""
    assert_refused(BILLION_LAUGHS, LOCAL_FILE, PARAMETER)


def test_document_type_with_declarations_is_refused() -> None:
    """Nor is any other declaration: default values of attributes multiply, too."""
    assert_refused(DEFAULTS, EMPTY_SUBSET)


def test_external_document_type_is_not_read() -> None:
    """A document type elsewhere is not asked for, and its entities are unknown."""
    doctype = b'<!DOCTYPE urlset SYSTEM "file:///etc/passwd">'

    plain = read_sitemap(doctype + urlset(2))
    used = read_sitemap(doctype + b"<urlset><url><loc>a&x;</loc></url></urlset>")

    assert (len(plain.urls), plain.problem) == (2, None)
    assert [listed.loc for listed in used.urls] == ["a"]


def test_doctype_alone_is_harmless() -> None:
    """A document type without entities does not cost the sitemap."""
    found = read_sitemap(b"<!DOCTYPE urlset>" + urlset(2))

    assert len(found.urls) == 2
    assert found.problem is None


HOSTILE = {
    "nesting": (b"<urlset>" + b"<a>" * 100_000, SitemapProblem.TOO_DEEP),
    "attribute": (b"<urlset a='" + b"x" * 3_000_000, SitemapProblem.MALFORMED),
    "comment": (b"<urlset><!--" + b"x" * 3_000_000, SitemapProblem.MALFORMED),
    "name": (b"<urlset><" + b"x" * 900_000 + b"/>", SitemapProblem.MALFORMED),
    "members": (gzip.compress(b"") * 1000, SitemapProblem.BAD_GZIP),
}


def test_hostile_shapes_are_cut_short() -> None:
    """Nesting, endless tokens and members without content each meet a bound."""
    for name, (body, problem) in HOSTILE.items():
        assert read_sitemap(body).problem is problem, name


def test_bomb_is_stopped_at_the_cap() -> None:
    """A small gzip file that inflates past the cap ends there, with what came before it."""
    body = gzip.compress(urlset(2).removesuffix(b"</urlset>") + b" " * 5_000_000)

    found = read_sitemap(body, max_bytes=1_000_000)

    assert len(body) < 10_000
    assert len(found.urls) == 2
    assert found.problem is SitemapProblem.TOO_LARGE


def test_number_of_urls_is_capped() -> None:
    """Past the cap nothing more is taken, and the result says so."""
    for name, body in {"xml": urlset(30), "text": b"https://e.com/x\n" * 30}.items():
        found = read_sitemap(body, max_urls=10)
        assert len(found.urls) == 10, name
        assert found.problem is SitemapProblem.TOO_MANY_URLS, name


def test_overlong_location_is_dropped_alone() -> None:
    """One location without end costs itself and not its neighbours."""
    long = b"<url><loc>https://e.com/" + b"x" * 200_000 + b"</loc></url>"
    body = urlset(1).removesuffix(b"</urlset>") + long + b"<url><loc>b</loc></url></urlset>"

    found = read_sitemap(body)

    assert [entry.loc for entry in found.urls] == ["https://e.com/0", "b"]


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(b"\x1f\x8b\x08".__add__)))
def test_no_bytes_raise(body: bytes) -> None:
    """Whatever a server sends as its sitemap, the answer is a value."""
    assert isinstance(read_sitemap(body), SitemapContents)


@given(st.integers(0, 400))
def test_cut_sitemaps_keep_their_beginning(length: int) -> None:
    """However short a file is cut, what is read is the beginning of the whole."""
    whole = read_sitemap(URLSET).urls

    part = read_sitemap(URLSET[:length]).urls

    assert part == whole[: len(part)]
