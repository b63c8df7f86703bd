"""Items on their way from a crawl to the program that runs its spider, each once.

Pages are committed at once with their items and requests, as by `mannerly run`; nothing waits for
the program's loop. The program gets its items from the store, shard by shard in the order of
commits. Asking for the next item acknowledges the one before. That position (16 bytes a shard) is
written to the kernel at once, so neither `break` nor `kill -9` repeats an acknowledged item. The
item in hand comes again.

    items.given    by shard: the position of the latest page that was begun, and how many of its
                   items are acknowledged

A page that is fetched again (`retry`, a recrawl) has another position, so its new items come, too.
"""

from __future__ import annotations

import os
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mannerly.crawler.store.base import StoreError
from mannerly.database.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .stored import StoredCrawl

FILE = "items.given"
AT_ONCE = 1000  # items read ahead of the program

_PLACE = Struct("<qq")


class NextItem(NamedTuple):
    """An item, and its place among those of its crawl."""

    shard: int
    position: int
    number: int  # of the item on its page, from 1
    item: dict[str, Any]


class ItemFeed:
    """The items of a crawl that the program has not acknowledged. Close it at the end."""

    def __init__(self, crawl: StoredCrawl, directory: Path) -> None:
        self._crawl = crawl
        self._path = directory / FILE
        try:
            self._file = open_regular(self._path, os.O_RDWR | os.O_CREAT)
            kept = os.pread(self._file, os.fstat(self._file).st_size, 0)
        except OSError as error:
            raise StoreError(f"cannot use {self._path}: {error.strerror}") from error
        whole = len(kept) // _PLACE.size * _PLACE.size
        # Read ahead up to here; the file says what is acknowledged.
        self._next = dict(enumerate(_PLACE.iter_unpack(kept[:whole])))

    def more(self) -> list[NextItem]:
        """Return the items that come next, some at a time; none: no more are committed now."""
        return list(islice(self._committed(), AT_ONCE))

    def acknowledge(self, given: NextItem) -> None:
        """Note that the program is done with an item and those before it of its shard."""
        place = _PLACE.pack(given.position, given.number)
        try:
            os.pwrite(self._file, place, given.shard * _PLACE.size)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _committed(self) -> Iterator[NextItem]:
        with self._crawl.view() as view:
            for shard, reader in enumerate(view.readers):
                position, number = self._next.get(shard, (0, 0))
                for at, _, found in reader.items(after=max(0, position - 1)):
                    first = number if at == position else 0
                    self._next[shard] = at, first  # or pages without items are read at each call
                    for each, line in enumerate(found.items[first:], first + 1):
                        self._next[shard] = at, each
                        yield NextItem(shard, at, each, msgspec.json.decode(line))
