"""The table of hosts of which something is known: rows are read by name and written through here.

Of most hosts of a crawl nothing is known, and a search for each would still cost more than its
lease. So the names in a table of ordinary size are kept in memory while no other process writes to
the file, which SQLite tells by its `data_version`.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from mannerly.database.errors import StoreError
from mannerly.database.sqlite import Database

from .rows import HOSTS, READ, WRITE, HostRow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mannerly.database.sqlite import Row

MOST_NAMES = 50_000  # in memory: about 100 bytes each


def examine(path: Path) -> list[str]:
    """Return what makes no sense in the tables of hosts of a file; some of it, if it is much."""
    with closing(Database.read(path, HOSTS)) as file:
        names = [str(name) for (name,) in file.rows("SELECT host FROM hosts")]
        for start in range(0, len(names), MOST_NAMES):
            KnownHosts(file).read_anyway(names[start : start + MOST_NAMES])
        return file.take_mended()


class KnownHosts:
    """The table in an open file."""

    def __init__(self, file: Database) -> None:
        self._file = file
        self._version: object = None  # of the file when it was last read
        self._names: set[str] | None = None  # at least those in the table; None: not known
        self._are_many = False  # too many for memory: they are not read again

    def read(self, hosts: Iterable[str]) -> list[Row]:
        """Return the rows of some hosts, inside a transaction."""
        row = self._file.row("PRAGMA data_version")
        assert row is not None
        if row[0] != self._version:  # others may write more often than this is asked
            self._version, self._names = row[0], None
        elif self._names is None and not self._are_many:
            self._names = self._all_names()
            self._are_many = self._names is None
        names = list(hosts) if self._names is None else list(self._names.intersection(hosts))
        return self.read_anyway(names) if names else []

    def read_anyway(self, hosts: list[str]) -> list[Row]:
        """Return the rows of some hosts, also outside of a transaction."""
        return self.sound(self._file.rows(READ, (msgspec.json.encode(hosts).decode(),)))

    def sound(self, rows: list[Row]) -> list[Row]:
        """Return rows with all numbers in range; rows that make no sense are left out."""
        found: list[Row] = []
        for row in rows:
            try:
                found.append(self._file.record(row, HostRow))
            except StoreError as error:
                self._file.say(f"left out what is known of a host ({error})")
        return found

    def _all_names(self) -> set[str] | None:
        rows = self._file.rows("SELECT host FROM hosts LIMIT ?", (MOST_NAMES + 1,))
        return {str(name) for (name,) in rows} if len(rows) <= MOST_NAMES else None

    def write(self, rows: list[Row]) -> None:
        """Add or replace rows, inside a transaction."""
        self._file.executemany(WRITE, rows)
        if self._names is not None:  # too many if this is rolled back, and that is fine
            self._names.update([row[0] for row in rows])
            if len(self._names) > MOST_NAMES:
                self._names, self._are_many = None, True
