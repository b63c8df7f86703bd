"""The one registry of a shard's hosts: birth, lookup, eviction.

    meet      a URL of it is queued, or it is asked about: it has an object
    join      its first turn in this run: it is known, with the budget of its politeness key
    evict     the politeness core has forgotten its key: it is unknown again
    release   nothing of it is queued, known, under way or waiting for a commit: it is dropped

So memory is bounded by the registry of the politeness core and by what is queued, not by the hosts
that were ever met. What was counted and is not committed stays until the commit. This module knows
no time, no store and no politeness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.politeness import Settings

from .audit import SpacingRule
from .budget import Budget
from .host import Host, Place, Silence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from .host import HostCounts

_UNSCHEDULED = Place.UNSCHEDULED


class Hosts:
    """The hosts of one shard, and their budgets.

    Args:
        settings: of the politeness core.
        key_of: returns the key of a host's budget; None: every host has its own.
    """

    def __init__(
        self, settings: Settings | None = None, key_of: Callable[[str], str] | None = None
    ) -> None:
        self._key_of = key_of
        self._rule = SpacingRule(settings or Settings())
        self._own_rules: dict[str, SpacingRule] = {}  # of budgets with settings of their own
        self._by_name: dict[str, Host] = {}
        self._budgets: dict[str, Budget] = {}
        self._changed: list[Host] = []  # their records are written by the next commit
        self._visitors: list[Host] = []  # until the next commit
        self.paused: set[Host] = set()  # by `host pause`
        self.silent = 0  # how many known hosts have not answered
        self.get = self._by_name.get
        self.budget_of = self._budgets.get

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_name.values())

    @property
    def is_grouped(self) -> bool:
        """Return whether hosts share budgets."""
        return self._key_of is not None

    @property
    def budgets(self) -> Collection[Budget]:
        """Return the budgets of the known hosts, and those with a lease."""
        return self._budgets.values()

    @property
    def scheduled(self) -> list[Host]:
        """Return the hosts in the scheduler."""
        return [host for host in self._by_name.values() if host.place is not _UNSCHEDULED]

    def key(self, name: str) -> str:
        """Return the key of a host's budget."""
        return name if self._key_of is None else self._key_of(name)

    def meet(self, name: str) -> Host:
        """Return a host, for which a place, a budget or a counts follows at once."""
        host = self._by_name.get(name)
        if host is None:
            host = self._by_name[name] = Host(name)
        return host

    def visit(self, name: str) -> Host:
        """Return a host; a new one is dropped after the next commit unless it is needed then."""
        host = self._by_name.get(name)
        if host is None:
            host = self.meet(name)
            self._visitors.append(host)
        return host

    # ------------------------------------------------------------------ known hosts

    def budget(self, key: str) -> Budget:
        """Return the budget of a key."""
        budget = self._budgets.get(key)
        if budget is None:
            rule = self._own_rules.get(key, self._rule)
            budget = self._budgets[key] = Budget(key, rule)
        return budget

    def of_key(self, key: str) -> list[Host]:
        """Return the known hosts that share a budget."""
        budget = self._budgets.get(key)
        return [] if budget is None else budget.members

    def join(self, host: Host) -> Budget:
        """A host is known from now on; return its budget."""
        assert host.budget is None, "it is known already"
        host.budget = budget = self.budget(self.key(host.name))
        budget.join(host)
        return budget

    def evict(self, key: str) -> None:
        """The politeness core has forgotten a key: its hosts are unknown again."""
        budget = self._budgets.get(key)
        for host in () if budget is None else budget.part():
            host.budget = None
            self.answered(host)
            host.forget(sitemaps=True)
            self.release(host)
        if budget is not None:
            self.drop(budget)

    def drop(self, budget: Budget) -> None:
        """Drop a budget without hosts; one with a lease stays until that was given back."""
        if budget.lease is None and not budget.members:
            self._budgets.pop(budget.key, None)

    def release(self, host: Host) -> None:
        """Drop a host of which nothing is needed any more."""
        if not host.is_needed:
            self._by_name.pop(host.name, None)

    # ------------------------------------------------------------------ what few hosts have

    def pause(self, host: Host) -> None:
        """Note that the operator has paused a host."""
        host.is_paused = True
        self.paused.add(host)

    def unpause(self, host: Host) -> None:
        """The pause is over."""
        host.is_paused = False
        self.paused.discard(host)

    def fell_silent(self, host: Host, origin: str, cause: str) -> None:
        """A host has not answered, not even for its robots.txt; it has to be known."""
        before = host.silence
        self.silent += before is None
        host.silence = Silence(origin, cause, 1 if before is None else before.tries + 1)

    def answered(self, host: Host) -> None:
        """A host is not silent, or not any more."""
        if host.silence is not None:
            host.silence = None
            self.silent -= 1

    # ------------------------------------------------------------------ records

    def change(self, host: Host, counts: HostCounts) -> None:
        """Have a host's record written by the next commit."""
        if counts.change():
            self._changed.append(host)

    def touch(self, hosts: Iterable[Host]) -> None:
        """Write with the next commit what these hosts do and wait for: it may have changed."""
        for host in hosts:
            if host.budget is not None and host.counts is not None:
                host.counts.inspect()
                self.change(host, host.counts)

    @property
    def changed(self) -> Iterable[tuple[Host, HostCounts]]:
        """Return the hosts whose records the next commit writes."""
        for host in self._changed:
            assert host.counts is not None, "it is kept until the commit"
            yield host, host.counts

    def committed(self) -> None:
        """The records are in the store."""
        changed, self._changed = self._changed, []
        for host in changed:
            if host.counts is not None:
                host.counts.committed()
            if host.budget is None:
                host.forget()
                self.release(host)
        visitors, self._visitors = self._visitors, []
        for host in visitors:
            self.release(host)

    # ------------------------------------------------------------------ the operator's part

    def configure(self, settings: Settings, *, key: str | None = None) -> None:
        """Change the settings that the audit judges by: of one budget, or of all without own."""
        rule = SpacingRule(settings)
        if key is not None:
            self._own_rules[key] = rule
            if key in self._budgets:
                self._budgets[key].configure(rule)
            return
        self._rule = rule
        for budget in self._budgets.values():
            budget.configure(self._own_rules.get(budget.key, rule))

    def check(self) -> None:
        """Assert that every host is needed, known under one key, and counted once."""
        members = [host for budget in self._budgets.values() for host in budget.members]
        assert len(members) == len(set(members))
        assert all(self._by_name[host.name] is host for host in members)
        for name, host in self._by_name.items():
            assert host.name == name
            host.check()
            if host.budget is not None:
                assert self._budgets[host.budget.key] is host.budget
        assert all(host.is_needed for host in self if host not in self._visitors)
        changed = [host for host in self if host.counts is not None and host.counts.is_changed]
        assert set(changed) == set(self._changed)
        assert len(changed) == len(self._changed)
        assert self.paused == {host for host in self if host.is_paused}
        assert self.silent == sum(host.silence is not None for host in self)
