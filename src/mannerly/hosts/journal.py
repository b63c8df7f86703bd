"""The journal of a lone holder: leases and budgets that no other process has to look up yet.

A row that lands anywhere in a large table costs a page of the log, and a crawl of many hosts would
pay that for each of them, although no other crawl may ever ask. A process that is the only living
holder appends many hosts as one row instead:

    claimed   hosts that it has claimed, with the gap in force
    noted     budgets that it has written

They count like rows of `leases` and `hosts`. A process that is not alone moves them there before it
looks or writes (`apply`), in the same transaction; one that joins does so before it is a holder.
So nothing is waited for and no process has to answer: a lone holder that is stopped or killed has
left the same leases as any other. All rows of a journal are of one holder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.politeness.bounds import MOST, bounded

from .rows import merged_row

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mannerly.database.sqlite import Database, Row

    from .table import KnownHosts

MANY_NOTED = 2000  # hosts: then budgets are moved, many at once, which costs a few pages
MANY_CLAIMED = 20_000  # hosts that are moved in one transaction of a process that joins

_OWNERS = "SELECT (SELECT holder FROM claimed LIMIT 1), (SELECT holder FROM noted LIMIT 1)"
_HOSTS = "json_each(iif(json_valid(claimed.hosts), claimed.hosts, '{}'))"
_APPLY = f"""
INSERT OR REPLACE INTO leases (host, holder, gap_s)
SELECT asked.key, claimed.holder, coalesce(asked.value, 0) FROM claimed CROSS JOIN {_HOSTS} AS asked
WHERE claimed.number <= ? ORDER BY asked.key, claimed.number
"""  # noqa: S608
_CLAIMED_OF = f"""
SELECT asked.key, claimed.holder FROM claimed CROSS JOIN {_HOSTS} AS asked
WHERE claimed.holder NOT IN (SELECT number FROM holders WHERE crawl = ?)
"""  # noqa: S608
_ALL = 2**62  # more than any number of a row

_decode = msgspec.json.Decoder(list[tuple[Any, ...]]).decode


class HostJournal:
    """The journal in an open file. Everything is called inside a transaction, but for reading."""

    def __init__(self, file: Database, table: KnownHosts) -> None:
        self._file = file
        self._table = table
        self._noted: set[str] = set()  # at least the hosts that this process has noted

    def claim(self, number: int, hosts: Mapping[str, float], asked: str) -> None:
        """Lease hosts to a lone holder; `asked` is `hosts` as JSON."""
        self._own(number)
        if not self._noted.isdisjoint(hosts):
            self.apply_noted()
        self._file.execute(
            "INSERT INTO claimed (holder, count, hosts) VALUES (?, ?, ?)",
            (number, len(hosts), asked),
        )

    def note(self, number: int, name: str, rows: list[Row]) -> None:
        """Write budgets of hosts, as rows, for a lone holder that has them."""
        self._own(number)
        self._file.execute(
            "INSERT INTO noted (holder, name, budgets) VALUES (?, ?, ?)",
            (number, name, msgspec.json.encode(rows).decode()),
        )
        self._noted.update([row[0] for row in rows])
        if len(self._noted) > MANY_NOTED:
            self.apply_noted()

    def _own(self, number: int) -> None:
        owners = self._file.row(_OWNERS)
        assert owners is not None
        if not {*owners} <= {None, number}:
            self.apply()
        elif owners[1] is None:  # not in `apply_noted`, which may be rolled back
            self._noted.clear()

    def has_many_claimed(self) -> bool:
        """Return whether moving all leases would keep other writers waiting."""
        return self._first_claimed() != _ALL

    def apply(self, *, some: bool = False) -> None:
        """Move everything to the tables, or the budgets and the first leases only."""
        owners = self._file.row(_OWNERS)
        if owners == (None, None):
            return
        last = self._first_claimed() if some else _ALL
        self._file.execute(_APPLY, (last,))
        self._file.execute("DELETE FROM claimed WHERE number <= ?", (last,))
        self.apply_noted()

    def _first_claimed(self) -> int:
        """Return the last row of the first leases that are many; `_ALL`: there are fewer."""
        total = 0
        with self._file.translated():
            for number, hosts in self._file.execute(
                "SELECT number, count FROM claimed ORDER BY number"
            ):
                total += int(bounded(hosts, MANY_CLAIMED))
                if total >= MANY_CLAIMED:
                    return int(number)
        return _ALL

    def apply_noted(self) -> None:
        """Move the budgets to their table."""
        rows = self.noted()
        self._table.write([rows[host] for host in sorted(rows)])
        self._file.execute("DELETE FROM noted")

    def noted(self) -> dict[str, Row]:
        """Return the rows of the hosts whose budgets are in the journal, as they will be."""
        batches = self._file.rows("SELECT name, budgets FROM noted ORDER BY number")
        written = [(str(name), row) for name, text in batches for row in self._decoded(text)]
        if not written:
            return {}
        known = self._table.read_anyway([row[0] for _, row in written])
        rows: dict[str, Row] = {row[0]: row for row in known}
        for name, row in written:
            rows[row[0]] = merged_row(rows.get(row[0]), row, name)
        return rows

    def _decoded(self, text: str) -> list[Row]:
        try:
            return self._table.sound(_decode(text))
        except (msgspec.MsgspecError, TypeError) as error:
            self._file.say(f"left out a part of its journal ({error})")
            return []

    def holders_of(self, hosts: Collection[str], besides: str) -> dict[str, int]:
        """Return which of these hosts are claimed by whom, but for the holders of one crawl."""
        asked = set(hosts)
        return {
            str(host): int(bounded(number, MOST))
            for host, number in self._file.rows(_CLAIMED_OF, (besides,))
            if host in asked
        }

    def leave(self, number: int) -> None:
        """Give all hosts of a holder back."""
        self._file.execute("DELETE FROM claimed WHERE holder = ?", (number,))
