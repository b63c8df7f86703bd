"""A shard in memory: plain dictionaries, and everything that can be asked of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import KINDS, Form
from mannerly.crawler.model import (
    ArchivePlace,
    Candidate,
    Entry,
    HostRecord,
    PageItems,
    PageRecord,
    RobotsRecord,
    Skipped,
    Traffic,
)
from mannerly.crawler.store.base import Counts, Earlier, Extra, ShardReader
from mannerly.crawler.store.lastmod import as_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mannerly.crawler.payload import Payload
    from mannerly.crawler.store.base import Stored
    from mannerly.crawler.store.lastmod import SitemapSays

    from .memory import MemoryStore

_in_order = attrgetter("priority", "seq")


class Asked(NamedTuple):
    """The numbers of URLs to bring back; with a round, to be checked again."""

    seqs: list[int]
    round: int = 0
    waits: bool = False  # until the lists of this round are read


@dataclass(slots=True, eq=False)
class ShardData:
    """Everything that is kept of a shard."""

    next_seq: int = 1
    seen: dict[str, int] = field(default_factory=dict)  # by identity
    payloads: dict[int, Payload] = field(default_factory=dict)
    labelled: set[str] = field(default_factory=set)  # URLs
    sent: set[int] = field(default_factory=set)  # of requests that are sent once
    queues: defaultdict[str, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    queued: dict[int, Entry] = field(default_factory=dict)
    waiting: dict[int, Entry] = field(default_factory=dict)
    next_position: int = 1
    recorded: dict[int, PageRecord] = field(default_factory=dict)
    failed: dict[int, tuple[int, Entry]] = field(default_factory=dict)  # with their positions
    skipped: dict[int, Skipped] = field(default_factory=dict)
    given_up: dict[int, tuple[Entry, Skipped]] = field(default_factory=dict)
    retries: list[Asked] = field(default_factory=list)  # what to bring back, by order
    entries: dict[int, Entry] = field(default_factory=dict)  # of recorded and skipped URLs
    positions: dict[int, int] = field(default_factory=dict)  # of records by seq, in their order
    round: int = 0
    rounds: dict[int, int] = field(default_factory=dict)  # by seq: when a record was checked last
    elements: dict[int, bytes] = field(default_factory=dict)
    listed: dict[str, SitemapSays] = field(default_factory=dict)
    lastmods: dict[str, tuple[int, int]] = field(default_factory=dict)  # right and wrong, by host
    outbox: list[tuple[int, list[Candidate]]] = field(default_factory=list)
    hosts: dict[str, HostRecord | None] = field(default_factory=dict)  # None: no record yet
    robots: dict[str, RobotsRecord | None] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    kept: dict[int, ArchivePlace] = field(default_factory=dict)
    items: dict[int, PageItems] = field(default_factory=dict)
    segments: dict[str, int] = field(default_factory=dict)
    traffic: dict[int, Traffic] = field(default_factory=dict)
    applied: int = 0
    parsing: int = 0
    suspects: dict[int, int] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    committed_at: float = 0.0  # wall time, if the store belongs to a `MemoryCrawl`
    owner: MemoryStore | None = None


class MemoryReader(ShardReader):
    """`ShardReader` in memory."""

    def __init__(self, data: ShardData) -> None:
        self._data = data

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """Return a host's next entries in order, past (priority, seq); (−1, −1): the beginning."""
        entries = sorted(self._data.queues.get(host, {}).values(), key=_in_order)
        first = bisect_right(entries, after, key=_in_order)
        return entries[first : first + limit]

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host with queued URLs, and how many; without the waiting room."""
        yield from [(host, len(queue)) for host, queue in self._data.queues.items()]

    def host(self, host: str) -> HostRecord | None:
        """Return what is kept of a host; None if no URL and no record of it was ever committed."""
        hosts = self._data.hosts
        return (hosts[host] or HostRecord(host=host)) if host in hosts else None

    def hosts(self) -> Iterator[HostRecord]:
        """Yield every host, in the order in which they were found."""
        yield from [record or HostRecord(host=host) for host, record in self._data.hosts.items()]

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt kept for an origin."""
        return self._data.robots.get(origin)

    def sessions(self) -> dict[str, str]:
        """Return the cookies of all sessions, by name."""
        return dict(self._data.sessions)

    def counts(self) -> Counts:
        """Return exact totals."""
        data = self._data
        forms = Counter(KINDS[data.entries[seq].kind].form for seq in data.recorded)
        failed = sum(KINDS[entry.kind].is_page for _, entry in data.failed.values())
        return Counts(
            queued=len(data.queued) + len(data.waiting),
            waiting=len(data.waiting),
            fetched=forms[Form.PAGE] - failed,
            failed=failed,
            lists=forms[Form.LISTING],
            skipped=len(data.skipped),
            given_up=len(data.given_up),
            outgoing=sum(len(links) for _, links in data.outbox),
            hosts=len(data.hosts),
            retries=len(data.retries),
            rechecks=len(data.recorded.keys() & data.queued.keys())
            + len(data.recorded.keys() & data.waiting.keys()),
            round=data.round,
            applied=data.applied,
            requisites=forms[Form.REQUISITE],
        )

    def stored(
        self,
        form: Form = Form.PAGE,
        *,
        after: int = 0,
        last: int | None = None,
        extra: Extra = Extra.NOTHING,  # noqa: ARG002 - nothing has to be read for it
    ) -> Iterator[Stored]:
        """Yield the records of URLs of a form between two positions, the second included."""
        data = self._data
        end = data.next_position if last is None else last + 1
        for seq, position in list(data.positions.items()):
            if after < position < end and KINDS[data.entries[seq].kind].form is form:
                record = data.recorded.get(seq)
                if record is not None and data.positions.get(seq) == position:
                    elements, place = data.elements.get(seq), data.kept.get(seq)
                    yield position, self._as_read(seq, record), elements, place, seq

    def elements_of(self, url: str) -> bytes | None:
        """Return the elements of one page; None if there are none, or no such page."""
        return self._data.elements.get(self._data.seen.get(url, 0))

    def position_of(self, url: str) -> int | None:
        """Return the position of the record of a URL; None: it has none."""
        seq = self._data.seen.get(url, 0)
        return self._data.positions.get(seq) if seq in self._data.recorded else None

    def kept_at(self, identity: str) -> ArchivePlace | None:
        """Return where the answer of one URL is kept; None: nowhere."""
        return self._data.kept.get(self._data.seen.get(identity, 0))

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""
        data = self._data
        record = data.recorded.get(seq)
        if record is None:
            return None
        says = data.listed.get(record.url)
        record = self._as_read(seq, record)
        return Earlier(record, seq in data.kept, says and says.both(data.round))

    def _as_read(self, seq: int, record: PageRecord) -> PageRecord:
        data = self._data
        is_checked = data.rounds[seq] >= data.round
        return as_read(record, data.listed.get(record.url), data.round, is_checked=is_checked)

    def segments(self) -> dict[str, int]:
        """Return the valid length of every segment, by name."""
        return dict(self._data.segments)

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        """Yield what every page was extracted to, with its position and its URL."""
        data = self._data
        found = [
            (data.positions[seq], data.recorded[seq].url, items)
            for seq, items in data.items.items()
            if data.positions[seq] > after
        ]
        yield from sorted(found)

    def traffic(self) -> Iterator[Traffic]:
        """Yield the answers and refusals of every interval that had any, in order."""
        yield from sorted(self._data.traffic.values())

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped, in the order of arrival."""
        yield from [skipped for _, skipped in sorted(self._data.skipped.items())]

    def given_up(self) -> Iterator[Skipped]:
        """Yield every URL that was given up."""
        yield from [skipped for _, skipped in self._data.given_up.values()]

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Return where a URL of this shard stands; None if it is unknown."""
        data = self._data
        seq = data.seen.get(url, 0)
        if seq in data.given_up:
            return data.given_up[seq][1]
        if seq in data.recorded:
            return self._as_read(seq, data.recorded[seq])
        return data.queued.get(seq) or data.waiting.get(seq) or data.skipped.get(seq)

    def payload(self, seq: int) -> Payload | None:
        """Return what an entry carries; None: nothing."""
        return self._data.payloads.get(seq)

    def labelled(self, urls: Sequence[str]) -> set[str]:
        """Return those URLs for which there is a request with a label."""
        return self._data.labelled.intersection(urls)

    def outgoing(self) -> Iterator[Candidate]:
        """Yield links to other shards that were not handed over yet."""
        for _, links in list(self._data.outbox):
            yield from links

    def urls(self) -> Iterator[str]:
        """Yield every URL known to the shard, each once."""
        yield from dict.fromkeys(identity.partition(" ")[0] for identity in self._data.seen)

    def close(self) -> None:
        """Do nothing: a reader holds nothing."""
