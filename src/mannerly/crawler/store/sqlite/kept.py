"""Write where answers are kept in segments, and what pages were extracted to.

Both belong to the transaction that records the pages. A batch that is offered again after a failed
commit has the same places, so writing them twice changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .schema import insert

if TYPE_CHECKING:
    from mannerly.crawler.store.base import Batch

    from .database import Database

_SEGMENT = """
    INSERT INTO segments (name, length) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET length = excluded.length
"""
_KEPT = """
    INSERT OR REPLACE INTO kept (seq, segment, start, length)
    VALUES (?, (SELECT number FROM segments WHERE name = ?), ?, ?)
"""
_ITEMS = insert("items", "seq", "count", "items", "error", verb="INSERT OR REPLACE")


def keep_answers(database: Database, batch: Batch) -> None:
    """Write the lengths of segments, the places of answers and the items of a batch."""
    database.executemany(_SEGMENT, batch.segments.items())
    database.executemany(_KEPT, [(seq, *place) for seq, place in batch.kept.items()])
    database.executemany(
        _ITEMS,
        [
            (seq, len(each.items), b"\n".join(each.items), each.error)
            for seq, each in batch.items.items()
        ],
    )
