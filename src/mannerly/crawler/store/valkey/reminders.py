"""Waits of hosts that this process has written lately: a server that forgot them is told again.

A server that was restarted may have lost its last second, a replica that was promoted the last
seconds, and with them a Retry-After or a Crawl-delay. The owner of such a shard has to let go of
it, and the next owner would know what the server knows. But for one lease after a restart no claim
is granted (`claim.lua`). Meanwhile every process that lives tells the server again what it has
written in the last KEPT_S, and what it was told since: also of shards that it has handed over
meanwhile, or whose claim the server forgot. What it has told again counts as written then, because
the next server may forget that, too.

Of two records the later instants hold, and the newer pace; totals stay those of the server, because
the pages of the lost second are fetched again. A record that its owner writes meanwhile stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import HostRecord
from mannerly.crawler.store.fleet import LEASE_S, CrawlGone, StoreAway

from .host_codec import merged, packed_on_server, unpacked_on_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.politeness.model import Instant

    from .client import Call, ValkeyServer
    from .keys import CrawlKeys

KEPT_S = 20.0  # more than a replica lacks (10 s), and the time until a failover is noticed (5 s)


class Reminders:
    """The waits that this process has written lately, by shard and host."""

    def __init__(self, server: ValkeyServer, keys: CrawlKeys, crawl: str) -> None:
        self._server = server
        self._keys = keys
        self._crawl = crawl
        self._new: dict[tuple[int, str], str] = {}
        self._old: dict[tuple[int, str], str] = {}
        self._turn_at: Instant = 0.0
        self._run = server.run
        self._tell_until: Instant = 0.0

    def note(self, shard: int, records: Iterable[tuple[HostRecord, str]]) -> None:
        """Keep the records, with their packed text, of hosts that must not be contacted yet."""
        now = self._server.mono()
        if now >= self._turn_at:
            self._turn_at = now + KEPT_S
            self._old, self._new = self._new, {}
        for record, packed in records:
            if record.next_at or record.blocked_until or record.breaker_until:
                self._new[shard, record.host] = packed

    def look(self) -> None:
        """Tell the server for the time of one lease, if it was restarted since the last look."""
        now, run = self._server.mono(), self._server.run
        if run != self._run:
            self._tell_until = now + LEASE_S
        if now < self._tell_until:
            self.tell()
        self._run = run

    def tell(self, only: int | None = None) -> None:
        """Tell the server what it does not know, of one shard or of all.

        Raises:
            StoreAway, CrawlGone: see there.
        """
        by_shard: dict[int, dict[str, str]] = {}
        for (shard, host), packed in (self._old | self._new).items():
            if only in (None, shard):
                by_shard.setdefault(shard, {})[host] = packed
        keys = {shard: self._keys.of_shard(shard, "h") for shard in by_shard}
        found = self._server.ask_all(
            [("HMGET", keys[shard], *ours) for shard, ours in by_shard.items()]
        )
        calls: list[Call] = []
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
        for answer in self._server.calls(calls) if calls else []:
            if isinstance(answer, StoreAway | CrawlGone):
                raise answer
