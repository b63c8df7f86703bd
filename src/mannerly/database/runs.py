"""The runs of servers that a process has seen, and since when it knows each of them.

A server that is restarted may have forgotten its last second, and with it a lease, while the owner
of that lease still sends. So nothing is granted before some process has known the new run for one
lease, by its own monotonic clock (`note_run` in `clock.lua`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant


class KnownRuns:
    """The runs of the servers that hold some keys: each key is in one server."""

    def __init__(self) -> None:
        self._since: dict[str, Instant] = {}
        self._of_key: dict[int, str] = {}

    def saw(self, key: int, run: str, now: Instant) -> None:
        """A key is in a server of this run. A run that comes back was another's replica: is new."""
        if run and self._of_key.get(key) != run:
            self._of_key[key] = run
            self._since.setdefault(run, now)
            used = set(self._of_key.values())
            self._since = {each: since for each, since in self._since.items() if each in used}

    def is_settled(self, run: str, lease_s: float, now: Instant) -> bool:
        """Return whether a run has been known for one lease."""
        return run in self._since and now - self._since[run] >= lease_s

    def settled(self, lease_s: float, now: Instant) -> list[str]:
        """Return the runs that have been known for one lease."""
        return [run for run in self._since if self.is_settled(run, lease_s, now)]

    def settled_at(self, run: str, lease_s: float) -> Instant:
        """Return when a run that was seen will have been known for one lease."""
        return self._since[run] + lease_s
