"""One shard in a server, for readers beside its owner: `ShardReader`.

What is left to do comes from the server, records come from files (`store.records`). Every question
is one or a few exchanges; long answers come in pieces.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import Form
from mannerly.crawler.model import HostRecord, Skipped
from mannerly.crawler.payload import decode as decode_payload
from mannerly.crawler.payload import identity_of
from mannerly.crawler.store.base import Extra, ShardReader, redirects_of
from mannerly.crawler.store.records.reader import LogReader
from mannerly.crawler.store.records.writer import Extent
from mannerly.database.client import hash_pieces, pairs
from mannerly.database.ranges import Notes

from .host_codec import unpack_host, unpack_robots
from .lost_records import LostRecords
from .packing import (
    MAX_SEQ,
    Poisoned,
    fingerprint,
    number_of,
    score,
    unpack,
    unpack_entry,
    unpack_waiting,
)
from .writes import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.model import (
        ArchivePlace,
        Candidate,
        Entry,
        PageItems,
        PageRecord,
        RobotsRecord,
        Traffic,
    )
    from mannerly.crawler.payload import Payload
    from mannerly.crawler.store.base import Counts, Stored

    from .client import ValkeyServer
    from .host_codec import Clocks

COUNTERS = (
    *("queued", "waiting", "fetched", "failed", "lists", "skipped", "given_up", "requisites"),
    *("retries", "rechecks", "round", "applied", "seq"),
)
KEPT = 1  # the third number of a log: the server has the URLs of its records
_PIECE = 1000  # entries of one exchange
_SCAN = 20_000  # entries that one script looks at, some milliseconds
_ENDS = 2  # of a number of a bucket: how often it is looked up again while buckets are split


class GivenUp(NamedTuple):
    """A URL that was given up, and the reason."""

    entry: Entry
    reason: str


class ValkeyReader(ShardReader):
    """`ShardReader` of a shard in a server.

    Args:
        server: the connection, shared with others.
        base: the beginning of the shard's keys.
        clocks: returns this machine's clocks, to convert instants with.
        folders: where logs of records are looked for.
    """

    def __init__(
        self, server: ValkeyServer, base: str, clocks: Callable[[], Clocks], folders: Sequence[Path]
    ) -> None:
        self._server = server
        self._base = base
        self._clocks = clocks
        self._records = LogReader(folders)
        self._notes = Notes()
        self.take_mended = self._notes.take  # type: ignore[method-assign]

    # ------------------------------------------------------------------ the queue

    @property
    def _known_seq(self) -> int:
        """Return the number up to which URLs of the queue are read."""
        return MAX_SEQ

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """Return a host's next entries in order, past (priority, seq); (−1, −1): the beginning."""
        return self._window(host, after, limit)[1]

    def _window(
        self, host: str, after: tuple[int, int], limit: int, *, text: str = "", scan: int = MAX_SEQ
    ) -> tuple[tuple[int, int] | None, list[Entry]]:
        """Return the next entries, and the cursor of the last one that was looked at."""
        payload = {
            "host": host,
            "priority": after[0],
            "seq": after[1],
            "limit": limit,
            "text": text,
            "scan": scan,
            "known": self._known_seq,
        }
        last, *rows = self._server.call("window", [self._base + "s"], payload)
        entries = []
        for row in rows:
            priority, seq, data = row.split(b" ", 2)
            key = f"{self._base}l:{int(priority)}:{host}"
            entries.append(unpack(data, host, score(int(priority), int(seq)), key))
        if not last:
            return None, entries
        priority, seq = last.split(b" ")
        return (int(priority), int(seq)), entries

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host with queued URLs, and how many; without the waiting room."""
        for host, count in self._hash("n"):
            if (number := self._number("n", count.partition(b" ")[0])) > 0:
                yield host.decode(), number

    def counts(self) -> Counts:
        """Return exact totals."""
        values, hosts = self._server.ask_all(
            [("HMGET", self._base + "s", *COUNTERS), ("HLEN", self._base + "n")]
        )
        return counts_of([self._number("s", each or b"0") for each in values] + [hosts])

    def payload(self, seq: int) -> Payload | None:
        """Return what an entry carries; None: nothing."""
        data = self._server.ask("HGET", self._base + "p", seq)
        try:
            return None if data is None else decode_payload(data)
        except ValueError as error:
            raise Poisoned(f"{self._base}p has a damaged payload of {seq} ({error})") from None

    def labelled(self, urls: Sequence[str]) -> set[str]:
        """Return those URLs for which there is a request with a label."""
        prints = [fingerprint(url) for url in urls]
        return set(compress(urls, self._are_known((f"-{each}", at) for each, at in prints)))

    # ------------------------------------------------------------------ hosts

    def host(self, host: str) -> HostRecord | None:
        """Return what is kept of a host; None if no URL and no record of it was ever committed."""
        return self._host(host)[0]

    def _host(self, host: str, *origins: str) -> tuple[HostRecord | None, list[bytes | None]]:
        """Return what is kept of a host, and the packed robots.txt of some origins."""
        data, is_known, *robots = self._server.ask_all(
            [
                ("HGET", self._base + "h", host),
                ("HEXISTS", self._base + "n", host),
                *(("HGET", self._base + "r", origin) for origin in origins),
            ]
        )
        if data is not None:
            return unpack_host(data, self._base + "h", self._clocks(), self._notes), robots
        return HostRecord(host=host) if is_known else None, robots

    def hosts(self) -> Iterator[HostRecord]:
        """Yield every host, by name."""
        names = sorted(host for host, _ in self._hash("n"))
        for start in range(0, len(names), _PIECE):
            piece = names[start : start + _PIECE]
            records = self._server.ask("HMGET", self._base + "h", *piece)
            clocks = self._clocks()
            for name, data in zip(piece, records, strict=True):
                if data is None:
                    yield HostRecord(host=name.decode())
                else:
                    yield unpack_host(data, self._base + "h", clocks, self._notes)

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt kept for an origin."""
        return self._robots(self._server.ask("HGET", self._base + "r", origin))

    def sessions(self) -> dict[str, str]:
        """Return the cookies of all sessions, by name."""
        return {name.decode(): cookies.decode() for name, cookies in self._hash("c")}

    def _robots(self, data: bytes | None) -> RobotsRecord | None:
        if data is None:
            return None
        return unpack_robots(data, self._base + "r", self._clocks(), self._notes)

    def traffic(self) -> Iterator[Traffic]:
        """Yield the answers and refusals of every interval that had any, in order."""
        yield from self.records().traffic()

    # ------------------------------------------------------------------ records

    def stored(
        self,
        form: Form = Form.PAGE,
        *,
        after: int = 0,
        last: int | None = None,
        extra: Extra = Extra.NOTHING,
    ) -> Iterator[Stored]:
        """Yield the records of URLs of a form between two positions, the second included."""
        yield from self.records().stored(form, after=after, last=last, extra=extra)

    def elements_of(self, url: str) -> bytes | None:
        """Return the elements of one page; None if there are none, or no such page."""
        return self.records().elements_of(url)

    def position_of(self, url: str) -> int | None:
        """Return the position of the record of a URL; None: it has none."""
        return self.records().position_of(url)

    def kept_at(self, identity: str) -> ArchivePlace | None:
        """Return where the answer of one URL is kept; None: nowhere."""
        return self.records().kept_at(identity)

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        """Yield what every page was extracted to, with its position and its URL."""
        yield from self.records().items(after=after)

    def segments(self) -> dict[str, int]:
        """Return the valid length of every segment, by name, in the order of their beginning."""
        return {name: values[0] for name, values in self._files("sg").items()}

    @property
    def missing(self) -> int:
        """Return how many pages have their record in none of the folders."""
        return self.lost_records.pages() + self.missing_unnamed

    @property
    def missing_unnamed(self) -> int:
        """Return how many of them have a URL that is not kept: their number is all that is known.

        They are on shared storage whose directory was not given.
        """
        names = self.records().missing_segments
        files = self._files("lg") if names else {}
        return sum(files[name][1] for name in names if files[name][2:] != [KEPT])

    @property
    def lost_records(self) -> LostRecords:
        """Return the records that are in none of the folders."""
        return LostRecords(self._server, self._base, self.records)

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped."""
        yield from self.records().skipped()

    def given_up(self) -> Iterator[Skipped]:
        """Yield every URL that was given up."""
        for entry, reason in self._given_up():
            yield Skipped(entry.url, reason, entry.depth, entry.parent)

    # ------------------------------------------------------------------ URLs

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Return where a URL of this shard stands; None if it is unknown, or out of reach."""
        if not self.knows(url):
            return None
        for entry, reason in self._given_up():
            if identity_of(entry.kind, entry.url) == url:
                return Skipped(entry.url, reason, entry.depth, entry.parent)
        if (found := self.records().find(url)) is not None:
            return found
        queued = self._in_queue(url.partition(" ")[0])
        return next((each for each in queued if identity_of(each.kind, each.url) == url), None)

    def redirects(self, urls: Sequence[str]) -> dict[str, str]:
        """Return where those of these URLs redirect to whose records say that they do."""
        return redirects_of(self.records().find, urls)

    def outgoing(self) -> Iterator[Candidate]:
        """Yield nothing: a commit puts links into their shards."""
        return iter(())

    def urls(self) -> Iterator[str]:
        """Yield every URL known to the shard, each once."""
        seen = set(self.records().urls())
        yield from seen
        for entry in self.unfinished():
            if entry.url not in seen:
                seen.add(entry.url)
                yield entry.url

    def close(self) -> None:
        """Close the files."""
        self._records.close()

    # ------------------------------------------------------------------ inside

    def records(self) -> LogReader:
        """Return the records, as they are committed now."""
        files, values = self._files("lg"), self._server.ask("HGET", self._base + "s", "round")
        extents = {name: Extent(*each[:2]) for name, each in files.items()}
        self._records.update(extents, self._number("s", values or b"0"))
        return self._records

    def _files(self, suffix: str) -> dict[str, list[int]]:
        """Return the committed numbers of files, in the order of their beginning."""
        rows = []
        for name, data in self._hash(suffix):
            first, *values = [self._number(suffix, part) for part in data.split(b" ")]
            rows.append((first, name.decode(), values))
        return {name: values for _, name, values in sorted(rows)}

    def _given_up(self) -> Iterator[GivenUp]:
        for _, data in self._hash("ge"):
            reason, _, packed = data.partition(b"\0")
            yield GivenUp(unpack_entry(packed, self._base + "ge"), reason.decode())

    def _failed(self) -> Iterator[Entry]:
        for _, data in self._hash("fe"):
            yield unpack_entry(data.partition(b" ")[2], self._base + "fe")

    def unfinished(self) -> Iterator[Entry]:
        """Yield everything that is queued, waits, has failed or was given up."""
        for host, _ in self.queued_hosts():
            after = (-1, -1)
            while piece := self.queued(host, after=after, limit=_PIECE):
                yield from piece
                after = (piece[-1].priority, piece[-1].seq)
        yield from self._waiting()
        yield from self._failed()
        yield from [each.entry for each in self._given_up()]

    def _in_queue(self, url: str) -> Iterator[Entry]:
        """Yield entries of the queue and the waiting room that may be this URL's."""
        host = url.split("/", 3)[2] if url.count("/") >= 2 else ""
        path = url.partition("://")[2].partition("/")[2]
        after: tuple[int, int] | None = (-1, -1)
        while after is not None:
            after, found = self._window(host, after, _PIECE, text=path, scan=_SCAN)
            yield from found
        yield from self._waiting()

    def _waiting(self) -> Iterator[Entry]:
        """Yield the entries of the waiting room."""
        for suffix, command in (("wz", "ZRANGE"), ("w", "LRANGE")):
            key, start = self._base + suffix, 0
            more = ("WITHSCORES",) if suffix == "wz" else ()
            while piece := self._server.ask(command, key, start, start + _PIECE - 1, *more):
                if suffix == "wz":
                    for data, at in pairs(piece):
                        yield unpack_waiting(data, int(float(at)), key)
                else:
                    for data in piece:
                        yield unpack_waiting(data[4:], number_of(data), key)
                start += _PIECE

    def knows(self, url: str) -> bool:
        """Return whether a URL is known; its record may be on another machine."""
        return self._are_known([fingerprint(url)])[0]

    def _are_known(self, prints: Iterable[tuple[str, int]]) -> list[bool]:
        """Return which of these fingerprints are known."""
        asked = list(prints)
        found = [False] * len(asked)
        for _ in range(_ENDS):  # buckets may be split between the two questions
            buckets = self._number(
                "s", self._server.ask("HGET", self._base + "s", "buckets") or b"16"
            )
            left = [at for at, is_known in enumerate(found) if not is_known]
            answers = self._server.ask_all(
                [
                    ("SISMEMBER", f"{self._base}k:{bucket_of(asked[at][1], buckets)}", asked[at][0])
                    for at in left
                ]
            )
            for at, answer in zip(left, answers, strict=True):
                found[at] = bool(answer)
        return found

    def _hash(self, suffix: str) -> Iterator[tuple[bytes, bytes]]:
        for piece in hash_pieces(self._server, self._base + suffix):
            yield from piece

    def _number(self, suffix: str, value: bytes) -> int:
        try:
            return int(value)
        except ValueError:
            raise Poisoned(f"{self._base}{suffix} holds {value[:40]!r} for a number") from None


def bucket_of(address: int, buckets: int) -> int:
    """Return the bucket of a fingerprint, as `arrive.lua` computes it."""
    size = 16
    while size < buckets:
        size *= 2
    at = address % size
    return at if at < buckets else address % (size // 2)
