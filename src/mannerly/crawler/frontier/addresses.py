"""Limit the requests to one address, however many names lead to it.

A name costs nothing: one machine can have a thousand, and each would get the pace of a host. So the
address that a request goes to counts, too, for the names that were seen there:

    names of one site, more than four    together they have the pace of one host
      of these, met only as links        at most every second request, so that a site which makes
                                         up names does not delay the one that was asked for
    names of several sites               together at most `max_rate` requests a second: shared
                                         hosting and networks of caches serve many sites

The pace of the first is learned from the answers to all of these names, as that of a host is: a
second politeness core has it, in which all of them are one host.

Addresses in place of a name do not count, and ports are no names. The address is known when a
connection stands: `may_leave` is asked then, and `reserve` before every later request. What cannot
go at once gets an instant of its own, so that ten thousand names do not all ask for the same one.

With several shards a site is in one of them, so its pace is exact; `max_rate` is divided by the
number of shards. This module reads no clock and resolves no name.

**New names.** Every new name costs a look-up, a connection and a robots.txt, before anything is
known of it. A page can name a thousand hosts of one site, and with a wildcard in the DNS all of
them exist. So the first names of a site that were met only as links go at once, and then one a
second, or one for every eight requests to the site if that is slower.

A name that has to wait gets an instant of its own. Seeds do not ask here, nor do hosts that an
earlier run has contacted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.web.urls import site_of
from mannerly.politeness.keys import without_port
from mannerly.politeness.model import NEVER, Grant, Reason, Refuse, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mannerly.politeness import Politeness, Settings
    from mannerly.politeness.model import Decision, Instant, Permit, Response
    from mannerly.politeness.snapshot import HostSnapshot

    from .model import Pacing


AT_ONCE = 20  # names of one site
EVERY_S = 1.0
REQUESTS_PER_NAME = 8
_MAX_SITES = 50_000


class _Names:
    """The names of one site."""

    __slots__ = ("admitted", "last_at", "line_until")

    def __init__(self) -> None:
        self.admitted = 0
        self.last_at = NEVER
        self.line_until = NEVER  # the last instant that was given to a waiting name


class FirstContacts:
    """The names of each site that were contacted, by number."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Names] = OrderedDict()

    def admit(self, site: str, gap_s: float, now: Instant) -> Instant:
        """Return `now` if a new name of a site may be contacted, else the instant to ask again.

        `gap_s` is the time between two requests to the site.
        """
        names = self._sites.get(site)
        if names is None:
            names = self._sites[site] = _Names()
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        else:
            self._sites.move_to_end(site)
        every_s = max(EVERY_S, REQUESTS_PER_NAME * gap_s)
        if names.admitted < AT_ONCE or now >= names.last_at + every_s:
            names.admitted += 1
            # A name that comes late to its instant does not delay those behind it.
            is_next = names.admitted > AT_ONCE and now < names.last_at + 2.0 * every_s
            names.last_at = names.last_at + every_s if is_next else now
            return now
        names.line_until = max(names.line_until, names.last_at) + every_s
        return names.line_until


_NAMES_WITH_A_PACE = 4  # of one site at one address: www, a shop, a blog, pictures
_OF_LINKS = 2.0  # at most every second request
_ASK_AGAIN_S = 0.05  # while as many requests are under way as all names may have
_MAX_NAMES = 200_000  # that are remembered; about 300 bytes each


class _Turns:
    """Instants that keep a gap between them; each host gets the next free one."""

    __slots__ = ("_free_at", "_left_at", "_slots", "_taken_at", "gap_s")

    def __init__(self, gap_s: float = 0.0) -> None:
        self.gap_s = gap_s
        self._taken_at = self._free_at = self._left_at = NEVER
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

    def may_leave(self, now: Instant) -> bool:
        """Return whether the last request of these names left a gap ago."""
        return now >= self._left_at + self.gap_s

    def leave(self, now: Instant) -> None:
        """The bytes of a request leave now: the next gap counts from here."""
        self._left_at = self._taken_at = now
        self._free_at = max(self._free_at, now + self.gap_s)


class _Site:
    """The names of one site at one address."""

    __slots__ = ("key", "links", "names", "turns")

    def __init__(self) -> None:
        self.key = ""  # its name in the core of sites, once it has one pace
        self.names: set[str] = set()
        self.turns = _Turns()
        self.links = _Turns()  # of the names that were met only as links

    @property
    def has_one_pace(self) -> bool:
        return len(self.names) > _NAMES_WITH_A_PACE

    def keep(self, gap_s: float) -> None:
        """Keep this gap between two requests from now on."""
        self.turns.gap_s = gap_s
        self.links.gap_s = _OF_LINKS * gap_s


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

    address: str
    at: _Address
    site: _Site
    is_seed: bool

    def turns(self) -> Iterator[_Turns]:
        """Yield what the host has to wait for, besides its own pace."""
        if self.site.has_one_pace:
            if not self.is_seed:
                yield self.site.links
            yield self.site.turns
        if len(self.at.sites) > 1:
            yield self.at.turns


class Addresses:
    """The politeness core with limits for addresses, as far as the frontier asks it.

    Args:
        politeness: grants the slots of each host.
        site_pacing: a core of its own: in it the names of one site at one address are one host.
        is_seed: returns whether a host is one of the seeds'.
        max_rate: requests per second to one address that names of several sites lead to.
    """

    def __init__(
        self,
        politeness: Pacing,
        site_pacing: Politeness,
        is_seed: Callable[[str], bool],
        *,
        max_rate: float,
    ) -> None:
        self._politeness = politeness
        self._site_pacing = site_pacing
        self._numbers = 0  # sites with one pace so far
        self._is_seed = is_seed
        self._gap_s = 1.0 / max_rate
        self._members: dict[str, _Member] = {}  # by host
        self._addresses: dict[str, _Address] = {}
        self._paced_sites: dict[str, _Site] = {}  # by site
        self._permits: dict[int, tuple[Permit, Permit]] = {}  # of a host, and of its site
        self.ready_at = politeness.ready_at

    def __len__(self) -> int:
        return len(self._members)

    def reserve(self, host: str, *, now: Instant) -> Decision:
        """Return `Grant(permit)` if a request may start now, else `Wait` or `Refuse`."""
        member = self._members.get(host)
        politeness = self._politeness
        if member is None or not (member.site.has_one_pace or len(member.at.sites) > 1):
            return politeness.reserve(host, now=now)
        if politeness.ready_at(host, now=now) > now:
            return politeness.reserve(host, now=now)
        turns = [*member.turns()]
        until = _slot(turns, host, now)
        if until > now:
            return Wait(until, Reason.PACE)
        allowed = (
            self._site_pacing.reserve(member.site.key, now=now)
            if member.site.has_one_pace
            else None
        )
        if isinstance(allowed, (Wait, Refuse)) and allowed.until is not None:
            return Wait(allowed.until, allowed.reason)
        if isinstance(allowed, Wait):
            return Wait(now + max(member.site.turns.gap_s, _ASK_AGAIN_S), allowed.reason)
        # A site that was given up does not bind: each of its names is given up by itself.
        decision = politeness.reserve(host, now=now)
        if isinstance(allowed, Grant):
            member.site.keep(allowed.permit.host.delay_s)
            if isinstance(decision, Grant):
                self._permits[id(decision.permit)] = decision.permit, allowed.permit
            else:
                self._site_pacing.cancel(allowed.permit, now=now)
        if isinstance(decision, Grant):
            for each in turns:
                each.take(host, now)
        return decision

    def report(self, permit: Permit, response: Response, *, now: Instant) -> None:
        """Learn from the answer to a request of any name.

        Many names may have the same pages, so equal bodies say nothing here.
        """
        shared = self._shared(permit)
        if shared is not None:
            self._site_pacing.report(shared, response._replace(body_digest=None), now=now)

    def cancel(self, permit: Permit, *, now: Instant, was_sent: bool) -> None:
        """A request was not sent, or nothing can be learned from it."""
        shared = self._shared(permit)
        if shared is not None:
            self._site_pacing.cancel(shared, now=now, was_sent=was_sent)

    def _shared(self, permit: Permit) -> Permit | None:
        """Return the permit of the site that a settled one had, if any."""
        return self._permits.pop(id(permit), (None, None))[1] if self._permits else None

    def configure(self, settings: Settings) -> None:
        """Change the pace of all names that share one."""
        self._site_pacing.configure(replace(settings, group_by="host"))

    def host(self, host: str) -> HostSnapshot | None:
        """Return the details of one host; None if it has no state."""
        return self._politeness.host(host)

    def may_leave(self, host: str, address: str, permit: Permit, *, now: Instant) -> bool:
        """Return whether a request may be sent now that the address of its host is known."""
        known = self._members.get(host)
        if known is not None and known.address == address:
            return self._may_leave(known, now)
        if not address or (known is None and _is_literal(host)):
            return True
        member = self._members[host] = self._meet(host, address)
        if member.site.turns.gap_s == 0.0:
            member.site.keep(permit.host.delay_s)  # until more is known
        turns = [*member.turns()]
        if _slot(turns, host, now) > now:
            return False
        for each in turns:
            each.take(host, now)
            each.leave(now)
        return True

    def _may_leave(self, member: _Member, now: Instant) -> bool:
        """Judge a request of a name whose address is known: its turn was taken at its grant.

        Connecting takes time, so requests that were granted a gap apart may be ready at once.
        """
        if not (member.site.has_one_pace or len(member.at.sites) > 1):
            return True
        turns = [*member.turns()]
        if not all(each.may_leave(now) for each in turns):
            return False
        for each in turns:
            each.leave(now)
        return True

    def gap_s(self, site: str) -> float:
        """Return the gap that the names of a site share at an address; 0: they share none."""
        found = self._paced_sites.get(site)
        return 0.0 if found is None else found.turns.gap_s

    def _meet(self, host: str, address: str) -> _Member:
        if len(self._members) >= _MAX_NAMES:
            self._forget()
        at = self._addresses.get(address)
        if at is None:
            at = self._addresses[address] = _Address(self._gap_s)
        site = at.meet(without_port(host))
        if site.has_one_pace:
            self._paced_sites[site_of(host)] = site
            if not site.key:
                self._numbers += 1
                site.key = f"site-{self._numbers}"
        return _Member(address, at, site, self._is_seed(host))

    def _forget(self) -> None:
        """Drop the names that share nothing, and if that is not enough, all."""
        members = {host: each for host, each in self._members.items() if any(each.turns())}
        self._members = members if len(members) < _MAX_NAMES // 2 else {}
        self._addresses = {each.address: each.at for each in self._members.values()}
        if not self._members:
            self._paced_sites.clear()


def _slot(turns: list[_Turns], host: str, now: Instant) -> Instant:
    """Return the first instant in the future that a host has to wait for; now, if there is none."""
    for each in turns:
        until = each.slot(host, now)
        if until > now:
            return until
    return now


@lru_cache(maxsize=1024)  # this is asked for every request to an address
def _is_literal(host: str) -> bool:
    name = without_port(host)
    return name.startswith("[") or name[name.rfind(".") + 1 :].isdigit()
