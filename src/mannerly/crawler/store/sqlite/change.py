"""The changes that a batch makes to the tables, inside the transaction that its caller opened.

The order is part of the contract: what leaves the queue leaves first, so that its room is free;
then URLs arrive.

    leave     only an entry that is still queued can be recorded or dropped. A late or repeated
              record changes nothing, so a batch whose commit failed can be offered again
    arrive    only a URL that is in none of the tables gets a number and a row; a request that
              carries something is known by its identity, and comes before links
    send      every link to another shard is written down; whether it is new is for that shard

Nothing here begins, commits or rolls back. The module is long because all that one transaction
changes is in one place.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import apsw

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import (
    EXTRACT_FAILED,
    Candidate,
    Entry,
    PageRecord,
    RobotsRecord,
    is_failed,
    is_given_up,
)
from mannerly.crawler.payload import encode as encode_payload
from mannerly.crawler.store.base import Batch, Committed, StoreError, by_shard, requests_first
from mannerly.database.sqlite import repair_advice

from .bring_back import keep_order
from .inbox import encode_links
from .reader import checked_entries
from .schema import ENTRY, FAILED, HOST, PAGE, TOTALS, insert, update

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mannerly.crawler.model import HostRecord, PageItems
    from mannerly.database.sqlite import Database, Row

    from .elements import ElementsWriter

_TAKE = "DELETE FROM queue WHERE host = ? AND priority = ? AND seq = ? RETURNING seq"
_PAGE = insert("pages", "position", "seq", "host", "kind", "hops", "round", "elements", *PAGE)
_SKIP = insert("skipped", "seq", "url", "reason", "depth", "parent", "hops", "kind")
_GIVE_UP = insert("given_up", *ENTRY, "reason")
_QUEUE = insert("queue", *ENTRY)
_WAIT = insert("waiting", *ENTRY)
_SEND = insert("outbox", "shard", "count", "links")
_FORGET = "DELETE FROM outbox WHERE id = ? RETURNING count"
_ARRIVE = insert("arrivals", "seq", "url", "host", "priority")
_HOST_COUNTS = "UPDATE hosts SET ready = ready + ?, given_up = given_up + ? WHERE id = ?"
_HOST = update("hosts", *HOST, where="id", more="ready = ready + ?, given_up = given_up + ?")
_ROBOTS = insert("robots", *RobotsRecord._fields, verb="INSERT OR REPLACE")
_SESSION = insert("sessions", "name", "cookies", verb="INSERT OR REPLACE")
# Another error than that of the user's code stays.
_HANDLED_AGAIN = f"""
    UPDATE pages SET position = ?1,
        error = iif(error IS NULL OR error LIKE '{EXTRACT_FAILED}%', ?2, error)
    WHERE seq = ?3
"""  # noqa: S608
_TRAFFIC = """
    INSERT INTO traffic (interval, requests, refused) VALUES (?, ?, ?) ON CONFLICT DO UPDATE
    SET requests = requests + excluded.requests, refused = refused + excluded.refused
"""
_NEXT_WAITING = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind
    FROM waiting JOIN hosts ON hosts.id = waiting.host ORDER BY seq LIMIT ?
"""
_LISTED = """
    INSERT INTO listed (url, lastmod, round) VALUES (?1, ?2, ?3)
    ON CONFLICT (url) DO UPDATE SET
        lastmod_before = iif(round < ?3, lastmod, lastmod_before), lastmod = ?2, round = ?3
"""
_LASTMODS = """
    UPDATE hosts SET lastmod_right = lastmod_right + ?, lastmod_wrong = lastmod_wrong + ?
    WHERE id = ?
"""
_RECORDED = f"""
    SELECT seq, kind, {FAILED}, elements FROM pages
    WHERE seq IN (SELECT value FROM carray(?))
"""  # noqa: S608
_RECHECKED = update("pages", "kind", "hops", "round", "elements", *PAGE, where="seq")
_UNCHECKED = "UPDATE pages SET error = ? WHERE seq = ?"
_READ_TOTALS = f"SELECT {', '.join(TOTALS)} FROM totals"  # noqa: S608
_WRITE_TOTALS = update("totals", *TOTALS)

# Of a row of the queue, in the order of ENTRY.
_host_of = itemgetter(2)
_queue_order = itemgetter(2, 4, 0)  # host, priority, seq: the key of the table
_arrival = itemgetter(0, 1, 2, 4)
# What a page's row has of its record; by position, which takes a third of the time.
_page_values = itemgetter(*map(PageRecord._fields.index, PAGE))

_SEGMENT = """
    INSERT INTO segments (name, length) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET length = excluded.length
"""
_KEPT = """
    INSERT OR REPLACE INTO kept (seq, segment, start, length)
    VALUES (?, (SELECT number FROM segments WHERE name = ?), ?, ?)
"""
_PAYLOAD = insert("payloads", "seq", "takes_place", "payload")
_ITEMS = insert("items", "seq", "count", "items", "error", verb="INSERT OR REPLACE")

Recorded: TypeAlias = dict[int, tuple[int, int, int]]
"""By seq: the kind of an earlier record, whether it failed, and the number of its elements."""


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
    arrived: list[str]  # every new identity, whichever table it went to
    labelled: list[str]  # the URLs among them that have a label now
    has_payloads: bool = False


class Change:
    """One transaction's worth of changes. `finish` writes the totals; call it last."""

    def __init__(
        self, database: Database, ids: HostIds, elements: ElementsWriter, *, frontier_limit: int
    ) -> None:
        self.database = database
        self.ids = ids
        self._write_elements = elements.write
        self._limit = frontier_limit
        row = database.execute(_READ_TOTALS).fetchone()
        self.totals: dict[str, int] = dict(zip(TOTALS, row or (), strict=True))
        self._ready: defaultdict[int, int] = defaultdict(int)  # changes of hosts' queues
        self.given_up: defaultdict[int, int] = defaultdict(int)
        self._records: list[HostRecord] = []
        ids.given = 0

    def apply(
        self,
        batch: Batch,
        fresh: Callable[[set[str]], set[str]],
        labelled: Callable[[list[str]], set[str]],
    ) -> Applied:
        """Apply the whole batch.

        `fresh` tells which identities are in none of the tables, `labelled` which URLs have a
        label.
        """
        self._leave(batch)
        candidates = requests_first(batch.found)
        if candidates and candidates[0].payload is not None:
            applied = self._arrive_with_payloads(candidates, fresh, labelled)
        else:
            applied = self._arrive(candidates, fresh)
        self._send(batch.outgoing)
        self._keep(batch)
        if batch.segments or batch.items or batch.handled_again:
            self._keep_answers(batch)
        return applied

    def admit(self, room: int) -> list[Entry]:
        """Move the oldest of the waiting room into the queue, as far as the limit allows."""
        room = min(room, self._limit - self.totals["ready"])
        rows = self.database.execute(_NEXT_WAITING, (max(room, 0),)).fetchall()
        entries = checked_entries(self.database, rows)
        if entries:
            self._enqueue(self._rows(entries))
            self.database.execute("DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq,))
            self.totals["waiting"] -= len(entries)
        return entries

    def clear_suspects(self, numbers: Iterable[int]) -> None:
        """Forget how often these pages were being parsed when their owner died."""
        rows = [(number,) for number in numbers]
        self.database.executemany("DELETE FROM suspects WHERE seq = ?", rows)

    def forget_outgoing(self, numbers: Iterable[int]) -> int:
        """Remove batches of links that were handed over; return how many links that were."""
        gone = self.database.executemany(_FORGET, [(number,) for number in numbers])
        links: int = sum(count for (count,) in gone)
        self.totals["outgoing"] -= links
        return links

    def finish(self) -> None:
        """Write what was counted along the way."""
        ready, given_up = self._ready, self.given_up
        # Nearly every host has both a new record and new counts: one statement for both.
        records: list[Row] = []
        for record in self._records:
            host = self.ids[record.host]
            records.append((*record[1:], ready.pop(host, 0), given_up.pop(host, 0), host))
        self.database.executemany(_HOST, records)
        self.totals["hosts"] += self.ids.given
        changed = [(ready[host], given_up[host], host) for host in ready.keys() | given_up.keys()]
        self.database.executemany(_HOST_COUNTS, changed)
        if min(self.totals.values()) < 0:
            wrong = next(name for name, value in self.totals.items() if value < 0)
            raise StoreError(
                f"{self.database.path} is damaged (its counter of {wrong} is wrong): "
                f"{repair_advice(self.database.path)}"
            )
        self.database.execute(_WRITE_TOTALS, tuple(self.totals.values()))

    def _leave(self, batch: Batch) -> None:
        pages, dropped = batch.pages, batch.dropped
        if not pages and not dropped:
            return
        ids = self.ids
        keys = [(ids[entry[2]], entry[4], entry[0]) for entry, _ in chain(pages, dropped)]
        taken = {seq for (seq,) in self.database.executemany(_TAKE, keys)}
        known = self._recorded(taken) if self.totals["rechecks"] else {}
        numbers = self._elements(batch, taken, known)
        records: list[Row] = []
        again: list[Row] = []
        left: list[int] = []  # the host of each entry
        others = lists = requisites = failed = 0
        position, current = self.totals["next_position"], self.totals["round"]
        for (entry, record), (host, _, seq) in zip(pages, keys, strict=False):
            if seq in taken:
                taken.remove(seq)
                left.append(host)
                kind = entry.kind
                values = (kind, entry.hops, current, numbers.get(seq, 0), *_page_values(record))
                if seq in known:
                    again.append((*values, seq))
                else:
                    records.append((position + len(records), seq, host, *values))
                its_kind = KINDS[kind]
                if not its_kind.is_page:
                    others += 1
                    lists += its_kind.is_listing
                    requisites += its_kind.is_requisite
                elif is_failed(record):
                    failed += 1
        self._left(left)
        skipped, given_up = self._dropped(dropped, taken, known)
        self.database.executemany(_PAGE, records)
        self.database.executemany(_RECHECKED, again)
        self.database.executemany(_SKIP, skipped)
        self.database.executemany(_GIVE_UP, given_up)
        self.add(
            next_position=len(records),
            fetched=len(records) + len(again) - others - failed,
            failed=failed,
            lists=lists,
            requisites=requisites,
            skipped=len(skipped),
            given_up=len(given_up),
        )
        for row in again:
            self._uncount(*known[row[-1]])

    def _dropped(
        self, dropped: list[tuple[Entry, str]], taken: set[int], known: Recorded
    ) -> tuple[list[Row], list[Row]]:
        """Return the rows of entries that are skipped, and of those that are given up."""
        skipped: list[Row] = []
        given_up: list[Row] = []
        left: list[int] = []
        for entry, reason in dropped:
            seq = entry.seq
            if seq in taken:
                taken.remove(seq)
                host = self.ids[entry.host]
                left.append(host)
                if seq in known:  # its record stays, with the reason
                    self.database.execute(_UNCHECKED, (reason, seq))
                    self.totals["rechecks"] -= 1
                elif is_given_up(reason):
                    given_up.append((*self._row(entry, host), reason))
                    self.given_up[host] += 1
                else:
                    _, url, _, depth, _, parent, hops, kind, _ = entry
                    skipped.append((seq, url, reason, depth, parent, hops, kind))
        self._left(left)
        return skipped, given_up

    def _recorded(self, seqs: set[int]) -> Recorded:
        """Return those of these entries that have a record of an earlier crawl."""
        asked = (apsw.carray(array("q", seqs)),) if seqs else None
        rows = self.database.rows(_RECORDED, asked) if asked else []
        return {row[0]: row[1:] for row in rows}

    def _elements(self, batch: Batch, taken: set[int], known: Recorded) -> dict[int, int]:
        """Store the elements of pages; return the number of each, also of those that are kept."""
        kept = {seq: known[seq][2] for seq in batch.unchanged if seq in known}
        new = {seq: each for seq, each in batch.elements.items() if seq in taken}
        numbers = self._write_elements(self.database, self.totals["next_elements"], new)
        self.totals["next_elements"] += len(numbers)
        return kept | numbers

    def _uncount(self, kind: int, is_failed: int, _: int) -> None:
        """Count a record as replaced."""
        self.totals["rechecks"] -= 1
        if KINDS[kind].is_listing:
            self.totals["lists"] -= 1
        elif KINDS[kind].is_requisite:
            self.totals["requisites"] -= 1
        elif KINDS[kind].is_page:
            self.totals["failed" if is_failed else "fetched"] -= 1

    def _left(self, hosts: Collection[int]) -> None:
        """Count entries as gone from the queues of these hosts."""
        for host, count in Counter(hosts).items():
            self._ready[host] -= count
        self.totals["ready"] -= len(hosts)

    def add(self, **counts: int) -> None:
        """Add to the totals."""
        for name, count in counts.items():
            self.totals[name] += count

    def _arrive(
        self, candidates: list[Candidate], fresh: Callable[[set[str]], set[str]]
    ) -> Applied:
        new = fresh({candidate[0] for candidate in candidates})
        seq = self.totals["next_seq"]
        entries: list[Entry] = []
        for candidate in candidates:
            if candidate[0] in new:  # most are not
                new.remove(candidate[0])
                entries.append(Entry(seq, *candidate[:-1]))  # all but a payload are the same fields
                seq += 1
        self.totals["next_seq"] = seq
        rows = self._rows(entries)
        self.database.executemany(_ARRIVE, map(_arrival, rows))
        return Applied(self._place(entries, rows), [entry.url for entry in entries], [])

    def _arrive_with_payloads(
        self,
        candidates: list[Candidate],
        fresh: Callable[[set[str]], set[str]],
        labelled: Callable[[list[str]], set[str]],
    ) -> Applied:
        """Take in requests with a payload by their identity, and then the links."""
        carried = [(each, each.payload) for each in candidates if each.payload is not None]
        names = [payload.identity(each.url) for each, payload in carried]
        new = fresh({*names, *(each.url for each in candidates[len(carried) :])})
        known = [each.url for each, payload in carried if payload.takes_place]
        with_label = labelled([url for url in known if url not in new])
        arrivals: list[tuple[int, str, int, int]] = []
        entries: list[Entry] = []
        payloads: list[Row] = []
        repeated = 0
        labels: list[str] = []
        for name, (candidate, payload) in zip(names, carried, strict=True):
            url, host, depth, priority, parent, hops, kind, _ = candidate
            if url in with_label if payload.takes_place else name not in new:
                repeated += not KINDS[kind].is_requisite
                continue
            new.discard(name)
            if payload.takes_place:
                with_label.add(url)
                labels.append(url)
            seq = self.totals["next_seq"]
            self.totals["next_seq"] = seq + 1
            arrivals.append((seq, name, self.ids[host], priority))
            entries.append(Entry(seq, url, host, depth, priority, parent, hops, kind))
            payloads.append((seq, payload.takes_place, encode_payload(payload)))
        self.database.executemany(_ARRIVE, arrivals)
        self.database.executemany(_PAYLOAD, payloads)
        placed = self.place(entries)
        links = self._arrive(candidates[len(carried) :], new.intersection)
        committed = Committed(
            placed.new + links.committed.new, placed.waiting + links.committed.waiting, repeated
        )
        arrived = [row[1] for row in arrivals] + links.arrived
        return Applied(committed, arrived, labels, has_payloads=True)

    def place(self, entries: list[Entry]) -> Committed:
        """Queue entries, as far as there is room; let the others wait."""
        return self._place(entries, self._rows(entries))

    def _place(self, entries: list[Entry], rows: list[Row]) -> Committed:
        room = len(entries)
        if self.totals["waiting"] or self.totals["ready"] + room > self._limit:
            # The waiting room is left in the order of arrival.
            room = 0 if self.totals["waiting"] else max(self._limit - self.totals["ready"], 0)
        self._enqueue(rows[:room])
        self.database.executemany(_WAIT, rows[room:])
        self.totals["waiting"] += len(rows[room:])
        return Committed(entries[:room], len(rows[room:]))

    def _send(self, outgoing: list[tuple[int, Candidate]]) -> None:
        rows = [
            (shard, *links)
            for shard, candidates in by_shard(outgoing).items()
            for links in encode_links(candidates)
        ]
        self.database.executemany(_SEND, rows)
        self.totals["outgoing"] += len(outgoing)

    def _enqueue(self, rows: list[Row]) -> None:
        for host, count in Counter(map(_host_of, rows)).items():
            self._ready[host] += count
        rows.sort(key=_queue_order)
        self.database.executemany(_QUEUE, rows)
        self.totals["ready"] += len(rows)

    def _rows(self, entries: list[Entry]) -> list[Row]:
        ids = self.ids
        return [self._row(entry, ids[entry.host]) for entry in entries]

    def _row(self, entry: Entry, host: int) -> Row:
        """Return the columns `ENTRY`, with the number of the host."""
        return (*entry[:2], host, *entry[3:8])

    def _keep(self, batch: Batch) -> None:
        self._records = batch.hosts
        robots = batch.robots
        self.database.executemany(_ROBOTS, [each for each in robots.values() if each is not None])
        forgotten = [(origin,) for origin, each in robots.items() if each is None]
        self.database.executemany("DELETE FROM robots WHERE origin = ?", forgotten)
        if batch.sessions:
            self._keep_sessions(batch.sessions)
        traffic = [(interval, *counts) for interval, counts in batch.traffic.items()]
        self.database.executemany(_TRAFFIC, traffic)
        self.totals["applied"] = max(self.totals["applied"], batch.applied)
        self._keep_lists(batch)
        for order in batch.retries:
            keep_order(self, order)

    def _keep_sessions(self, sessions: dict[str, str]) -> None:
        kept = [pair for pair in sessions.items() if pair[1]]
        gone = [(name,) for name, cookies in sessions.items() if not cookies]
        self.database.executemany(_SESSION, kept)
        self.database.executemany("DELETE FROM sessions WHERE name = ?", gone)

    def _keep_lists(self, batch: Batch) -> None:
        """Keep what sitemaps say about pages, and how often that was right."""
        current = self.totals["round"]
        self.database.executemany(_LISTED, [(*each, current) for each in batch.listed])
        votes = [(*counts, self.ids[host]) for host, counts in batch.lastmods.items()]
        self.database.executemany(_LASTMODS, votes)

    def _keep_answers(self, batch: Batch) -> None:
        """Write where answers are kept, and what pages were extracted to.

        A batch that is offered again has the same places, so writing them twice changes nothing.
        """
        self.database.executemany(_SEGMENT, batch.segments.items())
        self.database.executemany(_KEPT, [(seq, *place) for seq, place in batch.kept.items()])
        rows = [
            (seq, len(each.items), b"\n".join(each.items), each.error)
            for seq, each in batch.items.items()
        ]
        self.database.executemany(_ITEMS, rows)
        for seq, found in batch.handled_again.items():
            if found is None:
                self.database.execute("DELETE FROM kept WHERE seq = ?", (seq,))
            else:
                self._handle_again(seq, found)

    def _handle_again(self, seq: int, found: PageItems) -> None:
        """Give a recorded page other items, and a new position: readers go on from the last."""
        error = None if found.error is None else f"{EXTRACT_FAILED}: {found.error}"
        self.database.execute(_HANDLED_AGAIN, (self.totals["next_position"], error, seq))
        self.totals["next_position"] += 1
        lines = b"\n".join(found.items)
        self.database.execute(_ITEMS, (seq, len(found.items), lines, found.error))
