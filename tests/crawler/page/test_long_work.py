"""Work for another process: a function of a module and plain arguments, only where it is long."""

from __future__ import annotations

import pickle

from mannerly.crawler.model import Entry, Fetched, Kind, Request
from mannerly.crawler.page import ParsedPage
from mannerly.crawler.page.long_work import BIG_BYTES, LongWork, long_work, parse_answer
from mannerly.crawler.web.sources import listed_urls

URL = "http://e.example/"
BIG = b"<title>big</title><a href=/x>" + b" " * BIG_BYTES


def work(body: bytes, status: int = 200, kind: Kind = Kind.PAGE) -> LongWork | None:
    entry = Entry(1, URL, "e.example", 0, 0, None, 0, kind)
    headers = {"content-type": "text/html", "x-robots-tag": "me: noindex"}
    return long_work(entry, Fetched(Request(URL, "e.example", 1.0), status, headers, body), "me")


def test_big_page_is_parsed_from_pickled_work_as_from_its_answer() -> None:
    """The result is the same on the other side of a pipe, headers included."""
    made = work(BIG)

    assert made is not None
    assert made.function is parse_answer
    page = pickle.loads(pickle.dumps(made))()
    assert page == made()
    assert isinstance(page, ParsedPage)
    assert (page.title, page.links, page.noindex) == ("big", ["/x"], True)
    assert pickle.loads(pickle.dumps(page)) == page


def test_only_big_pages_and_public_indexes_are_long_work() -> None:
    """Small pages, errors and sitemaps are read at once."""
    index = work(b'{"url": "http://e.example/a"}', kind=Kind.COMMONCRAWL)

    assert index is not None
    assert (index.function, index()) == (listed_urls, ["http://e.example/a"])
    assert work(b"<p>small") is None
    assert work(BIG, status=404) is None
    assert work(BIG, kind=Kind.SITEMAP) is None
