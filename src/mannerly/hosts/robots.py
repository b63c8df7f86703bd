"""The robots.txt files that programs have fetched, in the same place as their memory of hosts.

    a file      hosts.sqlite        ─► hosts-robots.sqlite beside it: leases stay in a small file
    a server    mannerly:{hosts}:…  ─► mannerly:{hosts}:r:ORIGIN, which the server expires
    memory:NAME                     ─► this process

Only what a site has answered is kept, for as long as it holds: a body, or None for a site without
rules. That a file is unreachable is each process's own finding. Ages are read from the wall clock
(hours matter here); after a clock was set back a file is fetched again. All calls may come from any
thread, and none needs a lease.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mannerly.database import SERVERS

if TYPE_CHECKING:
    from mannerly.database.client import ServerConnection
    from mannerly.database.sqlite import Database

LONGEST_S = 24 * 3600.0  # RFC 9309 §2.4
BUSY_MS = 2000
_PREFIX = "mannerly:{hosts}:r:"
_TABLES = """
CREATE TABLE robots (
    origin TEXT PRIMARY KEY NOT NULL, body BLOB, fetched REAL NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
"""
_NO_RULES, _RULES = b"-", b"+"  # what a value in a server begins with


class KeptRobots(NamedTuple):
    """The answer of a site: its rules, or None for a site without."""

    body: bytes | None
    expires_in_s: float


class RobotsMemory(Protocol):
    """A place for robots.txt files. Every call may raise `StoreError`."""

    def load(self, origin: str, wall: float) -> KeptRobots | None:
        """Return what is known of an origin and still holds."""

    def save(self, origin: str, kept: KeptRobots, wall: float) -> None:
        """Keep what an origin has answered."""

    def close(self) -> None:
        """Close it; closing twice is harmless."""


def open_robots(location: str) -> RobotsMemory:
    """Return the memory that belongs to a memory of hosts; it is opened with its first use."""
    if location.startswith("memory:"):
        return _InProcess(location)
    if location.partition("://")[0] in SERVERS:
        return _InServer(location)
    return _InFile(Path(location))


class _InProcess:
    _all: dict[str, dict[str, tuple[bytes | None, float]]] = {}  # noqa: RUF012 - shared on purpose

    def __init__(self, location: str) -> None:
        self._kept = self._all.setdefault(location, {})

    def load(self, origin: str, wall: float) -> KeptRobots | None:
        body, expires = self._kept.get(origin, (None, wall))
        return _holding(body, expires - wall)

    def save(self, origin: str, kept: KeptRobots, wall: float) -> None:
        self._kept[origin] = kept.body, wall + kept.expires_in_s

    def close(self) -> None:
        pass


class _InFile:
    def __init__(self, hosts: Path) -> None:
        self._path = hosts.with_name(f"{hosts.stem}-robots.sqlite")
        self._lock = threading.Lock()
        self._file: Database | None = None

    def load(self, origin: str, wall: float) -> KeptRobots | None:
        with self._lock:
            row = self._opened(wall).row(
                "SELECT body, fetched, expires FROM robots WHERE origin = ?", (origin,)
            )
        if row is None or not all(isinstance(each, float) for each in row[1:]) or row[1] > wall:
            return None
        return _holding(row[0] if isinstance(row[0], bytes) else None, row[2] - wall)

    def save(self, origin: str, kept: KeptRobots, wall: float) -> None:
        row = (origin, kept.body, wall, wall + kept.expires_in_s)
        with self._lock:
            file = self._opened(wall)
            with file.transaction():
                file.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _opened(self, wall: float) -> Database:
        if self._file is None:
            from mannerly.database.sqlite import Database, FileKind

            from .upkeep import put_in_place

            kind = FileKind("memory of robots.txt", 0x6D6E7274, 1, _TABLES)  # "mnrt"
            if not self._path.exists():
                put_in_place(self._path, lambda new: Database.create(new, kind).close())
            self._file = Database.open(self._path, kind, busy_ms=BUSY_MS)
            with self._file.transaction():
                self._file.execute("DELETE FROM robots WHERE expires < ?", (wall,))
        return self._file


class _InServer:
    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._server: ServerConnection | None = None

    def load(self, origin: str, wall: float) -> KeptRobots | None:  # noqa: ARG002 - the server's
        with self._lock:
            value, left_ms = self._connected().ask_all(
                [("GET", _PREFIX + origin), ("PTTL", _PREFIX + origin)]
            )
        if not isinstance(value, bytes) or left_ms <= 0:
            return None
        return _holding(None if value[:1] == _NO_RULES else value[1:], left_ms / 1000.0)

    def save(self, origin: str, kept: KeptRobots, wall: float) -> None:  # noqa: ARG002
        value = _NO_RULES if kept.body is None else _RULES + kept.body
        left_ms = max(1, int(kept.expires_in_s * 1000))
        with self._lock:
            self._connected().change("SET", _PREFIX + origin, value, "PX", left_ms)

    def close(self) -> None:
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None

    def _connected(self) -> ServerConnection:
        if self._server is None:
            from mannerly.database.address import parse

            from .server import HostsServer

            self._server = HostsServer(parse(self._url, needs_name=False))
        return self._server


def _holding(body: bytes | None, left_s: float) -> KeptRobots | None:
    return KeptRobots(body, min(left_s, LONGEST_S)) if left_s > 0.0 else None
