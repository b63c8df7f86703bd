"""Sample the hosts of a shard for the live view, about once a second, and only while it is shown.

All hosts are compared, but only a few are described: those with the longest queues, the one that
needs most time, and those that come back first. With many hosts samples are rarer, so that sampling
takes less than half a percent of the time (about 1 µs a host).
"""

from __future__ import annotations

from heapq import nlargest, nsmallest
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.events import HostsSeen, HostWaits
from mannerly.crawler.host_view import BACK, HostView, status_of, view_of
from mannerly.politeness.model import NEVER

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Now
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant

    from .contacts import Contacts

BUSIEST = 20  # hosts that are described for the length of their queue
SOONEST = 4  # hosts that are described because they come back first
LOOK_S = 1.0
WORTH_TELLING_S = 1.0  # of a wait for the next request
SHORT_ONES = 16  # shorter waits of which one is reported
HOSTS_A_SECOND = 4_000  # that are compared


class HostSamples:
    """Says when the next sample of the hosts is due, and takes it."""

    def __init__(self, number: int, contacts: Contacts) -> None:
        self._number = number
        self._contacts = contacts
        self._next: Instant = NEVER

    def take(self, now: Now) -> HostsSeen | None:
        """Return what is seen of the hosts; None if the next sample is not due yet."""
        if now.mono < self._next:
            return None
        contacts = self._contacts
        queues = contacts.hosts.scheduled
        self._next = now.mono + max(LOOK_S, len(queues) / HOSTS_A_SECOND)
        chosen = nlargest(BUSIEST, queues, key=_queued)
        if queues:
            chosen.append(max(queues, key=lambda queue: _needs_s(queue, contacts.politeness)))
        waiting = [
            queue
            for queue in queues
            if queue.reason is not None and status_of(queue.reason) in BACK
        ]
        chosen += nsmallest(SOONEST, waiting, key=lambda queue: queue.due or inf)
        retrying = contacts.frontier.retrying()
        soonest = nsmallest(SOONEST, retrying, key=lambda host: retrying[host][1])
        hosts = dict.fromkeys([*(queue.name for queue in chosen), *soonest])
        retries = {host: retrying[host][0] if host in retrying else 0 for host in hosts}
        seen = tuple(_view(host, count, contacts, now) for host, count in retries.items())
        return HostsSeen(self._number, now.mono, seen)


class NextWaits:
    """Says how long the next URL of a host has to wait, when a request to the host has left.

    Every wait of a second is reported. Of shorter ones one in `SHORT_ONES` is, and stands for all
    since the one before: it is asked for every request, and reporting takes 3 µs.
    """

    def __init__(self, contacts: Contacts) -> None:
        self._politeness, self._frontier = contacts.politeness, contacts.frontier
        self._untold = SHORT_ONES - 1  # so that the first one is reported
        self._stands_for = 1

    def after(self, host: str, now: Instant) -> HostWaits | None:
        """Return the wait, if it is to be reported."""
        wait_s, times = self._politeness.not_before(host) - now, 1
        if wait_s < WORTH_TELLING_S:
            self._untold += 1
            if self._untold < SHORT_ONES or wait_s <= 0.0:
                return None
            times, self._stands_for, self._untold = self._stands_for, SHORT_ONES, 0
        item = self._frontier.first_of(host, by=now + wait_s)
        if item is None:
            return None
        return HostWaits(host, item.url, wait_s, self._politeness.wait_reason(host), times)


def _queued(queue: Host) -> int:
    return queue.queued


def _needs_s(queue: Host, politeness: Politeness) -> float:
    """Return how long a queue takes at its host's pace, or at the first one.

    The core has no state of a host that was not asked yet, and would parse its name each time.
    """
    if queue.budget is not None:
        return _queued(queue) * politeness.delay_s(queue.name)
    return _queued(queue) * politeness.settings.start_delay_s


def _view(host: str, retries: int, contacts: Contacts, now: Now) -> HostView:
    known = contacts.hosts.get(host)
    under_way = 0 if known is None else known.pages
    if known is not None and known.sitemaps is not None:
        under_way += known.sitemaps.under_way
    return view_of(
        contacts.records.record(host, now),
        (0 if known is None else known.urls) + retries + under_way,
        now=now.wall,
        is_paused=known is not None and known.is_paused,
    )
