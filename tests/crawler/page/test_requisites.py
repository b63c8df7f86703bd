"""What pages, stylesheets and manifests need to be shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, Fetched, Request
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.page.requisites import (
    DEEPEST,
    MOST,
    Needed,
    harvest_requisite,
    needed_by_file,
    read_page,
    requisite,
)
from mannerly.crawler.page.stylesheets import style_references
from mannerly.crawler.payload import REQUISITE
from mannerly.crawler.settings import CrawlSettings

if TYPE_CHECKING:
    from mannerly.crawler.page.record import Harvest

PAGE = "https://a.example/d/page"
HTML = "text/html; charset=utf-8"
RULES = LinkRules(CrawlSettings().scope_of([PAGE]), "x", 10)


def needed(html: str, url: str = PAGE) -> list[str]:
    found = read_page(html.encode(), HTML, url)
    assert isinstance(found, Needed)
    return found.urls


def styles(text: str) -> list[str]:
    return [each.href for each in style_references(text)]


def entry(url: str, depth: int = 1, hops: int = 0) -> Entry:
    return Entry(1, url, "a.example", depth, 0, PAGE, hops, Kind.REQUISITE)


def harvested(asked: Entry, status: int = 200, body: bytes = b"", **headers: str) -> Harvest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = Fetched(Request(asked.url, "a.example", 1.0), status, named, body)
    return harvest_requisite(asked, answer, RULES, 5.0)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<link rel='Preload  STYLESHEET' href=a.css>", ["a.css"]),
        ("<link rel='shortcut icon' href=a.ico><link rel=apple-touch-icon href=b.png>", None),
        ("<link rel=manifest href=a.webmanifest><link rel=modulepreload href=b.mjs>", None),
        ("<link rel=preload as=image imagesrcset='a.png 1x, b.png 2x'>", ["a.png", "b.png"]),
        ("<link rel=canonical href=a><link rel=next href=b><link rel=prefetch href=c>", []),
        ("<link rel=dns-prefetch href=//b.example><link rel=preconnect href=//b.example>", []),
        ("<script src=a.js></script><script type=module src=b.mjs></script>", ["a.js", "b.mjs"]),
        ("<img src=a.png srcset='b.png 1x,c.png 2x, d,e.png 100w'>", None),
        ("<img srcset='a.png, b.png 1.5x (c, d), e.png'>", ["a.png", "b.png", "e.png"]),
        ("<picture><source srcset='a.avif 1x'><source src=b.webp><img src=c.png></picture>", None),
        ("<video src=a.mp4 poster=b.png><source src=c.webm><track src=d.vtt></video>", None),
        ("<audio src=a.ogg></audio><embed src=b.svg><object data=c.svg></object>", None),
        ("<svg><use href='a.svg#b'/><image xlink:href=b.png /><feImage href=c.png /></svg>", None),
        ("<svg><use xlink:href='#local'/></svg>", []),
        ("<input type=IMAGE src=a.png><input type=text src=b.png>", ["a.png"]),
        ("<body background=a.png><table background=b.png><td background=c.png>", None),
        ("<style>@import 'a.css'; p{background:url(b.png)}</style>", ["a.css", "b.png"]),
        ("<p style=\"background: url('a.png')\">", ["a.png"]),
        ("<p style='background: url(&quot;a.png&quot;)'>", ["a.png"]),
        ("<img src=' a.png\n'><img src=a.png><img src=''><img src='#a'>", ["a.png"]),
        ("<img src='data:image/png;base64,aaaa'><img src='BLOB:x'><img src='javascript:x'>", []),
        ("<noscript><img src=a.png></noscript><!--<img src=b.png>-->", []),
        ("<script>'<img src=a.png>'</script><textarea><img src=b.png></textarea>", []),
        ("<template><img src=a.png></template>", ["a.png"]),
        ("<a href=a.png><iframe src=b.html></iframe><form action=c>", []),
        ('<img src="a.png?a=1&amp;utm_source=b">', ["a.png?a=1&utm_source=b"]),
    ],
)
def test_a_page_needs_what_its_tags_name(html: str, expected: list[str] | None) -> None:
    """Each once, in the order of the page, resolved; None: what the letters a, b, c … say."""
    found = [url.removeprefix("https://a.example/d/") for url in needed(html)]

    if expected is None:
        assert found, html
        assert [url[0] for url in found] == sorted(url[0] for url in found)
        assert {url[0] for url in found} == set("abcd"[: len(found)])
        expected = found
    assert [url.partition("#")[0] for url in found] == expected


def test_everything_is_relative_to_the_base() -> None:
    """The first base with an href counts, also for what stands before it; it may be relative."""
    html = "<img src=a.png><base target=x><base href='/e/'><base href=/f/><img src=/b.png>"

    assert needed(html) == ["https://a.example/e/a.png", "https://a.example/b.png"]
    assert needed("<base href='//b.example/x/'><img src=a.png>") == ["https://b.example/x/a.png"]
    assert needed("<base href='data:x'><img src=a.png>") == ["https://a.example/d/a.png"]


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("@import 'a.css' print; @import url(b.css); @IMPORT URL( \"c.css\" ) layer(x);", None),
        ("@import/**/ 'a.css';", ["a.css"]),
        ("a{background:url( a.png ) , url('b.png')}", ["a.png", "b.png"]),
        ("@font-face{src:local('x'),url(a.woff2) format('woff2'),url(b.ttf)}", None),
        ("a{background:image-set('a.png' 1x type('image/png'), url(b.png) 2x)}", None),
        ("a{background:-webkit-image-set(url(a.png) 1x, 'b.png' 2x)}", ["a.png", "b.png"]),
        ("/* url(no) */ a{content:'url(no)'} @namespace svg url(http://w3.example/no);", []),
        ("a{mask:url(#no)}", ["#no"]),
        ("a{b:url(\\26 x\\)\\(.png)}", ["&x)(.png"]),
        ("a{b:url('a\\\nb.png')}", ["ab.png"]),
        ("a{b:url('a.png", ["a.png"]),
        ("@import 'a.css", ["a.css"]),
        ("a{content:'\n}b{b:url(a.png)}", ["a.png"]),
    ],
)
def test_a_stylesheet_is_read_as_tokens(css: str, expected: list[str] | None) -> None:
    """Comments, strings and namespaces name no file; escapes are resolved."""
    found = styles(css)

    if expected is None:
        assert [href[0] for href in found] == list("abc"[: len(found)])
        assert len(found) >= 2
    else:
        assert found == expected


@given(st.text(alphabet="url('\")@import \\/*image-st;{}ab\n", max_size=200))
def test_any_text_can_be_read_as_a_stylesheet(text: str) -> None:
    """What is found is part of the text, but for escapes."""
    for href in styles(text):
        assert "\\" in text or href in text


@given(st.lists(st.text(alphabet="abc/._-%", min_size=1, max_size=9), max_size=5), st.data())
def test_urls_survive_any_quoting(hrefs: list[str], data: st.DataObject) -> None:
    """Written in each of three ways, they are found again."""
    ways = st.sampled_from(["url({})", "url('{}')", 'url( "{}" )'])
    css = "".join(f"a{{b:{data.draw(ways).format(href)}}}" for href in hrefs)

    assert styles(css) == hrefs


def test_icons_of_a_manifest_are_needed() -> None:
    """What is no manifest names nothing."""
    manifest = {"icons": [{"src": "a.png"}, {"src": 3}, None], "screenshots": [{"src": "/b.png"}]}
    url = "https://a.example/d/x.webmanifest"

    found = needed_by_file(json.dumps(manifest).encode(), None, url)

    assert found.urls == ["https://a.example/d/a.png", "https://a.example/b.png"]
    for body in (b"", b"[]", b"{", b'{"icons": {}}', b"[" * 100_000):
        assert needed_by_file(body, "application/manifest+json", url).urls == []


def test_only_stylesheets_and_manifests_lead_further() -> None:
    """A page that was asked for as a requisite, or a script, leads nowhere."""
    for kind in ("text/html", "text/javascript", "image/svg+xml", None):
        body = b"<img src=a.png> a{b:url(c.png)}"
        assert needed_by_file(body, kind, "https://a.example/x").urls == []
    assert needed_by_file(b"a{b:url(c.png)}", None, "https://a.example/x.css?1").urls == [
        "https://a.example/c.png"
    ]


def test_a_stylesheet_leads_to_its_own_requisites() -> None:
    """They are one step further from their page, and name the stylesheet as their parent."""
    found = harvested(
        entry("https://a.example/s/a.css", depth=2),
        body=b"a{b:url(c.png)}",
        content_type="text/css",
    )

    assert [(each.url, each.depth, each.parent) for each in found.requests] == [
        ("https://a.example/s/c.png", 3, "https://a.example/s/a.css")
    ]
    assert found.requests[0].kind is Kind.REQUISITE
    assert found.requests[0].payload == REQUISITE
    assert found.found == []
    assert (found.record.status, found.record.fetched_at) == (200, 5.0)


def test_imports_have_an_end() -> None:
    """The deepest stylesheet is kept, and leads no further; so is what fails."""
    css = {"body": b"@import 'b.css'", "content_type": "text/css"}

    assert harvested(entry(PAGE, depth=DEEPEST - 1), 200, **css).requests  # type: ignore[arg-type]
    assert not harvested(entry(PAGE, depth=DEEPEST), 200, **css).requests  # type: ignore[arg-type]
    assert not harvested(entry(PAGE), 404, **css).requests  # type: ignore[arg-type]


def test_a_page_with_too_many_says_so() -> None:
    """The first of them are taken."""
    html = "".join(f"<img src={number}.png>" for number in range(MOST + 1))

    found = read_page(html.encode(), HTML, PAGE)

    assert isinstance(found, Needed)
    assert found.is_capped
    assert len(found.urls) == MOST
    assert not Needed(found.urls).is_capped


def test_the_target_of_a_redirect_is_a_requisite() -> None:
    """At the same distance from its page, one hop further; what leads nowhere has its error."""
    asked = entry("https://a.example/a.png", depth=2, hops=1)

    found = harvested(asked, 302, location="//cdn.example/b.png?utm_source=x")
    loop = harvested(asked, 301, location="/a.png")
    last = harvested(asked._replace(hops=10), 301, location="/b.png")
    none = harvested(asked, 308)

    (hop,) = found.requests
    assert (hop.url, hop.depth, hop.hops) == ("https://cdn.example/b.png?utm_source=x", 2, 2)
    assert (hop.kind, hop.parent) == (Kind.REQUISITE, asked.url)
    assert found.record.redirect_to == hop.url
    errors = [each.record.error for each in (loop, last, none)]
    assert errors == ["redirect_loop", "too_many_redirects", "bad_redirect"]
    assert not any(each.requests for each in (loop, last, none))


def test_a_requisite_of_a_page_is_asked_before_its_next_pages() -> None:
    """It counts its steps from the page, wherever that is in the crawl."""
    page = Entry(1, PAGE, "a.example", 7, 500, None, 0)

    found = requisite("https://b.example/a.css", page)

    assert (found.host, found.depth, found.priority, found.parent) == ("b.example", 1, 0, PAGE)
