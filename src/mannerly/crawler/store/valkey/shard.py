"""One shard in a server, for its owner: `ShardStore`.

The owner is the only one who writes to its shard, apart from letters that arrive. So totals are
known here without asking, and what was read stays true until the next write. Every change is one
numbered script (`writes`). Records are written to a file first; the length that the script commits
makes them valid.

This module is long because `ShardStore` has many calls: most of them are a few lines here, and the
work is done by `writes`, `batches`, `outbox`, `returning` and the scripts.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.base import (
    BroughtBack,
    Committed,
    Earlier,
    ShardStore,
    StoreFull,
    by_shard,
    check_recipients,
)
from mannerly.crawler.store.fleet import CrawlGone, LeaseLost, StoreAway

from .batches import Sent, commit_payload, committed, flat, offered
from .fetched import FetchedUrls
from .hashes import pairs
from .host_codec import pack_host
from .outbox import post
from .packing import number_of, unpack_letter, unpack_waiting
from .reader import COUNTERS, KEPT, ValkeyReader
from .reminders import HeardReminders
from .returning import Returning
from .writes import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from mannerly.crawler.model import Candidate, Entry, HostRecord, RobotsRecord
    from mannerly.crawler.store.base import Batch, Counts, StoreError
    from mannerly.crawler.store.records.reader import LogReader
    from mannerly.crawler.store.records.writer import RecordWriter
    from mannerly.politeness.model import Instant

    from .ages import Ages
    from .client import Call, Command, Payload, ValkeyServer
    from .host_codec import Clocks
    from .keys import CrawlKeys
    from .mailbox import Mailbox
    from .notes import Note
    from .outbox import Outbox
    from .reminders import Reminders
    from .writes import Answer, Writes

LETTERS = 64  # that are read at once
FORESEEN = 1000  # origins whose robots.txt was looked for
_OUTGOING = 7  # its place among the counters
_ROUND, _APPLIED = 10, 11
_NOTHING = Committed([], 0)


def load_commands(base: str) -> list[Command]:
    """Return what reads everything that an owner begins with; `base` begins the shard's keys."""
    return [
        ("HMGET", base + "s", *COUNTERS),
        ("HLEN", base + "n"),
        ("HGETALL", base + "x"),
        ("SMEMBERS", base + "d"),
        ("HGETALL", base + "oc"),
        ("LLEN", base + "ut"),
    ]


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
        outbox: Outbox,
        mail: Mailbox,
        note: Note,
        keeps_urls: bool,
        reminders: Reminders,
        on_close: Callable[[ValkeyShard], None],
    ) -> None:
        own_clocks = partial(clocks, self.clock_ahead_s)
        ValkeyReader.__init__(self, server, keys.of_shard(number, ""), own_clocks, folders)
        self.number = number
        self._ages = ages
        self._clock_ahead_s = 0.0  # the clock of the shard, before our monotonic clock
        self.suspects: Mapping[int, int] = {}
        self.acknowledged: AbstractSet[int] = set()
        self._shards = shards
        self._limit = limit
        self._writes = writes
        self._writer = records
        self.outbox = outbox
        self._mail = mail
        self._on_close = on_close
        self._is_open = True
        self._is_read = False  # the records from before this claim
        self._sent: Sent | None = None
        # The totals, with the counters that they were made of: they are asked for at every turn.
        self._counts: tuple[list[int], int, Counts] | None = None
        self._late: dict[str, Any] = {}  # results of writes that were pending, by their name
        self._finish: Callable[[Answer], None] | None = None
        self._returning = Returning(self, records)
        self._foreseen: dict[str, bytes | None] = {}  # robots.txt that will be asked for
        self._fetched = FetchedUrls(server, self._base) if keeps_urls else None
        self._before: tuple[int, int] | None = None  # a round, and the last number before it
        self._reminders = reminders
        self.heard = HeardReminders(server, self._base)
        self._note = note
        if note.seq:  # it is counted by now
            note.write(0)

    def load(self, left: list[Any]) -> None:
        """Begin with what the last owner left: the answers to `load_commands`."""
        totals, hosts, suspects, done, cursors, unpacked = left
        self._writes.counters = [int(each or 0) for each in totals] + [hosts]
        self.suspects = {int(seq): int(times) for seq, times in pairs(suspects)}
        self.acknowledged = {int(seq) for seq in done}
        self.outbox.load(self._letter_cursors(pairs(cursors)))
        if self._fetched is not None:
            self._fetched.load(unpacked)

    # ------------------------------------------------------------------ what is known

    def counts(self) -> Counts:
        """Return exact totals."""
        counters, handed = self._writes.counters, self.outbox.handed
        if self._counts is None or self._counts[0] is not counters or self._counts[1] != handed:
            known = list(counters)
            known[_OUTGOING] = max(0, known[_OUTGOING] - handed)  # as `letters.lua` does
            self._counts = counters, handed, counts_of(known)
        return self._counts[2]

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

    def applied(self) -> int:
        """Return the number of the last control record that this shard has acted on."""
        return self._writes.counters[_APPLIED]

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

    def set_clock(self, clock_ms: int, at: Instant) -> None:
        """The clock of the shard shows so much at an instant."""
        self._clock_ahead_s = clock_ms / 1000.0 - at

    def clock_ms(self, at: Instant) -> int:
        """Return what the clock of the shard shows at an instant."""
        return int((at + self._clock_ahead_s) * 1000)

    def clock_ahead_s(self) -> float:
        """Return how far the clock of the shard is before our monotonic clock."""
        return self._clock_ahead_s

    def lose(self) -> None:
        """Write nothing more: the shard has another owner."""
        self._writes.is_lost = True

    def remember_hosts(self, records: Sequence[HostRecord]) -> None:
        """Take records that were not committed, of a shard that is lost."""
        ahead_s, clock_s = self._server.ahead_s, self._clock_ahead_s
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
        fetched, entries = self._fetched, list(batch.found)
        payload = commit_payload(batch, self.round, self._server.ahead_s, self._clock_ahead_s)
        self._reminders.note(self.number, zip(batch.hosts, payload["records"][1::2], strict=True))
        payload["keeps"] = fetched is not None
        if fetched is not None:
            payload |= fetched.payload()
        payload["limit"] = self._limit
        payload["heard"] = self.heard.payload()
        payload["letters"] = self.outbox.write(dict(by_shard(batch.outgoing)))
        payload["stamp"] = self.outbox.stamp
        if batch.pages or batch.dropped or batch.listed or batch.traffic:
            self._writer.add(batch, self.round)
        self._is_read = self._is_read and not batch.listed
        letters, saved = self.outbox.news()
        payload |= letters
        self._sent = Sent(whole)

        def finish(answer: Answer) -> None:
            saved()
            self._writer.committed()
            for origin in batch.robots:
                self._foreseen.pop(origin, None)
            self._forget(batch)
            self.heard.committed(payload["heard"])
            if fetched is not None:
                fetched.committed(payload, answer.unpacked)
            self._add_late("commit", committed(answer, entries))

        self._begin("commit", payload, finish)

    def _forget(self, batch: Batch) -> None:
        """Drop the notes about pages that have left the queue."""
        if self.suspects or self.acknowledged:
            left = {entry.seq for entry, _ in (*batch.pages, *batch.dropped)}
            self.suspects = {seq: n for seq, n in self.suspects.items() if seq not in left}
            self.acknowledged = self.acknowledged - left

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
            *(unpack_waiting(each[4:], number_of(each), self._base + "w") for each in waiting),
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
                is_failed_page = each.source == "f" and each.kind == "f"
                hosts[each.entry.host] = known + is_failed_page
                lost[each.entry.host] += each.kind == "P"
            new = [entries[at]._replace(attempts=0) for at in answer.placed]
            self._late["bring_back"] = BroughtBack(new, answer.waiting, hosts, lost)

        self._send("bring_back", {"limit": self._limit, **part.payload}, finish)
        back: BroughtBack = self._take_late("bring_back")
        return back

    # ------------------------------------------------------------------ links between shards

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; return how many were handed over."""
        if self._writes.is_pending:
            return 0  # its letters may not be committed
        return post(self.outbox, self._mail)

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a batch of links at a time until `limit` is reached."""
        self.settle()
        if not self.is_received and self._mail.has_any(self.number):
            self.begin_receive(self._server.ask(*self.inbox), limit)
            self.settle()
        return self.end_receive()

    @property
    def is_received(self) -> bool:
        """Return whether links were taken over that `end_receive` did not return yet."""
        return "receive" in self._late

    @property
    def inbox(self) -> Command:
        """Return the command that reads the first letters of the inbox."""
        return ("LRANGE", self._base + "i", 0, LETTERS - 1)

    def begin_receive(self, letters: list[bytes], limit: int) -> None:
        """Take over the first letters, if there are any: it is pending then."""
        key = self._base + "i"
        found: list[Candidate] = []
        cursors: dict[str, int] = {}
        read: list[str] = []
        for letter in letters:
            if read and len(found) >= limit:
                break
            stream, number, links = unpack_letter(letter, key)
            found += links
            cursors[stream] = number
            read.append(f"{stream} {number}")
        if len(read) == len(letters) < LETTERS:
            self._mail.seen(self.number, 0)
        if not read:
            return
        hosts: dict[str, int] = {}
        payload: Payload = {
            "limit": self._limit,
            "found": offered(found, hosts),
            "hosts": list(hosts),
            "streams": list(cursors),
            "numbers": list(cursors.values()),
            "letters": read,
            "links": len(found),
        }
        self._begin(
            "receive",
            payload,
            lambda answer: self._add_late("receive", committed(answer, found)),
        )

    def end_receive(self) -> Committed:
        """Return what came of the letters that were taken over."""
        return self._take_late("receive") or _NOTHING

    def save_cursors(self) -> None:
        """Keep what is known of letters."""
        self.settle()
        self.begin_save()
        self.settle()

    def begin_save(self) -> None:
        """Keep what is known of letters, if there is news: it is pending then."""
        if self.outbox.has_news:
            payload, saved = self.outbox.news()
            self._begin("cursor", payload, lambda _: saved())

    def rest_call(self, orders: int) -> Call:
        """Return the call that notes that nothing is left to do, if all letters were read.

        `orders` is the last control record there is. The answer is 1 if that holds.
        """
        return self._writes.unnumbered("rest", {"orders": orders})

    # ------------------------------------------------------------------ notes

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""
        found = self._earlier().earlier(seq)
        return Earlier(None) if found is None and self._is_recorded_elsewhere(seq) else found

    def _is_recorded_elsewhere(self, seq: int) -> bool:
        """Return whether a URL from before this recrawl may have a record that is not here."""
        if self._before is None or self._before[0] != self.round:
            before = self._server.ask("HGET", self._base + "s", "before")
            self._before = self.round, int(before or 0)
        return seq <= self._before[1]

    def _earlier(self) -> LogReader:
        """Return records from before this claim, which it does not change while they are queued."""
        if not self._is_read:
            self.records()
            self._is_read = True
        self._records.round = self.round
        return self._records

    def votes(self, host: str) -> tuple[int, int]:
        """Return how often the lastmod of a host's sitemap was right, and how often wrong."""
        right, wrong = self._server.ask("HMGET", self._base + "v", f"{host} right", f"{host} wrong")
        return int(right or 0), int(wrong or 0)

    def parsing(self, seq: int) -> None:
        """Note, without a commit, that this page is about to be parsed; 0: none is any more."""
        self._note.write(seq)

    def forget_robots(self, origin: str) -> None:
        """Have an origin's robots.txt fetched again."""
        self._foreseen.pop(origin, None)
        self._writes.run("forget", {"origin": origin})

    def close(self) -> None:
        """Release the shard; closing twice is harmless."""
        if self._is_open:
            self._is_open = False
            self._writer.close()
            self._note.close()
            ValkeyReader.close(self)
            self._on_close(self)

    def release(self) -> None:
        """Let the next owner in, after what is known of letters was kept."""
        with suppress(StoreAway, StoreFull, LeaseLost, CrawlGone):
            self.save_cursors()
        with suppress(StoreAway, LeaseLost, CrawlGone):
            now = self._server.mono()
            last = {"beat": self._ages.stamp(now), "clock": self.clock_ms(now)}
            self._writes.run("release", last)

    # ------------------------------------------------------------------ writes

    def _send(self, name: str, payload: Payload, finish: Callable[[Answer], None]) -> None:
        """Write something; what came of it is told to `finish`, now or when it is settled."""
        self._begin(name, payload, finish)
        self.settle()

    def _begin(self, name: str, payload: Payload, finish: Callable[[Answer], None]) -> None:
        self._writes.begin(name, payload, self._add_lengths)
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

    def settled(self, answer: bytes | StoreError) -> None:
        """Take the answer to `pending_call`; errors are raised."""
        self._finished(self._writes.settled(answer))

    def _finished(self, answer: Answer) -> None:
        self._mail.seen(self.number, answer.unread)
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
        self._late[name] = Committed(known.new + committed.new, known.waiting + committed.waiting)

    def _take_late(self, name: str) -> Any:
        return self._late.pop(name, None)
