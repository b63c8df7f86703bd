"""The scan: it finds what the tree has, on any page, and needs no tree for ordinary ones."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, permutations, product
from random import Random
from typing import TYPE_CHECKING

import pytest
from bench.web.links import LinkChooser
from bench.web.manners import MANNERS as MANNERS_OF_WEBS
from bench.web.page import Prose
from bench.web.spec import PRIVATE_PAGES, WebSpec
from bench.web.tree import write_page
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.page import fragments

from mannerly.crawler.page import ParsedPage, ParseFailed, parse_page, scan
from mannerly.crawler.page import tree as turbo
from mannerly.crawler.page.parsed import MARK

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.page.parsed import Elements

URL = "https://example.com/a/b"
PROSE = Prose(Random(1))

# Markup as it is met: valid, careless, broken, and made to mislead. `no` is never a link.
LINKS = [
    '<a href="/p">x</a>', '<a class="c d" href="/q">y</a>', "<a href='s' rel=nofollow>y</a>",
    '<a rel="it\'s nofollow" href="/r">',
    '<a href="n" rel="nofollow noopener" target="_blank">', '<a rel="nofollow" href="m">',
    '<a  id=x\nhref="l"\ttitle="a b">', '<a href="dup" href="no">', "<a href=u>", "<a HREF='v'>",
    '<a data-href="no" title="href=no" href="d">', '<a hreflang="en" href="h">', '<a href="">',
    '<a href = "sp" >', "<a>", "<a name=x>", '<a/href="sl">', "<a href='q\"'>", "<a\x0bhref=x>",
    '<a href="e?a=1&amp;b=2&copy=3&lt;&eacute;&#65;">', '<a href="é">', '<A HREF="UP">',
    '<a href="cr\r\nlf">', "<a title='\"' href=\"tq\">", "<a =href=x>", '<a "href="x">',
    '<a href="/fr#a">', "<a href='#a' rel=nofollow>", "<a href=fr#b>", '<a href="x #a">',
    '<a href="fr&#35;c">', '<a rel=nofollow href="f&#x72;#d">', '<a href="&amp#e">',
    "<a href='&quot;#f'>", '<area href="m">', "<area shape=rect href=ma/>",
    '<iframe src="f"></iframe>', "<iframe>",
    "<iframe src=g><a href=no></iframe>", "<frame src=f>", "<frameset>", '<p/><a href="z"/>',
]  # fmt: skip
HEAD = [
    "<title>T &amp; x</title>", "<title></title>", "<title>a<b>c</title>", "<title>x",
    "<title>&#xfdd7; &copy=1 &amp;lt; &notit;</title>",
    '<title lang="en">L</title>', '<base href="/base/">', "<base target=x>",
    '<link rel="next" href="l">', "<link rel=stylesheet href=no>", "<LINK REL=prev HREF=z>",
    '<link rel="canonical" href="/c?x&amp;y">', '<meta name="robots" content="noindex">',
    "<meta name=robots content=nofollow>", '<META NAME="ROBOTS" CONTENT="NOFOLLOW">',
    '<meta http-equiv="refresh" content="0; url=/r">', '<meta property="og:x" content="a > b">',
]  # fmt: skip
TEXT = [
    "<!-- <a href=no> -->", "<!-->", "<!--->", "<!-- a --!>", "<!--a->b--c>-->", "<!doctype html>",
    "<!DOCTYPE html PUBLIC '>'>", "<?php <a href=no> ?>", "</ <a href=no>",
    "<![CDATA[<a href=no>]]>",
    "<script>if (a<b) '<a href=no>'</script>", "<script><!-- x </script>",
    "<script><!-- <script> </script> --></script>", "<script>a</SCRIPT >", "<SCRIPT></SCRIPT>",
    "<script>a</scriptx></script>", "<style>a>b{}</style>", "<style></STYLE>",
    "<textarea><a href=no></textarea>", "<xmp><a href=no></xmp>", "<noembed><a href=no></noembed>",
    "<noframes><a></noframes>", "<noscript><a href=ns></noscript>", "<plaintext>", "\r\n", "\0",
    "<svg><a href=s></a></svg>", "<svg/>", "<svg><style><a href=no></style></svg>",
    '<svg viewBox="0 0 1 1"><title>no</title><path d="M0"/><clipPath></clipPath></svg>',
    '<svg><!-- <a href=no> --><use xlink:href="#a"/></svg>', "<svg><p></svg>",
    "<math><mi>x</mi></math>", '<select><option>o<option value="x">p</select>', "<option>",
    "<select><a href=no></select>", "<select>", "<template><col>", "<TEMPLATE id=x> <Col/>",
]  # fmt: skip
BOXES = [
    "<p>text &lt; &eacute; a < b > c", "<div class=c>", "<div class=\"x\" id='y'>", "</div>",
    "</p>",
    '<div title="a > b">', '<div title="<a href=no>">', "<div data-x='{\"a\":\"<script>\"}'>",
    "</a>", "<ul><li>one<li>two</ul>", "<b><i>wrong</b></i>", "<table><tr><td>", "</table>",
    "<h1>h</h2>", "<form>", "<input value='<a href=no>'>", '<input value="x" disabled>', "<br/>",
    '<img src="a" alt="" width=1/>', "<template><a href=t></template>",
    "</div title='<a href=no>'>",
    "<", "<a", "</", '<a href="x', "<div class='", '"', "'", ">", "-->", "&",
]  # fmt: skip

PAGES = st.lists(st.sampled_from(LINKS + HEAD + TEXT + BOXES), max_size=12).map("".join)
CHANGES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from("<>\"'=/ a!-A\n&;")),
    max_size=4,
)

# Links in all the manners in which people and programs write them.
NAMES = (
    "href", "rel", "HREF", "Rel", "target", "class", "hreflang", "ping", "download", "data-href",
    "data-json", "title", "id", "hrefs", "shape", "alt", "onclick", "@click",
)  # fmt: skip
VALUES = (
    "/one", "two?a=1&amp;b=2", "?q=1&#038;r=2&copy=3", "nofollow", "ugc NOFOLLOW", "nofollow\tx",
    "xnofollow", "nofollow-x", "nofollow\x0bx", "no&#102;ollow", "noopener noreferrer", "", "=",
    "/one#two", "#", "#two#", "a #b", "/&#47;#b", "&quot;x", "&#",
    "a > b", "<b>no</b>", "<a href=no>", "{&quot;a&quot;:1}", '{"a":"b"}', "it's", "\"'", "é", "/",
)  # fmt: skip
WRITTEN = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["=", "=", "=", "= ", " =", ""]),
    st.sampled_from(['"', '"', "'", ""]),
    st.sampled_from(VALUES),
).map(lambda parts: _attribute(*parts))
ANCHORS = st.tuples(
    st.sampled_from(["a", "a", "A", "area", "abbr"]),
    st.lists(st.tuples(WRITTEN, st.sampled_from([" ", " ", "\n  ", "/", ""])), max_size=5),
).map(lambda parts: f"<{parts[0]} {''.join(chain.from_iterable(parts[1]))}>x</{parts[0]}>")


def _attribute(name: str, equals: str, quote: str, value: str) -> str:
    return f"{name}{equals}{quote}{value}{quote}" if equals else name


MANNERS = (
    "target=_blank", "hreflang='de'", 'ping="/p?x=1"', "download", 'data-x="{&quot;a&quot;:1}"',
    'title="A &amp; B > C"', "title='<b>A</b>'", 'data-action="click->menu#open"', "data-href=no",
    "HREFLANG=en", "class=a/b",
)  # fmt: skip

# Tags of nothing but what decides where attributes begin and end.
ATTRIBUTES = st.text("ab=\"' \n/>", max_size=16)
TAGS = st.tuples(
    st.sampled_from(["<p", "</p", "<a", "<a ", "<a href=x", "<link rel=next", "<title"]), ATTRIBUTES
)


def told(page: ParsedPage | ParseFailed) -> tuple[object, ...]:
    """A page without what a tree adds: repeated links, in another order where tables are broken."""
    assert isinstance(page, ParsedPage), page
    return (
        *(page.base, page.title, page.canonical, page.noindex, page.nofollow, page.charset),
        fragments.told(page.links),
    )


def assert_read_alike(body: bytes, content_type: str = "text/html") -> None:
    scanned = parse_page(body, content_type, URL)
    built = parse_page(body, content_type, URL, reader=turbo.read)
    with_links = parse_page(body, content_type, URL, reader=scan.read_all)
    assert told(scanned) == told(built) == told(with_links)


@given(PAGES, st.sampled_from([str, str.upper, str.swapcase]))
@settings(max_examples=500)
def test_scan_finds_what_the_tree_has(html: str, written: Callable[[str], str]) -> None:
    """Whatever is put together of good and of broken markup, both readings agree."""
    assert_read_alike(written(html).encode())


@given(st.lists(ANCHORS, min_size=1, max_size=5).map("".join))
@settings(max_examples=1000)
def test_scan_reads_links_however_they_are_written(html: str) -> None:
    """Quotes of all kinds or none, in any order, in upper case, with tags and > in attributes."""
    assert_read_alike(html.encode())


@pytest.mark.usefixtures("no_tree")
@pytest.mark.parametrize("rel", ["", "nofollow", "ugc nofollow", "noopener", "x'"])
def test_links_in_every_manner_need_no_tree(rel: str) -> None:
    """What people write is scanned, and those marked nofollow are told from the others."""
    for quote, tag, more in product("\"'", ("a", "A", "area"), MANNERS):
        if quote in rel:
            continue
        given_rel = f"rel={quote}{rel}{quote}"
        for attributes in permutations((f"href={quote}/x{quote}", given_rel, more)):
            html = f"<{tag} {' '.join(attributes)}>x</a>"
            page = parse_page(html.encode(), "text/html", URL)
            assert isinstance(page, ParsedPage), (html, page)
            assert page.links == [MARK + "/x" if "nofollow" in rel else "/x"], html


@given(PAGES, CHANGES)
@settings(max_examples=500)
def test_scan_is_not_misled_by_typing_errors(
    html: str, changes: list[tuple[int, int, str]]
) -> None:
    """A character too many, too few or wrong, anywhere, and still both readings agree."""
    text = list(html)
    for place, removed, added in changes:
        text[place : place + removed] = added

    assert_read_alike("".join(text).encode())


@given(st.lists(TAGS, min_size=1, max_size=4))
@settings(max_examples=500)
def test_scan_knows_where_a_tag_ends(tags: list[tuple[str, str]]) -> None:
    """`<p a=b='x c='>` is open: its first quote stands in a value, its second begins one."""
    html = "".join(f"{name}{attributes}>{{}}" for name, attributes in tags)
    links = (f'<a href="{position}">x</a>' for position in range(len(tags)))

    assert_read_alike(html.format(*links).encode())


@given(st.binary(max_size=200), st.sampled_from(["utf-8", "cp1252", "koi8-r", "gbk", "utf-16"]))
def test_hrefs_of_any_bytes_are_decoded_alike(raw: bytes, charset: str) -> None:
    """Decoding single attributes gives what decoding the page gives."""
    body = b"<title>" + raw + b'</title><a href="' + raw + b'">x</a><a href="/y">y</a>'

    assert_read_alike(body, f"text/html; charset={charset}")


ORDINARY = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>Shoes &amp; more</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/s.css">
<script>if (a < b && c > d) { x = '<a href="no">' } /* <!-- */</script>
<style>a > b { color: red }</style></head><body class="home"><!-- <a href="no"> -->
<svg viewBox="0 0 8 8"><title>no</title><g fill="red"><path d="M0 0"/></g></svg>
<a href="/one">1</a><a class="btn" href='/two' rel="noopener" target=_blank>2</a>
<A HREF=/three CLASS="c">3</A><BR><svg-icon name="x"></svg-icon><link-list><metadata></link-list>
<select name="n"><option value="1" selected>one</option></select><input type="text" disabled>
<img src="x.png" alt="a 'quoted' word"><br/><noscript><iframe src="/four"></iframe></noscript>
a < b and b > c<p title="a > b"></p class=">"><p title="<a href='no'>"></body></html>"""


@pytest.fixture
def no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: bytes, codec: str, limit: int) -> Elements:
        raise AssertionError("a tree was asked for")

    monkeypatch.setattr(turbo, "read", refuse)


@pytest.mark.usefixtures("no_tree")
def test_an_ordinary_page_needs_no_tree() -> None:
    """Scripts, styles, comments, drawings, forms, quotes of all kinds: nothing that is odd."""
    for codec in ("utf-8", "windows-1252", "koi8-r"):
        page = parse_page(ORDINARY.encode(), f"text/html; charset={codec}", URL)
        assert isinstance(page, ParsedPage), (codec, page)
        assert page.title == "Shoes & more", codec
        assert page.links == ["/one", "/two", "/three", "/four"], codec


@pytest.mark.parametrize("kind", MANNERS_OF_WEBS)
def test_pages_of_every_kind_of_web_need_no_tree(kind: str, no_tree: None) -> None:
    """Articles, forums, wikis and shops, as the benchmark generates them, are scanned."""
    spec = WebSpec.of_kind(kind, hosts=2, port=18080)
    for page in (0, 7):
        url = spec.origin(0) + spec.path(page)
        body = write_page(Random(page), PROSE, spec, LinkChooser(spec, 0), page, url)

        scanned = parse_page(body, "text/html", url)

        assert isinstance(scanned, ParsedPage), scanned
        assert len(scanned.links) >= spec.min_links - PRIVATE_PAGES, page


ODD = [
    "<p it's>", "<p <b>",
    "<frame src=x>", "<frameset>", "<math>", "<plaintext>", "<svg><a href=x>", "<select><p>",
    "<p a=b='c d='>", "</p='a b='>", "<p a='b'='c d='>",
    "<template><col>", "<TEMPLATE id=x>a<!-- --><Col/>", "<template></template><col>",
    "\0", "<script><!--<script>", "<svg/>", "<!--" + "-" * 11_000_000,
]  # fmt: skip


@pytest.mark.usefixtures("no_tree")
def test_an_odd_page_is_left_to_the_tree() -> None:
    """Where tokens do not tell, nothing is guessed."""
    for odd in ODD:
        page = parse_page(ORDINARY.encode() + odd.encode(), "text/html", URL)
        assert page == ParseFailed("AssertionError: a tree was asked for"), odd[:80]


HOSTILE = {
    "open scripts": "<script>" * 100_000,
    "open comments in a script": "<script>" + "<!-- " * 100_000,
    "dashes": "<!--" + "-" * 500_000,
    "open drawings": "<svg><g>" * 50_000,
    "open choices": "<select><option>" * 50_000,
    "titles": "<title>" * 100_000,
    "templates": "<template>" * 100_000,
    "templates and columns": "<template><col>" * 30_000,
    "one endless tag": "<a " + "x='y' " * 100_000,
    "links without an end": '<a class="x" ' * 50_000,
    "names of attributes": "<a " + "h" * 500_000,
    "blanks in a tag": "<meta name" + " " * 500_000 + ">",
    "end tags": "</a " * 100_000,
    "odd tags": "<A<" * 200_000,
}


def test_hostile_markup_is_scanned_in_linear_time() -> None:
    """Half a megabyte made to be read again and again is read once, and the link before it found.

    Were it read once for every tag, this would take minutes.
    """
    for name, html in HOSTILE.items():
        elements = scan.read(b'<a href="first">x</a>' + html.encode(), "utf-8", 1)
        assert "first" in elements.links, name


@pytest.mark.usefixtures("no_tree")
def test_a_tag_of_many_attributes_is_read_once() -> None:
    """Were the rest of it read for each of them, the scan would give up and leave it to a tree."""
    for attribute in ('rel="x"', "rel='x'", 'id="x"', "x"):
        html = f"<a {f'{attribute} ' * 100_000} href='y'>"
        page = parse_page(html.encode(), "text/html", URL)
        assert isinstance(page, ParsedPage), (attribute, page)
        assert page.links == ["y"], attribute


WITHOUT_MACHINE_CODE = """
import ctypes, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit("this system cannot refuse it")
from mannerly.crawler.page import parse_page
print(parse_page(b'<a href="/x">x</a>', "text/html", "http://h.test/").links)
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses it on request")
def test_pages_are_read_where_no_process_may_make_machine_code() -> None:
    """As in a hardened service: the scanner cannot be had, the tree can."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MACHINE_CODE], capture_output=True, text=True, check=False
    )
    if "cannot refuse" in done.stderr:
        pytest.skip("the kernel is older than 6.3")

    assert (done.stdout, done.stderr) == ("['/x']\n", "")
