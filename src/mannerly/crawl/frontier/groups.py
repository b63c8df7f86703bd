"""Hosts that share a budget stand in one line for it. Mostly a group is one host.

    a grant makes a group; a host that nothing but a report can help joins its line; when a request
    comes back the first in line is called: one, for an address may have a hundred thousand hosts

**Invariant.** Behind every line there is a request that will come back, or a host that was called
and will be asked. A host that was called and cannot go (its URLs are forbidden, it was dropped)
passes the call on, or else the line would wait for ever.

**Fair.** Whoever asked in vain stands before whoever was just served, so members take turns.

This file knows no time: whoever is called is handed to the frontier, which knows when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .window import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .window import HostQueue


class _Group:
    __slots__ = ("asked_in_vain", "line", "out")

    def __init__(self) -> None:
        self.out = 0
        self.line: list[HostQueue] = []
        self.asked_in_vain = 0  # how many of the line, from its beginning


class Groups:
    """Which requests are out for whom, and who waits for one to come back."""

    __slots__ = ("_called", "_groups")

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._called: dict[str, str] = {}  # hosts called and not served yet, with their groups

    @property
    def waiting(self) -> int:
        """Hosts in all lines."""
        return sum(len(group.line) for group in self._groups.values())

    def is_out(self, key: str) -> bool:
        """Whether a request of the group is to come back."""
        group = self._groups.get(key)
        return group is not None and group.out > 0

    def sent(self, key: str, host: str) -> bool:
        """The host was granted a request; is somebody in line behind it?"""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group()
        group.out += 1
        if self._called:
            self._called.pop(host, None)
        return bool(group.line)

    def back(self, key: str) -> bool:
        """A request came back; are others still out?"""
        group = self._groups[key]
        group.out -= 1
        return group.out > 0

    def join(self, key: str, queue: HostQueue, *, was_served: bool) -> None:
        """Wait until a request of the group comes back."""
        group = self._groups[key]
        assert group.out > 0
        self._called.pop(queue.host, None)
        queue.place = Place.BUSY
        if was_served:
            group.line.append(queue)
        else:
            group.line.insert(group.asked_in_vain, queue)
            group.asked_in_vain += 1

    def call(self, key: str) -> HostQueue | None:
        """The first in line, who must now be asked."""
        group = self._groups[key]
        if group.line:
            queue = group.line[0]
            _leave(group, queue)
            self._called[queue.host] = key
            return queue
        if group.out == 0:
            del self._groups[key]
        return None

    def pass_on(self, queue: HostQueue) -> HostQueue | None:
        """A host that was called cannot go: who must be asked in its place?"""
        key = self._called.pop(queue.host, None)
        return (
            None if key is None or key not in self._groups or self.is_out(key) else self.call(key)
        )

    def withdraw(self, queue: HostQueue) -> None:
        """Leave whatever line the host stands in."""
        for group in self._groups.values():
            if queue in group.line:
                _leave(group, queue)

    def check(self, hosts: Mapping[str, HostQueue], in_flight: int) -> None:
        """Assert that every line has somebody who will end it."""
        assert in_flight == sum(group.out for group in self._groups.values())
        lines = [queue.host for group in self._groups.values() for queue in group.line]
        busy = [queue.host for queue in hosts.values() if queue.place is Place.BUSY]
        assert sorted(lines) == sorted(busy)
        for key, group in self._groups.items():
            called = [hosts[host] for host, name in self._called.items() if name == key]
            is_coming = any(queue.place in (Place.HEAP, Place.HUNGRY) for queue in called)
            assert group.out or is_coming, key
            assert 0 <= group.asked_in_vain <= len(group.line)


def _leave(group: _Group, queue: HostQueue) -> None:
    at = group.line.index(queue)
    del group.line[at]
    group.asked_in_vain -= at < group.asked_in_vain
