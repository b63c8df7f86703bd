"""Write an export to a file, or as pieces of bytes: the suffix of the file name decides the format.

Pieces are for a reader at the end of a connection. Nothing is held while a slow one takes its time:
the store is read in slices, and no transaction stays open in between, so a crawl that runs is never
in the way of one.
"""

from __future__ import annotations

import gzip
import io
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mannerly.crawler.model import is_failed
from mannerly.crawler.web.choices import Content

from .rows import ALL, FIELDS, REASONS, Choice, chosen, page_row, skipped_row
from .target import ARCHIVES, STDOUT, ExportError, Format, Table, read_target

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import PageRecord
    from mannerly.crawler.stored import StoredCrawl

    from .archive import ValidSegment
    from .content import KeptPage
    from .rows import Row
    from .target import Target

_UNITS = {Format.XML: "URLs", Format.WARC: "bytes", Format.WACZ: "pages"}


@dataclass(slots=True)
class Damage:
    """Counts the pages without content because their kept answer cannot be read."""

    pages: int = 0


@dataclass(frozen=True, slots=True)
class Exported:
    """The outcome of an export."""

    target: str
    format: Format
    records: int
    files: int = 1
    notes: tuple[str, ...] = ()  # what is missing from it, in sentences
    damaged: int = 0  # kept answers that are not in it, because they cannot be read

    def described(self) -> list[str]:
        """Return it in words; nothing for standard output, which is for data only."""
        if self.target.endswith(STDOUT):
            return []
        parts = ""
        if self.format is Format.XML and self.files > 1:
            parts = f", in {self.files} files and an index"
        elif self.format in (Format.PARQUET, Format.FOLDER) and self.files > 1:
            parts = f", in {self.files:,} files"
        what = _UNITS.get(self.format, "records")
        return [f"Wrote {self.target}: {self.records:,} {what}{parts}", *self.notes]

    @property
    def loss(self) -> str | None:
        """Return what damage of the crawl has cost, in a sentence."""
        if not self.damaged:
            return None
        records = "1 damaged record" if self.damaged == 1 else f"{self.damaged:,} damaged records"
        return (
            f"{self.target} lacks {records} of the kept answers: mannerly doctor --deep says which"
        )


def export(
    location: str | Path,
    target: str,
    fmt: Format | None = None,
    *,
    choice: Choice = ALL,
    content: Content = Content.NONE,
    csv_raw: bool = False,
) -> Exported:
    """Write a table of a crawl to a file, or to standard output ("-").

    Args:
        location: the crawl.
        target: `[TABLE:]FILE`; the suffix decides the format.
        fmt: the format, whatever the suffix is.
        choice: the pages that are wanted.
        content: what of a page goes into .jsonl, .parquet and a folder.
        csv_raw: write CSV cells as they are, also those that a spreadsheet would run.

    Raises:
        ExportError: the target cannot be written to, or the crawl has not kept what it needs.
        StoreError: the crawl cannot be read.
        OSError: the target cannot be written; an earlier file of that name is unchanged.
    """
    from mannerly.adapters.spider_queue import is_spider
    from mannerly.crawler.stored import open_crawl

    wanted = read_target(target, fmt)._replace(is_raw=csv_raw)
    if is_spider(location):
        return _export_spider(Path(location), wanted)
    with open_crawl(location) as crawl:
        if wanted.needs_bodies(content):
            _require_bodies(crawl)
        if wanted.format in ARCHIVES:
            return _export_archive(crawl, wanted)
        if wanted.table is Table.ITEMS:
            from .items import export_items

            return export_items(crawl.extracted, wanted)
        if wanted.table is Table.LINKS:
            from .items import write_links

            with crawl.view() as opened:
                return Exported(target, wanted.format, *write_links(opened, wanted))
        if wanted.format is Format.XML:
            from .sitemap import write_sitemap

            urls, files = write_sitemap(crawl.pages(), Path(wanted.path))
            return Exported(target, wanted.format, urls, files)
        if wanted.format is Format.FOLDER:
            from .folder import write_folder

            form = Content.HTML if content is Content.NONE else content
            with crawl.view() as opened:
                damage = Damage()
                pages = _with_content(opened, form, choice, damage)
                records, files = write_folder(pages, Path(wanted.path), form)
            return Exported(target, wanted.format, records, files, damaged=damage.pages)
        return _export_rows(crawl, wanted, content, choice)


def _export_spider(folder: Path, wanted: Target) -> Exported:
    if wanted.table is not Table.ITEMS:
        raise ExportError(
            f"{folder} is of a Scrapy spider, which keeps items only: write -o items:FILE"
        )
    from mannerly.adapters.spider_queue import extracted

    from .items import export_items

    return export_items(partial(extracted, folder), wanted)


def _export_rows(crawl: StoredCrawl, wanted: Target, content: Content, choice: Choice) -> Exported:
    notes: tuple[str, ...] = ()
    if not wanted.has_content(content):
        if content is not Content.NONE:
            notes = (
                "It has no content: .csv has no column for it. Use .jsonl, .parquet or a folder/",
            )
        content = Content.NONE
    damage = Damage()
    with crawl.view() as opened:
        if wanted.format is Format.PARQUET:
            if choice.include_skipped:
                raise ExportError("a Parquet file holds only pages: leave out --include-skipped")
            records, files = _write_parquet(opened, wanted, content, choice, damage)
            return Exported(wanted.text, wanted.format, records, files, damaged=damage.pages)
        rows: Iterable[Row] = page_rows(opened, choice)
        if content is not Content.NONE:
            rows = _content_rows(opened, content, choice, damage)
            if choice.include_skipped:
                rows = chain(rows, _without_record(opened))
        with destination(wanted) as file:
            count = _write(rows, wanted, file, include_skipped=choice.include_skipped)
    return Exported(wanted.text, wanted.format, count, notes=notes, damaged=damage.pages)


def _export_archive(crawl: StoredCrawl, wanted: Target) -> Exported:
    from .archive import write_wacz, write_warc
    from .soundness import sound

    with crawl.view() as opened, sound(segments_of(opened)) as found:
        if wanted.format is Format.WARC:
            size = write_warc(found.segments, Path(wanted.path))
            return Exported(wanted.text, wanted.format, size, damaged=found.left_out)
        pages = write_wacz(
            found.segments,
            opened.pages(),
            Path(wanted.path),
            title=", ".join(opened.store.manifest.seeds[:3]),
            wall=time.time(),
        )
        return Exported(wanted.text, wanted.format, pages, damaged=found.left_out)


def _write_parquet(
    opened: View, wanted: Target, content: Content, choice: Choice, damage: Damage
) -> tuple[int, int]:
    from .parquet import page_schema, write_parquet

    if content is Content.NONE:
        rows = ((*record, metadata or None) for record, metadata in chosen(opened, choice))
        schema = page_schema(["metadata"])
        return write_parquet(rows, schema, wanted.path, is_folder=wanted.is_folder)
    with_content = (
        (*record, opened.metadata_of(record) or None, text)
        for record, text in _with_content(opened, content, choice, damage)
    )
    schema = page_schema(["metadata", "content"])
    return write_parquet(with_content, schema, wanted.path, is_folder=wanted.is_folder)


def _require_bodies(crawl: StoredCrawl) -> None:
    with crawl.view() as opened:
        if not segments_of(opened):
            raise ExportError(
                f"the crawl in {crawl.location} has kept no bodies: crawl with --keep-bodies"
            )


def segments_of(opened: View) -> list[ValidSegment]:
    """Return all segments of a crawl, as far as they are committed."""
    from .archive import ValidSegment

    folder = opened.store.segment_folder
    if folder is None:
        return []
    return [
        ValidSegment(folder / name, length)
        for reader in opened.readers
        for name, length in reader.segments().items()
        if length
    ]


def _kept_pages(opened: View, choice: Choice) -> Iterator[KeptPage]:
    from .content import KeptPage

    for reader in opened.readers:
        for _, record, place in reader.kept_pages():
            metadata = opened.metadata_of(record) if choice.unreserved else {}
            if choice.takes(record, metadata):
                yield KeptPage(record, place)


def _with_content(
    opened: View, form: Content, choice: Choice, damage: Damage
) -> Iterator[tuple[PageRecord, str | None]]:
    from .content import with_content

    folder = opened.store.segment_folder
    assert folder is not None, "there are segments"
    return with_content(_kept_pages(opened, choice), folder, form, damage)


def _content_rows(opened: View, content: Content, choice: Choice, damage: Damage) -> Iterator[Row]:
    for record, text in _with_content(opened, content, choice, damage):
        row = page_row(record)
        row["metadata"] = opened.metadata_of(record)
        row["content"] = text
        yield row


def _write(rows: Iterable[Row], wanted: Target, file: BinaryIO, *, include_skipped: bool) -> int:
    from .rows import write_csv, write_jsonl

    if wanted.format is Format.CSV:
        fields = (*FIELDS, *REASONS) if include_skipped else FIELDS
        return write_csv(rows, fields, file, is_raw=wanted.is_raw)
    return write_jsonl(rows, file)


def page_rows(opened: View, choice: Choice) -> Iterator[Row]:
    """Yield one row a URL: pages first, then those that were skipped or given up."""
    failed: set[str] = set()
    for record, metadata in chosen(opened, choice):
        if choice.include_skipped and is_failed(record):
            failed.add(record.url)
        row = page_row(record)
        row["metadata"] = metadata
        yield row
    if choice.include_skipped:
        yield from _without_record(opened, failed)


def _without_record(records: View, failed: Container[str] = ()) -> Iterator[Row]:
    """Yield the URLs that were skipped or given up."""
    for each in chain(records.skipped(), records.given_up()):
        # A page that had failed may have been tried again and given up in the meantime.
        if each.url not in failed:
            yield skipped_row(each)


@contextmanager
def destination(target: Target) -> Iterator[BinaryIO]:
    """Yield the file of a target; it is put in place when it is complete."""
    from .whole import whole_file

    if target.path != STDOUT:
        with whole_file(Path(target.path)) as file:
            if target.format is not Format.JSONL_GZ:
                yield file
                return
            # Without a name and a time, the same records make the same file.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


PIECE_ROWS = 500  # in one piece: about 200 kB


def item_pieces(location: str | Path) -> Iterator[bytes]:
    """Yield the items of all pages so far, as JSON lines.

    Raises:
        StoreError: the crawl cannot be read.
    """
    from mannerly.crawler.stored import open_crawl

    with open_crawl(location) as crawl:
        lines = (line + b"\n" for _, found in crawl.extracted() for line in found.items)
        while piece := b"".join(islice(lines, PIECE_ROWS)):
            yield piece


def page_pieces(location: str | Path, fmt: Format) -> Iterator[bytes]:
    """Yield the records of all pages so far, as JSON lines or CSV.

    Raises:
        StoreError: the crawl cannot be read.
    """
    from mannerly.crawler.stored import open_crawl

    from .rows import write_csv, write_jsonl

    with open_crawl(location) as crawl, crawl.view() as opened:
        rows = page_rows(opened, ALL)
        is_first = True
        while True:
            file = io.BytesIO()
            part = islice(rows, PIECE_ROWS)
            if fmt is Format.CSV:
                count = write_csv(part, FIELDS, file, has_head=is_first)
            else:
                count = write_jsonl(part, file)
            if count or is_first:
                yield file.getvalue()
            is_first = False
            if count < PIECE_ROWS:
                return
