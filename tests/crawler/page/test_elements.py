"""The kept elements of a page: all links with their kinds and texts, whoever read the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.model import Entry, Fetched, Link, Request
from mannerly.crawler.page import ParsedPage, parse_page, scan, tree
from mannerly.crawler.page.elements import MAX_BYTES, KeptElements, LinkReader, bounded
from mannerly.crawler.page.record import page_record

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord
    from mannerly.crawler.page.parsed import Reader

URL = "https://example.com/docs/page.html"
PAGE = """<!doctype html><html lang="de-CH"><head><title>T</title>
<link rel="canonical" href="/docs/page"><link rel="stylesheet" href="/s.css">
<link rel="alternate" hreflang="fr" href="/fr/"><link rel=icon href=/i.png>
<meta property="og:title" content="Og"><script src="/app.js"></script></head><body>
<h1>Big <em>words</em></h1>
<a href="/one">First &amp; <b>best</b></a> <a class="x" href="two.html#part">Two</a>
<a href="https://other.example/" rel="nofollow noopener">Out</a>
<a href="/image"><img src="/p.png" alt="A picture" srcset="/p2.png 2x, /p3.png 3x"></a>
<map><area href="/area"></map><iframe src="/frame"></iframe><video poster="/v.png" src="/v.mp4">
</video><a href="mailto:x@y">mail</a><a name=x>none</a></body></html>"""

READERS = {"scan": scan.read_all, "tree": tree.read_all}


def record(redirect_to: str | None = None, canonical: str | None = None) -> PageRecord:
    entry = Entry(1, URL, "example.com", 0, 0, None, 0)
    answer = Fetched(Request(URL, "example.com", 1.0), status=200)
    return page_record(entry, answer, 0.0, redirect_to=redirect_to, canonical_url=canonical)


def links(html: str, reader: Reader = scan.read_all) -> list[Link]:
    page = parse_page(html.encode(), "text/html", URL, reader=reader)
    assert isinstance(page, ParsedPage)
    return list(LinkReader().links(record(), page.elements))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_link_is_kept_with_its_kind(reader: Reader) -> None:
    """Resources and other hosts included; targets are canonical, fragments apart."""
    found = {
        (each.kind, each.target.removeprefix("https://example.com")) for each in links(PAGE, reader)
    }

    assert found == {
        ("canonical", "/docs/page"), ("link", "/s.css"), ("hreflang", "/fr/"), ("link", "/i.png"),
        ("script", "/app.js"), ("a", "/one"), ("a", "/docs/two.html"),
        ("a", "https://other.example/"), ("a", "/image"), ("img", "/p.png"), ("img", "/p2.png"),
        ("img", "/p3.png"), ("area", "/area"), ("iframe", "/frame"), ("img", "/v.png"),
        ("media", "/v.mp4"),
    }  # fmt: skip


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_link_has_its_text_fragment_and_nofollow(reader: Reader) -> None:
    """Of an image alone, ordinary pages keep the text that is shown instead of it."""
    found = {each.target: each for each in links(PAGE, reader) if each.kind == "a"}

    assert found["https://example.com/one"].text == "First & best"
    assert found["https://example.com/docs/two.html"].fragment == "part"
    assert found["https://other.example/"].nofollow
    if reader is scan.read_all:
        assert found["https://example.com/image"].text == "A picture"


AWKWARD = """<title>T</title><img alt="a > b" src="/p.png">
<script data-x="a > b" src="/s.js"></script>
<script>document.write('src="/no.js"')</script><link data-x='>' rel=icon href=/i.png>
<a title="a > b" href='/one' rel='nofollow'>One <img alt="x > y" src="/q.png"> more</a>
<a title="<b>" href=/two rel=nofollow>Two</a><area alt=">" href="/three" rel="nofollow">"""


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_tag_does_not_end_in_a_quoted_value(reader: Reader) -> None:
    """Kept tags are read whole, and marks of nofollow links are no part of them."""
    found = [
        (each.kind, each.target[len("https://example.com") :]) for each in links(AWKWARD, reader)
    ]
    told = {each.target[len("https://example.com") :]: each for each in links(AWKWARD, reader)}

    assert sorted(found) == [
        ("a", "/one"), ("a", "/two"), ("area", "/three"), ("img", "/p.png"), ("img", "/q.png"),
        ("link", "/i.png"), ("script", "/s.js"),
    ]  # fmt: skip
    assert [path for path, link in told.items() if link.nofollow] == ["/one", "/two", "/three"]
    assert " ".join((told["/one"].text or "").split()) == "One more"


SPHINX_HEADING = """<h1><a class="reference internal" href="#module-json" title="json"><code
class="xref py py-mod docutils literal notranslate"><span class="pre">json</span></code></a> — JSON
encoder and <b>de</b>coder<a class="headerlink" href="#json" title="Link">&para;</a></h1>"""


@pytest.mark.parametrize("reader", [scan.read, tree.read], ids=["scan", "tree"])
@pytest.mark.parametrize("first", ["", "<h1><img src=logo.png></h1>", "<h1> <a href=/>¶</a></h1>"])
def test_a_heading_is_read_whole(reader: Reader, first: str) -> None:
    """Links, code and marks inside of it cut nothing off; one without text is passed over."""
    page = parse_page((first + SPHINX_HEADING).encode(), "text/html", URL, reader=reader)

    assert isinstance(page, ParsedPage)
    assert page.h1 == "json — JSON encoder and decoder"


def test_a_page_says_its_description_heading_and_language() -> None:
    """They are read with every page, also where no links are kept."""
    html = PAGE.replace("<title>", '<meta name="description" content="About &lt;it&gt;"><title>')
    for reader in (scan.read, scan.read_all, tree.read):
        page = parse_page(html.encode(), "text/html", URL, reader=reader)

        assert isinstance(page, ParsedPage)
        assert (page.description, page.h1, page.lang) == ("About <it>", "Big words", "de-CH")


def test_relative_links_follow_the_base() -> None:
    """Of `<base href>`, and a query alone is of the page itself."""
    found = links('<base href="/b/"><a href="x">1</a><a href="?q=1">2</a>')

    assert [each.target for each in found] == [
        "https://example.com/b/x",
        "https://example.com/b/?q=1",
    ]


def test_a_reader_of_many_pages_resolves_each_on_its_own() -> None:
    """What it remembers of one folder or page is not taken for another."""
    read, kept = LinkReader(), b"utf-8\0x\0X\0/y\0Y\0?z\0Z"
    other = record()._replace(url="https://example.com/other/")

    found = [each.target for each in (*read.links(record(), kept), *read.links(other, kept))]

    assert found == [
        "https://example.com/docs/x", "https://example.com/y",
        "https://example.com/docs/page.html?z", "https://example.com/other/x",
        "https://example.com/y", "https://example.com/other/?z",
    ]  # fmt: skip


def test_without_kept_links_redirects_and_canonicals_are_left() -> None:
    """They are in the record itself."""
    one = list(LinkReader().links(record(redirect_to="https://example.com/new"), None))
    other = list(LinkReader().links(record(canonical="https://example.com/c"), None))

    assert [(each.kind, each.target) for each in one + other] == [
        ("redirect", "https://example.com/new"),
        ("canonical", "https://example.com/c"),
    ]


def test_texts_are_short_and_clean() -> None:
    """Whatever a page writes, a text is one line of at most 100 characters."""
    (found,) = links('<a href="/x">' + "\x1b[31m\u202eevil\n" * 50 + "</a>")

    assert found.text is not None
    assert len(found.text) <= 100
    assert found.text.isprintable()


def test_elements_of_a_page_are_bounded() -> None:
    """Cut off after a whole pair, so that what is left is read rightly."""
    kept = b"utf-8" + b"\0/link\0text" * (MAX_BYTES // 8)

    cut = bounded(kept)

    elements = KeptElements.of(cut)
    assert len(cut) <= MAX_BYTES
    assert set(elements.fields) == {"/link"}
    assert set(elements.extras) == {"text"}
    assert bounded(b"utf-8\0a\0b") == b"utf-8\0a\0b"


@given(st.binary(max_size=300))
def test_no_stored_bytes_raise(kept: bytes) -> None:
    """A damaged or hostile row costs its links, nothing else."""
    for each in LinkReader().links(record(), kept):
        assert each.target.startswith("http")
