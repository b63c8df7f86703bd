"""Find damaged records in the segments of a crawl, and leave them out of archives.

A byte that a disk has changed makes one record unreadable. Tools that read an archive stop there,
or take the rest for one record. So a segment with damage is copied without it before it is written
to an archive. `doctor --deep` names the damage.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.archive.records import DamagedRecord, checked_records

from .archive import ValidSegment
from .export import segments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Sound(NamedTuple):
    """Segments without damage, and how many records were left out."""

    segments: list[ValidSegment]
    left_out: int


@contextmanager
def sound(segments: Iterable[ValidSegment]) -> Iterator[Sound]:
    """Yield segments without what is damaged of them; copies are there for as long."""
    with TemporaryDirectory(prefix="mannerly-export-") as folder:
        found, left_out = [], 0
        for segment in segments:
            damaged = list(_damage(segment))
            if damaged:
                left_out += len(damaged)
                segment = _without(segment, damaged, Path(folder) / segment.path.name)
            found.append(segment)
        yield Sound([each for each in found if each.length], left_out)


def damaged_records(location: str | Path) -> list[str]:
    """Return a sentence for each damaged record of a crawl's segments. Everything is read."""
    from mannerly.crawler.stored import open_crawl

    with open_crawl(location) as crawl, crawl.view() as opened:
        return [
            f"{segment.path}: {damage.cause}; exports leave {damage.length:,} bytes out"
            for segment in segments_of(opened)
            for damage in _damage(segment)
        ]


def _damage(segment: ValidSegment) -> Iterator[DamagedRecord]:
    with segment.path.open("rb") as file:
        if file.seek(0, 2) < segment.length:
            return  # its end is missing, which is another error
        for record in checked_records(file, segment.length):
            if isinstance(record, DamagedRecord):
                yield record


def _without(segment: ValidSegment, damaged: list[DamagedRecord], path: Path) -> ValidSegment:
    """Copy a segment without some of its bytes."""
    starts = [0, *(each.offset + each.length for each in damaged)]
    ends = [*(each.offset for each in damaged), segment.length]
    with segment.path.open("rb") as file, path.open("wb") as copy:
        for start, end in zip(starts, ends, strict=True):
            file.seek(start)
            while start < end:
                data = file.read(min(1 << 20, end - start))
                copy.write(data)
                start += len(data)
        return ValidSegment(path, copy.tell())
