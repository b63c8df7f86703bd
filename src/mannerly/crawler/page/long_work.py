"""The parts of reading an answer that take too long for the loop, as values for another process.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no host is served. So the reading of a large page or list (a sitemap, an answer of a public index)
is made a `partial` of a function of a module and plain values, which can be pickled. Its result
goes to `harvest`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.web.sitemaps import GZIP_MAGIC

from . import scan
from .checks import read_with_anchors
from .html import parse_page
from .listings import read_list

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, Fetched

    from .links import LinkRules
    from .listings import Listing
    from .parsed import ParsedPage, ParseFailed

BIG_BYTES = 1024 * 1024  # 40 ms, if the page needs a tree
MANY_TAGS = 20_000  # 35 ms, if the page needs a tree of the slowest elements
TAG_BYTES = 3  # of the shortest tag
COUNTED_FIRST = 4_000  # tags that the beginning of such a page has
BIG_LIST_BYTES = 256 * 1024  # some 2,000 URLs: 20 ms
BIG_GZIP_BYTES = 1024  # gzip makes up to a thousand times as much of it


def long_work(
    entry: Entry, answer: Fetched, rules: LinkRules, wall: float
) -> partial[ParsedPage | ParseFailed] | partial[Listing] | None:
    """Return what is too long for the loop; None if the answer can be harvested at once."""
    status, size = answer.status, len(answer.body)
    if status is None or not 200 <= status < 300 or size < BIG_GZIP_BYTES:
        return None
    row = KINDS[entry.kind]
    if row.is_page:
        return page_work(entry, answer, rules) if is_long_page(answer.body) else None
    if not row.is_listing or (size < BIG_LIST_BYTES and not answer.body.startswith(GZIP_MAGIC)):
        return None
    return list_work(entry, answer, rules, wall)


def is_long_page(body: bytes) -> bool:
    """Return whether a page takes too long for the loop."""
    return len(body) >= BIG_BYTES or has_many_tags(body)


def has_many_tags(body: bytes) -> bool:
    """Return whether a page has `MANY_TAGS`.

    Counting all of them takes a third of the time of a scan. The end of a page has no room for more
    than the others, so the beginning has `COUNTED_FIRST`: of nearly no page all are counted.
    """
    begins = len(body) - TAG_BYTES * (MANY_TAGS - COUNTED_FIRST)
    if begins < TAG_BYTES * COUNTED_FIRST or body.count(b"<", 0, begins) < COUNTED_FIRST:
        return False
    return body.count(b"<") >= MANY_TAGS


def page_work(entry: Entry, answer: Fetched, rules: LinkRules) -> partial[ParsedPage | ParseFailed]:
    """Return the parsing of a page."""
    kind, robots = answer.headers.get("content-type"), answer.headers.get("x-robots-tag")
    read = scan.read
    if rules.keeps_links:
        read = read_with_anchors if rules.keeps_anchors else scan.read_all
    return partial(
        parse_page,
        answer.body,
        kind,
        entry.url,
        x_robots_tag=robots,
        agent=rules.agent,
        reader=read,
        keeps_links=rules.keeps_links,
    )


def list_work(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> partial[Listing]:
    """Return the reading of a list."""
    body, url, nesting = answer.body, entry.url, entry.hops
    return partial(read_list, entry.kind, body, url, nesting, rules.scope, rules.urls, wall)
