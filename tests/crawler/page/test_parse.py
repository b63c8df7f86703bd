"""Parsing: what is kept of a page, by the scan and by both parsers, however hostile the page."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crawler.page import lexbor

from mannerly.crawler.page import (
    HrefMemory,
    ParsedPage,
    ParseFailed,
    parse_page,
    resolve_links,
    scan,
)
from mannerly.crawler.page import tree as turbo
from mannerly.crawler.page.html import refresh_target
from mannerly.crawler.page.parsed import MARK, Element, Elements, Reader, from_tree
from mannerly.crawler.page.tree import disarmed
from mannerly.crawler.web.charset import encoding
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.urls import UrlRefusal

URL = "https://example.com/a/b"

PARSERS = [pytest.param(turbo.read, id="turbohtml"), pytest.param(lexbor.read, id="selectolax")]
all_readers = pytest.mark.parametrize("reader", [pytest.param(scan.read, id="scan"), *PARSERS])


def read(
    html: str | bytes,
    content_type: str | None = "text/html",
    *,
    reader: Reader = scan.read,
    x_robots_tag: str | None = None,
    max_links: int = 10_000,
) -> ParsedPage:
    body = html.encode() if isinstance(html, str) else html
    page = parse_page(
        body, content_type, URL, reader=reader, x_robots_tag=x_robots_tag, max_links=max_links
    )
    assert isinstance(page, ParsedPage), page
    return page


def is_clean(text: str) -> bool:
    """No control character, no surrogate, no mark that reorders text."""
    bad = {"Cc", "Cs", "Zl", "Zp"}
    return not any(unicodedata.category(char) in bad or char in "\u202e\u2066" for char in text)


@all_readers
def test_page_is_read_whole(reader: Reader) -> None:
    """Title, canonical, robots and every kind of link are found."""
    html = """<!doctype html><title> A &amp;
        B </title><meta name=Robots content="NoIndex"><base href="/base/"><base href="/other/">
        <link rel="stylesheet" href="s.css"><link rel="Canonical" href="c"><link rel=next href=n>
        <link rel="alternate stylesheet" href="t.css"><link rel="alternate" hreflang=de href=de>
        <meta http-equiv=refresh content="3; URL='r'">
        <a href="1">one</a><a>none</a><a href>empty</a><a href="2" rel="external NOFOLLOW">two</a>
        <a href=" 6?a=1&amp;b=2 ">six</a><iframe src="5"></iframe>
        <map><area href="3"><area href="4" rel=nofollow></map>"""

    page = read(html, reader=reader)

    assert page == ParsedPage(
        base="https://example.com/base/",
        title="A & B",
        canonical="c",
        noindex=True,
        charset="utf-8",
        links=["r", "c", "n", "de", "1", MARK + "2", " 6?a=1&b=2 ", "3", MARK + "4", "5"],
    )


@all_readers
def test_frames_are_links(reader: Reader) -> None:
    """A frameset has no anchors, only frames."""
    page = read("<frameset><frame src=a><frame src=b></frameset>", reader=reader)

    assert page.links == ["a", "b"]


@all_readers
def test_title_is_the_documents_own(reader: Reader) -> None:
    """The label of a drawing is not the title of the page."""
    drawing = "<svg><title>Drawing</title></svg>"

    assert read(drawing, reader=reader).title is None
    assert read(drawing + "<title>Page</title>", reader=reader).title == "Page"


@all_readers
def test_markup_inside_scripts_and_comments_is_no_link(reader: Reader) -> None:
    """Only elements are links, not text that looks like them."""
    html = "<script>'<a href=1>'</script><!-- <a href=2> --><style><a href=3></style><a href=4>"

    assert read(html, reader=reader).links == ["4"]


def generated_page(rng: random.Random) -> str:
    """A page of valid and broken markup, different with every seed."""
    pieces = [
        '<a href="/p/{n}">x</a>', "<a href='q{n}' rel=nofollow>y", "<p>text &lt; &eacute;",
        "<div class=c>", "</div>", "<ul><li>one<li>two</ul>", "<b><i>wrong</b></i>",
        "<table><tr><td><a href=t{n}>c</table>", "<area href=m{n}>", "<iframe src=f{n}></iframe>",
        "<!-- <a href=no> -->", "<script>if (a<b) '<a href=no>'</script>", "<a name=x>anchor</a>",
        "<link rel=next href=l{n}>", "<form><input value='<a href=no>'></form>", "</p></a>",
        "<A HREF=Up{n}>", "<a href=/é/{n}>", "<a href='a&amp;b{n}'>", "<select><option>o</select>",
        "<noscript><a href=ns{n}>n</a></noscript>", "<svg><a href=s{n}></a></svg>", "<h1>h</h2>",
    ]  # fmt: skip
    head = "<html><head><title>Page {n}</title></head><body>".replace("{n}", str(rng.random()))
    body = (rng.choice(pieces).replace("{n}", str(n)) for n in range(rng.randrange(5, 80)))
    return head + "".join(body)


def test_both_parsers_read_the_same() -> None:
    """On a generated corpus of broken markup two independent parsers find the same page."""
    for seed in range(60):
        html = generated_page(random.Random(seed))
        one, other = (read(html, reader=reader) for reader in (turbo.read, lexbor.read))
        assert one == other, (seed, html)
        assert one.links, (seed, html)


OTHER_CONTENT: list[tuple[str | None, bytes]] = [
    ("application/pdf", b"<a href=x>"),
    ("text/plain", b"<a href=x>"),
    ("image/svg+xml; charset=utf-8", b"<svg><a href=x/></svg>"),
    ("application/json", b"{}"),
    (None, b"%PDF-1.7 <a href=x>"),
    ("", b""),
]


def test_other_content_has_no_links() -> None:
    """What is not HTML is no error and leads nowhere."""
    for content_type, body in OTHER_CONTENT:
        assert read(body, content_type) == ParsedPage(base=URL), (content_type, body)


def test_html_is_known_by_header_or_by_look() -> None:
    """A server that names no type is believed by the first character of the body."""
    for content_type in ("TEXT/HTML;x=y", "application/xhtml+xml", None, " "):
        page = read(b"\xef\xbb\xbf\r\n <a href=x>", content_type)
        assert page.links == ["x"], content_type


DIRECTIVES: list[tuple[str | None, str, bool, bool]] = [
    (None, "noindex", True, False),
    (None, "none", True, True),
    (None, "index, FOLLOW", False, False),
    ("noindex", "nofollow", True, True),
    ("googlebot: noindex, nofollow", "", False, False),
    ("googlebot: noindex, mannerly: nofollow", "", False, True),
    ("unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, nofollow", "", False, True),
    ("max-snippet: 20, noindex", "", True, False),
    ("nofollowing, noindexed", "", False, False),
]


def test_robots_directives_are_understood() -> None:
    """Header and meta add up, and what is addressed to other crawlers is not ours."""
    for header, meta, noindex, nofollow in DIRECTIVES:
        page = read(f"<meta name=robots content='{meta}'>", x_robots_tag=header)
        assert (page.noindex, page.nofollow) == (noindex, nofollow), (header, meta)


def test_robots_header_holds_for_any_content() -> None:
    """A document without markup can ask not to be indexed too."""
    assert read(b"%PDF", "application/pdf", x_robots_tag="noindex").noindex


REFRESHES: list[tuple[str, str | None]] = [
    ("0;url=/x", "/x"),
    (" 5 ; URL = '/x y' rest", "/x y"),
    ('1.5, url="/x"', "/x"),
    ("0;/x", "/x"),
    ("0; urlx", "urlx"),
    ("5", None),
    ("5;", None),
    ("5;url=", None),
    ("url=/x", None),
    ("", None),
]


def test_refresh_target_is_read_loosely() -> None:
    """Spaces, quotes and the word url may vary as they do in browsers."""
    for content, target in REFRESHES:
        assert refresh_target(content) == target, content


CHARSETS: list[tuple[bytes, str | None, str]] = [
    ("é".encode(), None, "utf-8"),
    (b"\xef\xbb\xbf" + "é".encode(), "text/html; charset=latin1", "utf-8"),
    ("é".encode("utf-16"), "text/html", "utf-16-le"),
    (b"\xfe\xff" + "é".encode("utf-16-be"), None, "utf-16-be"),
    (b"\xe9", 'text/html; charset="ISO-8859-1"', "cp1252"),
    (b"<meta charset=windows-1252>\xe9", "text/html", "cp1252"),
    (b"<META CONTENT='text/html; charset=cp1252'>\xe9", None, "cp1252"),
    (b"<meta charset=utf-16>" + "é".encode(), None, "utf-8"),
    (b"<meta charset=punycode>" + "é".encode(), None, "utf-8"),
    (b"<meta charset=nonsense>" + "é".encode(), "text/html; charset=utf-7", "utf-8"),
]


def test_charset_follows_bom_header_meta() -> None:
    """The first that speaks decides, in the meanings of the web, and unknown names are UTF-8."""
    for body, content_type, codec in CHARSETS:
        used, mark = encoding(body, content_type)
        assert body[mark:].decode(used).endswith("é"), (body, content_type)
        assert used == codec, (body, content_type)


TITLES = [
    b"<title>\xff\xfe\x80 wrong charset</title>",
    b"<title>&#xD800;&#xDFFF; surrogates &#0; &#x85;</title>",
    b"<title>\x1b[31m \x00 \x07 escape \x9b</title>",
    "<title>\u202egnp.exe\u2066</title>".encode(),
    "<title>no byte order mark</title>".encode("utf-16-le"),
    b"<meta charset=utf-7><title>+ADw-script+AD4-</title>",
    b"<title>" + "é".encode() * 100_000 + b"</title>",
]


@all_readers
def test_title_is_always_clean(reader: Reader) -> None:
    """Whatever the bytes, a title is valid UTF-8 on one line, at most 512 characters long."""
    for body in TITLES:
        title = read(body, reader=reader).title or ""
        assert title.encode("utf-8").decode() == title, body[:80]
        assert len(title) <= 512, body[:80]
        assert is_clean(title), body[:80]


@given(st.binary(max_size=300))
def test_no_bytes_raise(body: bytes) -> None:
    """Random bytes served as HTML are a page with a clean title."""
    page = read(b"<title>" + body)

    assert is_clean(page.title or "")


def test_parser_error_costs_one_page() -> None:
    """Whatever a parser raises comes back as a value that names it."""

    def broken(body: bytes, codec: str, limit: int) -> Elements:
        raise RecursionError("too deep")

    failed = parse_page(b"<p>", "text/html", URL, reader=broken)

    assert failed == ParseFailed("RecursionError: too deep")


@all_readers
def test_links_are_capped_and_told(reader: Reader) -> None:
    """A page of very many links gives as many as allowed, and says that there are more."""
    html = "<a href=x>" * 60 + "<a href=x rel=nofollow>" * 60

    capped = read(html, reader=reader, max_links=100)
    whole = read(html, reader=reader, max_links=120)

    assert capped.links == ["x"] * 60 + [MARK + "x"] * 40
    assert capped.links_capped
    assert not whole.links_capped


def test_no_more_elements_are_asked_for_than_the_cap() -> None:
    """A tree is asked for one element more than the cap, so a million cost what ten thousand do."""
    asked: dict[str, int] = {}

    def endless(body: bytes, codec: str, limit: int) -> Elements:
        def find(tag: str) -> list[Element]:
            asked[tag] = limit
            return [Link()] * limit if tag == "a" else []

        return from_tree(None, find)

    page = parse_page(b"<p>", "text/html", URL, reader=endless)

    assert isinstance(page, ParsedPage)
    assert len(page.links) == 10_000
    assert page.links_capped
    assert set(asked) == {"html", "base", "meta", "link", "a", "area", "iframe", "frame"}
    assert set(asked.values()) == {10_001}


class Link:
    """An element whose only attribute is an href."""

    def attr(self, name: str, /) -> str | None:
        return "x" if name == "href" else None


def copied_formatting(tag: str, ends: str = "") -> str:
    """Each paragraph would hold a copy of all that was left open: fifteen million elements."""
    return "<p>" + "".join(f"<{tag} id={n}>" for n in range(500)) + ends + "<p>x" * 30_000


HOSTILE_PAGES = {
    "nested divs": "<div>" * 100_000,
    "nested lists": "<ul><li>" * 20_000,
    "formatting": "".join(f"<b id={n}>" for n in range(3000)) + "<p>" * 3000,
    "copied formatting": copied_formatting("b"),
    "copied formatting, hidden ends": copied_formatting("I", "<!--" + "</i>" * 500 + "-->"),
    "copied formatting, shielded ends": copied_formatting("em", "<object>" + "</em>" * 500),
    "attributes": "<i " + " ".join(f"a{n}=1" for n in range(50_000)) + ">",
    "open tables": "<table>" * 5000 + "<a href=x>" * 2000,
    "misnested": "<a href=x><div>" * 3000 + "</a>" * 3000,
    "open comments": "<!--" * 100_000,
    "open tags": "<" * 300_000,
}


def test_hostile_markup_is_survived() -> None:
    """Pages built to exhaust a parser are read like others, and the link before them is found."""
    for name, html in HOSTILE_PAGES.items():
        assert read("<a href=first></a>" + html).links[0] == "first", name


@all_readers
def test_formatting_is_not_copied(reader: Reader) -> None:
    """However formatting is left open, a large page has no more links than it has tags."""
    html = copied_formatting("b") + "<font color=red><a href=x>link</font></a>" * 1000

    page = read(html, reader=reader)

    assert page.links == ["x"] * 1000


FORMATTING: list[tuple[str, str | None]] = [
    ("<B>x</B>", "<wbr>x</B>"),
    ("<strong class=a><i/>", "<wbr class=a><wbr/>"),
    ("<s\n>", "<wbr\n>"),
    ("<a><body><img><span><section><table><ul><em-x>", None),
]


PARSE_NULS = """
from pathlib import Path
from mannerly.crawler.page import parse_page
parse_page(b"<title>x</title>" + b"\\0" * 10_000_000, "text/html", "http://e.example/")
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nuls_cost_little_memory() -> None:
    """10 MB of NUL, which are 10 KB on the wire, take no more memory than other text."""
    ran = subprocess.run(
        [sys.executable, "-c", PARSE_NULS], capture_output=True, text=True, check=True
    )

    assert int(ran.stdout) < 150_000  # KB; about 50,000


def test_page_with_nuls_keeps_its_links() -> None:
    """Few NULs are read as browsers read them, many are left out."""
    few = read(b"\0<a href=/a\0b>" + b"\0" * 10)
    many = read(b"\0<a href=/a\0b>" + b"\0" * 2000)

    assert few.links == ["/a\ufffdb"]
    assert many.links == ["/ab"]


def test_only_formatting_is_disarmed() -> None:
    """Start tags of formatting become harmless; every other tag stays as it is."""
    for html, expected in FORMATTING:
        assert disarmed(html) == (html if expected is None else expected), html


def test_second_parser_refuses_what_would_hurt_it() -> None:
    """The scan before lexbor keeps away the pages on which its time is quadratic."""
    for name in ("nested divs", "nested lists", "formatting", "attributes"):
        failed = parse_page(HOSTILE_PAGES[name].encode(), "text/html", URL, reader=lexbor.read)
        assert isinstance(failed, ParseFailed), name
        assert failed.reason.startswith("TooComplex"), name


def test_links_become_unique_urls_in_page_order() -> None:
    """Spellings of one URL count once, where they stood first."""
    page = ParsedPage(base=URL, links=["/x", "c", "HTTPS://example.com:443/x#y", "../a/c", "/y"])

    found = resolve_links(page)

    expected = ["https://example.com/x", "https://example.com/a/c", "https://example.com/y"]
    assert found.urls == expected
    assert found.refused == {}


def test_refused_links_are_counted_by_reason() -> None:
    """What is left out appears in numbers, each occurrence once."""
    page = ParsedPage(
        base=URL,
        links=[
            *("mailto:a@b", "javascript:;", "http://[", "/ok"),
            *(MARK + "/" + "x" * 5000, MARK + "tel:1", MARK + "tel:1"),
        ],
    )

    found = resolve_links(page)

    assert found.urls == ["https://example.com/ok"]
    assert found.refused == {
        UrlRefusal.SCHEME: 4,
        UrlRefusal.MALFORMED: 1,
        UrlRefusal.TOO_LONG: 1,
    }


def test_a_link_followed_once_is_not_nofollow() -> None:
    """Nofollow URLs are those that no other link of the page leads to."""
    links = [MARK + "/x#n", "/x", MARK + "/z"]
    found = resolve_links(ParsedPage(base=URL, links=links))

    assert found.urls == ["https://example.com/x"]
    assert found.nofollow_urls == ["https://example.com/z"]


def test_canonical_becomes_a_url() -> None:
    """It is read against the page's base; what is no web address is none."""
    for href, url in (("/c#x", "https://example.com/c"), ("javascript:;", None), (None, None)):
        assert resolve_links(ParsedPage(base=URL, canonical=href)).canonical == url, href


HREFS = st.lists(
    st.sampled_from(
        [
            *("/x", "x", "../x", "//o.org/y", "https://e.org/z", "?q", "#f", "/x?", "http:x"),
            *("x?q", "http:?q", " ?q", "\t#f", "HTTP:", ".", "./?q", "%2e", "", "é", "x#f", "\\x"),
            "/y/../z",
        ]
    )
)
BASES = st.sampled_from(
    [
        *("https://e.com/", "https://e.com/a/b", "http://e.com/a/", "https://o.org/"),
        *(
            "http://e.org:81/",
            "https://e.com/a/c?q=/x/",
            "https://e.com/a/b/c",
            "http://e.com/a/b?q",
        ),
    ]
)


@given(st.lists(st.tuples(BASES, HREFS, HREFS, st.booleans()), max_size=8))
def test_memory_hides_no_url(pages: list[tuple[str, list[str], list[str], bool]]) -> None:
    """With little room and many places, what is left out is what was passed on before.

    A URL that was not, because of nofollow or the scope, is there on every page that has it.
    """
    memory, met = HrefMemory(hrefs=12, hrefs_per_place=3), Recent()

    for base, hrefs, nofollow, is_followed in pages:
        page = ParsedPage(base=base, links=[*(MARK + href for href in nofollow), *hrefs])
        found, of_page = resolve_links(page, memory=memory, met=met), resolve_links(page)
        assert found.urls == [url for url in of_page.urls if url not in met]
        assert found.nofollow_urls == [url for url in of_page.nofollow_urls if url not in met]
        passed_on = found.urls if is_followed else found.urls[::2]
        for url in passed_on:
            met.add(url)
        memory.passed_on(found, passed_on)


def test_an_href_is_left_out_once_its_url_was_passed_on() -> None:
    """Links that are out of scope are judged and counted on every page that has them."""
    memory = HrefMemory()
    page = ParsedPage(base=URL, links=["/in", "out", "/in#part"])

    memory.passed_on(resolve_links(page, memory=memory), ["https://example.com/in"])

    assert resolve_links(page, memory=memory).urls == ["https://example.com/a/out"]


def test_a_url_met_before_is_left_out() -> None:
    """However it is written, what was passed on lately is no news."""
    met = Recent()
    met.add("https://other.example/A?b")
    met.add("https://example.com/x")

    links = ["https://other.example/A?b", "/x", "HTTPS://other.example/A?b#c", "/y"]
    found = resolve_links(ParsedPage(base=URL, links=links), met=met)

    assert found.urls == ["https://example.com/y"]
