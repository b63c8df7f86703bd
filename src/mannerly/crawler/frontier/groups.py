"""Hosts that share a budget wait for it in one line. Mostly a group is one host.

A host that can only continue when a request of its group is answered joins the group's line. When
one is answered, the first host in the line is called: one only, because an address may have a
hundred thousand hosts.

**Invariant.** For every line there is a request under way, or a host that was called and will be
served. A host that was called and cannot send (its URLs are forbidden, or it was dropped) passes
the call on, or else the line would wait for ever.

**Fairness.** A host that was refused a slot goes before one that just got one: hosts take turns.

This module knows no time: the frontier decides when a host that was called is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.host.host import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.host.host import Host


class _Line:
    __slots__ = ("hosts", "refused_first")

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self.refused_first = 0  # how many of them were refused a slot; they are the first


class Groups:
    """Hosts that wait for a request of their group to come back.

    `is_out` returns whether requests of a group are under way, which the politeness core knows.
    """

    __slots__ = ("_called", "_is_out", "_lines")

    def __init__(self, is_out: Callable[[str], bool]) -> None:
        self._is_out = is_out
        self._lines: dict[str, _Line] = {}  # by group; no line is empty
        self._called: dict[Host, str] = {}  # hosts called and not served yet, with their groups

    @property
    def waiting(self) -> int:
        """Return the number of hosts in all lines."""
        return sum(len(line.hosts) for line in self._lines.values())

    def has_line(self, key: str) -> bool:
        """Return whether a host waits for a request of this group."""
        return key in self._lines

    def served(self, host: Host) -> None:
        """Note that a host was granted a request."""
        if self._called:
            self._called.pop(host, None)

    def join(self, key: str, host: Host, *, was_served: bool) -> None:
        """Put a host into its group's line, until a request of the group is answered."""
        self._called.pop(host, None)
        host.place = Place.BUSY
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        if was_served:
            line.hosts.append(host)
        else:
            line.hosts.insert(line.refused_first, host)
            line.refused_first += 1

    def call(self, key: str) -> Host | None:
        """Remove and return the first host of the line, which must be served next."""
        line = self._lines.get(key)
        if line is None:
            return None
        host = line.hosts[0]
        self._leave(key, host)
        self._called[host] = key
        return host

    def pass_on(self, host: Host) -> Host | None:
        """Return the host to serve instead of one that was called and cannot send."""
        key = self._called.pop(host, None) if self._called else None
        return None if key is None or self._is_out(key) else self.call(key)

    def withdraw(self, host: Host) -> None:
        """Remove a host from the line that it is in."""
        for key in [key for key, line in self._lines.items() if host in line.hosts]:
            self._leave(key, host)

    def check(self) -> None:
        """Assert that for every line there is a request under way or a called host."""
        in_line = [host for line in self._lines.values() for host in line.hosts]
        assert all(host.place is Place.BUSY for host in in_line)
        assert len(in_line) == len(set(in_line))
        for key, line in self._lines.items():
            called = [host for host, name in self._called.items() if name == key]
            is_coming = any(host.place in (Place.HEAP, Place.NEEDS_REFILL) for host in called)
            assert self._is_out(key) or is_coming, key
            assert 0 <= line.refused_first <= len(line.hosts)
            assert line.hosts

    def _leave(self, key: str, host: Host) -> None:
        line = self._lines[key]
        at = line.hosts.index(host)
        del line.hosts[at]
        line.refused_first -= at < line.refused_first
        if not line.hosts:
            del self._lines[key]
