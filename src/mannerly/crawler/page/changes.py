"""The outcome of a second look at a page: new, same, changed, unclear or removed.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.changes import GONE, change_between, is_good, with_previous
from mannerly.crawler.model import PageChange

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord

    from .record import Harvest

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
