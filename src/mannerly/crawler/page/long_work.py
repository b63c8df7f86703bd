"""The parts of reading an answer that take too long for the loop, as values for another process.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no host is served. So a page above `BIG_BYTES` and an answer of a public index (its hosts are looked
up) become a `LongWork`: a function of a module and its arguments, both picklable. Its result goes
to `harvest`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mannerly.crawler.model import Kind
from mannerly.crawler.web.sources import SOURCES, listed_urls

from .html import parse_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Entry, Fetched

    from .parsed import ParsedPage, ParseFailed

BIG_BYTES = 1024 * 1024  # 40 ms, if the page needs a tree

PAGE = Kind.PAGE


@dataclass(frozen=True, slots=True)
class LongWork:
    """A call that can be pickled: `function` can be imported by its name."""

    function: Callable[..., object]
    arguments: tuple[object, ...]

    def __call__(self) -> object:
        """Do the work here."""
        return self.function(*self.arguments)


def long_work(entry: Entry, answer: Fetched, agent: str) -> LongWork | None:
    """Return what is too long for the loop; None if the answer can be harvested at once."""
    status, body = answer.status, answer.body
    if status is None or not 200 <= status < 300:
        return None
    if entry.kind in SOURCES:
        return LongWork(listed_urls, (entry.kind, body))
    if entry.kind != PAGE or len(body) < BIG_BYTES:
        return None
    return LongWork(parse_answer, page_arguments(entry, answer, agent))


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
