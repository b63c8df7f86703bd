"""What a batch does to the tables, inside the transaction that its caller opened.

The order is part of the contract: what leaves the queue leaves first, so that its room is free;
then URLs arrive.

    leave     only an entry that is still queued can be recorded or dropped. A late or repeated
              record changes nothing, so a batch whose commit failed can be offered again
    arrive    only a URL that is in none of the tables gets a number and a row

Nothing here begins, commits or rolls back.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ..model import Candidate, Entry, PageRecord
from .base import Batch, Committed
from .schema import HOST_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import apsw

_TAKE = "DELETE FROM queue WHERE host = ? AND priority = ? AND seq = ? RETURNING seq"
_PAGE = """
    INSERT INTO pages VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SKIP = "INSERT INTO skipped VALUES (?, ?, ?, ?, ?)"
_QUEUE = "INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_WAIT = "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?)"
_SEND = "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ARRIVE = "INSERT INTO arrivals VALUES (?, ?, ?, ?)"
_READY = "UPDATE hosts SET ready = ready + ? WHERE id = ?"
_HOST = f"""
    UPDATE hosts SET ({HOST_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    WHERE id = ?
"""  # noqa: S608 - a constant of ours
_ROBOTS = "INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?, ?)"
_NEXT_WAITING = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, 0 AS attempts
    FROM waiting JOIN hosts ON hosts.id = waiting.host ORDER BY seq LIMIT ?
"""
_TOTALS = ("next_seq", "ready", "waiting", "fetched", "failed", "skipped", "outgoing", "hosts")
_READ_TOTALS = """
    SELECT next_seq, ready, waiting, fetched, failed, skipped, outgoing, hosts FROM totals
"""
_WRITE_TOTALS = """
    UPDATE totals SET next_seq = ?, ready = ?, waiting = ?, fetched = ?, failed = ?, skipped = ?,
                      outgoing = ?, hosts = ?
"""

# A name costs about 150 bytes here; a crawl works on few hosts at a time.
_IDS_KEPT = 20_000

Row = tuple[str | float | None, ...]


class HostIds(dict[str, int]):
    """The numbers of hosts, so that a queue's key is short. A cache in front of the table."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__()
        self.given = 0  # to hosts that the table did not have, in the transaction under way
        self._connection = connection

    def __missing__(self, host: str) -> int:
        if len(self) >= _IDS_KEPT:
            self.clear()
        row = self._connection.execute("SELECT id FROM hosts WHERE host = ?", (host,)).fetchone()
        if row is None:
            self.given += 1
            row = self._connection.execute(
                "INSERT INTO hosts (host) VALUES (?) RETURNING id", (host,)
            ).fetchone()
            assert row is not None
        self[host] = number = int(row[0])
        return number

    def begin(self) -> None:
        """Count from here."""
        self.given = 0

    def roll_back(self) -> None:
        """Ask the table again: numbers given in a transaction that was rolled back are void."""
        self.clear()


class Applied(NamedTuple):
    """What a change brought, to be believed once it is committed."""

    committed: Committed
    arrived: list[str]  # every new URL, whichever table it went to


class Change:
    """One transaction's worth of changes. `finish` writes the totals; call it last."""

    def __init__(self, connection: apsw.Connection, ids: HostIds, *, frontier_limit: int) -> None:
        self._connection = connection
        self._ids = ids
        self._limit = frontier_limit
        row = connection.execute(_READ_TOTALS).fetchone()
        self._totals: dict[str, int] = dict(zip(_TOTALS, row or (), strict=True))
        self._ready: defaultdict[int, int] = defaultdict(int)
        ids.begin()

    def apply(self, batch: Batch, fresh: Callable[[set[str]], set[str]]) -> Applied:
        """The whole batch; `fresh` tells which URLs are in none of the tables."""
        self._leave(batch.pages, batch.dropped)
        applied = self._arrive(batch, fresh)
        self._keep(batch)
        return applied

    def admit(self, room: int) -> list[Entry]:
        """Move the oldest of the waiting room into the queue, as far as the limit allows."""
        room = min(room, self._limit - self._totals["ready"])
        rows = self._connection.execute(_NEXT_WAITING, (max(room, 0),)).fetchall()
        entries = [Entry._make(row) for row in rows]
        if entries:
            self._enqueue(entries)
            self._connection.execute("DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq,))
            self._totals["waiting"] -= len(entries)
        return entries

    def forget_outgoing(self, sequences: Iterable[int]) -> int:
        """Remove what was handed over; returns how many that were."""
        rows = [(seq,) for seq in sequences]
        self._connection.executemany("DELETE FROM outbox WHERE seq = ?", rows)
        self._totals["outgoing"] -= len(rows)
        return len(rows)

    def finish(self) -> None:
        """Write what was counted along the way."""
        self._totals["hosts"] += self._ids.given
        changed = [(delta, host) for host, delta in self._ready.items() if delta]
        self._connection.executemany(_READY, changed)
        assert all(value >= 0 for value in self._totals.values()), self._totals
        self._connection.execute(_WRITE_TOTALS, tuple(self._totals.values()))

    def _leave(
        self, pages: list[tuple[Entry, PageRecord]], dropped: list[tuple[Entry, str]]
    ) -> None:
        if not pages and not dropped:
            return
        keys = [self._key(entry) for entry, _ in chain(pages, dropped)]
        taken = {seq for (seq,) in self._connection.executemany(_TAKE, keys)}
        records: list[Row] = []
        for entry, record in pages:
            if entry.seq in taken:
                taken.remove(entry.seq)
                self._left(entry)
                host = self._ids[record.host]
                records.append((entry.seq, host, *record[:14], *record[15:]))
                self._totals["failed"] += record.status is None
        skipped: list[Row] = []
        for entry, reason in dropped:
            if entry.seq in taken:
                taken.remove(entry.seq)
                self._left(entry)
                skipped.append((entry.seq, entry.url, reason, entry.depth, entry.parent))
        self._connection.executemany(_PAGE, records)
        self._connection.executemany(_SKIP, skipped)
        self._totals["fetched"] += len(records)
        self._totals["skipped"] += len(skipped)

    def _left(self, entry: Entry) -> None:
        self._ready[self._ids[entry.host]] -= 1
        self._totals["ready"] -= 1

    def _arrive(self, batch: Batch, fresh: Callable[[set[str]], set[str]]) -> Applied:
        asked = {candidate[0] for candidate in batch.found}
        asked.update(candidate.url for _, candidate in batch.outgoing)
        new = fresh(asked)
        arrivals: list[tuple[int, str, int | None, int | None]] = []
        found = self._arrive_found(batch.found, new, arrivals)
        self._arrive_outgoing(batch.outgoing, new, arrivals)
        self._connection.executemany(_ARRIVE, arrivals)
        room = len(found)
        if self._totals["waiting"] or self._totals["ready"] + room > self._limit:
            # Nobody overtakes in the waiting room.
            room = 0 if self._totals["waiting"] else max(self._limit - self._totals["ready"], 0)
        self._enqueue(found[:room])
        self._wait(found[room:])
        return Applied(Committed(found[:room], len(found) - room), [row[1] for row in arrivals])

    def _arrive_found(
        self,
        candidates: list[Candidate],
        new: set[str],
        arrivals: list[tuple[int, str, int | None, int | None]],
    ) -> list[Entry]:
        entries: list[Entry] = []
        for candidate in candidates:
            if candidate[0] in new:  # most are not: unpack the others only
                url, host, depth, priority, parent, hops = candidate
                new.remove(url)
                seq = self._next_seq()
                arrivals.append((seq, url, self._ids[host], priority))
                entries.append(Entry(seq, url, host, depth, priority, parent, hops, 0))
        return entries

    def _arrive_outgoing(
        self,
        outgoing: list[tuple[int, Candidate]],
        new: set[str],
        arrivals: list[tuple[int, str, int | None, int | None]],
    ) -> None:
        rows: list[Row] = []
        for shard, (url, host, depth, priority, parent, hops) in outgoing:
            if url in new:
                new.remove(url)
                seq = self._next_seq()
                arrivals.append((seq, url, None, None))
                rows.append((seq, shard, host, priority, url, depth, parent, hops))
        self._connection.executemany(_SEND, rows)
        self._totals["outgoing"] += len(rows)

    def _enqueue(self, entries: list[Entry]) -> None:
        rows = []
        for seq, url, host, depth, priority, parent, hops, attempts in entries:
            number = self._ids[host]
            self._ready[number] += 1
            rows.append((number, priority, seq, url, depth, parent, hops, attempts))
        rows.sort()
        self._connection.executemany(_QUEUE, rows)
        self._totals["ready"] += len(rows)

    def _wait(self, entries: list[Entry]) -> None:
        rows = [
            (seq, self._ids[host], priority, url, depth, parent, hops)
            for seq, url, host, depth, priority, parent, hops, _ in entries
        ]
        self._connection.executemany(_WAIT, rows)
        self._totals["waiting"] += len(rows)

    def _keep(self, batch: Batch) -> None:
        records = [(*record[1:], self._ids[record.host]) for record in batch.hosts]
        self._connection.executemany(_HOST, records)
        self._connection.executemany(_ROBOTS, batch.robots.values())

    def _key(self, entry: Entry) -> tuple[int, int, int]:
        return self._ids[entry.host], entry.priority, entry.seq

    def _next_seq(self) -> int:
        seq = self._totals["next_seq"]
        self._totals["next_seq"] = seq + 1
        return seq
