"""The memory of hosts in a server, for all crawls there: `HostMemory`.

The rules are those of `inprocess`, on a copy: what a call concerns is read, changed by these
rules, and written back by one script if it is still as it was read (otherwise again from the
beginning). So there is one version of the rules, and every call is atomic.

**Time** is counted as for shards (`ages`): signs of life, budgets and releases carry the stamp of
the process that wrote them, and a reader knows the least time that has passed since. The clock of
the server, which may be set, dates lessons only: their age is counted in days.

**Tidying.** A process that joins or gives a sign of life removes dead holders with their leases
and wishes. Once a day the first one that joins removes what was not used for long.

All keys have one hash tag (`mannerly:{hosts}:…`): hosts are claimed far less often than pages are
committed, and calls concern many hosts at once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from mannerly.database.address import parse
from mannerly.database.client import ServerConnection, hash_pieces, pairs
from mannerly.database.errors import StoreBusy
from mannerly.database.ranges import Notes, decoded
from mannerly.database.runs import KnownRuns
from mannerly.database.scripts import assembled
from mannerly.politeness.model import Now
from mannerly.politeness.pace import Lesson  # noqa: TC001 - msgspec reads it at run time

from .base import (
    DAY_S,
    KEPT_S,
    PRIVATE_LESSON_S,
    SHORT_WAIT_S,
    UNREADABLE_WAIT_S,
    Holder,
    HostBudget,
    InUse,
    LeaseTimes,
    is_private,
)
from .inprocess import DatedBudget, HostData, HostLease, MemoryHosts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mannerly.database.scripts import Script

    from .base import Claimed

T = TypeVar("T")

_PREFIX = "mannerly:{hosts}:"
_BUDGETS, _LEASES, _HOLDERS, _WISHES = (_PREFIX + name for name in ("b", "l", "h", "w"))
_KEYS = (_BUDGETS, _LEASES, _HOLDERS, _WISHES)
_RUNS = _PREFIX + "run"
_TRIES = 50  # of a change that others overtake
_OLD_CLOCK = "server"  # the boot of stamps that earlier releases have written


class _Kept(NamedTuple):
    """A host's budget as it is kept; a value that makes no sense becomes the default."""

    at: float  # the server's time
    lesson: Lesson | None = None
    crawl_delay_s: float = 0.0
    gap_s: float = 0.0
    sent_s_ago: float | None = None
    next_in_s: float = UNREADABLE_WAIT_S
    failing_s: float | None = None
    failures_in_a_row: int = 0
    breaker_opens: int = 0
    breaker_in_s: float | None = None
    learned_s_ago: float = 0.0
    learned_by: str = ""
    stamp: str = ""  # the same instant as `at`, of the process that wrote it


_decode_budget = msgspec.json.Decoder(_Kept).decode
_decode_lease = msgspec.json.Decoder(tuple[str, float, float | str]).decode
_decode_holder = msgspec.json.Decoder(tuple[float | str, str, str, str]).decode
_decode_wishes = msgspec.json.Decoder(list[str]).decode
_NOBODY = Holder("", "", "a crawl from before the server's restart", "")


class HostsServer(ServerConnection):
    """A connection to a server for its memory of hosts."""

    def script(self, name: str) -> Script:
        """Return a script by its name."""
        return _script(name)


class ValkeyHosts:
    """A `HostMemory` in a Redis or Valkey server."""

    def __init__(
        self, url: str, times: LeaseTimes | None = None, server: ServerConnection | None = None
    ) -> None:
        self._server = server or HostsServer(parse(url, needs_name=False))
        self.location = self._server.address.server
        self.times = times or LeaseTimes()
        self._notes = Notes()
        self._runs = KnownRuns()
        self._dead: set[str] = set()  # holders that were seen

    def join(self, holder: Holder, now: Now) -> None:
        """Become a holder."""
        del now  # see `_read`
        self._change([], lambda memory, now: memory.join(holder, now))
        self._remove_dead()
        self._expire()

    def renew(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give a sign of life, and write some budgets."""
        del now
        hosts = [each.host for each in budgets]
        self._change(hosts, lambda memory, now: memory.renew(holder, budgets, now))
        self._remove_dead()

    def claim(self, holder: str, hosts: Mapping[str, float], now: Now) -> dict[str, Claimed]:
        """Ask for hosts."""
        del now

        def ask(memory: MemoryHosts, now: Now) -> dict[str, Claimed]:
            if not self._is_held_back:
                return memory.claim(holder, hosts, now)
            mine = memory.in_use(hosts, now)
            known = {
                host: gap_s
                for host, gap_s in hosts.items()
                if host in mine and mine[host].id == holder
            }
            granted = memory.claim(holder, known, now)
            return {host: granted.get(host) or InUse(mine.get(host, _NOBODY), 1) for host in hosts}

        return self._change(list(hosts), ask)

    def wanted(self, holder: str, now: Now) -> dict[str, int]:
        """Return the hosts of a holder that other crawls wait for, and how many of them."""
        del now
        if not self._server.ask("HLEN", _WISHES):
            return {}  # as it is most of the time: one round trip instead of three
        return self._change(None, lambda memory, now: memory.wanted(holder, now))

    def write(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts."""
        del now
        hosts = [each.host for each in budgets]
        self._change(hosts, lambda memory, now: memory.write(holder, budgets, now))

    def release(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts and give these hosts back."""
        del now
        hosts = [each.host for each in budgets]
        self._change(hosts, lambda memory, now: memory.release(holder, budgets, now))

    def withdraw(self, holder: str, hosts: Iterable[str], now: Now) -> None:
        """Take wishes back."""
        del now
        names = list(hosts)
        self._change(names, lambda memory, now: memory.withdraw(holder, names, now))

    def leave(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write these budgets, give all hosts back and take all wishes back."""
        del now
        hosts = {each.host for each in budgets} | self._hosts_of([holder])
        self._change(sorted(hosts), lambda memory, now: memory.leave(holder, budgets, now))

    def budgets(self, hosts: Iterable[str], now: Now) -> dict[str, HostBudget]:
        """Return what is known of some hosts, without claiming them."""
        del now
        names = list(hosts)
        return self._change(names, lambda memory, now: memory.budgets(names, now))

    def in_use(self, hosts: Iterable[str], now: Now, *, besides: str = "") -> dict[str, Holder]:
        """Return the holders of these hosts; free hosts are left out."""
        del now
        names = list(hosts)
        return self._change(names, lambda memory, now: memory.in_use(names, now, besides=besides))

    def forget(self, host: str, now: Now) -> bool:
        """Forget what was learned of a host, not its waits; return whether it was known."""
        del now
        return self._change([host], lambda memory, now: memory.forget(host, now))

    def take_mended(self) -> list[str]:
        """Return what was wrong in the server and is put right or left out."""
        return self._notes.take()

    def close(self) -> None:
        """Close the connection; closing twice is harmless. It does not `leave`."""
        self._server.close()

    # ------------------------------------------------------------------ atomic changes

    def _change(self, hosts: list[str] | None, change: Callable[[MemoryHosts, Now], T]) -> T:
        """Apply a change to a copy of what concerns these hosts (None: all that are wished for).

        Raises:
            StoreBusy: others were faster again and again; nothing was changed.
        """
        for _ in range(_TRIES):
            now, before = self._read(hosts)
            data, read = self._data(before, now)
            memory = MemoryHosts(self.location, self.times, data)
            self._dead = memory.dead(now)
            answer = change(memory, now)
            changes = _differences(before, self._values(before, read, data, now))
            if not changes or self._server.call("hosts", _KEYS, {"changes": changes}):
                return answer
        raise StoreBusy(f"{self.location} is changed by others all the time: try again")

    def _read(self, hosts: list[str] | None) -> tuple[Now, list[dict[str, bytes]]]:
        """Return the time, and what is kept of some hosts: budgets, leases, holders, wishes."""
        names = hosts
        if names is None:
            names = [host.decode() for host in self._server.ask("HKEYS", _WISHES)]
        commands: list[tuple[str, ...]] = [("HGETALL", _HOLDERS)]
        if names:
            commands += [("HMGET", key, *names) for key in (_BUDGETS, _LEASES, _WISHES)]
        mono = self._server.mono
        runs = {"runs": self._runs.settled(self.times.lease_s, mono())}
        (server_ms, run, is_held_back), (holders, *rows) = self._server.call_and_ask(
            ("hosts_run", [_RUNS], runs), commands
        )
        self._runs.saw(0, run.decode(), mono())
        self._is_held_back = bool(is_held_back)
        found: list[dict[str, bytes]] = [
            {host: value for host, value in zip(names, row, strict=True) if value is not None}
            for row in rows
        ]
        budgets, leases, wishes = found or [{}, {}, {}]
        alive = {name.decode(): value for name, value in pairs(holders)}
        kept = [budgets, leases, alive, wishes]
        for key, values in zip(_KEYS, kept, strict=True):
            self._remove_bytes(key, values)
        # Every stamp that was read was made before: the clock is read last.
        return Now(mono(), server_ms / 1000.0), kept

    def _remove_bytes(self, key: str, values: dict[str, bytes]) -> None:
        """Remove values that are no text: a script cannot compare them with what was read."""
        for name in [name for name, value in values.items() if not _is_text(value)]:
            del values[name]
            self._server.change("HDEL", key, name)
            self._notes.add(f"{self.location}: removed {name!r} from {key}: it is no text")

    def _data(self, kept: list[dict[str, bytes]], now: Now) -> tuple[HostData, HostData]:
        """Return values of the server as `inprocess` has them, without those of no sense.

        Their instants are on our monotonic clock. The second part has those that are sound, to
        tell what is replaced afterwards.
        """
        budgets, leases, holders, wishes = kept
        data, sound = HostData(), HostData()
        for host, value in budgets.items():
            known, is_sound = self._budget(host, value, now)
            at = Now(self._instant(known.stamp or known.at, now), known.at)
            data.budgets[host] = DatedBudget(HostBudget._make((host, *known[1:-1])), at)
            if is_sound:
                sound.budgets[host] = data.budgets[host]
        for host, value in leases.items():
            if (lease := self._decoded(_decode_lease, value, _LEASES)) is not None:
                freed_at = self._instant(lease[2], now) if lease[2] else 0.0
                data.leases[host] = sound.leases[host] = HostLease(lease[0], lease[1], freed_at)
        for name, value in holders.items():
            if (holder := self._decoded(_decode_holder, value, _HOLDERS)) is not None:
                known_at = Holder(name, *holder[1:]), self._instant(holder[0], now)
                data.holders[name] = sound.holders[name] = known_at
        for host, value in wishes.items():
            if (names := self._decoded(_decode_wishes, value, _WISHES)) is not None:
                data.wishes[host] = names
        return data, sound

    def _budget(self, host: str, value: bytes, now: Now) -> tuple[_Kept, bool]:
        """Return a budget, and whether it was sound: else it was mended, and is written so."""
        try:
            known, wrong = decoded(value, _decode_budget, _Kept)
        except ValueError:
            stamp = self._server.ages.stamp(now.mono)
            known, wrong = _Kept(now.wall, stamp=stamp), "unreadable"
        if wrong:
            self._notes.add(f"{self.location}: {_BUDGETS}: {host}: {wrong}")
        return known, not wrong

    def _decoded(self, decode: Callable[[bytes], T], value: bytes, key: str) -> T | None:
        """Return a value; None for one that cannot be read, which the next change removes."""
        try:
            return decode(value)
        except msgspec.MsgspecError as error:
            self._notes.add(f"{self.location}: left out a value in {key} ({error})")
            return None

    def _instant(self, stamp: float | str, now: Now) -> float:
        """Return the latest instant of our clock at which a stamp can have been made."""
        text = stamp if isinstance(stamp, str) else f"{_OLD_CLOCK}:{int(stamp * 1000)}"
        return now.mono - self._server.ages.age_s(text, now.mono)

    def _values(
        self, before: list[dict[str, bytes]], read: HostData, data: HostData, now: Now
    ) -> list[dict[str, str]]:
        """Return values of `inprocess` as the server has them.

        What was not replaced since it was read stays as it was; what was is of this moment.
        """
        stamp = self._server.ages.stamp(now.mono)
        budgets, leases, holders, _ = before
        return [
            {
                host: budgets[host].decode()
                if dated is read.budgets.get(host)
                else _text(_Kept(now.wall, *dated.budget[1:], stamp))
                for host, dated in data.budgets.items()
            },
            {
                host: leases[host].decode()
                if lease is read.leases.get(host)
                else _text([lease.holder, lease.gap_s, stamp if lease.freed_at else 0.0])
                for host, lease in data.leases.items()
            },
            {
                name: holders[name].decode()
                if known is read.holders.get(name)
                else _text([stamp, *known[0][1:]])
                for name, known in data.holders.items()
            },
            {host: _text(list(names)) for host, names in data.wishes.items()},
        ]

    # ------------------------------------------------------------------ tidying

    def _remove_dead(self) -> None:
        """Remove the holders that are dead, with their leases and wishes."""
        if dead := self._dead:
            hosts = self._hosts_of(dead)
            self._change(sorted(hosts), lambda memory, now: memory.remove_dead(now))

    def _hosts_of(self, holders: Collection[str]) -> set[str]:
        """Return the hosts that these holders hold or wish for."""
        hosts = set()
        for host, value in pairs(self._server.ask("HGETALL", _LEASES)):
            lease = self._decoded(_decode_lease, value, _LEASES)
            if lease is not None and lease[0] in holders:
                hosts.add(host.decode())
        for host, value in pairs(self._server.ask("HGETALL", _WISHES)):
            if not set(holders).isdisjoint(self._decoded(_decode_wishes, value, _WISHES) or ()):
                hosts.add(host.decode())
        return hosts

    def _expire(self) -> None:
        """Remove the budgets that were not used for long, once a day."""
        now, _ = self._read([])
        tidied = float(self._server.ask("HGET", _RUNS, "tidied") or 0)
        if abs(now.wall - tidied) < DAY_S:
            return
        self._server.change("HSET", _RUNS, "tidied", int(now.wall))
        for piece in hash_pieces(self._server, _BUDGETS):
            changes: list[int | str] = []
            for name, value in piece:
                if not _is_text(value):
                    continue
                host, (known, _) = name.decode(), self._budget(name.decode(), value, now)
                kept_s = PRIVATE_LESSON_S if is_private(host) else KEPT_S
                if now.wall - known.at > kept_s and known.next_in_s <= SHORT_WAIT_S:
                    changes += (1, host, value.decode(), "")
            if changes:
                self._server.call("hosts", _KEYS, {"changes": changes})


@cache
def _script(name: str) -> Script:
    return assembled(__package__, name)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _differences(before: list[dict[str, bytes]], after: list[dict[str, str]]) -> list[int | str]:
    """Return what `hosts.lua` has to change: number of the key, field, old and new value."""
    changes: list[int | str] = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        for name in old.keys() | new.keys():
            known, wanted = old.get(name, b"").decode(), new.get(name, "")
            if known != wanted:
                changes += (number, name, known, wanted)
    return changes


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
