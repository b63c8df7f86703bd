"""The contracts of a crawl's state: `CrawlStore` for the whole crawl, `ShardStore` for one shard.

SQLite, Valkey and memory implement both; `contract` is the suite that they pass. Nothing
outside this package knows a file, a table or a path. It is long because the contracts are in prose.

A shard's store has one owner. It holds five sets of URLs, and every URL of the shard that was ever
offered is in exactly one of them:

    queued      waiting to be fetched, in order of (priority, seq) within a host
    fetched     has a page record
    failed      has a page record that says so, after its retries (`model.is_failed`): no answer, an
                error of the server, a refusal, a page that was not read, a seed without a page
    skipped     not fetched on purpose; has a reason
    given up    wanted, but its host or its robots.txt could not be reached; has a reason

and, beside them, links to other shards that are on their way (*outgoing*), one record per host
(learned pace, counts), one per origin (robots.txt) and the number of the last control record that
was acted on. What several crawls share about hosts is in a memory of its own (`mannerly.hosts`).

**One transaction.** `commit(batch)` applies everything that a batch of finished pages brought:
page records, new URLs, dropped ones, outbox, host records, robots.txt files. All of it or nothing.
After a crash the store is as it was after some earlier commit, and what was rolled back is simply
fetched again: the URL is still queued, so its links will be found again. Being in flight is no
state of the store. An entry that has left the queue cannot be recorded or dropped again, so a batch
whose commit failed may be offered once more.

**New or known is decided here.** `commit` reports which candidates were new. A filter in front of
the store may save it the question, but never answers it: offering a known URL changes nothing,
whichever of the sets it is in (an earlier arrival keeps its depth and priority).

**Bringing back.** `Batch.retries` asks for URLs that failed or were given up; `bring_back` moves
them into the queue again, a slice at a time, each slice in one transaction: the URL leaves its
record or reason, and keeps its number, depth and priority. What fails again in the meantime is not
brought back a second time. Positions of records are not used again, so a reader that stops at the
last position that it saw at the beginning meets no URL twice. Pages whose answer is missing
(`RetryUrls.missing`: they have not failed, and have no place in `Batch.kept`) are queued, too, and
their records stay, as those of a recrawl do.

**Checking again.** A `Recrawl` among the retries begins a new round. `bring_back` queues every URL
that has a record, lists first and then pages, and the record stays: readers have it until the next
answer replaces it, in its old position. So a URL that is checked again is queued *and* fetched or
failed (`counts().rechecks`). A page whose sitemap is believed and says that it has not changed is
not queued: its record counts as checked. If a URL that has a record is dropped, the record stays
and has the reason as its error.

**Payloads.** A candidate may have a payload (`mannerly.crawler.payload`), which stays with its
entry for as long as the URL is known: `payload(seq)`. Such a request is known by its identity. One
with a label takes the place of a link: it is new although its URL is known, and the URL is known
from then on. `labelled` tells of which URLs that is so, and the shard drops the entries of links to
them that are still queued. Of requests with the same identity, and of labels for one URL, the first
counts, and `Committed.repeated` tells how many came too late, but for requisites, which many pages
have in common. Entries without a payload cost nothing: a store that has none is not asked
(`has_payloads`).

**Requests that are sent once.** `note_sent` notes, without a commit and before its first byte
leaves, that a request is sent which is not repeated, and perhaps later that it was refused before
it did anything. `unanswered` are those that an earlier owner has sent: what became of them is
unknown.

**Elements.** The links of a page, and what else a reader may ask for, are bytes to the store
(`Batch.elements`), committed with the record. A page of `Batch.unchanged` keeps what it has.

**Windows.** `queued(host, after, limit)` reads a host's next entries without removing them; they
leave the queue when a commit records or drops them. So memory holds a window of each active host,
and the rest of the frontier costs nothing.

**Links between shards.** A commit takes links to any shard (`Batch.outgoing`), together with the
page that they were found on, so none is lost. A store that can write to all shards at once queues
them there in the same transaction; in others they travel, and arrive at least once, deduplicated.
The owner of their shard learns of those that are new from `pass_links`. The sender keeps no list of
what it sent: a link that it meets again after a long while is sent again, and is known by then.

**Limits.** Beyond `frontier_limit` queued URLs new ones are kept in arrival order in a waiting
room (still "queued" in the sense above, but in no host's window) and let in as room appears:
back-pressure without loss. `counts().waiting` tells how many.

**Pages that kill their reader.** `parsing(seq)` notes, without a commit, which page is about to be
parsed. A store that is closed or abandoned while a page is noted counts that as a death. The next
owner's `suspects` tells how often an owner died while that page was being parsed, until the page
is recorded or dropped.

**Pages that a program reads.** A program that iterates over a crawl acknowledges each page; only
then is it committed. `CrawlStore.acknowledge` notes that at once, without a commit, so that a page
whose commit was lost in a crash is fetched again, but not delivered again (`acknowledged`).

**Bodies.** Answers are kept in segments: files beside the store that are only appended to. A
segment is valid up to the length that was committed last (`Batch.segments`), in the transaction
that records its pages; its writer cuts off the rest when it opens it again. `Batch.kept` says where
the answer of each page is. What a page was extracted to (`Batch.items`) is committed with it, too.

**Damage.** A store that is not ours, is newer than us, or is damaged refuses to open with a
`StoreError` that says so; it never starts empty in its place. Everything here is called from one
thread. Times are wall time.
"""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias

from mannerly.crawler.kinds import Form
from mannerly.crawler.model import UNFINISHED, PageRecord
from mannerly.crawler.web.urls import host_key_of
from mannerly.database.errors import StoreBusy as StoreBusy  # noqa: PLC0414 - errors of stores
from mannerly.database.errors import StoreError as StoreError  # noqa: PLC0414
from mannerly.database.errors import StoreFull as StoreFull  # noqa: PLC0414
from mannerly.database.errors import repair_command as repair_command  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from mannerly.crawler.control import Control, Recrawl, RetryUrls
    from mannerly.crawler.model import (
        ArchivePlace,
        Candidate,
        Entry,
        HostRecord,
        ListedPage,
        PageItems,
        RobotsRecord,
        Skipped,
        Traffic,
    )
    from mannerly.crawler.payload import Payload
    from mannerly.politeness.model import Instant

    from .fleet import Fleet

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


def retry_missing_command(location: object) -> str:
    """Return the command that fetches pages again whose answer or record is lost."""
    return f"mannerly retry {shlex.quote(str(location))} --missing"


class StoreMissing(StoreError):  # noqa: N818 - a state of the place
    """There is no crawl at this location."""


class StoreInUse(StoreError):  # noqa: N818 - a state of the place
    """Another process works on this crawl or shard. The message names it."""

    for_s = 0.0  # a claim fails for so long at least; 0: that is not known


@dataclass(slots=True)
class Batch:
    """Everything that one commit applies."""

    pages: list[tuple[Entry, PageRecord]] = field(default_factory=list)
    found: list[Candidate] = field(default_factory=list)  # for this shard
    outgoing: list[tuple[int, Candidate]] = field(default_factory=list)  # (shard, candidate)
    # Leave the queue, with a reason: skipped or given up (`model.is_given_up`).
    dropped: list[tuple[Entry, str]] = field(default_factory=list)
    hosts: list[HostRecord] = field(default_factory=list)
    robots: dict[str, RobotsRecord | None] = field(
        default_factory=dict
    )  # by origin; None: forget it
    retries: list[RetryUrls | Recrawl] = field(default_factory=list)  # what to bring back
    elements: dict[int, bytes] = field(default_factory=dict)  # of pages, by seq
    unchanged: set[int] = field(default_factory=set)  # pages that keep what their record has
    listed: list[ListedPage] = field(default_factory=list)  # what sitemaps say about pages
    # By host: how often the lastmod of a sitemap was right, and how often wrong.
    lastmods: dict[str, tuple[int, int]] = field(default_factory=dict)
    applied: int = 0  # the last control record that was acted on; 0: none new
    # By interval (`model.Traffic`): answers and refusals. Alone they are no reason to commit.
    traffic: dict[int, list[int]] = field(default_factory=dict)
    # Of pages of this batch, by seq.
    kept: dict[int, ArchivePlace] = field(default_factory=dict)
    items: dict[int, PageItems] = field(default_factory=dict)
    # What code of the user has made of pages that have a record already, by seq; None: their kept
    # answer cannot be read, and its place is forgotten, as if it had never been kept.
    handled_again: dict[int, PageItems | None] = field(default_factory=dict)
    segments: dict[str, int] = field(default_factory=dict)  # valid length, by name
    sessions: dict[str, str] = field(default_factory=dict)  # cookies, by name; empty: none any more

    def __bool__(self) -> bool:
        # Written out: this is asked several times in every turn of the loop.
        return bool(
            self.pages
            or self.found
            or self.outgoing
            or self.dropped
            or self.hosts
            or self.robots
            or self.sessions
            or self.handled_again
            or self.retries
            or self.listed
            or self.applied
            or self.segments
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """The candidates of a commit that were new, as entries of this shard's queue."""

    new: list[Entry]  # without those that wait: `admit_waiting` returns them when they are let in
    waiting: int  # new ones that went to the waiting room
    repeated: int = 0  # requests of programs that were known, also those of other shards
    lagging: int = 0  # other shards whose owners do not keep up with links to them


class BroughtBack(NamedTuple):
    """URLs that are queued again."""

    new: list[Entry]  # without those that wait
    waiting: int
    hosts: Mapping[str, int]  # of all of them, with the number of pages that had failed
    lost: Mapping[str, int] = {}  # by host: pages that were fetched, and have no record any more


class Earlier(NamedTuple):
    """A queued URL as an earlier round of the same crawl has left it."""

    record: PageRecord | None  # None: it may be on another machine
    is_kept: bool = False  # its answer (`Batch.kept`)
    lastmods: tuple[str, str] | None = None  # of the round before and of this, if both are stated


@dataclass(frozen=True, slots=True)
class Counts:
    """Exact totals, from the store itself."""

    queued: int  # the waiting room included
    waiting: int  # of these, in the waiting room
    fetched: int  # pages that have not failed
    failed: int  # pages that have (`model.is_failed`)
    lists: int  # sitemaps and public indexes that were read, or failed
    skipped: int
    given_up: int
    outgoing: int
    hosts: int
    retries: int  # orders to bring URLs back that are not finished
    rechecks: int  # queued URLs that have a record of an earlier crawl
    round: int  # 0 for the first crawl, 1 for its first recrawl
    applied: int  # the number of the last control record that the shard has acted on
    requisites: int  # what pages need to be shown, and was asked for


class Extra(Enum):
    """The parts that a reader may ask for besides a record."""

    NOTHING = "nothing"
    ELEMENTS = "elements"  # of the page: to decompress them takes longer than the rest
    PLACE = "place"  # of its answer


# A plain tuple, because readers make millions of them: position, record, elements, place, seq.
# Elements and place are None where there are none, or they were not asked for.
Stored: TypeAlias = "tuple[int, PageRecord, bytes | None, ArchivePlace | None, int]"
# Of a `Stored`.
_POSITION_AND_RECORD = itemgetter(0, 1)
_RECORD = itemgetter(1)
_RECORD_AND_ELEMENTS = itemgetter(1, 2)
_SEQ_RECORD_AND_PLACE = itemgetter(4, 1, 3)
_PAYLOAD = 7  # the place in a `Candidate`: by number, which takes a third of the time


class Records(Protocol):
    """The questions about URLs that left the queue, which a store answers."""

    def stored(
        self,
        form: Form = Form.PAGE,
        *,
        after: int = 0,
        last: int | None = None,
        extra: Extra = Extra.NOTHING,
    ) -> Iterator[Stored]:
        """Yield the records of URLs of a form in the order of commits.

        Those between two positions, the second included; by default, up to the last one there is
        when the first is asked for. No URL is yielded twice.
        """

    def elements_of(self, url: str) -> bytes | None:
        """Return the elements of one page; None if there are none, or no such page."""

    def position_of(self, url: str) -> int | None:
        """Return the position of the record of a URL; None: it has none."""

    def kept_at(self, identity: str) -> ArchivePlace | None:
        """Return where the answer of one URL is kept; None: nowhere."""

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        """Yield what every page was extracted to, with its position and its URL.

        In the order of commits, past a position.
        """

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped, in the order of arrival."""

    def traffic(self) -> Iterator[Traffic]:
        """Yield the answers and refusals of every interval that had any, in order."""


class ShardQueries(Records, Protocol):
    """The questions about a shard that a store answers, to its owner or beside it.

    A reader beside the owner sees the last commit and is never in the owner's way.
    """

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """Return a host's next entries in order, past (priority, seq); (−1, −1): the beginning."""

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host with queued URLs, and how many; without the waiting room."""

    def host(self, host: str) -> HostRecord | None:
        """Return what is kept of a host; None if no URL and no record of it was ever committed."""

    def hosts(self) -> Iterator[HostRecord]: ...

    def robots(self, origin: str) -> RobotsRecord | None: ...

    def counts(self) -> Counts: ...

    def segments(self) -> dict[str, int]:
        """Return the valid length of every segment, by name, in the order of their beginning."""

    def given_up(self) -> Iterator[Skipped]:
        """Yield every URL that was given up."""

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Return where a URL of this shard stands; None if it is unknown, or out of reach.

        It may be the identity of a requisite (`payload.identity_of`), which is apart from a page
        with the same URL.
        """

    def payload(self, seq: int) -> Payload | None:
        """Return what an entry carries; None: nothing."""

    def sessions(self) -> dict[str, str]:
        """Return the cookies of all sessions, by name."""

    def labelled(self, urls: Sequence[str]) -> set[str]:
        """Return those URLs of this shard for which there is a request with a label."""

    def outgoing(self) -> Iterator[Candidate]:
        """Yield links to other shards that were not handed over yet."""

    def urls(self) -> Iterator[str]:
        """Yield every URL known to the shard, each once."""

    def close(self) -> None: ...


def redirects_of(find: Callable[[str], object], urls: Iterable[str]) -> dict[str, str]:
    """Return where URLs redirect to, by what `find` returns for each."""
    records = ((url, find(url)) for url in urls)
    return {
        url: known.redirect_to
        for url, known in records
        if isinstance(known, PageRecord) and known.redirect_to is not None
    }


class RecordReader(Records):
    """The questions about records that are answered alike for every store."""

    def pages(self, *, after: int = 0, last: int | None = None) -> Iterator[tuple[int, PageRecord]]:
        """Yield the records of pages, with their positions."""
        return map(_POSITION_AND_RECORD, self.stored(after=after, last=last))

    def elements(self) -> Iterator[tuple[PageRecord, bytes | None]]:
        """Yield the records of pages, each with the elements of its page, if kept."""
        return map(_RECORD_AND_ELEMENTS, self.stored(extra=Extra.ELEMENTS))

    def kept_pages(
        self, *, after: int = 0, last: int | None = None
    ) -> Iterator[tuple[int, PageRecord, ArchivePlace | None]]:
        """Yield the records of pages with their seqs, and where each answer is; None: nowhere."""
        found = self.stored(after=after, last=last, extra=Extra.PLACE)
        return map(_SEQ_RECORD_AND_PLACE, found)

    def kept_page(self, url: str) -> tuple[int, PageRecord, ArchivePlace | None] | None:
        """Return what `kept_pages` yields for one URL; None: it has no record."""
        at = self.position_of(url)
        return None if at is None else next(self.kept_pages(after=at - 1, last=at), None)

    def requisites(self) -> Iterator[PageRecord]:
        """Yield the records of what pages need to be shown (`Form.REQUISITE`)."""
        return map(_RECORD, self.stored(Form.REQUISITE))

    def checked(self) -> Iterator[PageRecord]:
        """Yield the records of targets of links that were only checked (`Form.CHECK`)."""
        return map(_RECORD, self.stored(Form.CHECK))


class ShardReader(RecordReader, ShardQueries):
    """Everything that can be asked of a shard. A store's class has the queries, this the rest."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def missing(self) -> int:
        """Return how many pages have a record that cannot be found from here."""
        return 0

    @property
    def missing_unnamed(self) -> int:
        """Return how many of them have a URL that is not known from here, either."""
        return 0

    def unread_pages(self) -> int:
        """Return how many pages could not be read, perhaps through no fault of theirs."""
        if not self.counts().failed:
            return 0
        return sum(record.error in UNFINISHED for _, record in self.pages())

    def given_up_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host that was given up or has URLs that were, and how many."""
        hosts = Counter(host_key_of(each.url) for each in self.given_up())
        retired = [record.host for record in self.hosts() if record.retired is not None]
        yield from ((host, hosts[host]) for host in dict.fromkeys([*hosts, *retired]))

    def knows(self, url: str) -> bool:
        """Return whether a URL is known, also if its record is out of reach."""
        return self.find(url) is not None

    def redirects(self, urls: Sequence[str]) -> dict[str, str]:
        """Return where those of these URLs redirect to whose records say that they do."""
        return redirects_of(self.find, urls)

    def take_mended(self) -> list[str]:
        """Return what was wrong in the store and is put right, in words, each once."""
        return []


class ShardChanges(Protocol):
    """The changes that only the owner of a shard makes, and the questions that only it asks."""

    def commit(self, batch: Batch) -> Committed: ...

    def admit_waiting(self, room: int) -> list[Entry]:
        """Move up to `room` URLs from the waiting room into the queue, never past the limit."""

    def bring_back(self, limit: int) -> BroughtBack:
        """Queue up to `limit` URLs again that `Batch.retries` asked for, oldest order first."""

    def pass_links(self, limit: int) -> Committed:
        """Return what other shards have queued here, about `limit` of it; each URL once.

        A store in which links travel (`Counts.outgoing`) hands over those of this shard before.
        """

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""

    def parsing(self, seq: int) -> None:
        """Note, without a commit, that this page is about to be parsed; 0: none is any more."""

    def note_sent(self, seq: int, *, is_refused: bool = False) -> None:
        """Note, without a commit, that a request leaves now which is sent once.

        `is_refused`: that it was, before it did anything: it may be sent again.
        """


class ShardStore(ShardReader, ShardChanges):
    """One shard's durable state, for its owner."""

    # No other owner can be there before this monotonic instant: send nothing after it (`fleet`).
    sure_until: Instant = inf
    segment_stem: str = ""  # the beginning of the names of its segments; "": `shard-NUMBER`
    read_ahead: int = 0  # queued URLs of the crawl to keep in memory so that reads are few; 0: any
    suspects: Mapping[int, int]  # by seq: how often a process died while parsing this page
    # seqs acknowledged before this claim; some may be committed already
    acknowledged: AbstractSet[int]
    has_payloads: bool  # an entry of this shard has or had a payload
    # seqs of requests that are sent once: sent before this claim, without a result
    unanswered: AbstractSet[int]

    def remember_hosts(self, records: Sequence[HostRecord]) -> None:
        """Take records that were not committed, of a shard that is lost: the waits in them still
        hold. A store that is shared tells them to the owner that the shard has now.
        """
        del records  # a store that forgets nothing has them

    def reminders(self) -> list[HostRecord]:
        """Return records of hosts with waits that earlier owners have told since they lost it.

        Each is returned once, and again to the next owner, unless a commit follows that has the
        record of its host.
        """
        return []


def check_recipients(batch: Batch, shard: int, shards: int) -> None:
    """Raise ValueError for a link to a shard that does not exist, or to the sender itself."""
    for other, _ in batch.outgoing:
        if other == shard or not 0 <= other < shards:
            raise ValueError(f"shard {shard} of {shards} cannot send to shard {other}")


def requests_first(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates with a payload before the others: a link to the same URL is known then."""
    carrying = [each for each in candidates if each[_PAYLOAD] is not None]
    if not carrying:
        return candidates
    return carrying + [each for each in candidates if each[_PAYLOAD] is None]


def by_shard(outgoing: list[tuple[int, Candidate]]) -> Mapping[int, list[Candidate]]:
    """Return the links of a batch, one list for each shard that is named."""
    found: dict[int, list[Candidate]] = {}
    for shard, candidate in outgoing:
        found.setdefault(shard, []).append(candidate)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The identity, seeds and settings of a crawl, fixed when it was created."""

    id: str
    created_at: float  # wall time
    shards: int
    seeds: list[str]
    settings: dict[str, Json]

    @classmethod
    def new(
        cls, *, seeds: list[str], settings: dict[str, Json], shards: int, created_at: float
    ) -> Self:
        """Make the manifest of a crawl that begins now, with a random id."""
        from uuid import uuid4

        return cls(
            id=uuid4().hex, created_at=created_at, shards=shards, seeds=seeds, settings=settings
        )


class ShardOptions(NamedTuple):
    """The limits and the durability that the owner of a shard asks for."""

    frontier_limit: int  # queued URLs; more wait
    durable: bool = False  # wait for the disk at every commit
    check_limit: int | None = None  # URLs that one look-up asks about


class Heartbeat(NamedTuple):
    """A process that works on a crawl, as `status` shows it."""

    id: str
    machine: str
    pid: int
    shards: list[int]
    fetched: int  # pages, in this run
    seen_at: float  # wall time of its last sign of life
    waits_for: str | None = None  # why it makes no progress, if it knows
    is_quiet: bool = False  # only unreachable hosts are left to it (`runtime.agreement`)
    code: str = ""  # the version of the user's code that it runs (`extract.version_of`)


class CrawlStore(Protocol):
    """A whole crawl, wherever it is kept. `mannerly.crawler.store` opens one by its location."""

    location: str  # what `open_crawl` takes, as it is shown to people; never with a password
    manifest: Manifest
    segment_folder: Path | None  # where answers are kept; None: nowhere

    @property
    def answer_folders(self) -> Sequence[Path]:
        """Return where kept answers are looked for: of a shared crawl in several directories."""

    @property
    def fleet(self) -> Fleet | None:
        """Return the means to share the crawl; None: one run at a time works on it."""

    def hold(self) -> None:
        """Become the one run of this crawl, until `close`; twice is harmless.

        A run that has joined a crawl that is shared (`fleet`) is not alone: this does nothing then.

        Raises:
            StoreInUse: another run is working on it.
        """

    def claim(self, shard: int, options: ShardOptions) -> ShardStore:
        """Become the owner of a shard, until its store is closed (released).

        Raises:
            StoreInUse: it has another owner.
        """

    def renew(self, heartbeat: Heartbeat) -> None:
        """Give a sign of life, and show what this worker does. Claims are kept by it."""

    def retire(self, worker: str) -> None:
        """Take a worker's heartbeat away: it has ended."""

    def workers(self) -> list[Heartbeat]:
        """Return the heartbeats of the workers that are alive, as far as this store can tell."""

    def is_running(self) -> bool:
        """Return whether a process works on this crawl."""

    def last_activity(self) -> float:
        """Return the wall time of the last commit."""

    def read(self, shard: int) -> ShardReader:
        """Open a reader beside the shard's owner."""

    def unread(self, shard: int) -> int:
        """Return how many links wait in a shard's inbox: a crawl with any is not finished."""

    def unread_links(self, shard: int) -> Iterator[Candidate]:
        """Yield the links that wait there."""

    def acknowledge(self, shard: int, seq: int) -> None:
        """Note, without a commit, that the program is done with a page."""

    def order(self, control: Control) -> int:
        """Append a control record, durably; return its number."""

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order. Cheap when there are none."""

    def close(self) -> None:
        """Release everything; closing twice is harmless."""
