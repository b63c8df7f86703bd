"""The values of a report: sections with tables, charts and a CSV file each, and their words.

A section holds plain values; `html` and `write_csv_files` write them. The browser sorts a table by
its cells: numbers stay numbers, and their column says how they are shown. Nothing here is markup,
and no cell is ever interpreted as such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.exports.rows import write_csv
from mannerly.exports.whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from .findings import Findings

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
    """A table: it is shown sorted by column `sort`, the largest first; -1: in the order given.

    One without rows is not shown, but the sentence of its section.
    """

    columns: Sequence[Column]
    rows: list[Row]
    noun: str  # "targets": the footer says "6 of 47 targets"
    sort: int = 0
    first: int = FIRST_ROWS


@dataclass(slots=True)
class CsvFile:
    """A CSV file: `values` is called when it is written, so that long ones need no memory."""

    name: str
    fields: tuple[str, ...]
    values: Callable[[], Iterable[Sequence[object]]]

    def rows(self) -> Iterator[CsvRow]:
        """Yield the rows, by the names of their fields."""
        for row in self.values():
            yield dict(zip(self.fields, row, strict=True))  # type: ignore[arg-type]


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


def are(count: int) -> str:
    """Return the verb for a count."""
    return "is" if count == 1 else "are"


def day(wall: float) -> str:
    """Return a date as `10 Nov 2026`, in UTC."""
    return datetime.fromtimestamp(wall, UTC).strftime("%d %b %Y").lstrip("0")


def clock(wall: float) -> str:
    """Return a time of day as `04:22:09`, in UTC."""
    return datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S")


def period(began: float, ended: float) -> str:
    """Return `17 Nov 2026, 03:00–05:11 UTC`."""
    first, last = (datetime.fromtimestamp(each, UTC) for each in (began, ended))
    if first.date() == last.date():
        return f"{day(began)}, {first:%H:%M}–{last:%H:%M} UTC"
    return f"{day(began)}, {first:%H:%M} – {day(ended)}, {last:%H:%M} UTC"


def joined(texts: list[str], *, most: int = 3) -> str:
    """Return `a, b and c`; of many the first ones and how many others there are."""
    if len(texts) > most:
        others = len(texts) - most + 1
        texts = [*texts[: most - 1], f"{others:,} others"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def write_csv_files(findings: Findings, directory: Path, *, is_raw: bool = False) -> dict[str, int]:
    """Write the files; return the number of rows of each. The names are constants of ours.

    Text is never taken for a formula, unless `is_raw`.

    Raises:
        OSError: the directory or a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = {}
    for section in findings.sections:
        if (file := section.csv) is not None:
            with whole_file(directory / file.name) as target:
                written[file.name] = write_csv(file.rows(), file.fields, target, is_raw=is_raw)
    return written
