"""The pages of an export, and their values: a row for each, in the order of `PageRecord`.

Instants are written as ISO 8601 in UTC. A URL that was skipped or given up has the same columns,
nearly all of them empty, and its reason in one more column, `skipped` or `given_up`.

In JSON lines, characters that end a line for some readers (U+2028, U+2029, U+0085), control a
terminal or change the direction of text are escaped: JSON allows them, but lines may be printed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import msgspec

from mannerly.crawler.model import PageChange, PageRecord, is_given_up
from mannerly.crawler.web.robots_meta import is_reserved
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
