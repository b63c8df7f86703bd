"""The changes that a batch makes to the tables, inside the transaction that its caller opened.

The order is part of the contract: what leaves the queue leaves first, so that its room is free;
then URLs arrive.

    leave     only an entry that is still queued can be recorded or dropped. A late or repeated
              record changes nothing, so a batch whose commit failed can be offered again
    arrive    only a URL that is in none of the tables gets a number and a row
    send      every link to another shard is written down; whether it is new is for that shard

Nothing here begins, commits or rolls back.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import Candidate, Entry, Kind, PageRecord, RobotsRecord
from mannerly.crawler.store.base import Batch, Committed, by_shard

from .inbox import encode_links
from .schema import ENTRY, HOST, PAGE, TOTALS, insert, update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .database import Database, Row

_TAKE = "DELETE FROM queue WHERE host = ? AND priority = ? AND seq = ? RETURNING seq"
_PAGE = insert("pages", "seq", "host", "kind", *PAGE)
_SKIP = insert("skipped", "seq", "url", "reason", "depth", "parent")
_QUEUE = insert("queue", *ENTRY)
_WAIT = insert("waiting", *ENTRY)
_SEND = insert("outbox", "shard", "count", "links")
_FORGET = "DELETE FROM outbox WHERE id = ? RETURNING count"
_ARRIVE = insert("arrivals", "seq", "url", "host", "priority")
_READY = "UPDATE hosts SET ready = ready + ? WHERE id = ?"
_HOST = update("hosts", *HOST, where="id")
_ROBOTS = insert("robots", *RobotsRecord._fields, verb="INSERT OR REPLACE")
_NEXT_WAITING = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind
    FROM waiting JOIN hosts ON hosts.id = waiting.host ORDER BY seq LIMIT ?
"""
_READ_TOTALS = f"SELECT {', '.join(TOTALS)} FROM totals"  # noqa: S608
_WRITE_TOTALS = update("totals", *TOTALS)

_QUEUE_ORDER = itemgetter(2, 4, 0)  # host, priority, seq: the key of the table
_page_values = attrgetter(*PAGE)  # what a page's row has of its record

PAGE_KIND = Kind.PAGE  # found faster than by its full name

# A name costs about 150 bytes here; a crawl works on few hosts at a time.
_IDS_KEPT = 20_000


class HostIds(dict[str, int]):
    """The numbers that stand for hosts in a queue's key. A cache in front of the table."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.given = 0  # to hosts that the table did not have, in the transaction under way
        self._database = database

    def __missing__(self, host: str) -> int:
        if len(self) >= _IDS_KEPT:
            self.clear()
        row = self._database.row("SELECT id FROM hosts WHERE host = ?", (host,))
        if row is None:
            self.given += 1
            row = self._database.row("INSERT INTO hosts (host) VALUES (?) RETURNING id", (host,))
            assert row is not None
        self[host] = number = int(row[0])
        return number


class Applied(NamedTuple):
    """The outcome of a change, to be remembered once it is committed."""

    committed: Committed
    arrived: list[str]  # every new URL, whichever table it went to


class Change:
    """One transaction's worth of changes. `finish` writes the totals; call it last."""

    def __init__(self, database: Database, ids: HostIds, *, frontier_limit: int) -> None:
        self._database = database
        self._ids = ids
        self._limit = frontier_limit
        row = database.execute(_READ_TOTALS).fetchone()
        self._totals: dict[str, int] = dict(zip(TOTALS, row or (), strict=True))
        self._ready: defaultdict[int, int] = defaultdict(int)
        ids.given = 0

    def apply(self, batch: Batch, fresh: Callable[[set[str]], set[str]]) -> Applied:
        """Apply the whole batch; `fresh` tells which URLs are in none of the tables."""
        self._leave(batch.pages, batch.dropped)
        applied = self._arrive(batch.found, fresh)
        self._send(batch.outgoing)
        self._keep(batch)
        return applied

    def admit(self, room: int) -> list[Entry]:
        """Move the oldest of the waiting room into the queue, as far as the limit allows."""
        room = min(room, self._limit - self._totals["ready"])
        rows = self._database.execute(_NEXT_WAITING, (max(room, 0),)).fetchall()
        entries = [Entry(*row) for row in rows]  # type: ignore[arg-type]
        if entries:
            self._enqueue(entries)
            self._database.execute("DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq,))
            self._totals["waiting"] -= len(entries)
        return entries

    def clear_suspects(self, numbers: Iterable[int]) -> None:
        """Forget how often these pages were being parsed when their owner died."""
        rows = [(number,) for number in numbers]
        self._database.executemany("DELETE FROM suspects WHERE seq = ?", rows)

    def forget_outgoing(self, numbers: Iterable[int]) -> int:
        """Remove batches of links that were handed over; return how many links that were."""
        gone = self._database.executemany(_FORGET, [(number,) for number in numbers])
        links: int = sum(count for (count,) in gone)
        self._totals["outgoing"] -= links
        return links

    def finish(self) -> None:
        """Write what was counted along the way."""
        self._totals["hosts"] += self._ids.given
        changed = [(delta, host) for host, delta in self._ready.items() if delta]
        self._database.executemany(_READY, changed)
        assert all(value >= 0 for value in self._totals.values()), self._totals
        self._database.execute(_WRITE_TOTALS, tuple(self._totals.values()))

    def _leave(
        self, pages: list[tuple[Entry, PageRecord]], dropped: list[tuple[Entry, str]]
    ) -> None:
        if not pages and not dropped:
            return
        keys = [self._key(entry) for entry, _ in chain(pages, dropped)]
        taken = {seq for (seq,) in self._database.executemany(_TAKE, keys)}
        records: list[Row] = []
        lists = failed = 0
        for entry, record in pages:
            if entry.seq in taken:
                taken.remove(entry.seq)
                self._left(entry)
                host = self._ids[record.host]
                records.append((entry.seq, host, entry.kind, *_page_values(record)))
                if entry.kind != PAGE_KIND:
                    lists += 1
                elif record.status is None:
                    failed += 1
        skipped: list[Row] = []
        for entry, reason in dropped:
            if entry.seq in taken:
                taken.remove(entry.seq)
                self._left(entry)
                skipped.append((entry.seq, entry.url, reason, entry.depth, entry.parent))
        self._database.executemany(_PAGE, records)
        self._database.executemany(_SKIP, skipped)
        self._totals["fetched"] += len(records) - lists
        self._totals["failed"] += failed
        self._totals["lists"] += lists
        self._totals["skipped"] += len(skipped)

    def _left(self, entry: Entry) -> None:
        self._ready[self._ids[entry.host]] -= 1
        self._totals["ready"] -= 1

    def _arrive(
        self, candidates: list[Candidate], fresh: Callable[[set[str]], set[str]]
    ) -> Applied:
        new = fresh({candidate[0] for candidate in candidates})
        arrivals: list[tuple[int, str, int, int]] = []
        entries: list[Entry] = []
        for candidate in candidates:
            if candidate[0] in new:  # most are not: unpack the others only
                url, host, depth, priority, parent, hops, kind = candidate
                new.remove(url)
                seq = self._next_seq()
                arrivals.append((seq, url, self._ids[host], priority))
                entries.append(Entry(seq, url, host, depth, priority, parent, hops, kind))
        self._database.executemany(_ARRIVE, arrivals)
        room = len(entries)
        if self._totals["waiting"] or self._totals["ready"] + room > self._limit:
            # The waiting room is left in the order of arrival.
            room = 0 if self._totals["waiting"] else max(self._limit - self._totals["ready"], 0)
        self._enqueue(entries[:room])
        self._wait(entries[room:])
        committed = Committed(entries[:room], len(entries) - room)
        return Applied(committed, [row[1] for row in arrivals])

    def _send(self, outgoing: list[tuple[int, Candidate]]) -> None:
        rows = [
            (shard, *links)
            for shard, candidates in by_shard(outgoing).items()
            for links in encode_links(candidates)
        ]
        self._database.executemany(_SEND, rows)
        self._totals["outgoing"] += len(outgoing)

    def _enqueue(self, entries: list[Entry]) -> None:
        rows = self._rows(entries)
        for row in rows:
            self._ready[row[2]] += 1
        rows.sort(key=_QUEUE_ORDER)
        self._database.executemany(_QUEUE, rows)
        self._totals["ready"] += len(rows)

    def _wait(self, entries: list[Entry]) -> None:
        self._database.executemany(_WAIT, self._rows(entries))
        self._totals["waiting"] += len(entries)

    def _rows(self, entries: list[Entry]) -> list[Row]:
        """Return the columns `ENTRY`, with numbers for hosts."""
        ids = self._ids
        return [
            (seq, url, ids[host], depth, priority, parent, hops, kind)
            for seq, url, host, depth, priority, parent, hops, kind, _ in entries
        ]

    def _keep(self, batch: Batch) -> None:
        records = [(*record[1:], self._ids[record.host]) for record in batch.hosts]
        self._database.executemany(_HOST, records)
        self._database.executemany(_ROBOTS, batch.robots.values())
        self._totals["applied"] = max(self._totals["applied"], batch.applied)

    def _key(self, entry: Entry) -> tuple[int, int, int]:
        return self._ids[entry.host], entry.priority, entry.seq

    def _next_seq(self) -> int:
        seq = self._totals["next_seq"]
        self._totals["next_seq"] = seq + 1
        return seq
