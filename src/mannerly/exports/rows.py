"""Turn a record into the values of an exported row, in the order of `PageRecord`.

Instants are written as ISO 8601 in UTC. A URL that was skipped or given up has the same columns,
nearly all of them empty, and its reason in one more column, `skipped` or `given_up`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from mannerly.crawler.model import PageRecord, is_given_up
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from mannerly.crawler.model import Skipped
    from mannerly.crawler.page.metadata import Metadata

Row: TypeAlias = "dict[str, str | int | float | Metadata | None]"

FIELDS = PageRecord._fields
REASONS = ("skipped", "given_up")  # columns that only URLs without a record fill


def page_row(record: PageRecord) -> Row:
    """Return a page record's values by their names."""
    row: Row = record._asdict()
    row["fetched_at"] = instant(record.fetched_at)
    if record.previous_fetched_at is not None:
        row["previous_fetched_at"] = instant(record.previous_fetched_at)
    return row


def skipped_row(skipped: Skipped) -> Row:
    """Return the values of a URL without a record by the same names, and the reason."""
    row: Row = dict.fromkeys((*FIELDS, *REASONS))
    row.update(
        url=skipped.url,
        depth=skipped.depth,
        parent=skipped.parent,
        host=host_key_of(skipped.url),
    )
    row["given_up" if is_given_up(skipped.reason) else "skipped"] = skipped.reason
    return row


def instant(wall: float) -> str:
    """Return wall time as `2026-11-15T20:51:03.250Z`."""
    text = datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
