"""The work that a shard has left: how much and where, and whether it is idle.

The store has the last word: "finished" is never derived from counters in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.events import HostPlaces, ShardMeasured

from .doing import cause_of_retry

if TYPE_CHECKING:
    from mannerly.crawler.host.inflight import Flights
    from mannerly.crawler.model import Now
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness.model import Instant

    from .contacts import Contacts
    from .given_up import GivenUpHosts
    from .pending import Pending
    from .routes import Routes

SOON_S = 1.0  # a host that is due sooner is waited for, whatever it asks for


class Remaining:
    """The work that is left in one shard, as its loop asks about it."""

    def __init__(
        self,
        number: int,
        contacts: Contacts,
        routes: Routes,
        flights: Flights,
        given_up: GivenUpHosts,
        store: ShardStore,
        pending: Pending,
    ) -> None:
        self._number = number
        self._hosts, self._frontier = contacts.hosts, contacts.frontier
        self._politeness = contacts.politeness
        self._routes = routes
        self._flights = flights
        self._given_up = given_up
        self._store = store
        self._pending = pending

    @property
    def has_batch(self) -> bool:
        """Return whether a commit would write anything that came from the web."""
        return bool(self._pending.batch)

    @property
    def is_urgent(self) -> bool:
        """Return whether a host asked for a pause that a crash now would forget."""
        return self._pending.is_urgent

    @property
    def uncommitted(self) -> int:
        """Pages that came in and are not committed."""
        return len(self._pending.batch.pages)

    @property
    def has_outgoing(self) -> bool:
        """Return whether links that were found here wait to be delivered to other shards."""
        return self._routes.leads_elsewhere and self._store.counts().outgoing > 0

    @property
    def is_idle(self) -> bool:
        """Nothing queued, under way, to be committed or to be delivered. The inbox may differ."""
        if self._is_busy:
            return False
        counts = self._store.counts()
        return not (counts.queued or counts.outgoing or counts.retries)

    @property
    def _is_busy(self) -> bool:
        return bool(self._flights.pending or self._pending.batch or self._given_up)

    def has_requisites(self, due: Instant | None, now: Now) -> bool:
        """Return whether something else than pages is left, while no page may start.

        Hosts whose next entry is a page are asleep then. Hosts that are unreachable are not waited
        for.
        """
        if self._is_busy or self._store.counts().outgoing:
            return True
        if due is None or due - now.mono < SOON_S:
            return due is not None
        waits_too_long = self._politeness.waits_too_long
        return any(
            host.due is not None and not waits_too_long(host.name, now=now.mono)
            for host in self._hosts.scheduled
        )

    def has_only_unreachable(self, due: Instant | None, now: Now) -> bool:
        """Return whether only hosts are left that would be given up before their next request.

        Such a host is waited for as long as there is anything else to do in the crawl. `due` is
        when the shard may start its next request.
        """
        if self._is_busy or (due is not None and due - now.mono < SOON_S):
            return False
        store, waits_too_long = self._store, self._politeness.waits_too_long
        counts = store.counts()
        if not counts.queued or counts.waiting or counts.outgoing or counts.retries:
            return False
        for host in self._hosts.scheduled:  # the store is asked only if these are unreachable
            if not host.is_spent and not waits_too_long(host.name, now=now.mono):
                return False
        return all(waits_too_long(name, now=now.mono) for name, _ in store.queued_hosts())

    def measured(self, now: Now) -> ShardMeasured:
        """Return where the hosts are, and how much is left."""
        seen, flights = self._frontier.snapshot(now.mono), self._flights
        due = seen.next_due
        paused = sum(host.queued > 0 for host in self._hosts.paused)
        retrying = self._frontier.retrying() if seen.retries else ()
        known = self._hosts.get
        idle = [name for name in retrying if (host := known(name)) is None or not host.queued]
        resting = Counter(cause_of_retry(self._politeness.state(name)) for name in idle)
        # Their last page is under way, and nothing else is queued.
        last = sum(host.queued == 0 for host in flights.hosts)
        other = seen.inactive + seen.need_refill + seen.robots_line + seen.asleep
        places = HostPlaces(
            known=self._store.counts().hosts,
            active=seen.active + seen.inactive + resting.total() + last,
            ready=seen.ready,
            heaped=seen.heaped + resting.total(),
            waiting=resting + Counter(seen.waiting),
            busy=seen.busy + last,
            paused=paused,
            other=max(0, other - paused),
            next_in_s=None if due is None else max(0.0, due - now.mono),
        )
        return ShardMeasured(self._number, flights.on_wire, flights.delivered, seen.queued, places)
