"""Errors to plant in a fleet, to show that the judge finds them.

Each is a mistake that fleets of others make, or that ours would make without one of its rules: it
names the invariant that it breaks (docs/explanation/server-protocol.md). Those in scripts are edits
of their text; the others replace one function for the time of a run.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import msgspec

from mannerly.crawler.runtime.fleet_member import FleetMember
from mannerly.crawler.store.base import Batch, StoreInUse
from mannerly.crawler.store.fleet import LeaseLost, StoreAway
from mannerly.crawler.store.fleet_times import MARGIN_S
from mannerly.crawler.store.segments import SegmentWriter
from mannerly.crawler.store.valkey import batches, leases, reader
from mannerly.crawler.store.valkey import shard as shards
from mannerly.crawler.store.valkey.batches import committed
from mannerly.crawler.store.valkey.claims import Claims
from mannerly.crawler.store.valkey.host_codec import pack_host, unpack_host, unpacked_on_server
from mannerly.crawler.store.valkey.packing import number_of, unpack_waiting
from mannerly.crawler.store.valkey.reminders import Reminders
from mannerly.crawler.store.valkey.shard import ValkeyShard, load_commands
from mannerly.crawler.store.valkey.writes import Writes

from .link import ModelLink
from .plan import Fault, FleetOutcome, Plan
from .world import simulate_fleet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mannerly.crawler.model import Candidate, HostRecord
    from mannerly.crawler.store.base import Committed, Heartbeat, ShardOptions
    from mannerly.crawler.store.valkey.host_codec import Clocks
    from mannerly.crawler.store.valkey.writes import Answer
    from mannerly.database.client import Call, Command
    from mannerly.database.ranges import Notes
    from mannerly.politeness.model import Instant

SMALL = Plan(members=3, hosts=12, pages=8, shards=6, faults=8, busy_s=60.0, duration_s=900.0)
# One page at a time leads to the next host: all other shards rest.
CHAIN = replace(SMALL, hosts=60, pages=1, others=0, host_fan_out=1, crawl_delays_s=(0.0,))
WIDE = replace(SMALL, hosts=60, pages=6, crawl_delays_s=(0.0,))
WIPED = replace(WIDE, faults=0, wiped_at=10.25)
LONG_WAITS = replace(SMALL, refusals=0.1, retry_after_s=200, faults=16, duration_s=20_000.0)


@dataclass(frozen=True, slots=True)
class Planted:
    """One error: edits of scripts, functions that are replaced, and the faults that reveal it."""

    name: str
    breaks: str  # the invariant
    edits: tuple[tuple[str, str], ...] = ()
    patches: tuple[tuple[Any, str, Any], ...] = ()
    kinds: tuple[Fault, ...] = tuple(Fault)
    plan: Plan = SMALL
    seed: int = 1  # found it when it was written: it is tried first

    def run(self, seed: int) -> FleetOutcome:
        """Run a fleet with this error."""
        with _replaced(self.patches):
            return simulate_fleet(replace(self.plan, kinds=self.kinds), seed=seed, edits=self.edits)

    def found_by(self, most: int) -> int | None:
        """Return a seed whose run breaks a promise; None if none of the first ones does."""
        seeds = (self.seed, *range(1, most + 1))
        return next((seed for seed in seeds if not self.run(seed).is_sound), None)


@contextmanager
def _replaced(patches: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    if not patches:
        yield
        return
    (owner, name, function), *others = patches
    with patch.object(owner, name, function), _replaced(others):
        yield


def _forgetful(record: HostRecord, ahead_s: float, clock_s: float) -> str:
    """Keep a host's record without the instants at which it may be contacted again."""
    free = record._replace(next_at=0.0, blocked_until=0.0, breaker_until=0.0)
    return pack_host(free, ahead_s, clock_s)


# What `renew.lua` answers to an owner that has lost its shard, or whose writes were forgotten.
_NOT_OURS = "if held[2] ~= A.token then return {0, now, 0, run, clock} end"
_FORGOTTEN = "if A.n and tonumber(held[4]) < A.n then return {0, now, 0, run, clock} end"
_IS_GAP = "if A.n and not is_repeated and A.n ~= tonumber(held[3]) + 1 then"

# The condition of `claim.lua` for an owner that stays, and the end of its lease by a clock.
_IS_OVER = "if token ~= '' and A.over ~= token .. ' ' .. beat"
_UNTIL = "tonumber(redis.call('HGET', S, 'beat_at')) + 15000"


def _always_over(self: Claims, shard: int, lease_s: float, now: Instant) -> str:  # noqa: ARG001
    """Leave it to the script whether a lease is over."""
    token, beat = self._owners.get(shard, ("", ""))
    return f"{token} {beat}" if token else ""


def _aged_by_the_server(
    data: bytes, key: str, clocks: Clocks, notes: Notes | None = None
) -> HostRecord:
    """Read the age of a record from the clock of the server."""
    record = unpacked_on_server(data, key, notes)
    if not record.updated_at:
        return record
    age_s = max(0.0, clocks.wall - (record.updated_at - clocks.ahead_s))
    right = unpack_host(data, key, clocks, notes)
    counted_s = clocks.mono + clocks.clock_s - record.updated_mono
    return right._replace(updated_mono=right.updated_mono - max(0.0, age_s - counted_s))


_claim = leases.ValkeyFleet.claim


def _without_what_was_under_way(
    self: leases.ValkeyFleet, number: int, options: ShardOptions
) -> ValkeyShard:
    """Take over a shard without the first URL of each host, which its last owner was fetching."""
    before = self.takeovers
    shard = _claim(self, number, options)
    if self.takeovers > before:
        for host, queued in list(shard.queued_hosts()):
            (first,) = shard.queued(host, after=(-1, -1), limit=1)
            _pop(shard, host, first.priority, queued)
        shard.load(shard._server.ask_all(load_commands(shard._base)))
    return shard


def _pop(shard: ValkeyShard, host: str, priority: int, queued: int) -> None:
    base, server = shard._base, shard._server
    key = f"{base}l:{priority}:{host}"
    server.ask("LPOP", key)
    _, *priorities = server.ask("HGET", f"{base}n", host).split()
    left = [each for each in priorities if int(each) != priority or server.ask("EXISTS", key)]
    server.ask("HSET", f"{base}n", host, b" ".join([b"%d" % (queued - 1), *left]))
    server.ask("HINCRBY", f"{base}s", "queued", -1)


_run = ModelLink._run


def _with_own_time(
    self: ModelLink, calls: Iterable[Call], commands: Sequence[Command]
) -> tuple[list[Any], list[Any]]:
    """Tell every script what time it is here."""
    wall_ms = int(self.wall() * 1000)
    told = [(name, keys, {**what, "wall": wall_ms}) for name, keys, what in calls]
    return _run(self, told, commands)


_renew = leases.ValkeyFleet.renew


def _sure_from_the_answer(
    self: leases.ValkeyFleet, heartbeat: Heartbeat, *, now: Instant
) -> list[int]:
    """Count a lease from the answer to a renewal, up to its end."""
    lost = _renew(self, heartbeat, now=now)
    for shard in self.claimed.values():
        if shard.sure_until == now + self.lease_s - MARGIN_S:
            shard.sure_until = self._crawl.mono() + self.lease_s
    return lost


_load = ValkeyShard.load


def _load_or_keep(self: ValkeyShard, left: list[Any]) -> None:
    """Begin with a shard; if that fails, do not let go of it."""
    try:
        _load(self, left)
    except StoreAway:
        self.close = lambda: None  # type: ignore[method-assign]
        raise


def _claim_or_keep(self: FleetMember, number: int) -> bool:
    """Claim a shard; if something fails afterwards, do not let go of it."""
    if not self._engine.shards.may_add(number):
        return False
    try:
        self._worker.take(number, self._worker.opener.claim(number, patience_s=0.0))
    except (StoreInUse, LeaseLost):
        return False
    return True


_begin, _call = Writes.begin, Writes.call


def _begin_over(self: Writes, name: str, *what: Any) -> None:
    """Give a write the number of the last one if no answer to that came."""
    if self._pending is not None:
        self._pending = None
        self.number -= 1
    _begin(self, name, *what)


def _is_unsent(self: Writes) -> bool:
    return self._pending is not None and self._pending is not vars(self).get("sent")


def _call_once(self: Writes) -> Call:
    vars(self)["sent"] = self._pending
    return _call(self)


def _committed_of_another(answer: Answer, candidates: Sequence[Candidate]) -> Committed:
    """Take an answer that may be to another write."""
    new = [place for place in answer.new if place < len(candidates)]
    return committed(msgspec.structs.replace(answer, new=new), candidates)


def _flush_later(self: SegmentWriter) -> dict[str, int]:
    return self._changed


def _write_when_committed(self: SegmentWriter) -> None:
    self._write()
    self._changed = {}


_begin_commit, _asked = ValkeyShard._begin_commit, ValkeyShard.asked


def _commit_without_links(self: ValkeyShard, batch: Batch, whole: Batch) -> None:
    """Leave what a batch links to for later."""
    later = vars(self).setdefault("later", [])
    later += batch.outgoing
    _begin_commit(self, replace(batch, outgoing=[]), whole)


def _asked_with_links(self: ValkeyShard, arrivals: int) -> None:
    """Queue links half a second after the commit that they came with."""
    if links := vars(self).pop("later", []):
        batch = Batch(outgoing=links)
        self.arrived.heard_at = self._server.mono()
        _begin_commit(self, batch, batch)
    else:
        _asked(self, arrivals)


def _asked_for_urls(self: ValkeyShard, arrivals: int) -> None:
    """Learn what others have queued by reading it."""
    arrived, now = self.arrived, self._server.mono()
    if not arrived.heard(arrivals, now):
        return
    arrived.count = arrivals
    for data in self._server.ask("LRANGE", self._base + "i", 0, -1):
        if (seq := number_of(data)) > arrived.last_known:
            arrived.learn([unpack_waiting(data[4:], seq, self._base + "i")], arrivals, seq, now)


_finished = ValkeyShard._finished


def _finished_but_for_known(self: ValkeyShard, answer: Answer) -> None:
    last = self.arrived.last_known
    arrived = [data for data in answer.arrived if number_of(data) > last]
    _finished(self, msgspec.structs.replace(answer, arrived=arrived))
    self.arrived.last_known = max(last, self.arrived.last_known)


def _rested_once(self: leases.ValkeyFleet) -> bool:
    """Return whether every shard has been seen at rest, at whatever instants."""
    seen: set[int] = vars(self).setdefault("seen", set())
    crawl = self._crawl
    for number in range(crawl.manifest.shards):
        if crawl.server.ask("HGET", crawl.keys.shard(number), "rests") == b"1":
            seen.add(number)
    return len(seen) == crawl.manifest.shards


PLANTED = (
    Planted(
        "no fencing",
        "I6",
        edits=(
            (_NOT_OURS, ""),
            ("if held[2] ~= A.token then\n", "if false then\n"),
            (_IS_GAP, "if false then"),
        ),
        kinds=(Fault.STOP, Fault.CUT),
    ),
    Planted(
        "leases by the client's clock",
        "I3",
        edits=(
            (_IS_OVER, "if token ~= '' and A.wall < " + _UNTIL),
            ("local now = now_ms()", "local now = A.wall or now_ms()"),
        ),
        patches=((ModelLink, "_run", _with_own_time), (Claims, "over", _always_over)),
    ),
    Planted(
        "leases by the server's clock",
        "I3",
        edits=((_IS_OVER, "if token ~= '' and now_ms() < " + _UNTIL),),
        patches=((Claims, "over", _always_over),),
        kinds=(Fault.CLOCK,),
        seed=4,
    ),
    Planted(
        "no takeover while the server's clock is behind",
        "I1",
        edits=((_IS_OVER, _IS_OVER + " or (token ~= '' and now_ms() < " + _UNTIL + ")"),),
        kinds=(Fault.CLOCK, Fault.KILL, Fault.JOIN),
        plan=replace(SMALL, duration_s=400.0),
        seed=6,
    ),
    Planted(
        "waits by the server's clock",
        "I3",
        patches=((reader, "unpack_host", _aged_by_the_server),),
        kinds=(Fault.CLOCK, Fault.KILL, Fault.JOIN),
        plan=LONG_WAITS,
        seed=2,
    ),
    Planted(
        "next instant not kept",
        "I13",
        patches=((batches, "pack_host", _forgetful),),
        kinds=(Fault.JOIN, Fault.KILL),
        seed=2,
    ),
    Planted(
        "pop and forget",
        "I10",
        patches=((leases.ValkeyFleet, "claim", _without_what_was_under_way),),
        kinds=(Fault.KILL, Fault.JOIN),
    ),
    Planted(
        "no hold after a restart",
        "I4",
        edits=(("if is_held_back then return", "if false then return"),),
        kinds=(Fault.UNKNOWN_OWNER,),
        seed=5,
    ),
    Planted(
        "waits that the server forgot are not told again",
        "I14",
        patches=((Reminders, "tell", lambda *_: None),),
        kinds=(Fault.FORGET,),
        plan=LONG_WAITS,
        seed=5,
    ),
    Planted(
        "a claim that fails half-way is kept",
        "I5",
        patches=(
            (ValkeyShard, "load", _load_or_keep),
            (FleetMember, "_claim", _claim_or_keep),
        ),
        kinds=(Fault.BREAK, Fault.JOIN, Fault.KILL),
    ),
    Planted(
        "a lease counted from the answer to its end",
        "I2",
        patches=((leases.ValkeyFleet, "renew", _sure_from_the_answer),),
        # A member that is stopped while its renewal is under way reads the answer when it is woken:
        # the renewal counted for its shards, which others may have taken over meanwhile. So there
        # are slow answers and stops enough, members that are awake, and pages left to fetch.
        kinds=(Fault.SLOW, Fault.STOP),
        plan=replace(
            SMALL,
            members=4,
            shards=24,
            hosts=96,
            pages=24,
            faults=48,
            busy_s=120.0,
            delay_s=1.0,
            crawl_delays_s=(0.0,),
            slow_s=(1.9, 2.0),  # most of the client's timeout
        ),
        seed=4,
    ),
    Planted(
        "a gap in the numbers of writes is not noticed",
        "I7",
        edits=((_IS_GAP, "if false then"), (_FORGOTTEN, "")),
        kinds=(Fault.FORGET, Fault.FAILOVER),
        seed=2,
    ),
    Planted(
        "a link is known before it is queued",
        "I9",
        edits=(
            ("C.queued = C.queued + #new\n", "C.queued = C.queued + queued\n"),
            ("if C.waiting > 0 then room = 0 end", "if told then room = 0 end"),
            ("push(P .. 'w', waiting)", ""),
            ("C.waiting = C.waiting + #waiting\n", ""),
        ),
    ),
    Planted(
        "a lost answer is taken for a lost write",
        "I7",
        patches=(
            (Writes, "begin", _begin_over),
            (Writes, "call", _call_once),
            (Writes, "is_pending", property(_is_unsent)),
            (shards, "committed", _committed_of_another),
        ),
        kinds=(Fault.BREAK,),
        seed=5,
    ),
    Planted(
        "links are queued after the commit of their page",
        "I8",
        patches=(
            (ValkeyShard, "_begin_commit", _commit_without_links),
            (ValkeyShard, "asked", _asked_with_links),
        ),
        kinds=(Fault.KILL,),
        plan=CHAIN,
    ),
    Planted(
        "records are written after their commit",
        "I8",
        patches=(
            (SegmentWriter, "flush", _flush_later),
            (SegmentWriter, "committed", _write_when_committed),
        ),
        kinds=(Fault.SLOW, Fault.KILL, Fault.JOIN),
        plan=replace(SMALL, members=6, faults=24, slow_s=(2.0, 5.0)),
        seed=3,
    ),
    Planted(
        "URLs are learned without a numbered write",
        "I11",
        patches=(
            (ValkeyShard, "asked", _asked_for_urls),
            (ValkeyShard, "_finished", _finished_but_for_known),
        ),
        kinds=(Fault.FORGET, Fault.FAILOVER),
        plan=replace(WIDE, faults=16),
        seed=3,
    ),
    Planted(
        "URLs are told of with every answer",
        "I11",
        edits=(("if told > 0 then redis.call('LTRIM', P .. 'i', told, -1) end", ""),),
    ),
    Planted(
        "links are added to a shard that was wiped",
        "I12",
        edits=(("    if known[1] ~= A.id then\n", "    if false then\n"),),
        plan=WIPED,
    ),
    Planted(
        "links do not end a rest",
        "I15",
        edits=(("'buckets', C.buckets, 'rests', '0')", "'buckets', C.buckets)"),),
        kinds=(Fault.KILL, Fault.JOIN),
        plan=CHAIN,
        seed=4,
    ),
    Planted(
        "rests at different instants are the end",
        "I16",
        patches=((leases.ValkeyFleet, "finished", _rested_once),),
        plan=CHAIN,
    ),
)
