"""Read kept answers back, and add the content of pages to their records, in other processes.

Making Markdown takes 10 ms a page and a hostile page may take a process down, so pages go
in batches to helpers: the same kind of child process that parses long pages for a crawl. They come
back in order, and only some batches are under way at a time, so memory does not grow with the
crawl. A batch that ends its helper is tried again page by page; the page that does it twice has no
content.
"""

from __future__ import annotations

import selectors
from collections import OrderedDict, deque
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from mannerly.crawler.archive.records import ArchiveDamaged, read_record
from mannerly.crawler.fetch.decoding import decode
from mannerly.crawler.options.table import cores
from mannerly.crawler.page.parsed import ParseFailed
from mannerly.crawler.runtime.offload import Offload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mannerly.crawler.model import ArchivePlace, PageRecord
    from mannerly.crawler.web.choices import Content

    from .export import Damage

MAX_BYTES = 64 * 1024 * 1024  # of a decoded body; a crawl has cut it before, at its own limit
_FILES = 16  # that are open at once


class KeptAnswer(NamedTuple):
    """An answer as it was received, but for its encoding."""

    status: int
    headers: dict[str, str]
    body: bytes


class KeptAnswers:
    """The segments of a crawl, open for reading; each is in one of the folders."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._files: OrderedDict[str, BinaryIO] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            for file in self._files.values():
                closing.callback(file.close)

    def read(self, place: ArchivePlace) -> KeptAnswer:
        """Return the answer at a place.

        Raises:
            ArchiveDamaged: there is no record there.
            OSError: the segment cannot be read.
        """
        record = read_record(self._file(place.segment), place.offset, place.length)
        status, headers, body = record.http()
        decoded, _ = decode(body, headers.get("content-encoding"), MAX_BYTES)
        return KeptAnswer(status, headers, decoded)

    def _file(self, name: str) -> BinaryIO:
        file = self._files.get(name)
        if file is None:
            if len(self._files) >= _FILES:
                self._files.popitem(last=False)[1].close()
            places = [folder / name for folder in self._folders]
            place = next((each for each in places if each.is_file()), places[0])
            file = self._files[name] = place.open("rb")
        self._files.move_to_end(name)
        return file


BATCH = 32  # pages
AHEAD = 4  # batches for each process
_BODY_BYTES = 16 * 1024 * 1024  # the largest body that a helper has memory for


class KeptPage(NamedTuple):
    """A page's record, and where its answer is."""

    record: PageRecord
    place: ArchivePlace | None


class _Batch:
    """Some pages, and their contents when they are there."""

    __slots__ = ("contents", "damaged", "pages")

    def __init__(self, pages: list[KeptPage]) -> None:
        self.pages = pages
        self.contents: list[str | None] | None = None
        self.damaged = 0  # answers that cannot be read


def with_content(
    pages: Iterable[KeptPage],
    folder: Path,
    form: Content,
    damage: Damage | None = None,
    *,
    processes: int = 0,
) -> Iterator[tuple[PageRecord, str | None]]:
    """Yield every record with its content, in order; None where there is none.

    `folder` has the segments; `processes` is the number of helpers, by default one for each core.
    `damage` counts the pages whose kept answer cannot be read.
    """
    count = processes or cores()
    source = iter(pages)
    waiting: deque[_Batch] = deque()
    offload: Offload[_Batch] = Offload(count, max_bytes=_BODY_BYTES)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(offload.descriptor, selectors.EVENT_READ)
            while True:
                while len(waiting) < AHEAD * count and (some := list(islice(source, BATCH))):
                    waiting.append(_Batch(some))
                    offload.give(waiting[-1], _work(some, folder, form))
                if not waiting:
                    return
                while waiting[0].contents is None:
                    selector.select()
                    for batch, result in offload.collect():
                        _take(batch, result, folder, form)
                done = waiting.popleft()
                assert done.contents is not None
                if damage is not None:
                    damage.pages += done.damaged
                for page, content in zip(done.pages, done.contents, strict=True):
                    yield page.record, content
    finally:
        offload.close()


def _work(
    pages: list[KeptPage], folder: Path, form: Content
) -> partial[tuple[list[str | None], int]]:
    places = [(page.record.url, page.place if _is_good(page.record) else None) for page in pages]
    return partial(contents, str(folder), places, form)


def _is_good(record: PageRecord) -> bool:
    """Return whether an answer is what was asked for: error pages have no content of their own."""
    return record.status is not None and 200 <= record.status < 300


def _take(batch: _Batch, result: object, folder: Path, form: Content) -> None:
    """Take the contents of a batch; if its helper died, those of its pages one by one."""
    if not isinstance(result, ParseFailed):
        batch.contents, batch.damaged = result  # type: ignore[misc]
    elif len(batch.pages) == 1:
        batch.contents = [None]
    else:
        batch.contents = _one_by_one(batch, folder, form)


def _one_by_one(batch: _Batch, folder: Path, form: Content) -> list[str | None]:
    """Return the contents of a batch that ended its helper: each page in a helper of its own."""
    found: list[str | None] = []
    for page in batch.pages:
        one: Offload[int] = Offload(1, max_bytes=_BODY_BYTES)
        try:
            one.give(0, _work([page], folder, form))
            with selectors.DefaultSelector() as selector:
                selector.register(one.descriptor, selectors.EVENT_READ)
                selector.select()
            ((_, result),) = one.collect()
            if isinstance(result, ParseFailed):
                found.append(None)
                continue
            answer: tuple[list[str | None], int] = result  # type: ignore[assignment]
            found += answer[0]
            batch.damaged += answer[1]
        finally:
            one.close()
    return found


def contents(
    folder: str, pages: list[tuple[str, ArchivePlace | None]], form: Content
) -> tuple[list[str | None], int]:
    """Return the contents of some pages, and how many are damaged. This runs in a helper."""
    from mannerly.crawler.page.content import content_of

    found: list[str | None] = []
    damaged = 0
    with KeptAnswers(Path(folder)) as answers:
        for url, place in pages:
            if place is None:
                found.append(None)
                continue
            try:
                answer = answers.read(place)
            except (ArchiveDamaged, OSError):
                found.append(None)
                damaged += 1
                continue
            kind = answer.headers.get("content-type")
            found.append(content_of(answer.body, kind, url, form) if answer.body else None)
    return found, damaged
