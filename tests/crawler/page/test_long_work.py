"""Work for another process: a function of a module and plain arguments, only where it is long."""

from __future__ import annotations

import gzip
import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, Fetched, Request, is_failed
from mannerly.crawler.page import ParsedPage
from mannerly.crawler.page.harvest import harvest
from mannerly.crawler.page.html import parse_page
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.page.listings import Listing, read_list
from mannerly.crawler.page.long_work import (
    BIG_BYTES,
    BIG_LIST_BYTES,
    MANY_TAGS,
    long_work,
)
from mannerly.crawler.page.parsed import HELPER_DIED, LACKED_MEMORY, ParseFailed
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.scope import Scope

if TYPE_CHECKING:
    from functools import partial

URL = "http://e.example/"
WALL = 1_700_000_000.0
BIG = b"<title>big</title><a href=/x>" + b" " * BIG_BYTES


def work(body: bytes, status: int = 200, kind: Kind = Kind.PAGE) -> partial[Any] | None:
    entry = Entry(1, URL, "e.example", 0, 0, None, 0, kind)
    headers = {"content-type": "text/html", "x-robots-tag": "me: noindex"}
    answer = Fetched(Request(URL, "e.example", 1.0), status, headers, body)
    return long_work(entry, answer, LinkRules(Scope((URL,)), "me", 5), WALL)


def test_big_page_is_parsed_from_pickled_work_as_from_its_answer() -> None:
    """The result is the same on the other side of a pipe, headers included."""
    made = work(BIG)

    assert made is not None
    assert made.func is parse_page
    page = pickle.loads(pickle.dumps(made))()
    assert page == made()
    assert isinstance(page, ParsedPage)
    assert (page.title, page.links, page.noindex) == ("big", ["/x"], True)
    assert pickle.loads(pickle.dumps(page)) == page


def test_page_of_many_tags_is_long_work() -> None:
    """Drawings in drawings are slow to parse: 200 KB of them do not stop the loop."""
    assert work(b"<svg><g>" * 10_000) is not None
    assert work(b"<svg><g>" * 9_000) is None
    assert work(b"<p>text " * 2_000 + b" " * 200_000) is None


@pytest.mark.parametrize("before", [0, 1, 11_999, 12_000, 100_000, 900_000])
@pytest.mark.parametrize("tags", [MANY_TAGS - 1, MANY_TAGS])
def test_tags_are_counted_wherever_they_are(before: int, tags: int) -> None:
    """The shortest tags are at the end of the page, behind any text, or at its beginning."""
    is_long = tags == MANY_TAGS
    assert (work(b" " * before + b"<b>" * tags) is not None) is is_long
    assert (work(b"<b>" * tags + b" " * before) is not None) is is_long


SITEMAP = b"<urlset>" + b"<url><loc>/%d</loc></url>" * 3 + b"</urlset>"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Kind.SITEMAP, SITEMAP % (1, 2, 3) + b" " * BIG_LIST_BYTES),
        (Kind.SITEMAP, gzip.compress(SITEMAP % (1, 2, 3) + random.Random(1).randbytes(2000))),
        (Kind.COMMONCRAWL, b'{"url": "http://e.example/1"}\n' * 20_000),
    ],
)
def test_big_list_is_read_from_pickled_work(kind: Kind, body: bytes) -> None:
    """A list comes back with its URLs judged, so that little is left to do for the loop."""
    made = work(body, kind=kind)

    assert made is not None
    assert made.func is read_list
    listing = pickle.loads(pickle.dumps(made))()
    assert isinstance(listing, Listing)
    assert listing == made() == pickle.loads(pickle.dumps(listing))
    assert listing.pages[0][0] == "http://e.example/1"


def test_small_answers_are_not_long_work() -> None:
    """Small pages and lists, and errors, are read at once."""
    assert work(b"<p>small") is None
    assert work(BIG, status=404) is None
    assert work(SITEMAP, kind=Kind.SITEMAP) is None
    assert work(gzip.compress(SITEMAP), kind=Kind.SITEMAP) is None
    assert work(b'{"url": "http://e.example/a"}', kind=Kind.COMMONCRAWL) is None


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (ParsedPage(URL, title="big", links=["/x"]), None),
        (ParseFailed("ValueError"), "parse_failed"),
        (HELPER_DIED, "crashes_parser"),
        (LACKED_MEMORY, "no_memory"),
    ],
)
def test_the_result_of_a_helper_becomes_the_record(result: object, error: str | None) -> None:
    """A page that was read has no error; every reason for not reading one has its own."""
    entry = Entry(1, URL, "e.example", 0, 0, None, 0, Kind.PAGE)
    answer = Fetched(Request(URL, "e.example", 1.0), 200, {"content-type": "text/html"}, BIG)
    rules = LinkRules(Scope((URL,)), "me", 5)

    found = harvest(entry, answer, rules, Recent(), WALL, result)

    assert (found.record.status, found.record.error) == (200, error)
    assert len(found.found) == (error is None)
    assert is_failed(found.record) == (error is not None)
