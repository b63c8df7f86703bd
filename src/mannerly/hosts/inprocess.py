"""A memory of hosts in this process: `memory:NAME`. The plain version of the contract.

It lives as long as the process. All crawls of the process that name it share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .base import (
    STALE_S,
    Granted,
    HolderLost,
    HostBudget,
    InUse,
    LeaseTimes,
    after_death,
    later,
    merged,
    prolonged,
    unlearned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mannerly.politeness.model import Now

    from .base import Claimed, Holder


class DatedBudget(NamedTuple):
    """A budget, and when it was written."""

    budget: HostBudget
    at: Now

    def now(self, now: Now) -> HostBudget:
        """Return the budget as it is now."""
        elapsed_s = max(-STALE_S, now.mono - self.at.mono)
        return later(self.budget, elapsed_s, now.wall - self.at.wall)


class HostLease(NamedTuple):
    """The right to send to a host."""

    holder: str  # "": it was released while others waited
    gap_s: float
    freed_at: float = 0.0


@dataclass(slots=True)
class HostData:
    """Everything that one memory keeps."""

    budgets: dict[str, DatedBudget] = field(default_factory=dict)
    holders: dict[str, tuple[Holder, float]] = field(default_factory=dict)  # and the last beat
    leases: dict[str, HostLease] = field(default_factory=dict)
    wishes: dict[str, list[str]] = field(default_factory=dict)  # by host, in order


_MEMORIES: dict[str, HostData] = {}


class MemoryHosts:
    """A `HostMemory` in this process."""

    def __init__(
        self, location: str, times: LeaseTimes | None = None, data: HostData | None = None
    ) -> None:
        self.location = location
        self.times = times or LeaseTimes()
        self._data = _MEMORIES.setdefault(location, HostData()) if data is None else data

    def join(self, holder: Holder, now: Now) -> None:
        """Become a holder."""
        self._data.holders[holder.id] = holder, now.mono

    def renew(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give a sign of life, and write some budgets."""
        known = self._require(holder, now)
        self._data.holders[holder] = known, now.mono
        self.write(holder, budgets, now)

    def claim(self, holder: str, hosts: Mapping[str, float], now: Now) -> dict[str, Claimed]:
        """Ask for hosts."""
        me = self._require(holder, now)
        return {host: self._claim(me, host, gap_s, now) for host, gap_s in hosts.items()}

    def _claim(self, me: Holder, host: str, gap_s: float, now: Now) -> Claimed:
        data = self._data
        lease, stored = data.leases.get(host), self._budget(host, now)
        waiting = self._waiting(host, me.crawl, now)
        owner = None if lease is None else self._alive(lease.holder, now)
        if owner is not None and owner.crawl != me.crawl:
            return self._refuse(me, host, owner, waiting)
        if lease is not None and not lease.holder and waiting:
            first = next(filter(None, (self._alive(each, now) for each in data.wishes[host])))
            is_early = now.mono - lease.freed_at < self.times.grace_s
            if first.crawl != me.crawl and is_early:
                return self._refuse(me, host, first, waiting)
        if lease is not None and lease.holder not in ("", me.id):
            stored = after_death(stored, host, lease.gap_s)
            data.budgets[host] = DatedBudget(stored, now)
            self._end(lease.holder, now)
        data.leases[host] = HostLease(me.id, gap_s)
        self._unwish(me.id, host)
        return Granted(stored)

    def _refuse(self, me: Holder, host: str, by: Holder, waiting: int) -> InUse:
        wishes = self._data.wishes.setdefault(host, [])
        if me.id not in wishes:
            wishes.append(me.id)
        return InUse(by, waiting + 1)

    def wanted(self, holder: str, now: Now) -> dict[str, int]:
        """Return the hosts of a holder that other crawls wait for."""
        known = self._alive(holder, now)
        crawl = "" if known is None else known.crawl
        mine = [host for host in self._data.wishes if self._holds(holder, host)]
        counts = {host: self._waiting(host, crawl, now) for host in mine}
        return {host: count for host, count in counts.items() if count}

    def write(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts."""
        known = self._data.holders.get(holder)
        name = "" if known is None else known[0].name
        for budget in budgets:
            stored = self._budget(budget.host, now)
            is_mine = self._holds(holder, budget.host)
            new = merged(stored, budget, name) if is_mine else prolonged(stored, budget)
            self._data.budgets[budget.host] = DatedBudget(new, now)

    def release(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts and give these hosts back."""
        self.write(holder, budgets, now)
        for budget in budgets:
            if self._holds(holder, budget.host):
                self._free(budget.host, now)

    def withdraw(self, holder: str, hosts: Iterable[str], now: Now) -> None:  # noqa: ARG002
        """Take wishes back."""
        for host in hosts:
            self._unwish(holder, host)

    def leave(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give everything back."""
        self.write(holder, budgets, now)
        for host in [host for host in self._data.leases if self._holds(holder, host)]:
            self._free(host, now)
        self.withdraw(holder, list(self._data.wishes), now)
        self._data.holders.pop(holder, None)

    def budgets(self, hosts: Iterable[str], now: Now) -> dict[str, HostBudget]:
        """Return what is known of some hosts."""
        found = {host: self._budget(host, now) for host in hosts}
        return {host: budget for host, budget in found.items() if budget is not None}

    def in_use(self, hosts: Iterable[str], now: Now, *, besides: str = "") -> dict[str, Holder]:
        """Return who holds these hosts."""
        found: dict[str, Holder] = {}
        for host in hosts:
            lease = self._data.leases.get(host)
            holder = None if lease is None else self._alive(lease.holder, now)
            if holder is not None and holder.crawl != besides:
                found[host] = holder
        return found

    def forget(self, host: str, now: Now) -> bool:
        """Forget what was learned of a host."""
        stored = self._budget(host, now)
        if stored is None:
            return False
        self._data.budgets[host] = DatedBudget(unlearned(stored), now)
        return stored.lesson is not None or stored.crawl_delay_s > 0.0

    def take_mended(self) -> list[str]:
        """Return nothing: no one else writes to this memory."""
        return []

    def dead(self, now: Now) -> set[str]:
        """Return the holders that are dead and still known."""
        return {holder for holder in self._data.holders if self._alive(holder, now) is None}

    def remove_dead(self, now: Now) -> None:
        """Forget dead holders: their hosts are free after the gap in force, counted from now."""
        dead = self.dead(now)
        for holder in dead:
            self.withdraw(holder, list(self._data.wishes), now)
            del self._data.holders[holder]
        for host, lease in list(self._data.leases.items()):
            if lease.holder in dead:
                stored = after_death(self._budget(host, now), host, lease.gap_s)
                self._data.budgets[host] = DatedBudget(stored, now)
                self._free(host, now)

    def close(self) -> None:
        """Do nothing: the memory stays."""

    def _require(self, holder: str, now: Now) -> Holder:
        known = self._alive(holder, now)
        if known is None:
            raise HolderLost(holder)
        return known

    def _alive(self, holder: str, now: Now) -> Holder | None:
        known = self._data.holders.get(holder)
        is_alive = known is not None and -STALE_S < now.mono - known[1] < self.times.lease_s
        return known[0] if known is not None and is_alive else None

    def _end(self, holder: str, now: Now) -> None:
        """A host was taken over from this holder: if it is dead, no late beat brings it back."""
        if holder in self._data.holders and self._alive(holder, now) is None:
            del self._data.holders[holder]

    def _holds(self, holder: str, host: str) -> bool:
        lease = self._data.leases.get(host)
        return lease is not None and lease.holder == holder

    def _waiting(self, host: str, crawl: str, now: Now) -> int:
        """Return how many crawls, without this one, wait for a host."""
        holders = (self._alive(each, now) for each in self._data.wishes.get(host, ()))
        return len({each.crawl for each in holders if each is not None} - {crawl})

    def _free(self, host: str, now: Now) -> None:
        if host in self._data.wishes:
            self._data.leases[host] = HostLease("", self._data.leases[host].gap_s, now.mono)
        else:
            del self._data.leases[host]

    def _unwish(self, holder: str, host: str) -> None:
        wishes = [each for each in self._data.wishes.pop(host, ()) if each != holder]
        if wishes:
            self._data.wishes[host] = wishes

    def _budget(self, host: str, now: Now) -> HostBudget | None:
        dated = self._data.budgets.get(host)
        return None if dated is None else dated.now(now)
