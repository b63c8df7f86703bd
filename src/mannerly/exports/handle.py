"""Run handlers over the kept answers of a crawl, in other processes. Nothing is asked for.

A handler gets the page as the crawl has handed it out: the record, the headers, the body (of a page
that a browser has shown: its final DOM), the label and the data of its request. Only `raw_html` of
such a page differs: it is the final DOM, too. It runs in the helpers that run it in a crawl, with
their limits of time and memory, so a page that ends or breaks its helper costs its own items only.
Pages come back in the order of the crawl, and only some are under way at a time, so memory does not
grow with it.

The items go into a file without a name (`ItemSpool`). Formats with columns read them twice, and an
output is written only when all handlers have run.
"""

from __future__ import annotations

import selectors
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from mannerly.crawler.archive.records import ArchiveDamaged
from mannerly.crawler.model import EXTRACT_FAILED, PageItems
from mannerly.crawler.page.extract import extracted_by, is_for
from mannerly.crawler.page.page import Page
from mannerly.crawler.page.parsed import CodeFailed, ParseFailed
from mannerly.crawler.payload import NOTHING, decode
from mannerly.crawler.runtime.offload import Offload, code_role
from mannerly.crawler.web.seeds import canonical_seeds
from mannerly.crawler.web.urls import host_key_of

from .content import KeptAnswers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import ArchivePlace, PageRecord
    from mannerly.crawler.page.extract import Answer, Extract, Extracting
    from mannerly.crawler.payload import Payload

AHEAD = 256  # pages for each process: enough while one of them takes a second


class UnhandledPage(NamedTuple):
    """A page that a handler is for."""

    shard: int
    seq: int
    record: PageRecord
    place: ArchivePlace | None
    carried: Payload | None


class HandledPage(NamedTuple):
    """The result of the handler of a page."""

    url: str
    items: list[bytes]  # JSON
    error: str | None = None  # in words, if it failed
    asked: tuple[str, ...] = ()  # the labels of the requests that it yields
    lacks: str | None = None  # the label that no handler has
    is_damaged: bool = False  # its kept answer cannot be read


@dataclass(slots=True)
class HandlerCounts:
    """The numbers of a run over kept answers."""

    records: int = 0  # of pages, whether or not a handler is for them
    handled: int = 0
    items: int = 0
    failed: int = 0
    first_failure: tuple[str, str] | None = None  # URL and error
    unkept: int = 0  # pages without a kept answer
    damaged: int = 0
    requests: Counter[str] = field(default_factory=Counter)  # by label; they were not sent
    lacking: Counter[str] = field(default_factory=Counter)  # by labels that no handler has

    def add(self, page: HandledPage) -> None:
        """Count a page."""
        self.damaged += page.is_damaged
        self.handled += not page.is_damaged
        self.items += len(page.items)
        self.requests.update(page.asked)
        if page.lacks is not None:
            self.lacking[page.lacks] += 1
        if page.error is not None:
            self.failed += 1
            self.first_failure = self.first_failure or (page.url, page.error)


def as_handed_out(record: PageRecord) -> PageRecord:
    """Return a record as handlers get it: without the error of one that ran before."""
    is_ours = (record.error or "").partition(":")[0] == EXTRACT_FAILED
    return record._replace(error=None) if is_ours else record


def kept_page(opened: View, url: str) -> Page | None:
    """Return a page with its kept answer, as its handler would get it; None: it is not kept.

    Raises:
        ValueError: it is not an http or https URL.
        ArchiveDamaged: the answer cannot be read.
    """
    (wanted,) = canonical_seeds([url])
    reader = opened.reader_of(host_key_of(wanted))
    found, folders = reader.kept_page(wanted), opened.store.answer_folders
    if found is None or not folders:
        return None
    seq, record, place = found
    if place is None:
        return None
    with KeptAnswers(*folders) as answers:
        answer = answers.read(place)
    carried = reader.payload(seq)
    return Page(as_handed_out(record), answer.headers, answer.body, carried=carried)


def handled(
    opened: View, function: Extract, extract: Extracting, tally: HandlerCounts, processes: int
) -> Iterator[HandledPage]:
    """Yield every page that the handlers are for, in the order of the crawl, and count all pages.

    `function` is what `extract` calls by its name, in `processes` helpers.
    """
    for page, result in run_handlers(opened, extract, _given(opened, function, tally), processes):
        found = _found(page, result)
        tally.add(found)
        yield found


def run_handlers(
    opened: View, extract: Extracting, source: Iterator[UnhandledPage], processes: int
) -> Iterator[tuple[UnhandledPage, object]]:
    """Yield pages in their order, each with what a helper has made of it.

    That is an `Answer`, or why there is none; None: the kept answer cannot be read.
    """
    folders = tuple(map(str, opened.store.answer_folders))
    role = code_role(processes, extract)
    assert role is not None, "a file can be imported by helpers"
    offload: Offload[int] = Offload(processes, code=role)
    waiting: deque[UnhandledPage] = deque()
    done: dict[int, object] = {}
    first = last = 0  # numbers of the pages that wait
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(offload.descriptor, selectors.EVENT_READ)
            while True:
                for page in islice(source, AHEAD * processes - len(waiting)):
                    waiting.append(page)
                    work = partial(_handle, extract.name, folders, *page[2:])
                    size = 0 if page.place is None else page.place.length
                    offload.run(last, work, size, page.record.url)
                    last += 1
                if not waiting:
                    return
                while first not in done:
                    selector.select()
                    done.update(offload.collect())
                while first in done:
                    yield waiting.popleft(), done.pop(first)
                    first += 1
    finally:
        offload.close()


def _given(opened: View, function: Extract, tally: HandlerCounts) -> Iterator[UnhandledPage]:
    """Yield the pages that a function is for; count those whose answer is not there."""
    for shard, reader in enumerate(opened.readers):
        for seq, record, place in reader.kept_pages():
            tally.records += 1
            if not is_for(function, record.status):
                continue
            if place is None and record.status is not None:
                tally.unkept += 1
            else:
                yield UnhandledPage(shard, seq, as_handed_out(record), place, reader.payload(seq))


def failed_pages(opened: View) -> Iterator[UnhandledPage]:
    """Yield the pages whose handler has failed, and whose answer is kept."""
    for shard, reader in enumerate(opened.readers):
        for seq, record, place in reader.kept_pages():
            if place is not None and as_handed_out(record) is not record:
                yield UnhandledPage(shard, seq, as_handed_out(record), place, reader.payload(seq))


def _found(page: UnhandledPage, result: object) -> HandledPage:
    """Return what a helper has made of a page."""
    url = page.record.url
    if result is None:
        return HandledPage(url, [], is_damaged=True)
    if isinstance(result, CodeFailed | ParseFailed):
        return HandledPage(url, [], result.reason)
    answer: Answer = result  # type: ignore[assignment]
    items, error, asked, lacks_handler = answer
    lacks = page.carried.label if lacks_handler and page.carried is not None else None
    labels = tuple((decode(each[1]) if each[1] else NOTHING).label for each in asked)
    return HandledPage(url, items, error, labels, lacks)


# ---------------------------------------------------------------------- in helper processes


def _handle(
    name: str,
    folders: tuple[str, ...],
    record: PageRecord,
    place: ArchivePlace | None,
    carried: Payload | None,
) -> Answer | None:
    """Return what the handler of a page returns; None: its kept answer cannot be read."""
    if place is None:
        return extracted_by(name, record, {}, b"", carried)
    try:
        answer = _answers(folders).read(place)
    except (ArchiveDamaged, OSError):
        return None
    return extracted_by(name, record, answer.headers, answer.body, carried)


@lru_cache(maxsize=1)
def _answers(folders: tuple[str, ...]) -> KeptAnswers:
    """Return the kept answers, which stay open for as long as the helper lives."""
    return KeptAnswers(*map(Path, folders))


# ---------------------------------------------------------------------- items


class ItemSpool:
    """Items in a file without a name, which is gone when this process is."""

    def __init__(self, folder: Path) -> None:
        self._file: BinaryIO = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `__exit__`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, items: list[bytes]) -> None:
        """Append the items of a page."""
        self._file.writelines(item + b"\n" for item in items)

    def extracted(self) -> Iterator[tuple[str, PageItems]]:
        """Yield all items, as an export reads those of a crawl."""
        self._file.seek(0)
        for line in self._file:
            yield "", PageItems([line[:-1]])
