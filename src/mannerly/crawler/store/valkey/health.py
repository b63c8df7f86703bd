"""Find what is wrong with a server, before a crawl finds out.

`require_keeping` is asked at every start: a server that may evict keys would lose URLs silently. So
is `unguarded_failover`: a primary without `min-replicas-to-write` may go on beside its successor.
`examine_server` is for `mannerly doctor`. Both need INFO only; a server that does not let a user
read its configuration is examined as far as it goes.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.store.base import StoreError
from mannerly.database.address import AddressRefused, parse, password_of
from mannerly.database.client import info, pairs

from .client import ValkeyServer
from .keys import CRAWLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = (6, 2)  # of Redis, whose commands the scripts use
SMALL_SETS = 512  # set-max-intset-entries: known URLs take 8 bytes up to there
_PINGS = 20
_SLOW_MS = 5.0  # a round trip: every commit waits for one
_NEAR_LIMIT = 0.8  # of maxmemory
_CLOCK_S = 2.0
_MEGABYTE = 1_000_000


class ServerFact(NamedTuple):
    """One property of a server. `lack` says what is wrong with it and what to do."""

    name: str
    value: str
    lack: str = ""
    is_problem: bool = False  # a crawl would be refused, or may lose something


def require_keeping(server: ValkeyServer) -> None:
    """Check that a server never evicts keys.

    Raises:
        AddressRefused: it may.
    """
    for facts in server.information("memory"):
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise AddressRefused(
                f"{server.address.server} may evict keys (maxmemory-policy {policy}), and a crawl "
                "would lose URLs: set maxmemory-policy noeviction"
            )


def unguarded_failover(url: str) -> str | None:
    """Return what a failover of a server could do, and what to type; None: nothing is wrong.

    Raises:
        StoreAway: it cannot be reached.
        AddressRefused: the address or the password is not acceptable.
    """
    server = ValkeyServer(parse(url))
    try:
        unguarded = [facts for facts in server.information("replication") if _lacks_guard(facts)]
        if not unguarded:
            return None
        place = server.place
    finally:
        server.close()
    where = "" if server.is_cluster else f" -h {place.host} -p {place.port}"
    return (
        f"{server.address.server} has replicas and min-replicas-to-write 0: in a failover a "
        "primary that is cut off goes on beside the one that replaces it, and two workers may send "
        f"to one host. On every server: redis-cli{where} CONFIG SET min-replicas-to-write 1"
    )


def _lacks_guard(facts: Mapping[str, str]) -> bool:
    """Return whether a server has replicas and writes without them, by its INFO replication."""
    return facts.get("connected_slaves", "0") != "0" and "min_slaves_good_slaves" not in facts


def examine_server(url: str) -> list[ServerFact]:
    """Return the properties of a server, the most important first.

    Raises:
        StoreAway: it cannot be reached.
        AddressRefused: the address or the password is not acceptable.
    """
    server = ValkeyServer(parse(url, needs_name=False))
    try:
        facts = info(server.ask("INFO", "everything"))
        return [
            *_identity(server, facts),
            *_memory(server, facts),
            *_persistence(server, facts),
            *_speed(server),
            *_protection(server),
            _crawls(server),
        ]
    finally:
        server.close()


def _identity(server: ValkeyServer, facts: Mapping[str, str]) -> Iterator[ServerFact]:
    product = "Valkey" if "valkey_version" in facts else "Redis"
    speaks = facts.get("redis_version", "0")
    is_old = tuple(int(part) for part in speaks.split(".")[:2] if part.isdigit()) < OLDEST
    lack = "" if not is_old else "6.2 or later is needed"
    yield ServerFact("server", f"{product} {server.version}", lack, is_problem=is_old)
    role = facts.get("role", "unknown")
    is_replica = role not in ("master", "unknown")
    lack = ""
    if is_replica:
        lack = f"a replica cannot be written to: use the address of its primary ({server.primary})"
    elif _lacks_guard(facts):
        lack = "two primaries may be in use during a failover: set min-replicas-to-write 1"
    mode = facts.get("redis_mode") or facts.get("server_mode", "standalone")
    replicas = facts.get("connected_slaves", "0")
    yield ServerFact("role", f"{role}, {mode}, {replicas} replicas", lack, is_problem=is_replica)
    if server.address.sentinels:
        number, place = len(server.address.sentinels), server.place
        value = f"{number} named, the primary is {place.host}:{place.port}"
        yield ServerFact("sentinels", value)


def _memory(server: ValkeyServer, facts: Mapping[str, str]) -> Iterator[ServerFact]:
    policy = facts.get("maxmemory_policy", "unknown")
    evicts = policy not in ("noeviction", "unknown")
    lack = "it may evict URLs: set maxmemory-policy noeviction" if evicts else ""
    yield ServerFact("eviction", policy, lack, is_problem=evicts)
    used, limit = int(facts.get("used_memory", 0)), int(facts.get("maxmemory", 0))
    if not limit:
        yield ServerFact(
            "memory",
            f"{used // _MEGABYTE:,} MB used, no limit",
            "set maxmemory: without it the system ends the server when memory is full",
        )
    else:
        share = used / limit
        lack = "" if share < _NEAR_LIMIT else "nearly full: a crawl pauses when it is"
        value = f"{used // _MEGABYTE:,} of {limit // _MEGABYTE:,} MB used ({share:.0%})"
        yield ServerFact("memory", value, lack, is_problem=share >= 1.0)
    small = _setting(server, "set-max-intset-entries")
    if small.isdigit() and int(small) < SMALL_SETS:
        yield ServerFact(
            "small sets", small, f"known URLs take more memory: set it to {SMALL_SETS}"
        )


def _persistence(server: ValkeyServer, facts: Mapping[str, str]) -> Iterator[ServerFact]:
    if facts.get("loading") == "1":
        yield ServerFact("persistence", "loading", "wait until its data is loaded", is_problem=True)
        return
    if facts.get("aof_enabled") == "1":
        sync = _setting(server, "appendfsync")
        failed = facts.get("aof_last_write_status", "ok") != "ok"
        lack = "the append-only file cannot be written: check the disk" if failed else ""
        if sync == "no":
            lack = "a power cut may lose half a minute: set appendfsync everysec"
        value = f"append-only file{', fsync ' + sync if sync else ''}"
        yield ServerFact("persistence", value, lack, is_problem=failed)
        return
    saves = _setting(server, "save")
    lack = "a restart loses the crawl: set appendonly yes"
    if saves:
        lack = "a restart loses everything since the last snapshot: set appendonly yes"
    value = f"snapshots only ({saves})" if saves else "none"
    yield ServerFact("persistence", value, lack, is_problem=True)


def _speed(server: ValkeyServer) -> Iterator[ServerFact]:
    times = []
    for _ in range(_PINGS):
        began = time.perf_counter()
        server.ask("PING")
        times.append((time.perf_counter() - began) * 1000.0)
    times.sort()
    middle = times[len(times) // 2]
    lack = "" if middle < _SLOW_MS else "every commit waits for it: use a server that is nearer"
    yield ServerFact("round trip", f"{middle:.2f} ms (longest {times[-1]:.1f})", lack)
    asked_at = time.time()
    seconds, micros = server.ask("TIME")
    ahead_s = int(seconds) + int(micros) / 1e6 - (asked_at + time.time()) / 2
    lack = "" if abs(ahead_s) < _CLOCK_S else "harmless for waits; times in records are this one's"
    yield ServerFact("clock", f"{ahead_s:+.1f} s from this machine's", lack)


def _protection(server: ValkeyServer) -> Iterator[ServerFact]:
    address = server.address
    has_password = password_of(address) is not None
    value = (
        f"{'password' if has_password else 'no password'}, {'TLS' if address.is_tls else 'plain'}"
    )
    is_open = not address.is_loopback and not (has_password and address.is_tls)
    lack = "others on the network can read and steer crawls: use both" if is_open else ""
    yield ServerFact("protection", value, lack)


def _crawls(server: ValkeyServer) -> ServerFact:
    return ServerFact("crawls", f"{server.ask('SCARD', CRAWLS):,}")


def _setting(server: ValkeyServer, name: str) -> str:
    """Return a setting of the server; "" if it does not tell."""
    with suppress(StoreError):
        answer = server.ask("CONFIG", "GET", name)
        for _, value in pairs(answer):
            return value.decode() if isinstance(value, bytes) else str(value)
    return ""
