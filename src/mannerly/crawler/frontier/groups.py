"""Hosts that share a budget stand in one line for it. Mostly a group is one host.

A host that can go on only when a request comes back joins its group's line. When one comes back,
the first in line is called: one only, because an address may have a hundred thousand hosts.

**Invariant.** Behind every line there is a request that will come back, or a host that was called
and will be asked. A host that was called and cannot go (its URLs are forbidden, it was dropped)
passes the call on, or else the line would wait for ever.

**Fair.** A host that asked in vain stands before one that was just served, so members take turns.

This file knows no time: the host that is called is handed to the frontier, which knows when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .window import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .window import HostQueue


class _Line:
    __slots__ = ("asked_in_vain", "queues")

    def __init__(self) -> None:
        self.queues: list[HostQueue] = []
        self.asked_in_vain = 0  # how many of them, from the beginning


class Groups:
    """Hosts that wait for a request of their group to come back.

    How many requests of a group are under way is the politeness core's to say: `is_out` tells.
    """

    __slots__ = ("_called", "_is_out", "_lines")

    def __init__(self, is_out: Callable[[str], bool]) -> None:
        self._is_out = is_out
        self._lines: dict[str, _Line] = {}  # by group; no line is empty
        self._called: dict[str, str] = {}  # hosts called and not served yet, with their groups

    @property
    def waiting(self) -> int:
        """Hosts in all lines."""
        return sum(len(line.queues) for line in self._lines.values())

    def has_line(self, key: str) -> bool:
        """Whether a host waits for a request of this group."""
        return key in self._lines

    def served(self, host: str) -> None:
        """The host was granted a request."""
        if self._called:
            self._called.pop(host, None)

    def join(self, key: str, queue: HostQueue, *, was_served: bool) -> None:
        """Wait until a request of the group comes back."""
        self._called.pop(queue.host, None)
        queue.place = Place.BUSY
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        if was_served:
            line.queues.append(queue)
        else:
            line.queues.insert(line.asked_in_vain, queue)
            line.asked_in_vain += 1

    def call(self, key: str) -> HostQueue | None:
        """The first in line, who must now be asked."""
        line = self._lines.get(key)
        if line is None:
            return None
        queue = line.queues[0]
        self._leave(key, queue)
        self._called[queue.host] = key
        return queue

    def pass_on(self, queue: HostQueue) -> HostQueue | None:
        """A host that was called cannot go: who must be asked in its place?"""
        key = self._called.pop(queue.host, None) if self._called else None
        return None if key is None or self._is_out(key) else self.call(key)

    def withdraw(self, queue: HostQueue) -> None:
        """Leave whatever line the host stands in."""
        for key in [key for key, line in self._lines.items() if queue in line.queues]:
            self._leave(key, queue)

    def check(self, hosts: Mapping[str, HostQueue]) -> None:
        """Assert that every line will be ended by a request or a host."""
        in_line = [queue for line in self._lines.values() for queue in line.queues]
        assert all(hosts[queue.host] is queue for queue in in_line)
        assert all(queue.place is Place.BUSY for queue in in_line)
        assert len(in_line) == len({queue.host for queue in in_line})
        for key, line in self._lines.items():
            called = [hosts[host] for host, name in self._called.items() if name == key]
            is_coming = any(queue.place in (Place.HEAP, Place.HUNGRY) for queue in called)
            assert self._is_out(key) or is_coming, key
            assert 0 <= line.asked_in_vain <= len(line.queues)
            assert line.queues

    def _leave(self, key: str, queue: HostQueue) -> None:
        line = self._lines[key]
        at = line.queues.index(queue)
        del line.queues[at]
        line.asked_in_vain -= at < line.asked_in_vain
        if not line.queues:
            del self._lines[key]
