"""Find the kept answers that a segment has lost, and forget their places.

A power cut can take the end of a segment although its length was committed (without --durable, the
system writes files when it likes). The records of its pages are sound: they only lose their
answers, which `retry --missing` fetches again.

    shorter than committed    its valid length becomes the end of its last whole record
    unreadable at its end     the same
    unreadable before that    the bytes stay, and only the pages lose their places
    missing                   it is forgotten
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from mannerly.crawler.archive.records import ArchiveDamaged, read_record, read_records
from mannerly.crawler.store.base import retry_missing_command
from mannerly.database.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.database.sqlite import Database

_SEGMENTS = "SELECT number, name, length FROM segments ORDER BY number"
_PLACES = """
    SELECT start, kept.length, kept.seq, coalesce(pages.url, '') FROM kept
    LEFT JOIN pages ON pages.seq = kept.seq WHERE segment = ? ORDER BY start
"""


class Loss(NamedTuple):
    """A segment that has lost some of its answers."""

    path: Path
    number: int
    size: int  # bytes in the file
    length: int  # bytes that were committed
    end: int  # bytes that stay valid
    pages: dict[int, str]  # by seq: the URLs whose answers are lost

    def __str__(self) -> str:
        lost = f"the answers of {len(self.pages):,} pages are lost"
        if self.size < self.length:
            return (
                f"{self.path} is {self.size:,} bytes long, {self.length:,} were committed: {lost}"
            )
        return f"{self.path} cannot be read in places: {lost}"


def losses(database: Database, folder: Path) -> Iterator[Loss]:
    """Yield the segments of a shard that have lost something. Every kept answer is read."""
    for number, name, length in database.rows(_SEGMENTS):
        loss = _loss(database, folder / name, number, length)
        if loss.pages or loss.end < length:
            yield loss


def forget(database: Database, loss: Loss) -> str:
    """Forget the places of lost answers; return what was done, in one sentence.

    What is behind the valid length is cut off when the segment is written to next.
    """
    listed = loss.path.with_name(loss.path.name.replace(".warc.gz", ".lost"))
    with os.fdopen(open_regular(listed, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "w") as file:
        file.writelines(f"{url}\n" for url in loss.pages.values())
        file.flush()
        os.fsync(file.fileno())
    with database.transaction(on_disk=True):
        seqs = [(seq,) for seq in loss.pages]
        database.executemany("DELETE FROM kept WHERE seq = ?", seqs)
        if loss.end:
            change = (loss.end, loss.number)
            database.execute("UPDATE segments SET length = ? WHERE number = ?", change)
        else:
            database.execute("DELETE FROM segments WHERE number = ?", (loss.number,))
    return (
        f"{loss.path}: kept {loss.end:,} of {loss.length:,} bytes; {len(loss.pages):,} pages have "
        f"lost their answers ({listed.name} lists them), and keep their records: "
        f"`{retry_missing_command(loss.path.parent)}` fetches them again"
    )


def _loss(database: Database, path: Path, number: int, length: int) -> Loss:
    places = database.rows(_PLACES, (number,))
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            valid = min(size, length)
            lost, sound = {}, 0
            known: dict[int, bool] = {}  # several pages may share an answer
            for start, count, seq, url in places:
                if start not in known:
                    known[start] = start + count <= valid and _is_record(file, start, count)
                if known[start]:
                    sound = start + count
                else:
                    lost[seq] = url
            is_end_sound = size >= length and (not places or known[places[-1][0]])
            end = length if is_end_sound else _end_of_records(file, sound, valid)
    except FileNotFoundError:
        return Loss(path, number, 0, length, 0, {row[2]: row[3] for row in places})
    return Loss(path, number, size, length, end, lost)


def _is_record(file: BinaryIO, start: int, length: int) -> bool:
    try:
        read_record(file, start, length)
    except ArchiveDamaged:
        return False
    return True


def _end_of_records(file: BinaryIO, start: int, valid: int) -> int:
    """Return where the last whole record ends that follows a place without a gap."""
    try:
        for record in read_records(file, valid, start):
            start = record.offset + record.length
    except ArchiveDamaged:
        pass
    return start
