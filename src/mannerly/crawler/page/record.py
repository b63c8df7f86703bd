"""The record of an answer, field for field as it is stored and exported, its comparison with an
earlier record of the page, and the digest of the page's text.

Headers are text of a server: what is kept of them is printable and short.

A page that is fetched again is new, same, changed, unclear or removed:

    answer now              before            the record                          change
    ------------------      ---------------   ---------------------------------   ---------------
    304                     any answer        stays, with its links               same
    404, 410                404, 410          the answer now                      same
                            another answer    the answer now                      removed
    other 4xx, 5xx, none    2xx, 3xx          stays, with the failure as error    none: not known
                            a failure         the answer now                      none: not known
    2xx, 3xx                4xx, 5xx, none    the answer now                      new
                            2xx, 3xx          the answer now                      same, changed or
                                                                                  unclear

A page that was checked in this round already, and is asked for again because its kept answer is
lost, stays what it was: only one that has changed since becomes `changed`.

What is the same is in `crawler.changes`. Whatever the outcome, the record says what was seen before
(`previous_…`).

The digest of the text covers the visible text of a page, without its markup. A page that is made
anew for every visitor has other nonces, tokens and asset names in its tags and scripts each time.
Its text outside of tags, without scripts, styles, templates and comments and without white space,
is the same until its author changes it. So the digest of that text tells a change from noise.

It takes a fifth of what a page costs in all, so a first crawl digests only pages that are made anew
for every answer: those whose server does not state when they were modified (`--text-digest`). It is
the same with and without the `pcre2` package.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_128_hexdigest

from mannerly.crawler.changes import GONE, change_between, is_good, with_previous
from mannerly.crawler.model import Candidate, PageChange, PageRecord

from .parsed import ParsedPage
from .pcre import Substitution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.model import Entry, Fetched, ListedPage, PageItems, Rendering


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
    requests: Sequence[Candidate] = ()  # with a payload, or of a program: not held to the scope
    is_shell: bool = False  # it has scripts and next to no text, and was not rendered


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
    record = PageRecord(  # by position, as in the class: 27 keywords would take a microsecond more
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
        answer.digest,
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
    return record if answer.rendering is None else with_rendering(record, answer.rendering)


def with_rendering(record: PageRecord, rendering: Rendering) -> PageRecord:
    """Add what a browser has made of a page."""
    return record._replace(
        rendered=rendering.is_rendered,
        requests=len(rendering.requests),
        render_s=rendering.seconds,
        render_error=rendering.error,
        render_refused=rendering.refused,
    )


def _validator(text: str | None) -> str | None:
    """Return a header that is sent back as it is; a long or unprintable one is not kept."""
    return text if text and len(text) <= _MAX_HEADER_LENGTH and text.isprintable() else None


def _printable(text: str | None) -> str | None:
    """Return the first 100 characters of a header, without control characters."""
    if text is None or (len(text) < _MAX_HEADER_LENGTH and text.isprintable()):
        return text
    return "".join(each for each in text[:_MAX_HEADER_LENGTH] if each.isprintable())


# ------------------------------------------------------------ comparison with an earlier record


NOT_MODIFIED = 304


def compared(found: Harvest, before: PageRecord) -> Harvest:
    """Return what an answer brought, compared with the record of an earlier crawl."""
    now = found.record
    if now.status == NOT_MODIFIED:
        kept = before._replace(
            error=None,
            etag=now.etag or before.etag,
            last_modified=now.last_modified or before.last_modified,
        )
        return _unchanged(found, kept, PageChange.SAME, before)
    change = change_between(now, before)
    if now.status not in GONE and not is_good(now):
        if is_good(before):
            failed = before._replace(error=now.error or f"http_{now.status}")
            if before.change:  # it was checked in this round
                return found._replace(record=failed, found=[], elements=None, is_unchanged=True)
            return _unchanged(found, failed, None, before)
    elif is_good(now) and is_good(before):
        is_told = before.change == PageChange.NEW or (before.change and change == PageChange.SAME)
        if is_told:  # earlier in this round
            return found._replace(record=_again(now, before))
    return found._replace(record=with_previous(now, before)._replace(change=change))


def _unchanged(
    found: Harvest, record: PageRecord, change: PageChange | None, before: PageRecord
) -> Harvest:
    now = found.record
    kept = with_previous(record, before)._replace(
        change=change,
        fetched_at=now.fetched_at if change is not None else before.fetched_at,
        latency_ms=now.latency_ms,
        total_ms=now.total_ms,
        attempts=now.attempts,
    )
    return found._replace(record=kept, found=[], elements=None, is_unchanged=True)


def _again(record: PageRecord, before: PageRecord) -> PageRecord:
    """Return a record with the change that was seen earlier in this round."""
    return record._replace(
        change=before.change,
        previous_status=before.previous_status,
        previous_digest=before.previous_digest,
        previous_fetched_at=before.previous_fetched_at,
    )


# ---------------------------------------------------------------------- the digest of the text


_MARKUP = rb"""<(?:
    !--(?:[^-]++|-(?!->))*+(?:-->)?+
    |(?:script\b(?:[^<]++|<(?!/script))*+|style\b(?:[^<]++|<(?!/style))*+
    |template\b(?:[^<]++|<(?!/template))*+)(?:</[^>]*+>?+)?+
    |[a-z/!?][^>]*+>?+
    )"""
_SPACE = b" \t\r\n\f"


def text_digest(body: bytes) -> str:
    """Return the digest of a page's visible text, hexadecimal."""
    return xxh3_128_hexdigest(_without_markup()(body).translate(None, _SPACE))


@cache
def _without_markup() -> Callable[[bytes], bytes]:
    plain = re.compile(_MARKUP, re.VERBOSE | re.IGNORECASE)
    fast = Substitution(_MARKUP, b"")

    def without_markup(body: bytes) -> bytes:
        found = fast(body)
        return plain.sub(b"", body) if found is None else found

    return without_markup
