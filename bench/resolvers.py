"""URL libraries behind one interface: the absolute URLs of the hrefs of a page.

All join and normalise as far as their library goes, drop the fragment and whatever is not http(s),
and keep each URL once. None takes tracking parameters off, counts refusals or checks that the host
is one a server can have; `mannerly.crawler.page.resolve_links` does, and is measured beside them.

    url-py     the URL Standard that browsers follow, in Rust: what the crawler uses
    ada-url    the same standard, in C++
    yarl       RFC 3986, partly in C; with its cache of parsed texts, as it comes
    urllib     RFC 3986 in parts: no dots are resolved in absolute URLs, nothing is encoded
    w3lib      urljoin, then what Scrapy takes for the identity of a page: its query is sorted
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin

import ada_url
import url
import yarl
from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from collections.abc import Iterable

Join: TypeAlias = Callable[[str], str]
"""From an href to a URL, on one page. It raises ValueError, url-py a URLError, for what is none."""

WEB = ("http://", "https://")


def on_url_py(base: str) -> Join:
    join = url.URL.parse(base).join
    return lambda href: str(join(href))


def on_yarl(base: str) -> Join:
    join = yarl.URL(base).join
    return lambda href: str(join(yarl.URL(href)))


def on_w3lib(base: str) -> Join:
    return lambda href: canonicalize_url(urljoin(base, href))


RESOLVERS: dict[str, Callable[[str], Join]] = {
    "url-py": on_url_py,
    "ada-url": lambda base: partial(ada_url.join_url, base),
    "yarl": on_yarl,
    "urllib": lambda base: partial(urljoin, base),
    "w3lib": on_w3lib,
}


def resolve(join: Join, hrefs: Iterable[str]) -> list[str]:
    """The URLs of all hrefs that lead to pages, each once, in order."""
    found: dict[str, None] = {}
    for href in hrefs:
        try:
            text = join(href)
        except (ValueError, url.URLError):
            continue
        if text.startswith(WEB):
            found[text.partition("#")[0]] = None
    return list(found)


# Hrefs that libraries read differently, and the page they stand on.
ODD_HREFS_AT = "http://example.com/a/b"
ODD_HREFS = (
    "HTTP://EXAMPLE.com:80/A",
    "//other.example/x",
    r"\\other.example\x",
    r"http://example.com\@127.0.0.1/",
    "http:c",
    " /x ",
    "/a\tb\nc",
    "/a b",
    "/caf\u00e9?q=\u20ac",
    "http://b\u00fccher.example/",
    "http://127.1/",
    "http://0x7f.1/",
    "http://example.com./",
    "http://example.com/a/../b",
    "/a/%2e%2e/b",
    "/%7Euser",
    "../../../x",
    "?",
    "?b=2&a=1",
    "?a=1&a=&b",
    "http://exa mple.com/",
    "http://example.com:99999/",
)
