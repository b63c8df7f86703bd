"""The core of a driver that shares its hosts with other processes: `memory="user"`, a path, a URL.

    reserve ─► the host is used ─► its lease is claimed elsewhere ─► meanwhile it is suspended
    report  ─► a pause is written at once, so that it outlives this process

The holder of a lease sends, the others wait for the reason SHARED. The package
`mannerly.hosts` keeps leases, turns and lessons, in a thread of its own; it is loaded only when a
place is named, by its name, because nothing in this package stands on it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeGuard

from ..core import Politeness
from ..host import LENT_LOOK_S
from ..model import OK, Reason, Wait

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from os import PathLike

    from ..clock import TimeSource
    from ..events import Event
    from ..host import HostState
    from ..model import Decision, Instant, Outcome, Permit, Response
    from ..settings import Settings

_SHARING = "mannerly.hosts.programs"
WORTH_WRITING_S = 1.0  # a shorter pause is over before another process can take the host over


class HostSharing(Protocol):
    """The leases of a driver's hosts; all methods but the last three are called with its lock."""

    lock: AbstractContextManager[object]
    trouble: str | None  # why nothing is sent; None: it is

    @property
    def sure_until(self) -> Instant:
        """Nothing may be sent from this instant on."""

    def serve(self, politeness: Politeness, serve: Callable[[list[str]], None]) -> None:
        """Keep the hosts of this core; `serve` is called when callers of hosts may go on."""

    def use(self, key: str, now: Instant) -> None:
        """A caller asks for a host: until its lease is there, the core waits for it."""

    def may_leave(self, key: str, now: Instant) -> bool:
        """Return whether a granted request may still be sent."""

    def write_soon(self) -> None:
        """A host has asked for a pause: others must know it before this process is gone."""

    def evicted(self, key: str) -> None:
        """The core has dropped a host."""

    def holder_of(self, key: str) -> str | None:
        """Return the holder that is waited for, in words; None: none is known."""

    def kept_robots(self, origin: str) -> tuple[bytes | None, float] | None:
        """Return an origin's rules, and for how many seconds they hold; None: not known."""

    def keep_robots(self, origin: str, body: bytes | None, expires_in_s: float) -> None:
        """Keep an origin's rules for other processes; None: it has none."""

    def close(self) -> None:
        """Give all hosts back and close the memory; closing twice is harmless."""


def is_place(memory: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether this names a place that several processes can share."""
    return isinstance(memory, str) or hasattr(memory, "__fspath__")


def open_sharing(place: str | PathLike[str], clock: TimeSource) -> HostSharing:
    """Open the memory of hosts at a place.

    Raises:
        StoreError: it cannot be used.
    """
    sharing: HostSharing = import_module(_SHARING).share_hosts(place, clock)
    return sharing


class SharedPoliteness(Politeness):
    """The core, with a lease for each host that is asked for."""

    def __init__(
        self,
        sharing: HostSharing,
        settings: Settings | None,
        *,
        on_event: Callable[[Event], None],
        group_of: Callable[[str], str] | None,
    ) -> None:
        super().__init__(settings, on_event=on_event, group_of=group_of, remember=True)
        self._sharing = sharing

    def reserve(self, host: str, *, now: Instant) -> Decision:
        """Return `Grant(permit)` if a request may start now and the host's lease is held."""
        self._sharing.use(self.key(host), now)
        if now >= self._sharing.sure_until:
            return Wait(now + LENT_LOOK_S, Reason.SHARED)
        return super().reserve(host, now=now)

    def ready_at(self, host: str, *, now: Instant) -> Instant:
        """Return the earliest instant at which `reserve` may grant; `inf` if not known yet."""
        if now >= self._sharing.sure_until:
            return now + LENT_LOOK_S
        return super().ready_at(host, now=now)

    def report(self, permit: Permit, response: Response, *, now: Instant) -> Outcome:
        """Report the response to a granted request; a pause is written for other processes."""
        outcome = super().report(permit, response, now=now)
        if outcome is not OK and permit.host.free_at(now) - now > WORTH_WRITING_S:
            self._sharing.write_soon()
        return outcome

    def _evict(self, state: HostState, now: Instant) -> None:
        super()._evict(state, now)
        self._sharing.evicted(state.key)
