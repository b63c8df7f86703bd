"""Shards in memory: for crawls in virtual time, for tests, and to measure the cost of durability.

Plain dictionaries, one per set of URLs. A host's queue is put in order when it is read: most hosts
of a large crawl have one URL, and their queue is never read. `memory_crawl` makes whole crawls of
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from mannerly.crawler.control import Recrawl
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import (
    Candidate,
    Entry,
    PageRecord,
    Skipped,
    Traffic,
    is_failed,
    is_given_up,
)
from mannerly.crawler.store.base import (
    Batch,
    BroughtBack,
    Committed,
    ShardStore,
    by_shard,
    check_recipients,
    requests_first,
)
from mannerly.crawler.store.lastmod import said_again, spares_request, unchanged

from .memory_reader import Asked, MemoryReader, ShardData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from mannerly.crawler.control import RetryUrls
    from mannerly.crawler.payload import Payload


Inboxes = dict[int, list[list[Candidate]]]


def _kept(sessions: dict[str, str]) -> dict[str, str]:
    return {name: cookies for name, cookies in sessions.items() if cookies}


class MemoryStore(MemoryReader, ShardStore):
    """`ShardStore` in memory. The stores of one crawl share their inboxes: see `group`."""

    def __init__(
        self,
        shard: int = 0,
        *,
        frontier_limit: int,
        inboxes: Inboxes | None = None,
        data: ShardData | None = None,
    ) -> None:
        super().__init__(ShardData() if data is None else data)
        self.shard = shard
        self.handed_over = 0  # links to other shards
        self._inboxes = {shard: []} if inboxes is None else inboxes
        self._frontier_limit = frontier_limit
        self._data.owner = self
        self.suspects: Mapping[int, int] = self._data.suspects
        self.acknowledged: AbstractSet[int] = self._data.acknowledged
        self.unanswered: AbstractSet[int] = frozenset(self._data.sent)
        self._count_death()

    @classmethod
    def group(cls, shards: int, *, frontier_limit: int) -> list[Self]:
        """Return the stores of a crawl of several shards, in one process."""
        inboxes: Inboxes = {shard: [] for shard in range(shards)}
        return [cls(shard, frontier_limit=frontier_limit, inboxes=inboxes) for shard in inboxes]

    def commit(self, batch: Batch) -> Committed:
        """Apply everything that a batch brought."""
        data = self._data
        check_recipients(batch, self.shard, len(self._inboxes))
        for entry, record in batch.pages:
            if self._take(entry):
                self._record(entry, record, batch)
        for entry, reason in batch.dropped:
            if self._take(entry):
                skipped = Skipped(entry.url, reason, entry.depth, entry.parent)
                if entry.seq in data.recorded:  # its record stays, with the reason
                    self._replace(entry, data.recorded[entry.seq]._replace(error=reason))
                elif is_given_up(reason):
                    data.given_up[entry.seq] = entry, skipped
                else:
                    data.skipped[entry.seq] = skipped
                    data.entries[entry.seq] = entry
        committed = self._arrive(batch.found)
        data.outbox += by_shard(batch.outgoing).items()
        data.hosts.update([(record.host, record) for record in batch.hosts])
        data.robots.update(batch.robots)
        data.sessions = _kept(data.sessions | batch.sessions)
        for interval, (requests, refused) in batch.traffic.items():
            known = data.traffic.get(interval, Traffic(interval, 0, 0))
            data.traffic[interval] = Traffic(
                interval, known.requests + requests, known.refused + refused
            )
        data.applied = max(data.applied, batch.applied)
        self._keep_lists(batch)
        data.kept.update(batch.kept)
        data.items.update(batch.items)
        self._handle_again(batch)
        data.segments.update(batch.segments)
        for order in batch.retries:
            if isinstance(order, Recrawl):
                self._begin_round(order.round)
            elif order.host is None or order.host in data.hosts:
                data.retries.append(Asked(self._asked_for(order)))
        return committed

    def _handle_again(self, batch: Batch) -> None:
        """Give recorded pages other items, or forget that their answer is kept."""
        data = self._data
        for seq, found in batch.handled_again.items():
            if found is None:
                data.kept.pop(seq, None)
                continue
            data.items[seq] = found
            data.positions[seq] = data.next_position
            data.next_position += 1

    def _record(self, entry: Entry, record: PageRecord, batch: Batch) -> None:
        """Add a record, or put it in the place of an earlier one."""
        data, seq = self._data, entry.seq
        if seq not in data.recorded:
            data.positions[seq] = data.next_position
            data.next_position += 1
        data.entries[seq] = entry
        data.rounds[seq] = data.round
        self._replace(entry, record)
        if seq not in batch.unchanged:
            data.elements.pop(seq, None)
        if seq in batch.elements:
            data.elements[seq] = batch.elements[seq]

    def _replace(self, entry: Entry, record: PageRecord) -> None:
        data, seq = self._data, entry.seq
        data.recorded[seq] = record
        data.failed.pop(seq, None)
        if is_failed(record, entry.kind):
            data.failed[seq] = data.positions[seq], entry

    def _keep_lists(self, batch: Batch) -> None:
        data = self._data
        for url, lastmod in batch.listed:
            data.listed[url] = said_again(data.listed.get(url), lastmod, data.round)
        for host, (right, wrong) in batch.lastmods.items():
            so_far = data.lastmods.get(host, (0, 0))
            data.lastmods[host] = so_far[0] + right, so_far[1] + wrong

    def _begin_round(self, number: int) -> None:
        data = self._data
        if number > data.round:
            data.round = number
            seqs = [
                seq
                for seq in sorted(data.positions, key=data.positions.__getitem__)
                if not KINDS[data.entries[seq].kind].is_sent_once
            ]
            lists = [seq for seq in seqs if KINDS[data.entries[seq].kind].is_listing]
            pages = [
                seq
                for seq in seqs
                for row in (KINDS[data.entries[seq].kind],)
                if row.is_page or row.is_requisite
            ]
            data.retries += [Asked(lists, number), Asked(pages, number, waits=True)]

    def _asked_for(self, order: RetryUrls) -> list[int]:
        """Return the numbers of these URLs: host by host, failed ones first."""
        data = self._data
        places = {host: place for place, host in enumerate(data.hosts)}
        failed = [
            (places[entry.host], at, entry)
            for at, entry in data.failed.values()
            if data.rounds[entry.seq] >= data.round
        ]
        given_up = [(places[entry.host], entry.seq, entry) for entry, _ in data.given_up.values()]
        asked = (sorted(failed) if order.failed else []) + (
            sorted(given_up) if order.given_up else []
        )
        found = [entry.seq for _, _, entry in asked if _is_meant(entry, order)]
        for seq, skipped in sorted(data.skipped.items()):
            is_asked = skipped.reason.partition(":")[0] == order.skipped
            if is_asked and _is_meant(data.entries[seq], order):
                found.append(seq)
        return found + (self._missing(order.host) if order.missing else [])

    def _missing(self, host: str | None) -> list[int]:
        """Return the numbers of pages that have not failed and no kept answer, in order."""
        data = self._data
        return [
            seq
            for seq in sorted(data.positions, key=data.positions.__getitem__)
            if seq not in data.kept
            and seq not in data.failed
            and KINDS[data.entries[seq].kind].is_page
            and data.rounds[seq] >= data.round
            and host in (None, data.entries[seq].host)
        ]

    def bring_back(self, limit: int) -> BroughtBack:
        """Queue up to `limit` URLs again that `Batch.retries` asked for."""
        data = self._data
        asked = data.retries[0] if data.retries else Asked([])
        if asked.round:
            return self._check_again(asked, limit)
        entries: list[Entry] = []
        hosts: dict[str, int] = {}
        for seq in asked.seqs[:limit]:
            if seq in data.failed:
                _, entry = data.failed.pop(seq)
                del data.recorded[seq], data.positions[seq]
                data.kept.pop(seq, None)
                hosts[entry.host] = hosts.get(entry.host, 0) + KINDS[entry.kind].is_page
                entries.append(entry)
            elif seq in data.given_up or seq in data.skipped:
                given_up = data.given_up.pop(seq, None)
                entries.append(data.entries[seq] if given_up is None else given_up[0])
                data.skipped.pop(seq, None)
                hosts.setdefault(entries[-1].host, 0)
            elif seq in data.recorded and seq not in data.queued and seq not in data.waiting:
                entries.append(data.entries[seq])
                hosts.setdefault(entries[-1].host, 0)
        self._advance(asked, limit)
        return self._brought_back(entries, hosts)

    def _check_again(self, asked: Asked, limit: int) -> BroughtBack:
        data = self._data
        entries = [data.entries[seq] for seq in asked.seqs[:limit]]
        if asked.waits and self.counts().rechecks:
            return BroughtBack([], 0, {})
        wanted = [entry for entry in entries if not self._is_spared(entry, asked.round)]
        self._advance(asked, limit)
        return self._brought_back(wanted, {entry.host: 0 for entry in wanted})

    def _is_spared(self, entry: Entry, round_number: int) -> bool:
        """Check a page off without a request, if a believed sitemap says that it is unchanged."""
        data = self._data
        listed = data.listed.get(entry.url)
        if not KINDS[entry.kind].is_page or listed is None or listed.round < round_number:
            return False
        votes = data.lastmods.get(entry.host, (0, 0))
        if not spares_request(entry.url, round_number, listed.before, listed.lastmod, *votes):
            return False
        seen = data.recorded[entry.seq]
        data.rounds[entry.seq] = round_number
        self._replace(entry, unchanged(seen))
        return True

    def _advance(self, asked: Asked, limit: int) -> None:
        retries = self._data.retries
        if retries and len(asked.seqs) <= limit:
            del retries[0]
        elif retries:
            retries[0] = asked._replace(waits=False)
        del asked.seqs[:limit]

    def _brought_back(self, entries: list[Entry], hosts: dict[str, int]) -> BroughtBack:
        new, waiting = self._place(entry._replace(attempts=0) for entry in entries)
        return BroughtBack(new, waiting, hosts)

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue, never past the limit."""
        data = self._data
        room = max(min(room, self._frontier_limit - len(data.queued)), 0)
        entries = [data.waiting.pop(seq) for seq in sorted(data.waiting)[:room]]
        for entry in entries:
            self._enqueue(entry)
        return entries

    def deliver(self) -> int:
        """Hand outgoing links over to their shards; return how many were handed over."""
        delivered = self.counts().outgoing
        for shard, links in self._data.outbox:
            self._inboxes[shard].append(links)
        self._data.outbox.clear()
        self.handed_over += delivered
        return delivered

    def receive(self, limit: int) -> Committed:
        """Take over what is in the inbox, a batch of links at a time until `limit` is reached."""
        inbox = self._inboxes[self.shard]
        found: list[Candidate] = []
        while inbox and len(found) < limit:
            found += inbox.pop(0)
        return self._arrive(found)

    def pass_links(self, limit: int) -> Committed:
        """Hand outgoing links over, and take over what is in the inbox."""
        self.deliver()
        return self.receive(limit)

    @property
    def has_unread(self) -> bool:
        """Return whether there is anything in the inbox."""
        return bool(self._inboxes[self.shard])

    def parsing(self, seq: int) -> None:
        """Note that this page is about to be parsed; 0: none is any more."""
        self._data.parsing = seq

    @property
    def has_payloads(self) -> bool:  # type: ignore[override]
        """Return whether an entry has or had a payload."""
        return bool(self._data.payloads)

    def note_sent(self, seq: int, *, is_refused: bool = False) -> None:
        """Note that a request leaves now which is sent once, or was refused."""
        if is_refused:
            self._data.sent.discard(seq)
        else:
            self._data.sent.add(seq)

    def close(self) -> None:
        """Release the shard; closing twice is harmless."""
        if self._data.owner is self:
            self._data.owner = None

    def _count_death(self) -> None:
        """Count that the last owner went away while parsing a page that is still queued."""
        seq, self._data.parsing = self._data.parsing, 0
        if seq in self._data.queued:
            self._data.suspects[seq] = self._data.suspects.get(seq, 0) + 1

    def _take(self, entry: Entry) -> bool:
        """Remove an entry from the queue, unless it has left already."""
        data = self._data
        if data.queued.pop(entry.seq, None) is None:
            return False
        queue = data.queues[entry.host]
        del queue[entry.seq]
        if not queue:
            del data.queues[entry.host]
        data.suspects.pop(entry.seq, None)
        data.acknowledged.discard(entry.seq)
        data.sent.discard(entry.seq)
        self.unanswered = self.unanswered - {entry.seq}
        return True

    def _enqueue(self, entry: Entry) -> None:
        self._data.queued[entry.seq] = entry
        self._data.queues[entry.host][entry.seq] = entry

    def _arrive(self, candidates: list[Candidate]) -> Committed:
        entries = []
        repeated = 0
        for url, host, depth, priority, parent, hops, kind, payload in requests_first(candidates):
            seq = self._number(url, payload)
            is_told = payload is not None and not KINDS[kind].is_requisite
            repeated += not seq and is_told
            if seq:
                entries.append(Entry(seq, url, host, depth, priority, parent, hops, kind))
                self._data.hosts.setdefault(host, None)
        return Committed(*self._place(entries), repeated)

    def _place(self, entries: Iterable[Entry]) -> tuple[list[Entry], int]:
        """Queue entries, as far as there is room; let the others wait."""
        data = self._data
        new: list[Entry] = []
        waiting = 0
        for entry in entries:
            if data.waiting or len(data.queued) >= self._frontier_limit:
                data.waiting[entry.seq] = entry
                waiting += 1
            else:
                self._enqueue(entry)
                new.append(entry)
        return new, waiting

    def _number(self, url: str, payload: Payload | None) -> int:
        """Return the number of a new request; 0 if it is known."""
        data = self._data
        key = url if payload is None else payload.identity(url)
        takes_place = payload is not None and payload.takes_place
        if (url in data.labelled) if takes_place else (key in data.seen):
            return 0
        seq = data.next_seq
        data.next_seq += 1
        data.seen[key] = seq
        if payload is not None:
            data.payloads[seq] = payload
        if takes_place:
            data.labelled.add(url)
        return seq


def _is_meant(entry: Entry, order: RetryUrls) -> bool:
    return order.host in (None, entry.host) and (entry.parent is None or not order.seeds)
