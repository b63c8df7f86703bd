"""One shard in a server, for its owner: `ShardStore`.

The owner is the only one who writes to its shard, but for links that the commits of other shards
add to its queue. The answer to each write of the owner tells it of those (`arrived`), and its reads
leave out what it does not know of yet: so totals and queues are as of its last write, without
asking.

Every change is one numbered script (`writes`). Records are written to a file first; the length that
the script commits makes them valid.

This module is long because `ShardStore` has many calls: most of them are a few lines here, and the
work is done by `writes`, `batches`, `returning` and the scripts.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.store.base import (
    BroughtBack,
    Committed,
    Earlier,
    ShardStore,
    check_recipients,
    requests_first,
)
from mannerly.crawler.store.fleet import CrawlGone, LeaseLost, StoreAway
from mannerly.database.client import pairs

from .arrived import ArrivedUrls
from .batches import LINK_VALUES, Sent, commit_payload, committed, flat
from .fetched import FetchedUrls
from .host_codec import pack_host
from .packing import number_of, unpack_waiting
from .reader import COUNTERS, KEPT, ValkeyReader
from .reminders import HeardReminders
from .returning import Returning
from .writes import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from mannerly.crawler.model import Entry, HostRecord, RobotsRecord
    from mannerly.crawler.store.base import Batch, Counts, StoreError
    from mannerly.crawler.store.records.reader import LogReader
    from mannerly.crawler.store.records.writer import RecordWriter
    from mannerly.database.ages import Ages
    from mannerly.database.client import Call, Command, Payload
    from mannerly.politeness.model import Instant

    from .client import ValkeyServer
    from .host_codec import Clocks
    from .keys import CrawlKeys
    from .notes import Note
    from .reminders import Reminders
    from .writes import Answer, Writes

FORESEEN = 1000  # origins whose robots.txt was looked for
_ROUND, _SEQ = 10, 12  # their places among the counters
_NUMBER = 4  # characters at the beginning of an entry of a list
_NOTHING = Committed([], 0)


def load_commands(base: str) -> list[Command]:
    """Return what reads everything that an owner begins with; `base` begins the shard's keys."""
    return [
        ("HMGET", base + "s", *COUNTERS),
        ("HLEN", base + "n"),
        ("HGETALL", base + "x"),
        ("SMEMBERS", base + "d"),
        ("LLEN", base + "ut"),
        ("HLEN", base + "p"),
        ("SMEMBERS", base + "st"),
    ]


class ShardClock:
    """The clock of a shard: it goes on from owner to owner, whatever clocks of machines show."""

    def __init__(self, ages: Ages) -> None:
        self._ages = ages
        self._ahead_s = 0.0

    def set(self, shown_ms: int, at: Instant) -> None:
        """It shows so much at an instant."""
        self._ahead_s = shown_ms / 1000.0 - at

    def ahead_s(self) -> float:
        """Return how far it is before our monotonic clock."""
        return self._ahead_s

    def mark(self, at: Instant) -> Payload:
        """Return what it shows at an instant, with the stamp of that."""
        return {"beat": self._ages.stamp(at), "clock": int((at + self._ahead_s) * 1000)}


class EarlierPages:
    """The records of an earlier crawl, which an owner does not change while they are queued."""

    def __init__(self, read: Callable[[], LogReader], last_before: Callable[[], int]) -> None:
        self._read = read
        self._last_before = last_before
        self._log: LogReader | None = None  # as it was read in this claim
        self._before: tuple[int, int] | None = None  # a round, and the last number before it

    def forget(self) -> None:
        """Read them anew when they are asked for."""
        self._log = None

    def of(self, seq: int, round_number: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""
        if self._log is None:
            self._log = self._read()
        self._log.round = round_number
        found = self._log.earlier(seq)
        if found is None and self._is_recorded_elsewhere(seq, round_number):
            return Earlier(None)
        return found

    def _is_recorded_elsewhere(self, seq: int, round_number: int) -> bool:
        """Return whether a URL from before this recrawl may have a record that is not here."""
        if self._before is None or self._before[0] != round_number:
            self._before = round_number, self._last_before()
        return seq <= self._before[1]


class ValkeyShard(ValkeyReader, ShardStore):
    """`ShardStore` of a shard in a server."""

    read_ahead = 250_000

    def __init__(
        self,
        number: int,
        shards: int,
        limit: int,
        *,
        server: ValkeyServer,
        keys: CrawlKeys,
        clocks: Callable[[Callable[[], float]], Clocks],
        folders: Sequence[Path],
        writes: Writes,
        ages: Ages,
        records: RecordWriter,
        note: Note,
        keeps_urls: bool,
        reminders: Reminders,
        on_links: Callable[[Sequence[int]], None],
        on_close: Callable[[ValkeyShard], None],
    ) -> None:
        self.clock = ShardClock(ages)
        own_clocks = partial(clocks, self.clock.ahead_s)
        ValkeyReader.__init__(self, server, keys.of_shard(number, ""), own_clocks, folders)
        self.number = number
        self.suspects: Mapping[int, int] = {}
        self.acknowledged: AbstractSet[int] = set()
        self.has_payloads = False
        self.unanswered: AbstractSet[int] = set()
        self._keys = keys
        self._shards = shards
        self._limit = limit
        self._writes = writes
        self._writer = records
        self._on_links = on_links
        self._on_close = on_close
        self._is_open = True
        self._earlier = EarlierPages(self.records, self._last_before_round)
        self._sent: Sent | None = None
        # The totals, with the counters that they were made of: they are asked for at every turn.
        self._counts: tuple[list[int], Counts] | None = None
        self.arrived = ArrivedUrls()
        self._late: dict[str, Any] = {}  # results of writes that were pending, by their name
        self._finish: Callable[[Answer], None] | None = None
        self._returning = Returning(self, records)
        self._foreseen: dict[str, bytes | None] = {}  # robots.txt that will be asked for
        self._fetched = FetchedUrls(server, self._base) if keeps_urls else None
        self._reminders = reminders
        self.heard = HeardReminders(server, self._base)
        self._note = note
        if note.seq:  # it is counted by now
            note.write(0)

    def load(self, left: list[Any]) -> None:
        """Begin with what the last owner left: the answers to `load_commands`."""
        totals, hosts, suspects, done, unpacked, payloads, sent = left
        self._writes.counters = [int(each or 0) for each in totals] + [hosts]
        self.suspects = {int(seq): int(times) for seq, times in pairs(suspects)}
        self.acknowledged = {int(seq) for seq in done}
        self.has_payloads = payloads > 0
        self.unanswered = {int(seq) for seq in sent}
        if self._fetched is not None:
            self._fetched.load(unpacked)

    # ------------------------------------------------------------------ what is known

    def counts(self) -> Counts:
        """Return exact totals."""
        counters = self._writes.counters
        if self._counts is None or self._counts[0] is not counters:
            self._counts = counters, counts_of(counters)
        return self._counts[1]

    @property
    def _known_seq(self) -> int:
        return self.arrived.last_known

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """Return a host's next entries in order, without those that `pass_links` will return."""
        entries: list[Entry] = []
        while (wanted := limit - len(entries)) > 0:
            piece = super().queued(host, after=after, limit=wanted)
            entries += [entry for entry in piece if entry.seq not in self.arrived]
            if len(piece) < wanted:
                break
            after = piece[-1].priority, piece[-1].seq
        return entries

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host with queued URLs; an empty queue is known here without asking."""
        counts = self.counts()
        return super().queued_hosts() if counts.queued > counts.waiting else iter(())

    def host(self, host: str) -> HostRecord | None:
        """Return what is kept of a host; the robots.txt of its origins come with it."""
        origins = (f"https://{host}", f"http://{host}")
        record, robots = self._host(host, *origins)
        if len(self._foreseen) >= FORESEEN:
            self._foreseen.clear()
        self._foreseen.update(zip(origins, robots, strict=True))
        return record

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt kept for an origin: only the owner changes it."""
        if origin not in self._foreseen:
            return super().robots(origin)
        data = self._foreseen[origin]
        if data is not None:  # it may be large, and is in memory from now on
            del self._foreseen[origin]
        return self._robots(data)

    @property
    def round(self) -> int:
        """Return the number of the recrawl; 0 for the first crawl."""
        return self._writes.counters[_ROUND]

    @property
    def token(self) -> str:
        """Return the token of this claim."""
        return self._writes.token

    @property
    def written(self) -> tuple[int, int]:
        """Return how many writes were made, and how many of them came too late."""
        return self._writes.number, self._writes.refused

    @property
    def answered_writes(self) -> int:
        """Return the number of the last write that the server has answered."""
        return self._writes.number - self._writes.is_pending

    @property
    def is_lost(self) -> bool:
        """Return whether the shard is known to have another owner."""
        return self._writes.is_lost

    def lose(self) -> None:
        """Write nothing more: the shard has another owner."""
        self._writes.is_lost = True

    def remember_hosts(self, records: Sequence[HostRecord]) -> None:
        """Take records that were not committed, of a shard that is lost."""
        ahead_s, clock_s = self._server.ahead_s, self.clock.ahead_s()
        packed = [(each, pack_host(each, ahead_s, clock_s)) for each in records]
        self._reminders.note(self.number, packed)
        self._reminders.owe(self.number, packed)
        if not self._is_open:  # else when it is closed
            with suppress(StoreAway, CrawlGone):  # else at the next renewal
                self._reminders.tell(self.number)

    def reminders(self) -> list[HostRecord]:
        """Return records of hosts with waits that earlier owners have told since they lost it."""
        return self.heard.read(self._clocks())

    # ------------------------------------------------------------------ batches

    def commit(self, batch: Batch) -> Committed:
        """Apply everything that a batch brought."""
        self.settle()
        self.begin_commit(batch)
        self.settle()
        return self.end_commit()

    def begin_commit(self, batch: Batch) -> None:
        """Make a commit pending; nothing may be pending before."""
        check_recipients(batch, self.number, self._shards)
        rest = batch
        if self._sent is not None and self._sent.batch is batch:
            rest = self._sent.rest()
        self._begin_commit(rest, batch)

    def end_commit(self) -> Committed:
        """Return what came of a commit that is settled."""
        self._sent = None
        return self._take_late("commit") or _NOTHING

    def _begin_commit(self, batch: Batch, whole: Batch) -> None:
        fetched, entries = self._fetched, requests_first(list(batch.found))
        batch = replace(batch, found=entries)
        payload = commit_payload(batch, self.round, self._server.ahead_s, self.clock.ahead_s())
        self._reminders.note(self.number, zip(batch.hosts, payload["records"][1::2], strict=True))
        payload["keeps"] = fetched is not None
        if fetched is not None:
            payload |= fetched.payload()
        payload["limit"] = self._limit
        payload["heard"] = self.heard.payload()
        if batch.pages or batch.dropped or batch.listed or batch.traffic:
            self._writer.add(batch, self.round)
        if batch.listed:
            self._earlier.forget()
        self._sent = Sent(whole)

        receivers = payload["links"][::LINK_VALUES]

        def finish(answer: Answer) -> None:
            self._on_links(receivers)
            self._writer.committed()
            for origin in batch.robots:
                self._foreseen.pop(origin, None)
            self._forget(batch)
            self.heard.committed(payload["heard"])
            if fetched is not None:
                fetched.committed(payload, answer.unpacked)
            self.has_payloads = self.has_payloads or bool(payload["carried"])
            self._add_late("commit", committed(answer, entries))

        self._begin("commit", payload, finish, receivers)

    def _forget(self, batch: Batch) -> None:
        """Drop the notes about pages that have left the queue."""
        if self.suspects or self.acknowledged or self.unanswered:
            left = {entry.seq for entry, _ in (*batch.pages, *batch.dropped)}
            self.suspects = {seq: n for seq, n in self.suspects.items() if seq not in left}
            self.acknowledged = self.acknowledged - left
            self.unanswered = self.unanswered - left

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue, never past the limit."""
        self.settle()
        if (late := self._take_late("admit")) is not None:
            return list(late)
        counts = self.counts()
        room = min(room, self._limit - (counts.queued - counts.waiting), counts.waiting)
        if room <= 0:
            return []
        back, first = self._server.ask_all(
            [
                ("ZRANGE", self._base + "wz", 0, room - 1, "WITHSCORES"),
                ("LRANGE", self._base + "w", 0, room - 1),
            ]
        )
        returned = list(pairs(back))
        waiting = first[: room - len(returned)]
        entries = [
            *(unpack_waiting(data, int(float(at)), self._base + "wz") for data, at in returned),
            *(unpack_waiting(row[_NUMBER:], number_of(row), self._base + "w") for row in waiting),
        ]

        def finish(_: Answer) -> None:
            self._late["admit"] = entries

        self._send("admit", {"back": len(returned), "count": len(waiting)}, finish)
        return list(self._take_late("admit"))

    def bring_back(self, limit: int) -> BroughtBack:
        """Queue up to `limit` URLs again that `Batch.retries` asked for."""
        self.settle()
        late: BroughtBack | None = self._take_late("bring_back")
        if late is not None or not self.counts().retries:
            return late or BroughtBack([], 0, {})
        part = self._returning.next(limit, self._server, self._base)
        if part is None:
            return BroughtBack([], 0, {})
        entries = [each.entry for each in part.rows]

        def finish(answer: Answer) -> None:
            self._writer.committed()
            hosts: dict[str, int] = {}
            lost: Counter[str] = Counter()
            for each in part.rows:
                known = hosts.get(each.entry.host, 0)
                is_failed_page = each.source == "f" and each.letter == "f"
                hosts[each.entry.host] = known + is_failed_page
                lost[each.entry.host] += each.letter == "P"
            new = [entries[at]._replace(attempts=0) for at in answer.placed]
            self._late["bring_back"] = BroughtBack(new, answer.waiting, hosts, lost)

        self._send("bring_back", {"limit": self._limit, **part.payload}, finish)
        back: BroughtBack = self._take_late("bring_back")
        return back

    # ------------------------------------------------------------------ links between shards

    def pass_links(self, limit: int) -> Committed:
        """Take over what other shards have queued here."""
        self.settle()
        if self.arrived.is_due(self._server.mono()):
            self.asked(int(self._server.ask("HGET", self._keys.arrivals, self.number) or 0))
            self.settle()
        return self.arrived.take(limit)

    def asked(self, arrivals: int) -> None:
        """Learn how many URLs others have ever added: if that is news, a write is pending then."""
        if self.arrived.heard(arrivals, self._server.mono()):
            self._begin("take", {}, None)

    def rest_call(self, orders: int) -> Call:
        """Return the call that notes that nothing is left to do.

        `orders` is the last control record there is. The answer is 1 if that holds.
        """
        return self._writes.unnumbered("rest", {"orders": orders})

    # ------------------------------------------------------------------ notes

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""
        return self._earlier.of(seq, self.round)

    def _last_before_round(self) -> int:
        """Return the number of the last URL from before this recrawl."""
        return int(self._server.ask("HGET", self._base + "s", "before") or 0)

    def votes(self, host: str) -> tuple[int, int]:
        """Return how often the lastmod of a host's sitemap was right, and how often wrong."""
        right, wrong = self._server.ask("HMGET", self._base + "v", f"{host} right", f"{host} wrong")
        return int(right or 0), int(wrong or 0)

    def parsing(self, seq: int) -> None:
        """Note, without a commit, that this page is about to be parsed; 0: none is any more."""
        self._note.write(seq)

    def note_sent(self, seq: int, *, is_refused: bool = False) -> None:
        """Note, without a commit, that a request leaves now which is sent once, or was refused."""
        self._writes.run("sent", {"seq": seq, "is_refused": is_refused})
        if is_refused:
            self.unanswered = self.unanswered - {seq}

    def close(self) -> None:
        """Release the shard; closing twice is harmless."""
        if self._is_open:
            self._is_open = False
            self._writer.close()
            self._note.close()
            ValkeyReader.close(self)
            self._on_close(self)

    def release(self) -> None:
        """Let the next owner in."""
        with suppress(StoreAway, LeaseLost, CrawlGone):
            self._writes.run("release", self.clock.mark(self._server.mono()))

    # ------------------------------------------------------------------ writes

    def _send(self, name: str, payload: Payload, finish: Callable[[Answer], None]) -> None:
        """Write something; `finish` gets the answer, now or when it is settled."""
        self._begin(name, payload, finish)
        self.settle()

    def _begin(
        self,
        name: str,
        payload: Payload,
        finish: Callable[[Answer], None] | None,
        others: Sequence[int] = (),
    ) -> None:
        keys = [self._keys.shard(shard) for shard in others]
        self._writes.begin(name, payload, self._add_lengths, keys)
        self._finish = finish

    @property
    def is_pending(self) -> bool:
        """Return whether a write was begun whose answer did not come."""
        return self._writes.is_pending

    def settle(self) -> None:
        """Send what is pending, if anything is, and learn what came of it."""
        if self._writes.is_pending:
            self._finished(self._writes.settle())

    def pending_call(self) -> Call:
        """Return the call of what is pending; its answer goes to `settled`."""
        return self._writes.call()

    def settled(self, answer: list[bytes] | StoreError) -> None:
        """Take the answer to `pending_call`; errors are raised."""
        self._finished(self._writes.settled(answer))

    def _finished(self, answer: Answer) -> None:
        new = [
            unpack_waiting(data[_NUMBER:], number_of(data), self._base + "i")
            for data in answer.arrived
        ]
        self.arrived.learn(new, answer.arrivals, answer.counts[_SEQ], self._server.mono())
        self.has_payloads = self.has_payloads or any(KINDS[entry.kind].carries for entry in new)
        self.heard.seen(answer.reminders)
        finish, self._finish = self._finish, None
        if finish is not None:
            finish(answer)

    def _add_lengths(self, payload: Payload) -> None:
        """Write the records to their file; the script commits its length."""
        if "applied" in payload or "back" in payload:
            grown = self._writer.flush()
            kept = "" if self._fetched is None else f" {KEPT}"
            payload["lg"] = flat(
                (name, f"{each.length} {each.pages}{kept}") for name, each in grown.items()
            )

    def _add_late(self, name: str, committed: Committed) -> None:
        known: Committed = self._late.get(name, _NOTHING)
        self._late[name] = Committed(
            known.new + committed.new,
            known.waiting + committed.waiting,
            known.repeated + committed.repeated,
            max(known.lagging, committed.lagging),
        )

    def _take_late(self, name: str) -> Any:
        return self._late.pop(name, None)
