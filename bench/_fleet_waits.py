"""The command line, for a worker that notes at its end how long it has waited for the server.

    python -m bench._fleet_waits crawl … --redis-url …

The file that $FLEET_WAITS names gets a `Waits`: the seconds since the worker first asked the
server, and for each kind of exchange how many there were and how long they were waited for. A kind
is the script or the command that an exchange begins with.
"""

from __future__ import annotations

import atexit
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.__main__ import main
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.database.client import ServerConnection
from mannerly.hosts.server import HostsServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mannerly.database.client import Call, Command


class Waits(msgspec.Struct):
    """What one worker has waited for the server."""

    took_s: float
    kinds: dict[str, tuple[int, float]]  # exchanges, seconds

    @property
    def waited_s(self) -> float:
        return sum(seconds for _, seconds in self.kinds.values())

    @property
    def exchanges(self) -> int:
        return sum(count for count, _ in self.kinds.values())


def read_waits(path: Path) -> Waits:
    """Return what a worker has noted."""
    return msgspec.json.decode(path.read_bytes(), type=Waits)


_began: list[float] = []
_kinds: dict[str, tuple[int, float]] = {}


class _Watched(ServerConnection):
    """A connection that adds up its exchanges by kind; one within another counts for itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._noted_s = 0.0
        _began.append(time.monotonic())

    def calls(self, calls: Iterable[Call]) -> list[Any]:
        with self._noted([], calls) as named:
            return super().calls(named)

    def calls_and_ask(
        self, calls: Iterable[Call], commands: Sequence[Command]
    ) -> tuple[list[Any], list[Any]]:
        with self._noted(commands, calls) as named:
            return super().calls_and_ask(named, commands)

    def ask_all(self, commands: Sequence[Command]) -> list[Any]:
        with self._noted(commands):
            return super().ask_all(commands)

    @contextmanager
    def _noted(
        self, commands: Sequence[Command], calls: Iterable[Call] = ()
    ) -> Iterator[Iterator[Call]]:
        """Count an exchange; yield its calls, to be made one after the other."""
        names: list[str] = []

        def named() -> Iterator[Call]:
            for call in calls:
                names.append(call[0])
                yield call

        before_s = self._unnoted_s
        try:
            yield named()
        finally:
            names += [_kind(command) for command in commands[:1]]
            if names:
                self._note(names[0], before_s)

    @property
    def _unnoted_s(self) -> float:
        """Return what was waited for so far and is in no kind."""
        return self.busy_s - self._noted_s

    def _note(self, kind: str, before_s: float) -> None:
        count, seconds = _kinds.get(kind, (0, 0.0))
        waited_s = self._unnoted_s - before_s
        self._noted_s += waited_s
        _kinds[kind] = count + 1, seconds + waited_s


class _WatchedServer(_Watched, ValkeyServer):
    pass


class _WatchedHosts(_Watched, HostsServer):
    pass


def _kind(command: Command) -> str:
    """Return a command with the last part of its key, which tells what is read."""
    name, key = str(command[0]), str(command[1]) if len(command) > 1 else ""
    return f"{name} {key.rpartition(':')[2]}".strip() if "}" in key else name


def _write() -> None:
    took_s = time.monotonic() - _began[0] if _began else 0.0
    Path(os.environ["FLEET_WAITS"]).write_bytes(msgspec.json.encode(Waits(took_s, _kinds)))


if __name__ == "__main__":
    from mannerly.crawler.store.valkey import crawl
    from mannerly.hosts import server

    crawl.ValkeyServer = _WatchedServer  # type: ignore[misc]
    server.HostsServer = _WatchedHosts  # type: ignore[misc]
    atexit.register(_write)
    raise SystemExit(main())
