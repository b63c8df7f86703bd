"""The values that a report is made of: sections with tables, charts and a CSV file each.

A section says what it has found in plain values; `html` and `csv_files` write them down. Cells of a
table are what the browser sorts by: numbers stay numbers, and their column says how they are shown.
Nothing here is markup, and no cell is ever interpreted as such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CsvRow: TypeAlias = "dict[str, str | int | float | None]"

SHOWN_ROWS = 1000  # of one table in the HTML file; its CSV file has every row
FIRST_ROWS = 6  # before "Show all" is pressed
SHOWN_DETAILS = 100  # under one row
ALL_DETAILS = 30_000  # under all rows of one table


class Cell(StrEnum):
    """The ways in which cells of a column are shown."""

    TEXT = "text"
    QUIET = "quiet"  # text that matters less
    TALLY = "tally"  # "7 of 7": text that lines up like a number
    URL = "url"
    BADGE = "badge"  # [word, tone]
    NUMBER = "number"
    SECONDS = "seconds"
    GAP = "gap"  # seconds with three digits
    RATE = "rate"
    BYTES = "bytes"
    PERCENT = "percent"  # bold where it is low
    PART = "part"  # per cent without a judgement
    BAR = "bar"  # seconds, with a bar beside them
    CHAIN = "chain"  # [[URL, status], …]
    SHARE = "share"  # numbers of 2xx, 3xx, 4xx and 5xx


class Phone(StrEnum):
    """The place of a column on a narrow screen."""

    SHOWN = "shown"
    UNDER = "under"  # below the first cell
    HIDDEN = "hidden"


class BadgeTone(StrEnum):
    """The tone of a badge; the word says the same."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    NEW = "new"
    PLAIN = "plain"


class Column(NamedTuple):
    """One column."""

    label: str
    cell: Cell = Cell.TEXT
    unit: str = ""
    phone: Phone = Phone.SHOWN
    width: str = ""  # of the main column: wide or narrow; the others take what they need


class Details(NamedTuple):
    """Lines under a row: pages, each with a text."""

    lines: list[tuple[str, str]]
    total: int
    noun: str = "pages"


class Row(NamedTuple):
    """One row, and the lines under it."""

    cells: Sequence[object]
    details: Details | None = None


@dataclass(slots=True)
class ReportTable:
    """A table: it is shown sorted by column `sort`, the largest first; -1: in the order given."""

    columns: Sequence[Column]
    rows: list[Row]
    noun: str  # "targets": the footer says "6 of 47 targets"
    sort: int = 0
    first: int = FIRST_ROWS


@dataclass(slots=True)
class CsvFile:
    """A CSV file: `rows` is called when it is written, so that long ones need no memory."""

    name: str
    fields: tuple[str, ...]
    rows: Callable[[], Iterable[CsvRow]]


@dataclass(slots=True)
class Section:
    """One part of the report."""

    id: str
    title: str
    count: object  # in the list of contents
    about: str = ""  # beside the title
    note: str = ""  # under the title
    empty: str = ""  # the sentence in place of a table
    table: ReportTable | None = None
    csv: CsvFile | None = None
    extra: dict[str, object] = field(default_factory=dict)  # what only this section has
    half: bool = False  # half as wide as the page
    nav: str = ""  # its name in the list of contents, if it is not the title
    is_listed: bool = True  # in the list of contents


def cut(details: Iterable[tuple[str, str]], total: int, room: int) -> Details:
    """Return the first lines of a row's details, at most `room` of them."""
    lines: list[tuple[str, str]] = []
    for line in details:
        if len(lines) >= min(SHOWN_DETAILS, room):
            break
        lines.append(line)
    return Details(lines, total)


def rows_of(fields: tuple[str, ...], values: Iterable[Sequence[object]]) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file from their values."""
    for row in values:
        yield dict(zip(fields, row, strict=True))  # type: ignore[arg-type]
