"""A modelled server: a keyspace, the real scripts, a clock, and what can happen to a server.

Scripts run in a real Lua interpreter of the version that servers have (5.1), with the functions
that the store's scripts use. A script runs whole at one instant, as on a real server.

`edits` plants errors: pairs of texts, the first of which is replaced by the second in the scripts
that contain it. A run in which no script contains it is refused, so that a planted error cannot be
missed because a script was rewritten.
"""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Any

import msgspec
from lupa import lua51

from .keyspace import Keyspace, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.fetch.fake import VirtualClock

EPOCH_S = 1_800_000_000.0  # the server's time when the clock is at 0
SAVED_EVERY_S = 1.0  # a real server writes its log to disk once a second

_HEAD = b"return function(KEYS, ARGV) "
_TAIL = b"\nend"


class ServerError(Exception):
    """The error that a server answers with; its first word is its kind."""


class ModelServer:
    """A server of which every member of a fleet has a `ModelLink`."""

    def __init__(self, clock: VirtualClock, edits: Sequence[tuple[str, str]] = ()) -> None:
        self.is_up = True
        self.run = 1
        self.calls = 0
        self._clock = clock
        self._keys = Keyspace()
        self._edits = edits
        self.planted = {old: 0 for old, _ in edits}  # how many scripts contained it
        self._saved_at = clock.now
        self._scripts: dict[bytes, Callable[..., Any]] = {}
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True, encoding=None)
        self._lua_table = self._lua.table_from
        self._type = lua51.lua_type
        self._prepare()

    @property
    def run_id(self) -> str:
        """Return the name of this run of the server; a restart changes it."""
        return f"{self.run:040x}"

    def answer(self, command: Sequence[bytes]) -> Any:
        """Run a command; return its answer, or a ServerError."""
        self.calls += 1
        self._save()
        name = command[0].upper()
        try:
            if name == b"EVALSHA":
                return self._run_script(command[1], int(command[2]), command[3:])
            if name == b"SCRIPT":
                return self._load(command[2])
            if name == b"PING":
                return b"PONG"
            return self._run(name, command[1:])
        except (ServerError, WrongType) as error:
            return error if isinstance(error, ServerError) else ServerError(str(error))

    def restart(self, *, loses_last_second: bool) -> None:
        """Be another run: scripts are gone, and the data since the last save may be."""
        self._save()
        if loses_last_second:
            self._keys.rewind()
        self._scripts.clear()
        self.run += 1

    def flush(self) -> None:
        """Forget everything."""
        self._keys.clear()

    def _save(self) -> None:
        if self._clock.now - self._saved_at >= SAVED_EVERY_S:
            self._keys.keep()
            self._saved_at = self._clock.now

    def _time(self) -> list[bytes]:
        now = EPOCH_S + self._clock.now
        return [b"%d" % now, b"%d" % (now % 1 * 1e6)]

    # ------------------------------------------------------------------ scripts

    def _load(self, text: bytes) -> bytes:
        digest = sha1(text, usedforsecurity=False).hexdigest().encode()
        for old, new in self._edits:
            if old.encode() in text:
                self.planted[old] += 1
                text = text.replace(old.encode(), new.encode())
        self._scripts[digest] = self._lua.execute(_HEAD + text + _TAIL)
        return digest

    def _run_script(self, digest: bytes, keys: int, arguments: Sequence[bytes]) -> Any:
        script = self._scripts.get(digest)
        if script is None:
            raise ServerError("NOSCRIPT No matching script.")
        table = self._lua_table
        return self._from_lua(script(table(arguments[:keys]), table(arguments[keys:])))

    def _prepare(self) -> None:
        """Give scripts the names that a server gives them."""
        space = self._lua.globals()
        space.redis = self._lua_table({b"call": self._call, b"error_reply": self._error_reply})
        space.cmsgpack = self._lua_table({b"unpack": self._unpack, b"pack": self._pack})

    def _call(self, name: bytes, *arguments: Any) -> Any:
        return self._to_lua(self._run(name, [_argument(each) for each in arguments]))

    def _run(self, name: bytes, arguments: Sequence[bytes]) -> Any:
        """Run a command, from outside or in a script."""
        if name == b"TIME":
            return self._time()
        if name == b"INFO":
            return f"run_id:{self.run_id}\r\n".encode()
        return self._keys.run(name, *arguments)

    def _error_reply(self, text: bytes) -> Any:
        return self._lua_table({b"err": text})

    def _unpack(self, data: bytes) -> Any:
        return self._to_lua(msgspec.msgpack.decode(data))

    def _pack(self, value: Any) -> bytes:
        return msgspec.msgpack.encode(self._plain(value))

    def _to_lua(self, value: Any) -> Any:
        if value is None:
            return False  # as a server does with a missing value
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, list | tuple):
            return self._lua_table([self._to_lua(each) for each in value])
        if isinstance(value, dict):
            return self._lua_table(
                {self._to_lua(name): self._to_lua(each) for name, each in value.items()}
            )
        return value

    def _from_lua(self, value: Any) -> Any:
        """Return the answer that a client gets for what a script returned."""
        if value is None or value is False:
            return None
        if value is True:
            return 1
        if isinstance(value, int | float):
            return int(value)
        if self._type(value) == "table":
            if (error := value[b"err"]) is not None:
                raise ServerError(error.decode())
            return [self._from_lua(each) for each in value.values()]
        return value

    def _plain(self, value: Any) -> Any:
        """Return a value of a script as plain lists, dictionaries, numbers and strings."""
        if self._type(value) == "table":
            items = list(value.items())
            if [key for key, _ in items] == list(range(1, len(items) + 1)):
                return [self._plain(each) for _, each in items]
            return {_text(key): self._plain(each) for key, each in items}
        if isinstance(value, float) and value == int(value):
            return int(value)
        return _text(value)


def _text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _argument(value: Any) -> bytes:
    """Return an argument of a command as its text: scripts pass numbers, too."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return b"%d" % value if isinstance(value, int) else repr(value).encode()
