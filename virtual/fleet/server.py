"""A modelled server: a keyspace, the real scripts, a clock that may be set, and what can happen.

Scripts run in a real Lua interpreter of the version that servers have (5.1; `keyspace`). A script
runs whole at one instant, as on a real server.

`edits` plants errors: pairs of texts, the first of which is replaced by the second in the scripts
that contain it. A run in which no script contains it is refused, so that a planted error cannot be
missed because a script was rewritten.
"""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.fleet_times import LEASE_S, REPLICA_LAG_S
from mannerly.crawler.store.valkey.client import script

from .keyspace import Keyspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.database.ages import Ages
    from mannerly.database.client import Command
    from virtual.fetcher import VirtualClock

EPOCH_S = 1_800_000_000.0  # the server's time when the clock is at 0
SAVED_EVERY_S = 1.0  # a real server writes its log to disk once a second


class ModelServer:
    """A server of which every member of a fleet has a `ModelLink`."""

    def __init__(self, clock: VirtualClock, edits: Sequence[tuple[str, str]] = ()) -> None:
        self.is_up = True
        self.is_refusing = False  # connections, while it is not up; else nothing answers
        self.run = 1
        self.calls = 0
        self._clock = clock
        self._ahead_s = self._drift = 0.0  # of its clock, and how that grows
        self._drifts_since = clock.now
        self.run_since = clock.now
        self._keys = Keyspace()
        self._edits = edits
        self._commit = script("commit").digest
        self.linked: set[str] = set()  # states of shards that got links from others
        self.planted = {old: 0 for old, _ in edits}  # how many scripts contained it
        self._saved_at = clock.now
        self._keys.tell(self.run_id)

    @property
    def run_id(self) -> str:
        """Return the name of this run of the server; a restart changes it."""
        return f"{self.run:040x}"

    @property
    def replica_id(self) -> str:
        """Return the name of the run of its replica."""
        return f"{self.run:039x}f"

    def answers(self, commands: Sequence[Command]) -> list[Any]:
        """Run the commands of one exchange; return their answers, a ServerError for some."""
        self.calls += len(commands)
        self._save()
        if commands[0][0] == "SCRIPT":
            return [self._load(str(commands[0][2]).encode())]
        for command in commands:
            if command[0] == "EVALSHA" and command[1] == self._commit:
                self.linked.update(map(str, command[4 : 3 + int(command[2])]))
        return self._exchange(commands)

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        return self._keys.exchange(commands, EPOCH_S + self._clock.now, self.time)

    @property
    def time(self) -> float:
        """Return what the clock of the server shows."""
        now = self._clock.now
        return EPOCH_S + now + self._ahead_s + self._drift * (now - self._drifts_since)

    def set_clock(self, by_s: float, drift: float | None = None) -> None:
        """Set the clock of the server ahead or back; it gains `drift` seconds a second from now."""
        self._ahead_s = self.time - EPOCH_S - self._clock.now + by_s
        self._drift = self._drift if drift is None else drift
        self._drifts_since = self._clock.now

    def answers_of_replica(self, commands: Sequence[Command]) -> list[Any]:
        """Run the commands of one exchange on a replica, which refuses to write."""
        if commands[0][0] == "SCRIPT":
            return [self._load(str(commands[0][2]).encode())]
        self._keys.be_replica(True)
        self._keys.tell(self.replica_id)
        try:
            return self._exchange(commands)
        finally:
            self._keys.be_replica(False)
            self._keys.tell(self.run_id)

    def restart(self, *, loses_last_second: bool) -> None:
        """Be another run: scripts are gone, and the data since the last save may be."""
        self._save()
        if loses_last_second:
            self._keys.rewind()
        self._begin_run()

    def fail_over(self, lost_s: float) -> None:
        """Be its replica, which lacks so many of the last seconds."""
        assert lost_s <= REPLICA_LAG_S
        self._keys.fail_over(EPOCH_S + self._clock.now - lost_s)
        self._begin_run()

    def _begin_run(self) -> None:
        self._keys.forget_scripts()
        self.run += 1
        self.run_since = self._clock.now
        self._keys.tell(self.run_id)

    def replicate(self) -> None:
        """Have everything so far on disk and on the replica."""
        self._keys.replicate()

    def prolong(
        self, at: float, members: Sequence[str], shards: Sequence[str | int], heartbeats: str
    ) -> None:
        """Renew leases and heartbeats, as the renewals of their members did at `at`.

        `members` has names and stamps, `shards` keys, beats and clocks.
        """
        assert at <= self._clock.now - SAVED_EVERY_S, "it is on disk"
        self._save()
        now_ms = int((self.time - self._clock.now + at) * 1000)
        self._keys.prolong(
            {"now": now_ms, "members": members, "shards": shards, "heartbeats": heartbeats}
        )

    def owner_of(self, state: str) -> str:
        """Return the name of the member that has, or had, a shard."""
        owner: bytes | None = self._keys.run("HGET", state, "member")
        return (owner or b"").decode()

    def claimable(self, states: Sequence[str], ages: Ages) -> tuple[bool, bool]:
        """Return whether a shard has no owner, and whether a claim of one could succeed now.

        A claim fails for one lease after the first one that follows a restart.
        """
        rows = self._keys.exchange(
            [("HMGET", state, "token", "beat", "run", "hold") for state in states], 0.0
        )
        now, run = self._clock.now, self.run_id.encode()
        free = [
            row
            for row in rows
            if not row[0] or ages.age_s((row[1] or b"").decode(), now) >= LEASE_S
        ]
        is_settled = now - self.run_since >= LEASE_S
        return bool(free), any(is_settled or (row[2] == run and row[3] == b"0") for row in free)

    def count(self, beginnings: Sequence[str]) -> int:
        """Return how many keys begin with one of these texts."""
        return self._keys.count(beginnings)

    def _save(self) -> None:
        if self._clock.now - self._saved_at >= SAVED_EVERY_S:
            self._keys.keep()
            self._saved_at = self._clock.now

    # ------------------------------------------------------------------ scripts

    def _load(self, text: bytes) -> bytes:
        digest = sha1(text, usedforsecurity=False).hexdigest().encode()
        for old, new in self._edits:
            if old.encode() in text:
                self.planted[old] += 1
                text = text.replace(old.encode(), new.encode())
        self._keys.load(digest, text)
        return digest
