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

from mannerly.crawler.model import Candidate, Entry, Kind, PageRecord, RobotsRecord, is_given_up
from mannerly.crawler.store.base import Batch, BroughtBack, Committed, StoreError, by_shard

from .database import REPAIR
from .inbox import encode_links
from .reader import checked_entries
from .schema import ENTRY, HOST, PAGE, RETRY, TOTALS, insert, update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.control import RetryUrls

    from .database import Database, Row

_TAKE = "DELETE FROM queue WHERE host = ? AND priority = ? AND seq = ? RETURNING seq"
_PAGE = insert("pages", "position", "seq", "host", "kind", "hops", *PAGE)
_SKIP = insert("skipped", "seq", "url", "reason", "depth", "parent")
_GIVE_UP = insert("given_up", *ENTRY, "reason")
_QUEUE = insert("queue", *ENTRY)
_WAIT = insert("waiting", *ENTRY)
_SEND = insert("outbox", "shard", "count", "links")
_FORGET = "DELETE FROM outbox WHERE id = ? RETURNING count"
_ARRIVE = insert("arrivals", "seq", "url", "host", "priority")
_HOST_COUNTS = "UPDATE hosts SET ready = ready + ?, given_up = given_up + ? WHERE id = ?"
_HOST = update("hosts", *HOST, where="id")
_ROBOTS = insert("robots", *RobotsRecord._fields, verb="INSERT OR REPLACE")
_TRAFFIC = """
    INSERT INTO traffic (interval, requests, refused) VALUES (?, ?, ?) ON CONFLICT DO UPDATE
    SET requests = requests + excluded.requests, refused = refused + excluded.refused
"""
_NEXT_WAITING = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind
    FROM waiting JOIN hosts ON hosts.id = waiting.host ORDER BY seq LIMIT ?
"""
_RETRY = insert("retries", *RETRY)
_NEXT_RETRY = f"SELECT number, {', '.join(RETRY)} FROM retries ORDER BY number LIMIT 1"  # noqa: S608
_AT = "UPDATE retries SET failed = ?, given_up = ?, at_host = ?, at_row = ? WHERE number = ?"
_FAILED = """
    SELECT seq, pages.url, hosts.host, depth,
           coalesce((SELECT priority FROM seen WHERE seen.url = pages.url),
                    (SELECT priority FROM arrivals WHERE arrivals.seq = pages.seq), 0),
           parent, hops, kind, pages.host, position
    FROM pages JOIN hosts ON hosts.id = pages.host
    WHERE status IS NULL AND (pages.host, position) > (?1, ?2) AND pages.host <= ?3
      AND position <= ?4
    ORDER BY pages.host, position LIMIT ?5
"""
_GIVEN_UP = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind, given_up.host, seq
    FROM given_up JOIN hosts ON hosts.id = given_up.host
    WHERE (given_up.host, seq) > (?1, ?2) AND given_up.host <= ?3
    ORDER BY given_up.host, seq LIMIT ?5
"""
_READ_TOTALS = f"SELECT {', '.join(TOTALS)} FROM totals"  # noqa: S608
_WRITE_TOTALS = update("totals", *TOTALS)

_QUEUE_ORDER = itemgetter(2, 4, 0)  # host, priority, seq: the key of the table
_page_values = attrgetter(*PAGE)  # what a page's row has of its record

PAGE_KIND = Kind.PAGE  # found faster than by its full name

_ALL_HOSTS = 2**62  # more than any host's number

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
        self._ready: defaultdict[int, int] = defaultdict(int)  # changes of hosts' queues
        self._given_up: defaultdict[int, int] = defaultdict(int)
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
        entries = checked_entries(self._database, rows)
        if entries:
            self._enqueue(entries)
            self._database.execute("DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq,))
            self._totals["waiting"] -= len(entries)
        return entries

    def bring_back(self, limit: int) -> BroughtBack:
        """Do a slice of the oldest order in `retries`: failed pages first, then given-up URLs."""
        row = self._database.row(_NEXT_RETRY)
        if row is None:
            return BroughtBack([], 0, {})
        number, failed, given_up, first, last, position, *at = row
        query = _FAILED if failed else _GIVEN_UP
        rows: list[Row] = []
        if failed or given_up:
            rows = self._database.rows(query, (*at, last, position, limit))
        if len(rows) < limit:  # that is all of them
            failed, given_up, at = 0, failed and given_up, [first, 0]
        else:
            at = list(rows[-1][-2:])
        if failed or given_up:
            self._database.execute(_AT, (failed, given_up, *at, number))
        else:
            self._database.execute("DELETE FROM retries WHERE number = ?", (number,))
        entries = checked_entries(self._database, [row[:8] for row in rows])
        if query is _FAILED:
            self._remove_failed(entries, [row[-1] for row in rows])
        else:
            self._remove_given_up([row[-2:] for row in rows])
        committed = self._place(entries)
        hosts = dict.fromkeys([entry.host for entry in entries], 0)
        for entry in entries if query is _FAILED else ():
            hosts[entry.host] += entry.kind == PAGE_KIND
        return BroughtBack(committed.new, committed.waiting, hosts)

    def _remove_failed(self, entries: list[Entry], positions: list[int]) -> None:
        self._database.executemany(
            "DELETE FROM pages WHERE position = ?", [(position,) for position in positions]
        )
        lists = sum(entry.kind != PAGE_KIND for entry in entries)
        self._add(failed=lists - len(entries), lists=-lists)

    def _remove_given_up(self, keys: list[Row]) -> None:
        self._database.executemany("DELETE FROM given_up WHERE host = ? AND seq = ?", keys)
        for host, _ in keys:
            self._given_up[host] -= 1
        self._add(given_up=-len(keys))

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
        changed = [
            (self._ready[host], self._given_up[host], host)
            for host in self._ready.keys() | self._given_up.keys()
        ]
        self._database.executemany(_HOST_COUNTS, changed)
        if min(self._totals.values()) < 0:
            wrong = next(name for name, value in self._totals.items() if value < 0)
            raise StoreError(
                f"{self._database.path} is damaged (its counter of {wrong} is wrong): {REPAIR}"
            )
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
        position = self._totals["next_position"]
        for entry, record in pages:
            if entry.seq in taken:
                taken.remove(entry.seq)
                host = self._left(entry)
                place = (position + len(records), entry.seq, host, entry.kind, entry.hops)
                records.append((*place, *_page_values(record)))
                if entry.kind != PAGE_KIND:
                    lists += 1
                elif record.status is None:
                    failed += 1
        skipped: list[Row] = []
        given_up: list[Row] = []
        for entry, reason in dropped:
            if entry.seq in taken:
                taken.remove(entry.seq)
                host = self._left(entry)
                if is_given_up(reason):
                    given_up.append((*self._row(entry, host), reason))
                    self._given_up[host] += 1
                else:
                    skipped.append((entry.seq, entry.url, reason, entry.depth, entry.parent))
        self._database.executemany(_PAGE, records)
        self._database.executemany(_SKIP, skipped)
        self._database.executemany(_GIVE_UP, given_up)
        self._add(
            next_position=len(records),
            fetched=len(records) - lists - failed,
            failed=failed,
            lists=lists,
            skipped=len(skipped),
            given_up=len(given_up),
        )

    def _left(self, entry: Entry) -> int:
        """Count an entry as gone from its host's queue; return the host's number."""
        host = self._ids[entry.host]
        self._ready[host] -= 1
        self._totals["ready"] -= 1
        return host

    def _add(self, **counts: int) -> None:
        for name, count in counts.items():
            self._totals[name] += count

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
        return Applied(self._place(entries), [row[1] for row in arrivals])

    def _place(self, entries: list[Entry]) -> Committed:
        """Queue entries, as far as there is room; let the others wait."""
        room = len(entries)
        if self._totals["waiting"] or self._totals["ready"] + room > self._limit:
            # The waiting room is left in the order of arrival.
            room = 0 if self._totals["waiting"] else max(self._limit - self._totals["ready"], 0)
        self._enqueue(entries[:room])
        self._wait(entries[room:])
        return Committed(entries[:room], len(entries) - room)

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
        ids = self._ids
        return [self._row(entry, ids[entry.host]) for entry in entries]

    def _row(self, entry: Entry, host: int) -> Row:
        """Return the columns `ENTRY`, with the number of the host."""
        seq, url, _, depth, priority, parent, hops, kind, _ = entry
        return (seq, url, host, depth, priority, parent, hops, kind)

    def _keep(self, batch: Batch) -> None:
        records = [(*record[1:], self._ids[record.host]) for record in batch.hosts]
        self._database.executemany(_HOST, records)
        self._database.executemany(_ROBOTS, batch.robots.values())
        traffic = [(interval, *counts) for interval, counts in batch.traffic.items()]
        self._database.executemany(_TRAFFIC, traffic)
        self._totals["applied"] = max(self._totals["applied"], batch.applied)
        for order in batch.retries:
            self._keep_retry(order)

    def _keep_retry(self, order: RetryUrls) -> None:
        first, last = 0, _ALL_HOSTS
        if order.host is not None:
            row = self._database.row("SELECT id FROM hosts WHERE host = ?", (order.host,))
            if row is None:
                return  # there is no URL of it
            first = last = row[0]
        position = self._totals["next_position"] - 1
        values = (order.failed, order.given_up, first, last, position, first, 0)
        self._database.execute(_RETRY, values)

    def _key(self, entry: Entry) -> tuple[int, int, int]:
        return self._ids[entry.host], entry.priority, entry.seq

    def _next_seq(self) -> int:
        seq = self._totals["next_seq"]
        self._totals["next_seq"] = seq + 1
        return seq
