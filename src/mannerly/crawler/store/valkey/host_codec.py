"""Records of hosts as text, with instants on the server's clock.

A machine's wall clock may be wrong by hours, so an instant that is written by one machine and read
by another is kept on the server's clock. The reader gets it on its own wall clock, and as an
instant of its own monotonic clock (`boot`, `updated_mono`), so that it knows how much is left of a
wait. A record that was made without a boot has no clock to convert from, and stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mannerly.crawler.model import HostRecord, RobotsRecord
from mannerly.crawler.store.ranges import decode_leniently, mend, out_of_range

from .packing import Poisoned, text_of

if TYPE_CHECKING:
    from mannerly.crawler.store.ranges import Notes

    from .client import ValkeyServer

_INSTANTS = (
    "blocked_until",
    "next_at",
    "updated_at",
    "failing_since",
    "breaker_until",
    "smallest_gap_at",
)
_WAITS = ("blocked_until", "next_at", "breaker_until")
_TOTALS = ("fetched", "refused", "failed", "retired", "failures_in_a_row", "requests")
_CLOCKS_AGREE_S = 5.0
_PLACES = [HostRecord._fields.index(name) for name in _INSTANTS]
_BOOT, _UPDATED_MONO = HostRecord._fields.index("boot"), HostRecord._fields.index("updated_mono")
_ON_SERVER = "server"  # the boot of a record whose instants are on the server's clock

_decode_host = msgspec.json.Decoder(HostRecord).decode
_decode_robots = msgspec.json.Decoder(RobotsRecord).decode


class Clocks(NamedTuple):
    """This machine's clocks, to convert with."""

    server: ValkeyServer
    boot: str
    mono: float
    wall: float


def pack_host(record: HostRecord, server: ValkeyServer) -> str:
    """Return a record as text, its instants on the server's clock."""
    if not record.boot:
        return text_of(record)
    values: list[Any] = list(record)
    ahead_s = server.ahead_s
    for place in _PLACES:  # as `_shifted`, in a third of its time: every commit has many records
        if values[place]:
            values[place] += ahead_s
    values[_BOOT], values[_UPDATED_MONO] = _ON_SERVER, 0.0
    return text_of(values)


def unpack_host(data: bytes, key: str, clocks: Clocks, notes: Notes | None = None) -> HostRecord:
    """Return a record, its instants on this machine's clocks; what had to be mended is noted.

    Raises:
        Poisoned: this is no record; the message names the key.
    """
    record = unpacked_on_server(data, key, notes)
    if record.boot != _ON_SERVER:
        return record
    record = _shifted(record, -clocks.server.ahead_s)
    age_s = max(0.0, clocks.wall - record.updated_at)
    return record._replace(boot=clocks.boot, updated_mono=clocks.mono - age_s)


def unpacked_on_server(data: bytes, key: str, notes: Notes | None = None) -> HostRecord:
    """Return a record as it is kept, its instants on the server's clock, its numbers in range.

    Raises:
        Poisoned: this is no record; the message names the key.
    """
    with suppress(msgspec.MsgspecError):
        record = _decode_host(data)
        if out_of_range(record) is None:
            return record
    try:
        record, wrong = mend(decode_leniently(data), HostRecord)
    except ValueError as error:
        raise Poisoned(f"a host's record in {key} is damaged ({error})") from None
    if notes is not None:
        notes.add(f"{key}: {record.host}: {wrong}")
    return record


def packed_on_server(record: HostRecord) -> str:
    """Return a record as text whose instants are on the server's clock already."""
    return text_of(record)


def merged(known: HostRecord, ours: HostRecord) -> HostRecord:
    """Return what is kept of a host, with what else we know: no wait becomes shorter.

    Both are on the server's clock. The totals are those that are kept.
    """
    waits = {name: max(getattr(known, name), getattr(ours, name)) for name in _WAITS}
    newer = ours if ours.updated_at > known.updated_at else known
    if newer is known and all(getattr(known, name) == until for name, until in waits.items()):
        return known
    return newer._replace(
        **waits,
        **{name: getattr(known, name) for name in _TOTALS},
        updated_at=max(known.updated_at, ours.updated_at),
        boot=_ON_SERVER,
        updated_mono=0.0,
    )


def silent_until(record: HostRecord) -> float:
    """Return the instant before which a host must not be contacted."""
    return max(record.blocked_until, record.next_at, record.breaker_until)


def pack_robots(record: RobotsRecord, server: ValkeyServer) -> str:
    """Return a robots.txt as text."""
    return text_of(_moved(record, server.ahead_s))


def unpack_robots(data: bytes, key: str, clocks: Clocks, notes: Notes) -> RobotsRecord | None:
    """Return a robots.txt; None, and a note, for what is none: it is fetched again."""
    with suppress(msgspec.MsgspecError):
        record = _decode_robots(data)
        if out_of_range(record) is None:
            return _moved(record, -clocks.server.ahead_s)
    notes.add(f"{key}: the record of a robots.txt: it is fetched again")
    return None


def _shifted(record: HostRecord, by_s: float) -> HostRecord:
    return record._replace(
        **{name: at + by_s for name in _INSTANTS if (at := getattr(record, name))}
    )


def _moved(record: RobotsRecord, by_s: float) -> RobotsRecord:
    """Move the instants of a robots.txt, which matter in hours, where clocks really differ."""
    if abs(by_s) < _CLOCKS_AGREE_S:
        return record
    since = record.failing_since
    return record._replace(
        fetched_at=record.fetched_at + by_s,
        expires_at=record.expires_at + by_s,
        failing_since=since + by_s if since else since,
    )
