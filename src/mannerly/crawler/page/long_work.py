"""The parts of reading an answer that take too long for the loop, as values for another process.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no host is served. So a large page or list (a sitemap, an answer of a public index) becomes a
`LongWork`: a function of a module and its arguments, both picklable. Its result goes to `harvest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mannerly.crawler.model import Kind
from mannerly.crawler.web.sitemaps import GZIP_MAGIC

from .html import parse_page
from .listings import list_arguments, read_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Entry, Fetched

    from .parsed import ParsedPage, ParseFailed
    from .rules import LinkRules

BIG_BYTES = 1024 * 1024  # 40 ms, if the page needs a tree
BIG_LIST_BYTES = 256 * 1024  # some 2,000 URLs: 20 ms
BIG_GZIP_BYTES = 1024  # gzip makes up to a thousand times as much of it

PAGE = Kind.PAGE


@dataclass(frozen=True, slots=True)
class LongWork:
    """A call that can be pickled: `function` can be imported by its name."""

    function: Callable[..., object]
    arguments: tuple[object, ...]

    def __call__(self) -> object:
        """Do the work here."""
        return self.function(*self.arguments)


def long_work(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> LongWork | None:
    """Return what is too long for the loop; None if the answer can be harvested at once."""
    status, size = answer.status, len(answer.body)
    if status is None or not 200 <= status < 300 or size < BIG_GZIP_BYTES:
        return None
    if entry.kind == PAGE:
        if size < BIG_BYTES:
            return None
        return LongWork(parse_answer, page_arguments(entry, answer, rules.agent))
    if size < BIG_LIST_BYTES and not answer.body.startswith(GZIP_MAGIC):
        return None
    return LongWork(read_list, list_arguments(entry, answer, rules, wall))


def page_arguments(
    entry: Entry, answer: Fetched, agent: str
) -> tuple[bytes, str | None, str, str | None, str]:
    """Return the arguments of `parse_answer`: plain values only."""
    headers = answer.headers
    return (
        answer.body,
        headers.get("content-type"),
        entry.url,
        headers.get("x-robots-tag"),
        agent,
    )


def parse_answer(
    body: bytes, content_type: str | None, url: str, x_robots_tag: str | None, agent: str
) -> ParsedPage | ParseFailed:
    """Parse the page of an answer, in this process or in another one."""
    return parse_page(body, content_type, url, x_robots_tag=x_robots_tag, agent=agent)
