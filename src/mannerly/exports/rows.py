"""The pages of an export as rows in the order of `PageRecord`; rows as JSON lines and as CSV.

Instants are written as ISO 8601 in UTC. A URL that was skipped or given up has the same columns,
nearly all of them empty, and its reason in one more column, `skipped` or `given_up`.

In JSON lines, characters that end a line for some readers (U+2028, U+2029, U+0085), control a
terminal or change the direction of text are escaped: JSON allows them, but lines may be printed.

Comma-separated values (RFC 4180) are in UTF-8, with a header line; CR LF ends a row. A spreadsheet
runs a cell that begins with = + - or @ as a formula, and the title of a page cannot be trusted. So
a text cell that begins with one of them, or with one of their other forms (full width, small,
superscript), gets an apostrophe in front: spreadsheets hide it, and other programs can remove it.
White space, control characters and invisible ones in front are skipped, since some programs drop
them first; a cell that begins with a tab or a line end is marked in any case. Numbers stay as they
are. `is_raw` turns this off, for programs that read cells to the letter.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, TypeAlias

import msgspec

from mannerly.crawler.model import PageChange, PageRecord, is_given_up
from mannerly.crawler.web.robots_meta import is_reserved
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Skipped
    from mannerly.crawler.page.metadata import Metadata


_FORMULA = frozenset("=+-@\N{MINUS SIGN}\N{HYPHEN}")  # after NFKC, which folds their other forms
_DROPPED = "\t\r\n"
# Control and format characters, spaces and line ends, marks, and what is not assigned.
_SKIPPED = frozenset({"Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp", "Mn"})


def write_csv(
    rows: Iterable[Mapping[str, object]],
    fields: Sequence[str],
    file: BinaryIO,
    *,
    has_head: bool = True,
    is_raw: bool = False,
) -> int:
    """Write the rows under `fields`, whose names are the first line; return the number of rows.

    With `is_raw` no cell gets an apostrophe: a spreadsheet may run what a page has written.
    """
    cell = _unchanged if is_raw else _defused
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    # With LF alone Python does not quote a cell that has a CR, and readers would see two rows.
    writer = csv.writer(text, lineterminator="\r\n")
    if has_head:
        writer.writerow([cell(field) for field in fields])
    count = 0
    for row in rows:
        writer.writerow([cell(row.get(field)) for field in fields])
        count += 1
    text.flush()
    text.detach()  # the file is the caller's to close
    return count


def _unchanged(value: object) -> object:
    return value


def _defused(value: object) -> object:
    if isinstance(value, str) and value and not value[0].isalnum() and _may_run(value):
        return "'" + value
    return value


def _may_run(text: str) -> bool:
    """Return whether a spreadsheet may take text for a formula."""
    if text[0] in _DROPPED:
        return True
    for character in text:
        if unicodedata.category(character) in _SKIPPED:
            continue
        return unicodedata.normalize("NFKC", character)[:1] in _FORMULA
    return False


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


# In UTF-8: U+007F to U+009F, U+061C, U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F, U+FEFF.
_INVISIBLE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf"
)


class Writable(Protocol):
    """A file that can be written to."""

    def write(self, data: bytes, /) -> object: ...


def write_jsonl(rows: Iterable[Mapping[str, object]], file: Writable) -> int:
    """Write the rows; return the number of rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in rows:
        line = encode(row)
        if not line.isascii() or b"\x7f" in line:
            line = _INVISIBLE.sub(_escaped, line)
        file.write(line + b"\n")
        count += 1
    return count


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(character[0].decode())
