"""HTML parsers behind one interface: the links of a page.

All are given the bytes of a UTF-8 page and return the hrefs of its `<a>`, in the quickest way that
each library has. None of them reads the title, the robots directives, `<base>` or the other
elements that lead to pages; `mannerly.crawler.page` does, and is measured beside them.

    turbohtml       HTML5, in C: what the crawler uses
    selectolax      HTML5, lexbor in C: what checks it, in the crawler only behind a scan
    lxml            libxml2: HTML5's tokens, but a tree of its own, at most 256 levels deep
    BeautifulSoup   a tree of Python objects on top of lxml
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import turbohtml
from bs4 import BeautifulSoup
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from collections.abc import Callable

_UTF_8 = etree.HTMLParser(encoding="utf-8")


def with_turbohtml(body: bytes) -> list[str]:
    document = turbohtml.parse(body.decode(), positions=False)
    return [href for each in document.iter_elements(("a",)) if (href := each.attr("href"))]


def with_selectolax(body: bytes) -> list[str]:
    tree = LexborHTMLParser(body.decode())
    return [href for each in tree.tags("a") if (href := each.attributes.get("href"))]


def with_lxml(body: bytes) -> list[str]:
    root = etree.fromstring(body, _UTF_8)
    return [href for each in root.iter("a") if (href := each.get("href"))]


def with_beautifulsoup(body: bytes) -> list[str]:
    soup = BeautifulSoup(body, "lxml", from_encoding="utf-8")
    hrefs = [each.get("href") for each in soup.find_all("a")]
    return [href for href in hrefs if href and isinstance(href, str)]


PARSERS: dict[str, Callable[[bytes], list[str]]] = {
    "turbohtml": with_turbohtml,
    "selectolax": with_selectolax,
    "lxml": with_lxml,
    "BeautifulSoup on lxml": with_beautifulsoup,
}

# Markup that parsers read differently. The name says how a browser reads it.
ODD_PAGES = {
    "links in capital letters": '<A HREF="/x">x</A>',
    "the first of two hrefs counts": '<a href="/first" href="/second">x</a>',
    "an href without quotes": "<a href=/x?a=1&b=2>x</a>",
    "an entity that is none": '<a href="/x?a=1&copy=2&lt=3">x</a>',
    "an entity": '<a href="/x?a=1&amp;b=2">x</a>',
    "a link within a link ends it": '<a href="/outer">x<a href="/inner">y</a></a>',
    "a link between rows goes before them": (
        '<table><tr><td><a href="/in"></td></tr><a href="/between"></table>'
    ),
    "a link 300 boxes deep": f'{"<div>" * 300}<a href="/x">x</a>',
    "no link in a comment": "<!-- <a href='/x'> --><!--><a href='/y'><!-- --!><a href='/z'>",
    "no link in a script": "<script>'<a href=\"/x\">'</script>",
    "no link in a textarea": '<textarea><a href="/x"></textarea>',
    "no link in a title": '<title><a href="/x"></title>',
    "no link in a frame's text": '<iframe><a href="/x"></iframe>',
    "a link in an SVG drawing": '<svg><a href="/x"><text>x</text></a></svg>',
    "a link in a template, for scripts": '<template><a href="/x">x</a></template>',
    "a link for those without scripts": '<noscript><a href="/x">x</a></noscript>',
    "no CDATA in HTML": '<![CDATA[<a href="/x">]]><a href="/y">',
    "a link after the end": '<html><body></body></html><a href="/x">x</a>',
    "a quote that never ends": '<a href="/x">x</a><a href="/y>z</a>',
    "a bare ampersand and a tab": '<a href="/x\t&y">x</a>',
    "letters beyond ASCII": '<a href="/caf\u00e9?q=\u20ac">x</a>',
}
