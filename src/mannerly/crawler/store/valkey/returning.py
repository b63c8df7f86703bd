"""Bring URLs back into the queue, a slice at a time, in the order of the orders.

An order is kept in the server as `STAMP AFTER STAGE JSON`. Failed and given-up URLs have a stamp, a
number that grows: those up to the order's STAMP are meant, and AFTER tells which were brought back,
so that one that fails again is not brought back twice. They are in the server. Skipped URLs and
those with a record are in the logs: an owner brings back those that it can read. URLs whose record
is lost are left to it in the server (`lost_records`). A recrawl also brings those back whose record
is on another machine: their URLs are in the server (`fetched`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mannerly.crawler.control import Recrawl, RetryUrls, decode
from mannerly.crawler.kinds import KINDS, Form
from mannerly.crawler.model import is_failed
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import LeaseLost
from mannerly.crawler.store.lastmod import spares_request

from .batches import LISTS, PAGES, kind_letters, kind_of_record
from .fetched import unpack_block
from .layout import BackUrl
from .lost_records import FAILED
from .packing import Poisoned, pack, unpack_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.records.writer import RecordWriter
    from mannerly.database.client import Payload

    from .client import ValkeyServer
    from .shard import ValkeyShard


# What the stages of a recrawl ask for again.
_LISTS = frozenset({Form.LISTING})
_PAGES = frozenset({Form.PAGE, Form.REQUISITE})


class ReturningUrl(NamedTuple):
    """A URL that comes back."""

    source: str  # the set that it is in: f failed, g given up, k skipped, r it keeps its record
    entry: Entry
    letter: str  # of its record, see `kind_letters`; "": it has none


class ReturningSlice(NamedTuple):
    """One slice of an order."""

    rows: list[ReturningUrl]
    payload: Payload


class _Order(NamedTuple):
    stamp: int
    after: str
    stage: str
    text: str
    control: RetryUrls | Recrawl

    def at(self, after: str) -> str:
        return f"{self.stamp} {after} {self.stage} {self.text}"


class Returning:
    """The orders of one shard to bring URLs back, for its owner."""

    def __init__(self, shard: ValkeyShard, writer: RecordWriter) -> None:
        self._shard = shard
        self._writer = writer
        self._again: Iterator[tuple[Entry, str]] | None = None  # of the stage under way

    def next(self, limit: int, server: ValkeyServer, base: str) -> ReturningSlice | None:
        """Return the next slice; None: the order has to wait.

        Raises:
            LeaseLost: another owner has carried the order out.
        """
        value = server.ask("LINDEX", base + "y", 0)
        if value is None:
            raise LeaseLost("another owner of the shard has brought its URLs back")
        order = _parsed(value, base + "y")
        if isinstance(order.control, Recrawl):
            return self._recrawl(order, order.control, limit)
        step, _, after = order.after.partition(":")
        steps = _steps(order.control)
        if not steps:
            return self._part([], "")
        step = step if step in steps else steps[0]
        if step == "x":
            rows, is_last = _lost(server, base)
            if not is_last:
                part = self._part(rows, order.at("x:0"))
                return part._replace(payload={**part.payload, "lost": True})
            end = None
        elif step in "km":
            read = self._skipped if step == "k" else self._missing
            rows, end = read(order.control, int(after or 0), limit)
        else:
            rows, end = self._kept(order, step, int(after or 0), limit, server, base)
        if end is not None:
            return self._part(rows, order.at(f"{step}:{end}"))
        following = steps[steps.index(step) + 1 :]
        return self._part(rows, order.at(f"{following[0]}:0") if following else "")

    def _kept(
        self, order: _Order, step: str, after: int, limit: int, server: ValkeyServer, base: str
    ) -> tuple[list[ReturningUrl], int | None]:
        """Return failed or given-up URLs, and the stamp of the last one; None: that was all."""
        assert isinstance(order.control, RetryUrls)
        found = server.ask(
            *("ZRANGEBYSCORE", base + step, f"({after}", order.stamp),
            *("WITHSCORES", "LIMIT", 0, limit),
        )
        flat = [value for pair in found for value in pair] if _is_paired(found) else found
        seqs = flat[::2]
        if not seqs:
            return [], None
        rows = []
        for value in server.ask("HMGET", f"{base}{step}e", *seqs):
            mark, _, packed = (value or b"").partition(b" " if step == "f" else b"\0")
            entry = unpack_entry(packed, f"{base}{step}e")
            is_of_this_round = step == "g" or int(mark) >= self._shard.round
            if is_of_this_round and _is_meant(entry, order.control):
                kind = "" if step == "g" else kind_letters(entry.kind)[1]
                rows.append(ReturningUrl(step, entry, kind))
        return rows, int(float(flat[-1])) if len(seqs) == limit else None

    def _skipped(
        self, control: RetryUrls, after: int, limit: int
    ) -> tuple[list[ReturningUrl], int | None]:
        """Return URLs that were skipped for a reason, and the last one's number."""
        rows: list[ReturningUrl] = []
        for entry, reason in self._shard.records().skipped_entries():
            if (
                entry.seq > after
                and reason.partition(":")[0] == control.skipped
                and _is_meant(entry, control)
            ):
                rows.append(ReturningUrl("k", entry, ""))
                if len(rows) == limit:
                    return rows, entry.seq
        return rows, None

    def _missing(
        self, control: RetryUrls, after: int, limit: int
    ) -> tuple[list[ReturningUrl], int | None]:
        """Return pages whose answer is not kept, and the last one's number."""
        log = self._shard.records()
        found = sorted(
            (entry, record)
            for entry, record in log.recorded_entries()
            if entry.seq > after
            and KINDS[entry.kind].is_page
            and not is_failed(record)
            and control.host in (None, entry.host)
            and not log.is_kept(entry.seq)
        )
        rows = [ReturningUrl("r", entry, "p") for entry, _ in found[:limit]]
        self._writer.asked_again([row.entry.seq for row in rows])
        return rows, rows[-1].entry.seq if len(rows) == limit else None

    def _recrawl(self, order: _Order, control: Recrawl, limit: int) -> ReturningSlice | None:
        """Return URLs that have a record, lists or pages; pages wait until the lists were read."""
        shard = self._shard
        if self._again is None:
            if order.stage == PAGES and shard.counts().rechecks and order.after == "0":
                return None
            if unnamed := shard.missing_unnamed:
                raise StoreError(
                    f"{unnamed:,} records of shard {shard.number} cannot be read here: they are on "
                    "shared storage, so give all workers --segments with its directory"
                )
            self._again = self._recorded(_LISTS if order.stage == LISTS else _PAGES)
        part = list(islice(self._again, limit))
        spared = self._spared([entry for entry, _ in part], control.round)
        if spared:
            self._writer.checked(spared, control.round)
        gone = set(spared)
        rows = [ReturningUrl("r", entry, kind) for entry, kind in part if entry.seq not in gone]
        following = order.at("1")
        if len(part) < limit:
            self._again, following = None, ""
        slice_ = self._part(rows, following)
        return slice_._replace(payload={**slice_.payload, "recrawl": True})

    def _recorded(self, forms: frozenset[Form]) -> Iterator[tuple[Entry, str]]:
        """Yield the URLs of some forms that have a record, and the kind of that.

        Those that are recorded on other machines have no record here to compare with.
        """
        here = list(self._shard.records().unchecked_entries())
        for entry, record in here:
            if KINDS[entry.kind].form in forms and not KINDS[entry.kind].is_sent_once:
                yield entry, kind_of_record(entry, record)
        for entry, has_failed in self._shard.lost_records.urls():
            if KINDS[entry.kind].form in forms and not KINDS[entry.kind].is_sent_once:
                yield entry, kind_letters(entry.kind)[has_failed]

    def _spared(self, entries: list[Entry], round_number: int) -> list[int]:
        """Return the pages that are unchanged because a believed sitemap says so, by number."""
        log = self._shard.records()
        votes: dict[str, tuple[int, int]] = {}
        spared = []
        for entry in entries:
            listed = log.listed(entry.url) if KINDS[entry.kind].is_page else None
            if listed is None or listed.round < round_number:
                continue
            if entry.host not in votes:
                votes[entry.host] = self._shard.votes(entry.host)
            said = (listed.before, listed.lastmod)
            if spares_request(entry.url, round_number, *said, *votes[entry.host]):
                spared.append(entry.seq)
        return spared

    def _part(self, rows: list[ReturningUrl], order: str) -> ReturningSlice:
        void = [row.entry.seq for row in rows if row.source != "r"]
        if void:
            self._writer.returned(void)
        back: list[Any] = []
        for row in rows:
            entry = row.entry
            packed = pack(entry.url, entry.host, entry.depth, entry.parent, entry.hops, entry.kind)
            back += BackUrl(row.source, entry.seq, entry.host, entry.priority, packed, row.letter)
        return ReturningSlice(rows, {"back": back, "order": order})


def _is_meant(entry: Entry, order: RetryUrls) -> bool:
    return order.host in (None, entry.host) and (entry.parent is None or not order.seeds)


def _steps(order: RetryUrls) -> list[str]:
    return [
        *(["f"] if order.failed else []),
        *(["g"] if order.given_up else []),
        *(["k"] if order.skipped is not None else []),
        *(["m"] if order.missing else []),
        *(["x"] if order.lost else []),
    ]


def _lost(server: ValkeyServer, base: str) -> tuple[list[ReturningUrl], bool]:
    """Return the first block of lost URLs, and whether there is none."""
    block = server.ask("LINDEX", base + "m", 0)
    if block is None:
        return [], True
    is_failed = block[: len(FAILED)] == FAILED
    rows = []
    for entry in unpack_block(block[len(FAILED) :], base + "m"):
        letters = kind_letters(entry.kind)
        kind = letters[1] if is_failed else letters[0].upper()
        rows.append(ReturningUrl("f" if is_failed else "r", entry, kind))
    return rows, False


def _is_paired(answer: list[Any]) -> bool:
    return bool(answer) and isinstance(answer[0], tuple | list)


def _parsed(value: bytes, key: str) -> _Order:
    try:
        stamp, after, stage, text = value.decode().split(" ", 3)
        control = decode(text)
        if isinstance(control, RetryUrls | Recrawl):
            return _Order(int(stamp), after, stage, text, control)
    except (ValueError, msgspec.MsgspecError) as error:
        raise Poisoned(f"an order in {key} is damaged ({error})") from None
    raise Poisoned(f"an order in {key} is of another kind")
