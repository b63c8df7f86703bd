"""Extracting: the user's function makes items of pages with a status of 2xx (`page.extract`).

It runs in helper processes, or in this one if others cannot import it. Its items and its requests
join the batch of their page; its failure is the error of the page's record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import ItemsExtracted
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import CRASHED, EXTRACT_FAILED
from mannerly.crawler.page.extract import items_of
from mannerly.crawler.shard.plugin import HelperWork, Plugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.model import Entry, Fetched, RawExchange
    from mannerly.crawler.page.extract import Extracting, ExtractResult
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.shard.pending import Pending
    from mannerly.crawler.store.base import ShardStore


class Extract(Plugin):
    """Has items made of pages."""

    def __init__(
        self, extract: Extracting, store: ShardStore, emit: Callable[[Event], None]
    ) -> None:
        self._extract = extract
        self._store = store
        self._emit = emit

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest | HelperWork:
        """Call the function here, or have a helper call it."""
        status, record = answer.status, found.record
        is_for_it = KINDS[entry.kind].is_page and status is not None and 200 <= status < 300
        if not is_for_it or record.error == CRASHED:
            return found
        here, carried = self._extract.here, answer.request.payload
        if here is None:
            work = self._extract.work(record, answer.headers, answer.body, carried)
            return HelperWork(work, _finished)
        self._store.parsing(entry.seq)  # it may end this process
        try:
            return with_items(found, here(record, answer.headers, answer.body, carried))
        finally:
            self._store.parsing(0)

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Put the items of a page into the batch."""
        items = found.items
        if items is not None:
            pending.batch.items[entry.seq] = items
            self._emit(ItemsExtracted(len(items.items), items.error))


def _finished(found: Harvest, result: object) -> Harvest:
    return with_items(found, items_of(result, found.record))


def with_items(found: Harvest, extracted: ExtractResult) -> Harvest:
    """Add what the user's function has made of a page; its failure is the error of the record."""
    record, (items, requests) = found.record, extracted
    if items.error is not None and record.error is None:
        record = record._replace(error=f"{EXTRACT_FAILED}: {items.error}")
    return found._replace(record=record, items=items, requests=[*found.requests, *requests])
