"""Waits of hosts that the server may lack: the process that knows them writes them again.

**Forgotten.** A server that was restarted may have lost its last second, a replica that was
promoted the last seconds, and with them a Retry-After or a Crawl-delay. The owner of such a shard
has to let go of it, and the next owner would know what the server knows. But for one lease after a
restart no claim is granted (`claim.lua`). Meanwhile every process that lives tells the server again
what it has written in the last WAITS_KEPT_S, and what it was told since: also of shards that it has
handed over meanwhile, or whose claim the server forgot. What it has told again counts as written
then, because the next server may forget that, too.

**Owed.** A process that is cut off from the server may be asked for a wait, and lose its shard
before it can commit that. It tells the server when it can, with no token: the shard has another
owner by then. That owner has records of its hosts in memory, and would overwrite what is told. So
`remind.lua` leaves the wait to it as well (`rm`, `HeardReminders`).

Of two records the later instants hold, and the newer pace; totals stay those of the server, because
the pages of the lost second are fetched again. So a reminder prolongs a wait, and shortens none. A
record that its owner writes meanwhile is read again before it is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import CrawlGone, StoreAway
from mannerly.crawler.store.fleet_times import LEASE_S, WAITS_KEPT_S
from mannerly.database.client import pairs

from .host_codec import merged, packed_on_server, silent_until, unpack_host, unpacked_on_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.database.client import Call
    from mannerly.politeness.model import Instant

    from .client import ValkeyServer
    from .host_codec import Clocks
    from .keys import CrawlKeys

_TRIES = 3  # to change a record that its owner changes at the same time; then at the next poll

_Waits = dict[tuple[int, str], str]  # packed records, by shard and host


class Reminders:
    """The waits that this process has written lately, or could not write."""

    def __init__(self, server: ValkeyServer, keys: CrawlKeys, crawl: str) -> None:
        self._server = server
        self._keys = keys
        self._crawl = crawl
        self._new: _Waits = {}
        self._old: _Waits = {}
        self._owed: _Waits = {}  # the server was not told these
        self._turn_at: Instant = 0.0
        self._run = server.run
        self._tell_until: Instant = 0.0

    def note(self, shard: int, records: Iterable[tuple[HostRecord, str]]) -> None:
        """Keep the records, with their packed text, of hosts that must not be contacted yet."""
        now = self._server.mono()
        if now >= self._turn_at:
            self._turn_at = now + WAITS_KEPT_S
            self._old, self._new = self._new, {}
        for record, packed in records:
            if record.next_at or record.blocked_until or record.breaker_until:
                self._new[shard, record.host] = packed

    def owe(self, shard: int, records: Iterable[tuple[HostRecord, str]]) -> None:
        """Keep the records of a shard that is lost, until the server has their waits."""
        wall = self._server.wall()
        for record, packed in records:
            if silent_until(record) > wall:
                self._owed[shard, record.host] = packed

    def poll(self) -> None:
        """Tell the server what is owed; all for the time of one lease, if it was restarted."""
        now, run = self._server.mono(), self._server.run
        if run != self._run:
            self._tell_until = now + LEASE_S
        if now < self._tell_until:
            self.tell()
        elif self._owed:
            self._tell(dict(self._owed))
        self._run = run

    def tell(self, only: int | None = None) -> None:
        """Tell the server what it does not know, of one shard or of all.

        Raises:
            StoreAway, CrawlGone: see there.
        """
        known = self._old | self._new | self._owed
        self._tell({at: packed for at, packed in known.items() if only in (None, at[0])})

    def _tell(self, waits: _Waits) -> None:
        told = set(waits)
        for _ in range(_TRIES):
            waits = self._try_to_tell(waits)
            if not waits:
                break
        for at in told - set(waits):
            self._owed.pop(at, None)

    def _try_to_tell(self, waits: _Waits) -> _Waits:
        """Tell the server some waits; return those that it could not take."""
        by_shard: dict[int, dict[str, str]] = {}
        for (shard, host), packed in waits.items():
            by_shard.setdefault(shard, {})[host] = packed
        keys = {shard: self._keys.of_shard(shard, "h") for shard in by_shard}
        found = self._server.ask_all(
            [("HMGET", keys[shard], *ours) for shard, ours in by_shard.items()]
        )
        calls: list[Call] = []
        changing: list[list[tuple[int, str]]] = []  # by call
        for (shard, ours), known in zip(by_shard.items(), found, strict=True):
            changes: list[str] = []
            for (host, packed), data in zip(ours.items(), known, strict=True):
                if data == packed.encode():
                    continue
                before = unpacked_on_server(data, keys[shard]) if data else HostRecord(host)
                after = merged(before, unpacked_on_server(packed.encode(), keys[shard]))
                if after != before:
                    self._new[shard, host] = packed
                    changes += (host, (data or b"").decode(), packed_on_server(after))
            if changes:
                payload = {"id": self._crawl, "changes": changes}
                calls.append(("remind", [self._keys.shard(shard)], payload))
                changing.append([(shard, host) for host in changes[::3]])
        left: _Waits = {}
        answers = self._server.calls(calls) if calls else []
        for changed, answer in zip(changing, answers, strict=True):
            if isinstance(answer, StoreAway | CrawlGone):
                raise answer
            is_refused = isinstance(answer, StoreError)  # a full server: at the next poll
            are_told = [0] * len(changed) if is_refused else answer
            for at, is_told in zip(changed, are_told, strict=True):
                if not is_told:
                    left[at] = waits[at]
        return left


class HeardReminders:
    """The reminders that others have left to the owner of one shard.

    They stay in the server until the commit that has the records of their hosts, so that the next
    owner gets them if this one dies before.
    """

    def __init__(self, server: ValkeyServer, base: str) -> None:
        self._server = server
        self._key = base + "rm"
        self._waiting = 1  # as far as is known
        self._heard: dict[str, str] = {}  # packed records, by host

    def seen(self, waiting: int) -> None:
        """So many are in the server."""
        self._waiting = waiting

    def read(self, clocks: Clocks) -> list[HostRecord]:
        """Return those that were not returned before."""
        if not self._waiting:
            return []
        fresh = []
        rows = list(pairs(self._server.ask("HGETALL", self._key)))
        self._waiting = len(rows)
        for name, data in rows:
            host, text = name.decode(), data.decode()
            if self._heard.get(host) != text:
                fresh.append(unpack_host(data, self._key, clocks))
                self._heard[host] = text
        return fresh

    def payload(self) -> list[str]:
        """Return what a commit removes: host and packed record of each."""
        return [value for pair in self._heard.items() for value in pair]

    def committed(self, heard: list[str]) -> None:
        """Forget what a commit has removed."""
        for host, text in zip(heard[::2], heard[1::2], strict=True):
            if self._heard.get(host) == text:
                del self._heard[host]
