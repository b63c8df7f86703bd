"""The pages of an export, and their values: a row for each, in the order of `PageRecord`.

Instants are written as ISO 8601 in UTC. A URL that was skipped or given up has the same columns,
nearly all of them empty, and its reason in one more column, `skipped` or `given_up`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.model import PageChange, PageRecord, is_given_up
from mannerly.crawler.web.machine_use import is_reserved
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Skipped
    from mannerly.crawler.page.metadata import Metadata

_CHANGED = (PageChange.NEW, PageChange.CHANGED, PageChange.UNCLEAR)


class Choice(NamedTuple):
    """The pages that are wanted; by default all."""

    include_skipped: bool = False  # also URLs that were skipped or given up, with the reason
    changed: bool = False  # only pages that are new or may have changed since the crawl before
    unreserved: bool = False  # without pages that their site reserves against use by machines

    def takes(self, record: PageRecord, metadata: Metadata) -> bool:
        """Return whether a page is wanted."""
        if self.changed and record.change not in _CHANGED:
            return False
        use = metadata.get("machine_use", {})
        return not (self.unreserved and isinstance(use, dict) and is_reserved(use))


ALL = Choice()


def chosen(opened: View, choice: Choice) -> Iterator[tuple[PageRecord, Metadata]]:
    """Yield the pages that are wanted, with their metadata."""
    for record, metadata in opened.metadata():
        if choice.takes(record, metadata):
            yield record, metadata


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
