"""The heartbeats of the workers of a crawl: who works on it, and when each was last heard.

A heartbeat has the stamp of its worker (`ages`), by which members count its silence, and the time
of the server, by which a reader that has just come can tell old heartbeats from new ones. The
server's clock may be set: that may mislead a reader for some seconds, and no member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.store.base import Heartbeat
from mannerly.crawler.store.fleet_times import CLOCKS_S, FORGOTTEN_S, LEASE_S
from mannerly.database.client import pairs

from .packing import Poisoned, text_of

if TYPE_CHECKING:
    from mannerly.database.client import Call, Payload

    from .client import ValkeyServer
    from .keys import CrawlKeys


_decode_heartbeat = msgspec.json.Decoder(Heartbeat).decode


class ShownHeartbeat(NamedTuple):
    """A heartbeat as it is kept."""

    heartbeat: Heartbeat
    at_s: float  # when it was shown, by the server's clock
    stamp: str  # the same, by the clock of its worker


def _read_heartbeat(value: bytes) -> ShownHeartbeat:
    seen_ms, stamp, text = value.split(b" ", 2)
    return ShownHeartbeat(_decode_heartbeat(text), int(seen_ms) / 1000.0, stamp.decode())


class Heartbeats:
    """The heartbeats of one crawl, as one process sees them."""

    def __init__(self, server: ValkeyServer, keys: CrawlKeys, crawl: str) -> None:
        self._server = server
        self._keys = keys
        self._crawl = crawl
        self._last: dict[bytes, ShownHeartbeat] | None = (
            None  # as of the last reading, by their text
        )
        self._old: set[bytes] = set()  # at the first reading: their workers may be gone

    def call(self, worker: str, heartbeat: Heartbeat | None) -> Call:
        """Return the call that shows a heartbeat, or takes it away."""
        server = self._server
        payload: Payload = {
            "id": self._crawl,
            "worker": worker,
            "heartbeat": "" if heartbeat is None else text_of(heartbeat),
            "stamp": server.ages.stamp(server.mono()),
            "dead": self._dead(),
        }
        return "heartbeat", [self._keys.meta, self._keys.heartbeats], payload

    def alive(self, within_s: float) -> list[Heartbeat]:
        """Return the heartbeats of workers that gave a sign of life, by the server's clock."""
        now, wall, heartbeats = self._read(), self._server.wall(), []
        for heartbeat, seen_s, _ in (self._last or {}).values():
            age_s = now - seen_s
            if -CLOCKS_S < age_s < within_s:
                seen_at = wall - age_s
                is_agreed = abs(seen_at - heartbeat.seen_at) <= CLOCKS_S
                heartbeats.append(heartbeat if is_agreed else heartbeat._replace(seen_at=seen_at))
        return sorted(heartbeats)

    def heard(self, within_s: float) -> list[Heartbeat]:
        """Return the heartbeats that were renewed lately, as far as this process can tell.

        At first only the server's clock can tell which heartbeats are old. One that is renewed
        afterwards is not.
        """
        self._read()
        mono = self._server.mono()
        return [
            each.heartbeat
            for value, each in (self._last or {}).items()
            if value not in self._old and self._server.ages.age_s(each.stamp, mono) < within_s
        ]

    def _read(self) -> float:
        """Read all heartbeats; return the server's time."""
        key = self._keys.heartbeats
        server_ms, (rows,) = self._server.call_and_ask(("time", [key], {}), [("HGETALL", key)])
        known, read = self._last or {}, {}
        for _, value in pairs(rows):
            try:
                read[value] = known.get(value) or _read_heartbeat(value)
            except (ValueError, msgspec.MsgspecError) as error:
                raise Poisoned(f"a heartbeat in {key} is damaged ({error})") from None
        now = server_ms / 1000.0
        if self._last is None:
            self._old = {
                value for value, each in read.items() if not -CLOCKS_S < now - each.at_s < LEASE_S
            }
        self._last = read
        return float(now)

    def _dead(self) -> list[str]:
        """Return the names and values of heartbeats that were not renewed for FORGOTTEN_S."""
        mono, dead = self._server.mono(), []
        for value, each in (self._last or {}).items():
            if self._server.ages.age_s(each.stamp, mono) >= FORGOTTEN_S:
                dead += [each.heartbeat.id, value.decode()]
        return dead
