"""The budget of a politeness key: what the hosts of a group (`group_by`) share; mostly it is one.

Such a group has one pace, which the politeness core keeps. What else there is once for all its
hosts is here: the audit of their spacing, the latest request, and the lease, if other crawls may
want them, too. It has no limit of pages. Its methods write its fields; only the lease is written by
`hosts.turns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .audit import SpacingAudit

if TYPE_CHECKING:
    from mannerly.hosts.turns import Away, Turn

    from .audit import SpacingRule
    from .host import Host
    from .inflight import InFlight


class Budget(SpacingAudit):
    """The budget that the hosts of one politeness key share."""

    __slots__ = ("_first", "_others", "connecting", "key", "lease")

    def __init__(self, key: str, rule: SpacingRule) -> None:
        super().__init__(rule)
        self.key = key
        self._first: Host | None = None
        self._others: list[Host] | None = None  # a list for each host would be a tenth of it
        self.connecting: InFlight | None = None  # the latest request, until it has left
        self.lease: Turn | Away | None = None  # None: it was not asked for

    def __repr__(self) -> str:
        return f"<Budget {self.key}, {len(self.members)} hosts>"

    @property
    def members(self) -> list[Host]:
        """Return the known hosts that share it."""
        first = [] if self._first is None else [self._first]
        return first + (self._others or [])

    @property
    def is_connecting(self) -> bool:
        """Return whether the latest request has not left: its gap has not begun.

        A budget without a gap may open several connections at once.
        """
        flight = self.connecting
        return flight is not None and flight.permit.host.delay_s > 0.0

    def connects(self, flight: InFlight) -> None:
        """A request of one of its hosts was granted a slot."""
        self.connecting = flight

    def has_left(self, flight: InFlight) -> None:
        """A request has left, or never will."""
        if self.connecting is flight:
            self.connecting = None

    def join(self, host: Host) -> None:
        """Take in a host that is known from now on."""
        if self._first is None:
            self._first = host
        elif self._others is None:
            self._others = [host]
        else:
            self._others.append(host)

    def part(self) -> list[Host]:
        """Forget everything but the lease; return the hosts that shared it."""
        members = self.members
        self._first = self._others = self.connecting = None
        self.forget()
        return members
