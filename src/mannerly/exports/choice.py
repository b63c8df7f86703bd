"""The choice of pages that an export has, and their metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import PageChange
from mannerly.crawler.web.machine_use import is_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import PageRecord
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
