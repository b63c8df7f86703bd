"""The data of a modelled server, and the scripts beside it: everything runs in one Lua interpreter.

`keyspace.lua` has the commands that the store uses. A script that calls one stays in the
interpreter, which is LuaJIT: a call costs a fraction of a microsecond. Commands go in and answers
come out as msgpack, all of one exchange at once. Values are bytes, as on the wire.

A command that is not there raises an error that names it: the model grows with the store.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from lupa import luajit21

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.database.client import Command

_decode = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode


class ServerError(Exception):
    """The error that a server answers with; its first word is its kind."""


class Keyspace:
    """All keys of a server, and its scripts."""

    def __init__(self) -> None:
        lua = luajit21.LuaRuntime(encoding=None)
        text = (files(__package__) / "keyspace.lua").read_bytes()
        parts = lua.execute(text)
        self._exchange, self._load, self._tell = (
            parts[b"exchange"],
            parts[b"load"],
            parts[b"tell"],
        )
        self._prolong = parts[b"prolong"]
        self._count = parts[b"count"]
        self.keep = parts[b"keep"]  # everything so far is on disk
        self.rewind = parts[b"rewind"]  # take back everything since `keep`
        self.replicate = parts[b"replicate"]  # everything so far is on disks and replicas
        self._fail_over = parts[b"fail_over"]
        self.be_replica = parts[b"be_replica"]  # refuse to write, or do not
        self.forget_scripts = parts[b"forget_scripts"]

    def exchange(
        self, commands: Sequence[Command], now: float, shown: float | None = None
    ) -> list[Any]:
        """Run commands and scripts at an instant; return their answers, a ServerError for some.

        `shown`: what the server's clock shows then, if it is wrong.
        """
        clock = now if shown is None else shown
        try:
            answers = _decode(self._exchange(_encode(commands), now, clock))
        except luajit21.LuaError as error:
            text = str(error)
            raise (NotImplementedError(text) if "has no command" in text else error) from None
        return [
            ServerError(each["err"].decode()) if type(each) is dict else each for each in answers
        ]

    def run(self, *command: str | bytes | float) -> Any:
        """Run one command, and return its answer."""
        (answer,) = self.exchange([command], 0.0)
        return answer

    def load(self, digest: bytes, text: bytes) -> None:
        """Keep a script under its digest."""
        self._load(digest, text)

    def tell(self, run_id: str) -> None:
        """Say which run of the server this is."""
        self._tell(run_id.encode())

    def fail_over(self, until: float) -> None:
        """Take back what was done after an instant."""
        self._fail_over(float(until))

    def count(self, beginnings: Sequence[str]) -> int:
        """Return how many keys begin with one of these texts."""
        found: int = self._count(_encode(beginnings))
        return found

    def prolong(self, what: dict[str, Any]) -> None:
        """Prolong leases and renew heartbeats, as the renewals of their members do."""
        self._prolong(_encode(what))
