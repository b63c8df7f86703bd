"""The data of a modelled server, and the scripts beside it: everything runs in one Lua interpreter.

`keyspace.lua` has the commands that the store uses. A script that calls one stays in the
interpreter, which is LuaJIT: a call costs a fraction of a microsecond. Answers come as msgpack.
Values are bytes, as on the wire.

A command that is not there raises an error that names it: the model grows with the store.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from lupa import luajit21

_decode = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode


class WrongType(Exception):  # noqa: N818 - the server's own word
    """A command met a value of another kind."""


class Keyspace:
    """All keys of a server, and its scripts."""

    def __init__(self) -> None:
        lua = luajit21.LuaRuntime(encoding=None)
        text = (files(__package__) / "keyspace.lua").read_bytes()
        parts = lua.execute(text)
        self._run, self._load, self._call = parts[b"run"], parts[b"load"], parts[b"call"]
        self._tell = parts[b"tell"]
        self._prolong = parts[b"prolong"]
        self.keep = parts[b"keep"]  # everything so far is on disk
        self.rewind = parts[b"rewind"]  # take back everything since `keep`
        self.clear = parts[b"clear"]  # forget everything (FLUSHALL)
        self.forget_scripts = parts[b"forget_scripts"]

    def run(self, name: bytes, *arguments: bytes) -> Any:
        """Run a command, and return its answer."""
        try:
            return _decode(self._run(name, *arguments))
        except luajit21.LuaError as error:
            raise _meant(error) from None

    def load(self, digest: bytes, text: bytes) -> None:
        """Keep a script under its digest."""
        self._load(digest, text)

    def call(self, digest: bytes, keys: int, arguments: tuple[bytes, ...]) -> Any:
        """Run a script, and return its answer.

        Raises:
            KeyError: there is none of this digest.
        """
        try:
            packed = self._call(digest, keys, *arguments)
        except luajit21.LuaError as error:
            raise _meant(error) from None
        if packed is None:
            raise KeyError(digest)
        return _decode(packed)

    def tell(self, run_id: str, now: float) -> None:
        """Say which run of the server this is, and its time."""
        self._tell(run_id.encode(), b"%d" % now, b"%d" % (now % 1 * 1e6))

    def prolong(self, what: dict[str, Any]) -> None:
        """Prolong leases and renew cards, as the renewals of their members do."""
        self._prolong(_encode(what))


def _meant(error: Exception) -> Exception:
    text = str(error)
    if text.startswith("WRONGTYPE"):
        return WrongType(text)
    return NotImplementedError(text) if "has no command" in text else error
