"""A modelled server: a keyspace, the real scripts, a clock, and what can happen to a server.

Scripts run in a real Lua interpreter of the version that servers have (5.1; `keyspace`). A script
runs whole at one instant, as on a real server.

`edits` plants errors: pairs of texts, the first of which is replaced by the second in the scripts
that contain it. A run in which no script contains it is refused, so that a planted error cannot be
missed because a script was rewritten.
"""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.fleet import LEASE_S
from mannerly.crawler.store.valkey.scripts import script

from .keyspace import Keyspace, WrongType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.fetch.fake import VirtualClock

EPOCH_S = 1_800_000_000.0  # the server's time when the clock is at 0
SAVED_EVERY_S = 1.0  # a real server writes its log to disk once a second


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
        self._post = script("post").digest.encode()
        self.mailed: set[bytes] = set()  # states of shards that got letters
        self.planted = {old: 0 for old, _ in edits}  # how many scripts contained it
        self._saved_at = self._told_at = clock.now
        self._tell()

    @property
    def run_id(self) -> str:
        """Return the name of this run of the server; a restart changes it."""
        return f"{self.run:040x}"

    def answer(self, command: Sequence[bytes]) -> Any:
        """Run a command; return its answer, or a ServerError."""
        self.calls += 1
        if self._clock.now != self._told_at:
            self._save()
            self._tell()
        name = command[0]
        try:
            if name == b"EVALSHA":
                return self._run_script(command[1], int(command[2]), tuple(command[3:]))
            if name == b"SCRIPT":
                return self._load(command[2])
            return self._keys.run(*command)
        except (ServerError, WrongType) as error:
            return error if isinstance(error, ServerError) else ServerError(str(error))

    def restart(self, *, loses_last_second: bool) -> None:
        """Be another run: scripts are gone, and the data since the last save may be."""
        self._save()
        if loses_last_second:
            self._keys.rewind()
        self._keys.forget_scripts()
        self.run += 1
        self._tell()

    def prolong(self, members: Sequence[str], shards: Sequence[str], cards: str) -> None:
        """Prolong the leases of members, and renew their cards, as their renewals do."""
        self._save()
        now_ms, ttl_ms = int((EPOCH_S + self._clock.now) * 1000), int(LEASE_S * 1000)
        self._keys.prolong(
            {"now": now_ms, "ttl": ttl_ms, "members": members, "shards": shards, "cards": cards}
        )

    def owner_of(self, state: bytes) -> str:
        """Return the name of the member that has, or had, a shard."""
        owner: bytes | None = self._keys.run(b"HGET", state, b"member")
        return (owner or b"").decode()

    def flush(self) -> None:
        """Forget everything."""
        self._keys.clear()

    def _save(self) -> None:
        if self._clock.now - self._saved_at >= SAVED_EVERY_S:
            self._keys.keep()
            self._saved_at = self._clock.now

    def _tell(self) -> None:
        self._told_at = self._clock.now
        self._keys.tell(self.run_id, EPOCH_S + self._clock.now)

    # ------------------------------------------------------------------ scripts

    def _load(self, text: bytes) -> bytes:
        digest = sha1(text, usedforsecurity=False).hexdigest().encode()
        for old, new in self._edits:
            if old.encode() in text:
                self.planted[old] += 1
                text = text.replace(old.encode(), new.encode())
        self._keys.load(digest, text)
        return digest

    def _run_script(self, digest: bytes, keys: int, arguments: tuple[bytes, ...]) -> Any:
        try:
            answer = self._keys.call(digest, keys, arguments)
        except KeyError:
            raise ServerError("NOSCRIPT No matching script.") from None
        if digest == self._post:
            self.mailed.add(arguments[0])
        if isinstance(answer, dict):
            raise ServerError(answer["err"].decode())
        return answer
