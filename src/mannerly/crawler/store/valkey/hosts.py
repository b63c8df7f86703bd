"""The memory of hosts in a server, for all crawls there: `HostMemory`.

The rules are those of `memory_hosts`, on a copy: what a call concerns is read, changed by these
rules, and written back by one script if it is still as it was read (otherwise again from the
beginning). So there is one version of the rules, and every call is atomic. Time is the server's.

All keys have one hash tag (`mannerly:{hosts}:…`): hosts are claimed far less often than pages are
committed, and calls concern many hosts at once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from mannerly.crawler.model import Now
from mannerly.crawler.store.base import StoreBusy
from mannerly.crawler.store.host_memory import (
    UNREADABLE_WAIT_S,
    Holder,
    HostBudget,
    InUse,
    LeaseTimes,
)
from mannerly.crawler.store.memory_hosts import DatedBudget, HostData, HostLease, MemoryHosts
from mannerly.crawler.store.ranges import Notes, decode_leniently, mend, out_of_range
from mannerly.politeness.pace import Lesson  # noqa: TC001 - msgspec reads it at run time

from .address import parse
from .client import ValkeyServer
from .hashes import pairs
from .keys import PREFIX
from .packing import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mannerly.crawler.store.host_memory import Claimed

T = TypeVar("T")

_BASE = PREFIX + "{hosts}:"
_BUDGETS, _LEASES, _HOLDERS, _WISHES = (_BASE + name for name in ("b", "l", "h", "w"))
_KEYS = (_BUDGETS, _LEASES, _HOLDERS, _WISHES)
_RUNS = _BASE + "run"
_TRIES = 50  # of a change that others overtake


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


_decode_budget = msgspec.json.Decoder(_Kept).decode
_decode_lease = msgspec.json.Decoder(tuple[str, float, float]).decode
_decode_holder = msgspec.json.Decoder(tuple[float, str, str, str]).decode
_decode_wishes = msgspec.json.Decoder(list[str]).decode
_NOBODY = Holder("", "", "a crawl from before the server's restart", "")


class ValkeyHosts:
    """A `HostMemory` in a Redis or Valkey server."""

    def __init__(self, url: str, times: LeaseTimes | None = None) -> None:
        self._server = ValkeyServer(parse(url, needs_name=False))
        self.location = self._server.address.server
        self.times = times or LeaseTimes()
        self._notes = Notes()

    def join(self, holder: Holder, now: Now) -> None:
        """Become a holder."""
        del now  # the server has its own clock
        self._change([], lambda memory, now: memory.join(holder, now))

    def renew(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give a sign of life, and write some budgets."""
        del now
        hosts = [each.host for each in budgets]
        self._change(hosts, lambda memory, now: memory.renew(holder, budgets, now))

    def claim(self, holder: str, hosts: Mapping[str, float], now: Now) -> dict[str, Claimed]:
        """Ask for hosts."""
        del now

        def ask(memory: MemoryHosts, now: Now) -> dict[str, Claimed]:
            if self._hold_s <= 0.0:
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
        hosts = {each.host for each in budgets}
        for host, value in pairs(self._server.ask("HGETALL", _LEASES)):
            lease = self._decoded(_decode_lease, value, _LEASES)
            if lease is not None and lease[0] == holder:
                hosts.add(host.decode())
        for host, value in pairs(self._server.ask("HGETALL", _WISHES)):
            if holder in (self._decoded(_decode_wishes, value, _WISHES) or ()):
                hosts.add(host.decode())
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
            data = self._data(before, now)
            answer = change(MemoryHosts(self.location, self.times, data), now)
            changes = _differences(before, _values(data))
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
        ttl = {"ttl": int(self.times.lease_s * 1000)}
        (server_ms, hold_ms), (holders, *rows) = self._server.call_and_ask(
            ("hosts_run", [_RUNS], ttl), commands
        )
        self._hold_s = hold_ms / 1000.0
        found: list[dict[str, bytes]] = [
            {host: value for host, value in zip(names, row, strict=True) if value is not None}
            for row in rows
        ]
        budgets, leases, wishes = found or [{}, {}, {}]
        alive = {name.decode(): value for name, value in pairs(holders)}
        now = Now(server_ms / 1000.0, server_ms / 1000.0)
        kept = [budgets, leases, alive, wishes]
        for key, values in zip(_KEYS, kept, strict=True):
            self._remove_bytes(key, values)
        return now, kept

    def _remove_bytes(self, key: str, values: dict[str, bytes]) -> None:
        """Remove values that are no text: a script cannot compare them with what was read."""
        for name in [name for name, value in values.items() if not _is_text(value)]:
            del values[name]
            self._server.change("HDEL", key, name)
            self._notes.add(f"{self.location}: removed {name!r} from {key}: it is no text")

    def _data(self, kept: list[dict[str, bytes]], now: Now) -> HostData:
        """Return values of the server as `memory_hosts` has them, without those of no sense."""
        budgets, leases, holders, wishes = kept
        data = HostData()
        for host, value in budgets.items():
            known = self._budget(host, value, now)
            budget = HostBudget._make((host, *known[1:]))
            data.budgets[host] = DatedBudget(budget, Now(known.at, known.at))
        for host, value in leases.items():
            if (lease := self._decoded(_decode_lease, value, _LEASES)) is not None:
                data.leases[host] = HostLease(*lease)
        for name, value in holders.items():
            if (holder := self._decoded(_decode_holder, value, _HOLDERS)) is not None:
                data.holders[name] = Holder(name, *holder[1:]), holder[0]
        for host, value in wishes.items():
            if (names := self._decoded(_decode_wishes, value, _WISHES)) is not None:
                data.wishes[host] = names
        return data

    def _budget(self, host: str, value: bytes, now: Now) -> _Kept:
        with suppress(msgspec.MsgspecError):
            known = _decode_budget(value)
            if out_of_range(known) is None:
                return known
        try:
            known, wrong = mend(decode_leniently(value), _Kept)
        except ValueError:
            known, wrong = _Kept(now.mono), "unreadable"
        self._notes.add(f"{self.location}: {_BUDGETS}: {host}: {wrong}")
        return known

    def _decoded(self, decode: Callable[[bytes], T], value: bytes, key: str) -> T | None:
        """Return a value; None for one that cannot be read, which the next change removes."""
        try:
            return decode(value)
        except msgspec.MsgspecError as error:
            self._notes.add(f"{self.location}: left out a value in {key} ({error})")
            return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _values(data: HostData) -> list[dict[str, str]]:
    """Return values of `memory_hosts` as the server has them."""
    return [
        {host: text_of(_Kept(at.mono, *known[1:])) for host, (known, at) in data.budgets.items()},
        {host: text_of(list(lease)) for host, lease in data.leases.items()},
        {name: text_of([beat, *holder[1:]]) for name, (holder, beat) in data.holders.items()},
        {host: text_of(list(names)) for host, names in data.wishes.items()},
    ]


def _differences(before: list[dict[str, bytes]], after: list[dict[str, str]]) -> list[int | str]:
    """Return what `hosts.lua` has to change: number of the key, field, old and new value."""
    changes: list[int | str] = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        for name in old.keys() | new.keys():
            known, wanted = old.get(name, b"").decode(), new.get(name, "")
            if known != wanted:
                changes += (number, name, known, wanted)
    return changes
