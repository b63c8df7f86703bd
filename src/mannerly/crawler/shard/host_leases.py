"""The hosts of a shard that other crawls and programs may want, too: see `hosts.turns`.

Hosts are claimed before they are met, many at once, so a host that no other crawl wants costs its
part of one claim. What the claim brought is applied when the host is recalled. A host is wanted as
long as something is queued for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.hosts.base import NOTHING_KNOWN, InUse
from mannerly.hosts.turns import Away, HandedOver, HostTurns, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.frontier.core import Frontier
    from mannerly.crawler.host.budget import Budget
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Now
    from mannerly.hosts.leases import Leases
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant


class ShardLeases(HostTurns["Budget"]):
    """The leases of one shard's hosts. What is held or away is in each `Budget`."""

    def __init__(
        self,
        leases: Leases,
        politeness: Politeness,
        frontier: Frontier,
        hosts: Hosts,
    ) -> None:
        super().__init__(leases, politeness)
        self._frontier = frontier
        self._hosts = hosts

    def holder_of(self, host: Host) -> str:
        """Return the name of the holder that a host is away to; "" if it is not."""
        lease = None if host.budget is None else host.budget.lease
        return lease.by.name if isinstance(lease, Away) and lease.by is not None else ""

    def claim(self, hosts: Iterable[str], now: Now) -> None:
        """Ask for hosts that are about to be met for the first time."""
        find, start_s = self._hosts.budget_of, self._politeness.start_delay_s
        keys = map(self._hosts.key, hosts) if self._hosts.is_grouped else hosts
        known = ((key, find(key)) for key in keys)
        gaps = {key: start_s for key, each in known if each is None or each.lease is None}
        answers, at = self._leases.claim(gaps, now) if gaps else ({}, now.mono)
        turn = Turn(now.mono, 0)  # one for the many hosts of which nothing is known
        for key in gaps:
            budget, answer = self._hosts.budget(key), answers.get(key)
            if answer is NOTHING_KNOWN:
                self._hold(budget, turn)
            elif answer is None or isinstance(answer, InUse):
                self._refused(budget, None if answer is None else answer.by, now)
            else:
                self._hold(budget, turn)
                if answer.budget is not None:
                    self._granted[budget] = HandedOver(answer.budget, at)

    def met(self, budget: Budget, own_at: float, now: Now) -> None:
        """A host is recalled: go on where the last crawl stopped, or wait for the host.

        `own_at` is the wall time of what this crawl's own record knows of its pace; 0: nothing.
        """
        self._forgotten.discard(budget)
        if isinstance(budget.lease, Turn):
            granted = self._granted.pop(budget, None)
            if granted is not None:
                self._apply(budget, granted, own_at, now)
        else:
            if budget.lease is None:
                self._send_away(budget, Away(now.mono))
            self._politeness.suspend(budget.key, now=now.mono)
            self._hosts.touch(budget.members)

    def forget(self, budget: Budget, now: Now) -> None:
        """Forget what was learned of a host, for all crawls; what it asked for stays."""
        self._learned.pop(budget, None)
        self._leases.forget(budget.key, now)

    def leave(self, now: Now) -> None:
        """Give all hosts back: this process does not own the shard any more."""
        self._leases.remove(self, now)

    def check(self) -> None:
        """Assert that budgets and lists agree."""
        super().check()
        assert not any(each.members for each in self._forgotten)

    def _find(self, key: str) -> Budget | None:
        return self._hosts.budget_of(key)

    def _all(self) -> Iterable[Budget]:
        return self._hosts.budgets

    def _is_wanted(self, host: Budget) -> bool:
        return any(each.queued for each in host.members)

    def _changed(self, host: Budget) -> None:
        self._hosts.touch(host.members)

    def _is_back(self, host: Budget, now: Now) -> None:
        for member in host.members:
            self._frontier.wake(member, now=now.mono)
        self._hosts.touch(host.members)

    def _drop(self, host: Budget) -> None:
        self._hosts.drop(host)

    def _blocked(self, host: Budget, until: Instant) -> None:
        host.blocked(until)
