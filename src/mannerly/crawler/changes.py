"""The difference between two records of a page: the rules that need nothing but the records.

A redirect is the same if its status and its target are. A page is the same if its bytes are, or if
the digest of its visible text is: a changed nonce is no change. If the earlier crawl kept no digest
of the text, because the server stated when the page was modified, another Last-Modified header is a
change; with the same header and other bytes it is not known. The whole table is in
`page.record`, which compares an answer when it comes. Records are compared later, by
`compared_later`, if the earlier one was on another machine when the answer came.
"""

from __future__ import annotations

from .model import PageChange, PageRecord

GONE = frozenset({404, 410})


def is_good(record: PageRecord) -> bool:
    """Return whether a page gave an answer that is no failure."""
    return record.status is not None and 200 <= record.status < 400


def _content_change(now: PageRecord, before: PageRecord) -> PageChange:
    """Return the difference between two good records."""
    assert now.status is not None
    assert before.status is not None
    if now.status >= 300 or before.status >= 300:
        is_same = (now.status, now.redirect_to) == (before.status, before.redirect_to)
    else:
        is_same = now.digest == before.digest
        if not is_same and now.text_digest is not None:
            if before.text_digest is None and now.last_modified == before.last_modified:
                return PageChange.UNCLEAR
            is_same = now.text_digest == before.text_digest
    return PageChange.SAME if is_same else PageChange.CHANGED


def change_between(now: PageRecord, before: PageRecord) -> PageChange | None:
    """Return what has changed; None: it is not known, because the answer now is a failure."""
    if now.status in GONE:
        return PageChange.SAME if before.status in GONE else PageChange.REMOVED
    if not is_good(now):
        return None
    if not is_good(before):
        return PageChange.NEW
    return _content_change(now, before)


def with_previous(record: PageRecord, before: PageRecord) -> PageRecord:
    """Return a record that says what was seen before."""
    return record._replace(
        previous_status=before.status,
        previous_digest=before.digest,
        previous_fetched_at=before.fetched_at,
    )


def compared_later(now: PageRecord, before: PageRecord) -> PageRecord:
    """Return a record that was written without its earlier one, compared with that."""
    change = change_between(now, before)
    if change is None and is_good(before):  # the earlier record stays, with the failure
        now = before._replace(error=now.error or f"http_{now.status}")
    return with_previous(now, before)._replace(change=change)
