"""Records of hosts as text, with instants on the server's clock and an age on the shard's clock.

A machine's wall clock may be wrong by hours, so an instant that is written by one machine and read
by another is kept on the server's clock. What is left of a wait does not depend on that clock,
which may be set: it is the difference between two instants of one record, less the age of the
record. The age is counted on the clock of the shard (`leases`), which no one can set: that is
`updated_mono` as it is kept. The reader gets it as an instant of its own monotonic clock. A
record without an instant of a monotonic clock cannot be converted, and stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mannerly.crawler.model import HostRecord, RobotsRecord
from mannerly.database.ranges import decoded, out_of_range

from .packing import Poisoned, text_of

if TYPE_CHECKING:
    from mannerly.database.ranges import Notes

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
    """The clocks of this machine, of the server and of a shard, to convert with."""

    boot: str
    mono: float
    wall: float
    ahead_s: float  # the server's clock, before our wall clock
    clock_s: float  # the shard's clock, before our monotonic clock


def pack_host(record: HostRecord, ahead_s: float, clock_s: float) -> str:
    """Return a record as text; how far the clocks of server and shard are ahead: see `Clocks`."""
    if not record.updated_mono:
        return text_of(record)
    values: list[Any] = list(record)
    for place in _PLACES:  # as `_shifted`, in a third of its time: every commit has many records
        if values[place]:
            values[place] += ahead_s
    values[_BOOT] = _ON_SERVER
    values[_UPDATED_MONO] = max(0.0, round(values[_UPDATED_MONO] + clock_s, 3))
    return text_of(values)


def unpack_host(data: bytes, key: str, clocks: Clocks, notes: Notes | None = None) -> HostRecord:
    """Return a record, its instants on this machine's clocks; what had to be mended is noted.

    Raises:
        Poisoned: this is no record; the message names the key.
    """
    record = unpacked_on_server(data, key, notes)
    if record.boot != _ON_SERVER:
        return record
    age_s = max(0.0, clocks.mono + clocks.clock_s - record.updated_mono)
    # Its other instants keep their distance from now, whatever the server's clock shows by now.
    shown_at = min(clocks.wall, record.updated_at - clocks.ahead_s)
    return _shifted(record, clocks.wall - age_s - record.updated_at)._replace(
        updated_at=shown_at,
        boot=clocks.boot,
        updated_mono=clocks.mono - (clocks.wall - shown_at),
    )


def unpacked_on_server(data: bytes, key: str, notes: Notes | None = None) -> HostRecord:
    """Return a record as it is kept, its instants on the server's clock, its numbers in range.

    Raises:
        Poisoned: this is no record; the message names the key.
    """
    try:
        record, wrong = decoded(data, _decode_host, HostRecord)
    except ValueError as error:
        raise Poisoned(f"a host's record in {key} is damaged ({error})") from None
    if wrong and notes is not None:
        notes.add(f"{key}: {record.host}: {wrong}")
    return record


def packed_on_server(record: HostRecord) -> str:
    """Return a record as text whose instants are on the server's clock already."""
    return text_of(record)


def merged(known: HostRecord, ours: HostRecord) -> HostRecord:
    """Return what is kept of a host, with what else we know: no wait becomes shorter.

    Both are as they are kept. Their waits are compared on the clock of the shard. The totals are
    those that are kept.
    """
    newer = max(known, ours, key=attrgetter("updated_mono", "updated_at"))
    ends = {name: max(_end_of(known, name), _end_of(ours, name)) for name in _WAITS}
    if newer is known and all(_end_of(known, name) == end for name, end in ends.items()):
        return known
    to_server_s = newer.updated_at - newer.updated_mono
    waits: dict[str, Any] = {name: end and end + to_server_s for name, end in ends.items()}
    return newer._replace(
        **waits,
        **{name: getattr(known, name) for name in _TOTALS},
        boot=_ON_SERVER,
    )


def _end_of(record: HostRecord, wait: str) -> float:
    """Return when a wait ends, on the clock of the shard; 0 if there is none."""
    until: float = getattr(record, wait)
    return round(until - record.updated_at + record.updated_mono, 3) if until else 0.0


def silent_until(record: HostRecord) -> float:
    """Return the instant before which a host must not be contacted."""
    return max(record.blocked_until, record.next_at, record.breaker_until)


def pack_robots(record: RobotsRecord, ahead_s: float) -> str:
    """Return a robots.txt as text."""
    return text_of(_moved(record, ahead_s))


def unpack_robots(data: bytes, key: str, clocks: Clocks, notes: Notes) -> RobotsRecord | None:
    """Return a robots.txt; None, and a note, for what is none: it is fetched again."""
    with suppress(msgspec.MsgspecError):
        record = _decode_robots(data)
        if out_of_range(record) is None:
            # One from the future was written before the server's clock was set back: it is new.
            late_s = max(0.0, record.fetched_at - clocks.ahead_s - clocks.wall)
            return _moved(record, -clocks.ahead_s - late_s)
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
