"""Extracting: the user's code makes items of pages (`page.extract`).

A function gets pages with a status of 2xx. A spider may have a handler of errors, which gets the
others; helpers know whether it has, so redirects are all that is not sent to them.

It runs in helper processes, or in this one if others cannot import it. Its items and its requests
join the batch of their page; its failure is the error of the page's record.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mannerly.crawler.events import HandlerLacked, ItemsExtracted
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import CRASHED, EXTRACT_FAILED
from mannerly.crawler.page.extract import items_of
from mannerly.crawler.page.handlers import FIRST_ERROR
from mannerly.crawler.shard.plugin import HelperWork, Plugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.model import Entry, Fetched, RawExchange
    from mannerly.crawler.page.extract import Extracting, ExtractResult
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.payload import Payload
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
        is_for_it = status is None or 200 <= status < 300 or status >= FIRST_ERROR
        if not (is_for_it and KINDS[entry.kind].is_page) or record.error == CRASHED:
            return found
        here, carried = self._extract.here, answer.request.payload
        if here is None:
            work = self._extract.work(record, answer.headers, answer.body, carried, answer.received)
            return HelperWork(work, partial(self._finished, carried))
        self._store.parsing(entry.seq)  # it may end this process
        try:
            made = here(record, answer.headers, answer.body, carried, answer.received)
            return self._with_items(found, made, carried)
        finally:
            self._store.parsing(0)

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Put the items of a page into the batch."""
        items = found.items
        if items is not None:
            pending.keep_items(entry, items)
            self._emit(ItemsExtracted(len(items.items), items.error))

    def _finished(self, carried: Payload | None, found: Harvest, result: object) -> Harvest:
        return self._with_items(found, items_of(result, found.record), carried)

    def _with_items(self, found: Harvest, made: ExtractResult, carried: Payload | None) -> Harvest:
        if made.lacks_handler and carried is not None:
            self._emit(HandlerLacked(carried.label))
        return with_items(found, made)


def with_items(found: Harvest, extracted: ExtractResult) -> Harvest:
    """Add what the user's function has made of a page; its failure is the error of the record."""
    record, items, requests = found.record, extracted.items, extracted.requests
    is_page = record.status is not None and 200 <= record.status < 300
    if not (is_page or items.items or items.error or requests):
        return found  # there is no handler of errors
    if items.error is not None and record.error is None:
        record = record._replace(error=f"{EXTRACT_FAILED}: {items.error}")
    return found._replace(record=record, items=items, requests=[*found.requests, *requests])
