"""Limit the requests to one address, however many names lead to it.

A name costs nothing: one machine can have a thousand, and each would get the pace of a host. So the
address that a request goes to counts, too, for the names that were seen there:

    names of one site, more than four    together they have the pace of one of them
    names of several sites               together at most `max_rate` requests a second: shared
                                         hosting and networks of caches serve many sites

The pace of a site is that of its leading name: of the one that has sent most, a seed's if there is
one. While it has URLs it gets every second request, so that it learns about as fast as it would
alone, and a site that makes up names does not delay the one that was asked for.

Addresses in place of a name do not count, and ports are no names. The address is known when a
connection stands: `may_leave` is asked then, and `reserve` before every later request. What cannot
go at once gets an instant of its own, so that ten thousand names do not all ask for the same one.

With several shards a site is in one of them, so its pace is exact; `max_rate` is divided by the
number of shards. This module reads no clock and resolves no name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.web.urls import site_of, without_port
from mannerly.politeness.model import NEVER, Grant, Reason, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.politeness.model import Decision, Instant, Permit
    from mannerly.politeness.snapshot import HostSnapshot

    from .model import Pacing

_NAMES_WITH_A_PACE = 4  # of one site at one address: www, a shop, a blog, pictures
_LEADER_IS_IDLE = 10  # gaps without a request of the leading name
_MAX_NAMES = 200_000  # that are remembered; about 300 bytes each


class _Turns:
    """Instants that keep a gap between them; each host gets the next free one."""

    __slots__ = ("_free_at", "_slots", "_taken_at", "gap_s")

    def __init__(self, gap_s: float = 0.0) -> None:
        self.gap_s = gap_s
        self._taken_at = self._free_at = NEVER
        self._slots: dict[str, Instant] = {}

    def slot(self, host: str, now: Instant) -> Instant:
        """Return when the host may send. An instant in the future is kept for it."""
        slot = self._slots.get(host)
        if slot is None:
            slot = self._free_at
            if slot <= now:
                return now
            self._slots[host] = slot
            self._free_at = slot + self.gap_s
        # After a stall many slots are past: they are still used one by one.
        return max(slot, self._taken_at + self.gap_s)

    def take(self, host: str, now: Instant) -> None:
        """The host sends now."""
        self._taken_at = now
        if self._slots.pop(host, None) is None:
            self._free_at = max(self._free_at, now + self.gap_s)


class _Site:
    """The names of one site at one address."""

    __slots__ = ("_has_seed", "_led_at", "_most_requests", "leader", "names", "others", "turns")

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.turns = _Turns()
        self.others = _Turns()  # of all but the leading host
        self.leader = ""
        self._most_requests = 0
        self._has_seed = False
        self._led_at = NEVER

    @property
    def is_crowd(self) -> bool:
        return len(self.names) > _NAMES_WITH_A_PACE

    def learn(self, host: str, permit: Permit, now: Instant, *, is_seed: bool) -> None:
        """A host sends now: take over its pace if it leads."""
        requests = permit.host.requests
        is_first_seed = is_seed and not self._has_seed
        may_lead = is_seed or not self._has_seed
        if host == self.leader or is_first_seed or (may_lead and requests > self._most_requests):
            self.leader = host
            self._has_seed = self._has_seed or is_seed
            self._most_requests = requests
            self._led_at = now
            self.turns.gap_s = permit.host.delay_s
        gap_s = self.turns.gap_s
        is_idle = now - self._led_at > _LEADER_IS_IDLE * gap_s
        self.others.gap_s = gap_s if is_idle else 2.0 * gap_s


class _Address:
    """The sites at one address."""

    __slots__ = ("_first", "sites", "turns")

    def __init__(self, gap_s: float) -> None:
        self.sites: dict[str, _Site] = {}  # while there is one name only, it is not known whose
        self._first: tuple[str, _Site] | None = None
        self.turns = _Turns(gap_s)

    def meet(self, name: str) -> _Site:
        """Return the names of a name's site. The list of public suffixes is read at the second."""
        if self._first is None:
            self._first = name, _Site()
        first, site = self._first
        if not self.sites and name != first:
            self.sites[site_of(first)] = site
        if self.sites:
            site = self.sites.setdefault(site_of(name), _Site())
        site.names.add(name)
        return site


class _Member(NamedTuple):
    """A host with the address that its last request went to."""

    host: str
    address: str
    at: _Address
    site: _Site
    is_seed: bool

    def turns(self) -> Iterator[_Turns]:
        """Yield what the host has to wait for, besides its own pace."""
        if self.site.is_crowd:
            if self.host != self.site.leader:
                yield self.site.others
            yield self.site.turns
        if len(self.at.sites) > 1:
            yield self.at.turns


class Addresses:
    """The politeness core with limits for addresses, as far as the frontier asks it.

    Args:
        politeness: grants the slots of each host.
        is_seed: returns whether a host is one of the seeds'.
        max_rate: requests per second to one address that names of several sites lead to.
    """

    def __init__(
        self, politeness: Pacing, is_seed: Callable[[str], bool], *, max_rate: float
    ) -> None:
        self._politeness = politeness
        self._is_seed = is_seed
        self._gap_s = 1.0 / max_rate
        self._members: dict[str, _Member] = {}  # by host
        self._addresses: dict[str, _Address] = {}
        self._crowds: dict[str, _Site] = {}  # by site
        self.ready_at = politeness.ready_at

    def __len__(self) -> int:
        return len(self._members)

    def reserve(self, host: str, *, now: Instant) -> Decision:
        """Return `Grant(permit)` if a request may start now, else `Wait` or `Refuse`."""
        member = self._members.get(host)
        politeness = self._politeness
        if member is None or not (member.site.is_crowd or len(member.at.sites) > 1):
            return politeness.reserve(host, now=now)
        turns = [*member.turns()]
        if politeness.ready_at(host, now=now) <= now:
            until = _slot(turns, host, now)
            if until > now:
                return Wait(until, Reason.PACE)
        decision = politeness.reserve(host, now=now)
        if isinstance(decision, Grant):
            member.site.learn(host, decision.permit, now, is_seed=member.is_seed)
            for each in turns:
                each.take(host, now)
        return decision

    def host(self, host: str) -> HostSnapshot | None:
        """Return the details of one host; None if it has no state."""
        return self._politeness.host(host)

    def may_leave(self, host: str, address: str, permit: Permit, *, now: Instant) -> bool:
        """Return whether a request may be sent now that the address of its host is known."""
        known = self._members.get(host)
        if not address or (known is not None and known.address == address) or _is_literal(host):
            return True
        member = self._members[host] = self._meet(host, address)
        member.site.learn(host, permit, now, is_seed=member.is_seed)
        turns = [*member.turns()]
        if _slot(turns, host, now) > now:
            return False
        for each in turns:
            each.take(host, now)
        return True

    def gap_s(self, site: str) -> float:
        """Return the gap that the names of a site share at an address; 0: they share none."""
        crowd = self._crowds.get(site)
        return 0.0 if crowd is None else crowd.turns.gap_s

    def _meet(self, host: str, address: str) -> _Member:
        if len(self._members) >= _MAX_NAMES:
            self._forget()
        at = self._addresses.get(address)
        if at is None:
            at = self._addresses[address] = _Address(self._gap_s)
        site = at.meet(without_port(host))
        if site.is_crowd:
            self._crowds[site_of(host)] = site
        return _Member(host, address, at, site, self._is_seed(host))

    def _forget(self) -> None:
        """Drop the names that share nothing, and if that is not enough, all."""
        members = {host: each for host, each in self._members.items() if any(each.turns())}
        self._members = members if len(members) < _MAX_NAMES // 2 else {}
        self._addresses = {each.address: each.at for each in self._members.values()}
        if not self._members:
            self._crowds.clear()


def _slot(turns: list[_Turns], host: str, now: Instant) -> Instant:
    """Return the first instant in the future that a host has to wait for; now, if there is none."""
    for each in turns:
        until = each.slot(host, now)
        if until > now:
            return until
    return now


def _is_literal(host: str) -> bool:
    name = without_port(host)
    return name.startswith("[") or name[name.rfind(".") + 1 :].isdigit()
