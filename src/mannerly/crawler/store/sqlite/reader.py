"""Everything that can be asked of a shard's file, by its owner or beside it.

A reader in another process (status, export, explain) sees the last commit and is never in the
owner's way. Long lists are read in slices, each its own short statement: a statement left open
would pin the write-ahead log, which then grows for as long as an export takes, and the owner may
commit between two slices.

The module is long because it answers every question of `ShardReader`, each in a few lines.
"""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import TYPE_CHECKING, Any, Self, TypeVar

import apsw

from mannerly.crawler.kinds import Form
from mannerly.crawler.model import (
    UNFINISHED,
    ArchivePlace,
    Entry,
    HostRecord,
    PageItems,
    PageRecord,
    RobotsRecord,
    Skipped,
    Traffic,
)
from mannerly.crawler.payload import decode as decode_payload
from mannerly.crawler.store.base import Counts, Earlier, Extra, ShardReader, Stored, StoreError
from mannerly.database.ranges import out_of_range
from mannerly.database.sqlite import Database

from .elements import ElementsReader
from .inbox import decode_links
from .schema import (
    CHECKS_ONLY,
    HOST,
    LISTS_ONLY,
    MAY_HAVE_FAILED,
    PAGES_ONLY,
    REQUISITES_ONLY,
    SHARD,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.model import Candidate
    from mannerly.crawler.payload import Payload
    from mannerly.database.sqlite import Row

T = TypeVar("T")

_SLICE = 1000
_URL_SLICE = 10_000  # short rows, and a restart reads them all

_HOST_COLUMNS = ", ".join(("host", *HOST))
_ROBOTS_COLUMNS = ", ".join(RobotsRecord._fields)
# What a record has of other tables, or what depends on them.
_ELSEWHERE = {
    "host": "hosts.host",
    "url": "pages.url",
    "in_sitemap": "coalesce(listed.round >= totals.round, 0)",
    "lastmod": "iif(listed.round >= totals.round, listed.lastmod, NULL)",
    "change": "iif(pages.round >= totals.round, change, NULL)",
}
_PAGE_COLUMNS = ", ".join(_ELSEWHERE.get(name, f"pages.{name}") for name in PageRecord._fields)
# CROSS JOIN keeps `pages` the outer table: otherwise every slice builds an index of all pages.
_PAGE_TABLES = """
    pages CROSS JOIN hosts ON hosts.id = pages.host CROSS JOIN totals
    LEFT JOIN listed ON listed.url = pages.url
"""

_COUNTS = """
    SELECT ready + waiting, waiting, fetched, failed, lists, skipped, given_up, outgoing, hosts,
           (SELECT count(*) FROM retries), rechecks, round, applied, requisites FROM totals
"""
_WINDOW = """
    SELECT seq, url, ?1, depth, priority, parent, hops, kind FROM queue
    WHERE host = (SELECT id FROM hosts WHERE host = ?1) AND (priority, seq) > (?2, ?3)
    ORDER BY priority, seq LIMIT ?4
"""
_KNOWN = """
    SELECT value FROM carray(?) AS asked
    WHERE EXISTS (SELECT 1 FROM seen WHERE url = asked.value)
"""
_LEFT = """
    SELECT value FROM carray(?) AS asked
    WHERE EXISTS (SELECT 1 FROM pages WHERE seq = asked.value)
       OR EXISTS (SELECT 1 FROM skipped WHERE seq = asked.value)
"""
_WITH_PAYLOAD = "SELECT seq FROM payloads WHERE seq IN (SELECT value FROM carray(?))"
# Of a URL with a label the larger number: the other one is that of the link before.
_LOCATE = """
    SELECT seq, host, priority FROM (
        SELECT seq, host, priority FROM seen WHERE url = ?1
        UNION ALL SELECT seq, host, priority FROM arrivals WHERE url = ?1
    ) ORDER BY seq DESC LIMIT 1
"""
_RECENT_LABELS = """
    SELECT url FROM arrivals JOIN payloads USING (seq) WHERE takes_place
"""
_LABELLED = """
    SELECT value FROM carray(?) AS asked
    WHERE EXISTS (
        SELECT 1 FROM seen JOIN payloads USING (seq) WHERE url = asked.value AND takes_place
    )
"""
_FIND_QUEUED = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind
    FROM queue JOIN hosts ON hosts.id = queue.host
    WHERE queue.host = ?2 AND priority = ?3 AND seq = ?1
    UNION ALL
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind
    FROM waiting JOIN hosts ON hosts.id = waiting.host WHERE seq = ?1
"""
# The columns put into these are constants of the schema, so the queries are safe.
_FIND_PAGE = f"""
    SELECT {_PAGE_COLUMNS} FROM {_PAGE_TABLES} WHERE seq = ?
"""  # noqa: S608
_REDIRECTS = """
    SELECT asked.value, redirect_to FROM carray(?1) AS asked
    CROSS JOIN seen ON seen.url = asked.value CROSS JOIN pages ON pages.seq = seen.seq
    WHERE redirect_to IS NOT NULL
    UNION ALL
    SELECT arrivals.url, redirect_to FROM arrivals CROSS JOIN pages USING (seq)
    WHERE redirect_to IS NOT NULL AND arrivals.url IN (SELECT value FROM carray(?1))
"""
_UNFINISHED = f"""
    SELECT count(*) FROM pages
    WHERE {MAY_HAVE_FAILED} AND {PAGES_ONLY}
      AND error IN ({", ".join(map(repr, sorted(UNFINISHED)))})
"""  # noqa: S608
# By what is wanted: its columns, and the tables that have it.
_EXTRAS = {
    Extra.NOTHING: ("", ""),
    Extra.ELEMENTS: (", elements", ""),
    Extra.PLACE: (
        ", segments.name, kept.start, kept.length",
        """
        LEFT JOIN kept ON kept.seq = pages.seq LEFT JOIN segments ON segments.number = kept.segment
        """,
    ),
}
_OF_FORM = {
    Form.PAGE: PAGES_ONLY,
    Form.LISTING: LISTS_ONLY,
    Form.CHECK: CHECKS_ONLY,
    Form.REQUISITE: REQUISITES_ONLY,
}
_STORED = {
    (form, extra): f"""
    SELECT {_PAGE_COLUMNS}, position, pages.seq {columns} FROM {_PAGE_TABLES} {tables}
    WHERE position > ? AND position <= ? AND {condition} ORDER BY position LIMIT ?
    """  # noqa: S608
    for form, condition in _OF_FORM.items()
    for extra, (columns, tables) in _EXTRAS.items()
}
_POSITION = len(PageRecord._fields)  # the place of the column
_ITEMS = """
    SELECT position, pages.url, items, items.error
    FROM pages CROSS JOIN items ON items.seq = pages.seq
    WHERE position > ? ORDER BY position LIMIT ?
"""
_EARLIER = f"""
    SELECT EXISTS (SELECT 1 FROM kept WHERE kept.seq = pages.seq),
           iif(listed.round = totals.round, listed.lastmod_before, NULL), listed.lastmod,
           {_PAGE_COLUMNS} FROM {_PAGE_TABLES} WHERE pages.seq = ?
"""  # noqa: S608
_KEPT_AT = """
    SELECT name, start, kept.length FROM kept JOIN segments ON segments.number = kept.segment
    WHERE kept.seq = ?
"""
_SKIPPED = "SELECT seq, url, reason, depth, parent FROM skipped WHERE seq > ? ORDER BY seq LIMIT ?"
_GIVEN_UP = """
    SELECT host, seq, url, reason, depth, parent FROM given_up
    WHERE (host, seq) > (?, ?) ORDER BY host, seq LIMIT ?
"""
_FIND_GIVEN_UP = "SELECT url, reason, depth, parent FROM given_up WHERE seq = ?1 AND host = ?2"
_FIND_SKIPPED = "SELECT url, reason, depth, parent FROM skipped WHERE seq = ?1"
_OUTGOING = "SELECT id, links FROM outbox WHERE id > ? ORDER BY id LIMIT ?"
_HOSTS = f"SELECT id, {_HOST_COLUMNS} FROM hosts WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
_HOST = f"SELECT {_HOST_COLUMNS} FROM hosts WHERE host = ?"  # noqa: S608
_ROBOTS = f"SELECT {_ROBOTS_COLUMNS} FROM robots WHERE origin = ?"  # noqa: S608
_TRAFFIC = """
    SELECT interval, requests, refused FROM traffic WHERE interval > ? ORDER BY interval LIMIT ?
"""
_READY_HOSTS = """
    SELECT id, host, ready FROM hosts WHERE id > ? AND ready > 0 ORDER BY id LIMIT ?
"""
_GIVEN_UP_HOSTS = """
    SELECT id, host, given_up FROM hosts WHERE id > ? AND (given_up > 0 OR retired IS NOT NULL)
    ORDER BY id LIMIT ?
"""


class SqliteReader(ShardReader):
    """A shard's state as it was committed last."""

    check_limit = 100_000  # URLs that one query asks about

    def __init__(self, database: Database) -> None:
        self.path = database.path
        self._database = database
        self._rows, self._row, self._checked = database.rows, database.row, database.checked
        self._record = database.record
        self._read_elements = ElementsReader(database)

    @classmethod
    def beside(cls, directory: Path, shard: int) -> Self:
        """Open a reader beside the owner, or after it.

        Raises:
            StoreError: the file is missing, not ours, of another version, or damaged.
        """
        return cls(Database.read(shard_path(directory, shard), SHARD))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}>"

    def take_mended(self) -> list[str]:
        """Return what was wrong in the file and is put right."""
        return self._database.take_mended()

    def queued(self, host: str, *, after: tuple[int, int], limit: int) -> list[Entry]:
        """Return a host's next entries in order, past (priority, seq); (−1, −1): the beginning."""
        return self._entries(self._rows(_WINDOW, (host, *after, limit)))

    def queued_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host with queued URLs, and how many; without the waiting room."""
        yield from self._host_counts(_READY_HOSTS)

    def host(self, host: str) -> HostRecord | None:
        """Return what is kept of a host; None if no URL and no record of it was ever committed."""
        row = self._row(_HOST, (host,))
        return None if row is None else self._record(row, HostRecord)

    def hosts(self) -> Iterator[HostRecord]:
        """Yield every host, in the order in which they were found."""
        for _, *row in self._slices(_HOSTS, 0):
            yield self._record(row, HostRecord)

    def robots(self, origin: str) -> RobotsRecord | None:
        """Return the robots.txt kept for an origin; None, too, if its record makes no sense."""
        row = self._row(_ROBOTS, (origin,))
        try:
            return None if row is None else self._checked(row, RobotsRecord)
        except StoreError:
            self._database.say(f"the record of the robots.txt of {origin}: it is fetched again")
            return None

    def counts(self) -> Counts:
        """Return exact totals; every commit keeps them, so nothing is counted here."""
        row = self._row(_COUNTS)
        if row is None:
            raise self._database.damaged("its totals are gone")
        return Counts(*self._checked(row, tuple[int, ...]))

    def traffic(self) -> Iterator[Traffic]:
        """Yield the answers and refusals of every interval that had any, in order."""
        for row in self._slices(_TRAFFIC, 0):
            if out_of_range(row) is None:
                yield self._checked(row, Traffic)

    def stored(
        self,
        form: Form = Form.PAGE,
        *,
        after: int = 0,
        last: int | None = None,
        extra: Extra = Extra.NOTHING,
    ) -> Iterator[Stored]:
        """Yield the records of URLs of a form between two positions, the second included."""
        last = self._last_position() if last is None else last
        query = _STORED[form, extra]
        while rows := self._rows(query, (after, last, _SLICE)):
            after = rows[-1][_POSITION]
            records = self._page_records([row[:_POSITION] for row in rows])
            positions = [row[_POSITION] for row in rows]
            seqs = [row[_POSITION + 1] for row in rows]
            yield from zip(positions, records, *self._extra(rows, extra), seqs, strict=False)

    def _extra(self, rows: list[Row], extra: Extra) -> tuple[Iterator[Any], Iterator[Any]]:
        """Return the elements and the places of rows."""
        elements: Iterator[Any] = repeat(None)
        places: Iterator[Any] = repeat(None)
        if extra is Extra.ELEMENTS:
            elements = map(self._read_elements, [row[-1] for row in rows])
        elif extra is Extra.PLACE:
            kept = [None if row[-1] is None else row[-3:] for row in rows]
            places = iter(self._checked(kept, list[ArchivePlace | None]))
        return elements, places

    def elements_of(self, url: str) -> bytes | None:
        """Return the elements of one page; None if there are none, or no such page."""
        place = self._row(_LOCATE, (url,))
        row = place and self._row("SELECT elements FROM pages WHERE seq = ?", place[:1])
        return self._read_elements(row[0]) if row else None

    def position_of(self, url: str) -> int | None:
        """Return the position of the record of a URL; None: it has none."""
        place = self._row(_LOCATE, (url,))
        row = place and self._row("SELECT position FROM pages WHERE seq = ?", place[:1])
        return self._checked(row[0], int) if row else None

    def kept_at(self, identity: str) -> ArchivePlace | None:
        """Return where the answer of one URL is kept; None: nowhere."""
        place = self._row(_LOCATE, (identity,))
        row = place and self._row(_KEPT_AT, place[:1])
        return self._checked(row, ArchivePlace) if row else None

    def earlier(self, seq: int) -> Earlier | None:
        """Return what a queued URL has of an earlier crawl; None: nothing."""
        row = self._row(_EARLIER, (seq,))
        if row is None:
            return None
        is_kept, *both = row[:3]
        lastmods = None if None in both else self._checked(both, tuple[str, str])
        return Earlier(self._record(row[3:], PageRecord), bool(is_kept), lastmods)

    def unread_pages(self) -> int:
        """Return how many pages could not be read, perhaps through no fault of theirs."""
        row = self._row(_UNFINISHED)
        return 0 if row is None else self._checked(row[0], int)

    def segments(self) -> dict[str, int]:
        """Return the valid length of every segment, by name."""
        rows = self._rows("SELECT name, length FROM segments ORDER BY number")
        return dict(self._checked(rows, list[tuple[str, int]]))

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        """Yield what every page was extracted to, with its position and its URL."""
        for position, url, items, error in self._slices(_ITEMS, after):
            lines = items.split(b"\n") if items else []
            yield position, url, self._checked((lines, error), PageItems)

    def _last_position(self) -> int:
        row = self._row("SELECT next_position FROM totals")
        return 0 if row is None else self._checked(row[0], int) - 1

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped, in the order of arrival."""
        for _, *row in self._slices(_SKIPPED, 0):
            yield self._record(row, Skipped)

    def given_up(self) -> Iterator[Skipped]:
        """Yield every URL that was given up, host by host."""
        last = (0, 0)
        while rows := self._rows(_GIVEN_UP, (*last, _SLICE)):
            yield from (self._record(row, Skipped) for _, _, *row in rows)
            last = rows[-1][:2]

    def given_up_hosts(self) -> Iterator[tuple[str, int]]:
        """Yield every host that was given up or has URLs that were, and how many."""
        yield from self._host_counts(_GIVEN_UP_HOSTS)

    def find(self, url: str) -> Entry | PageRecord | Skipped | None:
        """Return where a URL of this shard stands; None if it is unknown."""
        place = self._row(_LOCATE, (url,))
        if place is None:
            return None
        if row := self._row(_FIND_PAGE, place[:1]):
            return self._record(row, PageRecord)
        if row := self._row(_FIND_QUEUED, place):
            return self._entries([row])[0]
        row = self._row(_FIND_SKIPPED, place[:1]) or self._row(_FIND_GIVEN_UP, place[:2])
        return self._record(row, Skipped) if row else None

    def redirects(self, urls: Sequence[str]) -> dict[str, str]:
        """Return where those of these URLs redirect to whose records say that they do."""
        found: dict[str, str] = {}
        for part in self._parts(sorted(urls)):
            rows = self._rows(_REDIRECTS, (apsw.carray(tuple(part)),))
            found.update(self._checked(rows, list[tuple[str, str]]))
        return found

    def left_queue(self, seqs: Iterable[int]) -> set[int]:
        """Return those of these entries that were recorded or skipped."""
        left: set[int] = set()
        for part in self._parts(sorted(seqs)):
            left.update(seq for (seq,) in self._rows(_LEFT, (apsw.carray(array("q", part)),)))
        return left

    def with_payload(self, seqs: Iterable[int]) -> set[int]:
        """Return those of these entries that carry a payload, as requests do that are sent once."""
        found: set[int] = set()
        for part in self._parts(sorted(seqs)):
            rows = self._rows(_WITH_PAYLOAD, (apsw.carray(array("q", part)),))
            found.update(seq for (seq,) in rows)
        return found

    def outgoing(self) -> Iterator[Candidate]:
        """Yield links to other shards that were not handed over yet."""
        for _, links in self._slices(_OUTGOING, 0):
            yield from decode_links(links)

    def urls(self) -> Iterator[str]:
        """Yield every URL known to the shard, each once."""
        last = ""
        arrived = {identity.partition(" ")[0] for identity in self._arrivals()}
        yield from arrived
        for identity in self._index():  # in order: those of one URL are neighbours
            url = identity.partition(" ")[0]
            if url != last and url not in arrived:
                yield url
            last = url

    def identities(self) -> Iterator[str]:
        """Yield what every request of the shard is known by, each once."""
        arrived = self._arrivals()
        yield from arrived
        # Arrivals may be carried over into the index between two slices.
        yield from (identity for identity in self._index() if identity not in arrived)

    def _index(self) -> Iterator[str]:
        last = ""
        while rows := self._rows(
            "SELECT url FROM seen WHERE url > ? ORDER BY url LIMIT ?", (last, _URL_SLICE)
        ):
            last = rows[-1][0]
            self._checked(rows, list[tuple[str]])
            yield from (url for (url,) in rows)

    def payload(self, seq: int) -> Payload | None:
        """Return what an entry carries; None: nothing."""
        row = self._row("SELECT payload FROM payloads WHERE seq = ?", (seq,))
        if row is None:
            return None
        try:
            return decode_payload(self._checked(row[0], bytes))
        except ValueError as error:
            raise self._database.damaged(f"the payload of entry {seq} ({error})") from None

    def sessions(self) -> dict[str, str]:
        """Return the cookies of all sessions, by name."""
        rows = self._rows("SELECT name, cookies FROM sessions")
        return dict(self._checked(rows, list[tuple[str, str]]))

    def labelled(self, urls: Sequence[str]) -> set[str]:
        """Return those URLs for which there is a request with a label."""
        return self._recent_labels().intersection(urls) | self._labelled_before(urls)

    def _recent_labels(self) -> set[str]:
        rows = self._rows(_RECENT_LABELS)
        return {url for (url,) in self._checked(rows, list[tuple[str]])}

    def _labelled_before(self, urls: Sequence[str]) -> set[str]:
        """Return those of `labelled` that the index has."""
        known: set[str] = set()
        for part in self._parts(sorted(urls)):
            known.update(url for (url,) in self._rows(_LABELLED, (apsw.carray(tuple(part)),)))
        return known

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._database.close()

    def _arrivals(self) -> set[str]:
        """Return the URLs that the index does not have yet: a bounded number."""
        rows = self._rows("SELECT url FROM arrivals")
        return {url for (url,) in self._checked(rows, list[tuple[str]])}

    def _seen(self, urls: set[str]) -> set[str]:
        """Return those that the index has. Asked in order: neighbours share a page of the file."""
        known: set[str] = set()
        for part in self._parts(sorted(urls)):
            known.update(url for (url,) in self._rows(_KNOWN, (apsw.carray(tuple(part)),)))
        return known

    def _entries(self, rows: list[Row]) -> list[Entry]:
        return checked_entries(self._database, rows)

    def _page_records(self, rows: list[Row]) -> list[PageRecord]:
        try:
            return self._checked(rows, list[PageRecord])
        except StoreError:
            return [self._record(row, PageRecord) for row in rows]

    def _host_counts(self, query: str) -> Iterator[tuple[str, int]]:
        return (self._checked(row[1:], tuple[str, int]) for row in self._slices(query, 0))

    def _parts(self, asked: list[T]) -> Iterator[list[T]]:
        for start in range(0, len(asked), self.check_limit):
            yield asked[start : start + self.check_limit]

    def _slices(self, query: str, last: int) -> Iterator[Row]:
        while rows := self._rows(query, (last, _SLICE)):
            yield from rows
            last = rows[-1][0]


def shard_path(directory: Path, shard: int) -> Path:
    """Return the file of a shard."""
    return directory / f"shard-{shard}.db"


def checked_entries(database: Database, rows: list[Row]) -> list[Entry]:
    """Return rows with the columns `ENTRY` as entries; their URLs have a host and a path."""
    entries = database.checked(rows, list[Entry])
    for entry in entries:
        if not entry.url.startswith(("http://", "https://")) or entry.url.find("/", 8) < 0:
            raise database.damaged(f"a URL without a path: {entry.url[:100]!r}")
    return entries
