"""The record of an answer, field for field as it is stored and exported, and what came with it.

Headers are text of a server: what is kept of them is printable and short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_128_hexdigest

from mannerly.crawler.model import Candidate, PageChange, PageRecord

from .parsed import ParsedPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.model import Entry, Fetched, ListedPage, PageItems

_MAX_HEADER_LENGTH = 100
_NO_PAGE = ParsedPage("")  # of an answer that was not parsed
_NEW = PageChange.NEW  # found faster than by its full name


class Harvest(NamedTuple):
    """Everything that follows from one answer."""

    record: PageRecord
    found: list[Candidate]
    passed_over: dict[str, int]  # links that were not taken, by reason
    list_size: int = 0  # bytes of a list, after decompression
    elements: bytes | None = None  # of a page, if they are kept
    is_unchanged: bool = False  # the page keeps what an earlier crawl found
    listed: Sequence[ListedPage] = ()  # of a sitemap: what it says about pages
    items: PageItems | None = None  # if there is an extract function


def page_record(
    entry: Entry,
    answer: Fetched,
    wall: float,
    *,
    page: ParsedPage | None = None,
    canonical_url: str | None = None,
    links: int = 0,
    redirect_to: str | None = None,
    error: str | None = None,
    digest_of_text: str | None = None,
) -> PageRecord:
    """Return the record of an answer that was finished at `wall`.

    Without an `error` of the caller, the record has that of the fetcher, if any.
    """
    headers = answer.headers
    body = answer.body
    content_type = headers.get("content-type")
    age = headers.get("age", "")
    if error is None and answer.error is not None:
        error = answer.error.value
    elif error is None and answer.is_truncated:
        error = answer.detail
    cache_status = headers.get("x-cache") or headers.get("cf-cache-status")
    if cache_status is None:
        cache_status = headers.get("cache-status") or headers.get("x-cache-status")
    page = page or _NO_PAGE
    return PageRecord(  # by position, as in the class: 27 keywords would take a microsecond more
        entry.url,
        answer.status,
        entry.depth,
        entry.parent,
        page.title,
        _printable(content_type),
        len(body),
        round(answer.latency_s * 1000.0, 3),
        wall,
        entry.attempts + 1,
        links,
        canonical_url,
        redirect_to,
        error,
        entry.host,
        xxh3_128_hexdigest(body) if body else None,
        _printable(cache_status),
        int(age) if age and age.isascii() and age.isdigit() and len(age) < 10 else None,
        round(answer.total_s * 1000.0, 3),
        page.noindex,
        page.description,
        page.h1,
        page.lang,
        False,  # in_sitemap and lastmod are known to the store
        None,
        _validator(headers.get("etag")),
        _validator(headers.get("last-modified")),
        digest_of_text,
        _NEW,
    )


def _validator(text: str | None) -> str | None:
    """Return a header that is sent back as it is; a long or unprintable one is not kept."""
    return text if text and len(text) <= _MAX_HEADER_LENGTH and text.isprintable() else None


def _printable(text: str | None) -> str | None:
    """Return the first 100 characters of a header, without control characters."""
    if text is None or (len(text) < _MAX_HEADER_LENGTH and text.isprintable()):
        return text
    return "".join(each for each in text[:_MAX_HEADER_LENGTH] if each.isprintable())
