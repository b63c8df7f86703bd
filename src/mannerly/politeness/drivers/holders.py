"""The callers inside the blocks of slots, to find those that would wait for themselves forever.

    with politeness.slot(url):
        with politeness.slot(url):     one request at a time: the outer slot is never reported

A caller that waits inside a slot's block cannot report that slot. If every request in flight to a
host belongs to such a caller, and the limit is reached, then no report will ever come. The drivers
raise an error in the last of these callers, instead of letting all of them wait forever.

A slot of `try_slot` that was not entered may be reported by any task or thread: it does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..model import Permit


class Holders:
    """The callers inside the block of a slot, with the permits they hold. Not thread-safe."""

    def __init__(self) -> None:
        self._held: dict[object, list[Permit]] = {}

    def add(self, caller: object, permit: Permit) -> None:
        """Note that the caller enters the block of this permit's slot."""
        held = self._held.get(caller)
        if held is None:
            self._held[caller] = [permit]
        else:
            held.append(permit)

    def remove(self, caller: object, permit: Permit) -> None:
        """Note that the caller leaves the block."""
        held = self._held[caller]
        if len(held) == 1:
            del self._held[caller]
        else:
            held.remove(permit)

    def holds(self, caller: object, key: str) -> bool:
        """Return whether the caller holds a slot of this host that is not settled yet."""
        return _open(self._held.get(caller, ()), key) > 0

    def is_deadlock(self, key: str, waiting: Collection[object], in_flight: int) -> bool:
        """Return whether all requests in flight to a host belong to callers that wait for it."""
        return in_flight == sum(_open(self._held.get(caller, ()), key) for caller in set(waiting))


def _open(permits: Collection[Permit], key: str) -> int:
    return sum(not permit.is_settled and permit.host.key == key for permit in permits)
