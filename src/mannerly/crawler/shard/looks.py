"""Look at the hosts of a shard for the live view, about once a second, and only while it is shown.

All hosts are compared, but only a few are described: those with the longest queues, the one that
needs most time, and those that come back first. With many hosts a look is rarer, so that looking
takes less than half a percent of the time (about 1 µs a host).
"""

from __future__ import annotations

from heapq import nlargest, nsmallest
from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.events import HostsSeen, HostWaits
from mannerly.crawler.standing import (
    ASKED,
    BACKING_OFF,
    NO_ROBOTS,
    HostStanding,
    HostStatus,
    LimitedBy,
    limited_by,
)
from mannerly.politeness.model import NEVER, Reason

if TYPE_CHECKING:
    from mannerly.crawler.frontier.window import HostQueue
    from mannerly.crawler.model import Now
    from mannerly.politeness.model import Instant

    from .parts import Parts

BUSIEST = 20  # hosts that are described for the length of their queue
SOONEST = 4  # hosts that are described because they come back first
LOOK_S = 1.0
WORTH_TELLING_S = 1.0  # of a wait for the next request
SHORT_ONES = 16  # shorter waits of which one is told
HOSTS_A_SECOND = 4_000  # that are looked at
_WAITING = (*ASKED, *BACKING_OFF, Reason.ROBOTS)
_WITHOUT_INSTANT = (HostStatus.PAUSED, HostStatus.SHARED)


class HostLooks:
    """Says when the next look at the hosts is due, and takes it."""

    def __init__(self) -> None:
        self._next: Instant = NEVER

    def take(self, parts: Parts, now: Now) -> HostsSeen | None:
        """Return what is seen of the hosts; None if the next look is not due yet."""
        if now.mono < self._next:
            return None
        queues = list(parts.frontier.queues())
        self._next = now.mono + max(LOOK_S, len(queues) / HOSTS_A_SECOND)
        chosen = nlargest(BUSIEST, queues, key=_queued)
        if queues:
            chosen.append(max(queues, key=lambda queue: _needs_s(queue, parts)))
        waiting = [queue for queue in queues if queue.reason in _WAITING]
        chosen += nsmallest(SOONEST, waiting, key=lambda queue: queue.due or inf)
        hosts = {queue.host: _of_queue(queue, parts, now) for queue in chosen}
        retrying = parts.frontier.retrying().items()
        for host, (retries, due) in nsmallest(SOONEST, retrying, key=lambda item: item[1][1]):
            hosts[host] = _standing(host, retries, due, parts.why_it_rests(host), parts, now)
        return HostsSeen(parts.number, now.mono, tuple(hosts.values()))


class NextWaits:
    """Says how long the next URL of a host has to wait, when a request to the host has left.

    Every wait of a second is told. Of shorter ones one in `SHORT_ONES` is, and stands for all since
    the one before: it is asked for every request, and telling takes 3 µs.
    """

    def __init__(self) -> None:
        self._untold = SHORT_ONES - 1  # so that the first one is told
        self._stands_for = 1

    def after(self, host: str, parts: Parts, now: Instant) -> HostWaits | None:
        """Return the wait, if it is to be told."""
        wait_s, times = parts.politeness.not_before(host) - now, 1
        if wait_s < WORTH_TELLING_S:
            self._untold += 1
            if self._untold < SHORT_ONES or wait_s <= 0.0:
                return None
            times, self._stands_for, self._untold = self._stands_for, SHORT_ONES, 0
        item = parts.frontier.first_of(host, by=now + wait_s)
        if item is None:
            return None
        return HostWaits(host, item.url, wait_s, parts.politeness.wait_reason(host), times)


def _queued(queue: HostQueue) -> int:
    return len(queue) + queue.on_disk


def _needs_s(queue: HostQueue, parts: Parts) -> float:
    """Return how long a queue takes at its host's pace, or at the first one.

    The core has no state of a host that was not asked yet, and would parse its name each time.
    """
    if queue.host in parts.hosts.known:
        return _queued(queue) * parts.politeness.delay_s(queue.host)
    return _queued(queue) * parts.politeness.settings.start_delay_s


def _of_queue(queue: HostQueue, parts: Parts, now: Now) -> HostStanding:
    due = queue.due if queue.reason is not None else None
    return _standing(queue.host, _queued(queue), due, queue.reason, parts, now)


def _standing(
    host: str,
    queued: int,
    due: Instant | None,  # if there is a reason to wait
    reason: Reason | None,
    parts: Parts,
    now: Now,
) -> HostStanding:
    seen = parts.politeness.host(host, now=now.mono)
    if reason is Reason.ROBOTS and due is not None:
        delay_s, wait_s = parts.politeness.delay_s(host), max(0.0, due - now.mono)
        return HostStanding(
            host, HostStatus.BACKING_OFF, queued, delay_s, wait_s, problem=NO_ROBOTS
        )
    if seen is None:  # it was not asked yet
        return HostStanding(host, HostStatus.FETCHING, queued, parts.politeness.delay_s(host))
    state = _state(reason or seen.gate)
    next_at = seen.not_before if due is None else due
    settings = parts.politeness.settings_of(host)
    by = limited_by(
        seen.delay_s,
        crawl_delay_s=seen.crawl_delay_s,
        least_gap_s=max(settings.floor_s, 1.0 / settings.rate_ceiling),
        floor_s=seen.delay_floor_s,
    )
    is_known = host in parts.hosts.known
    return HostStanding(
        host=host,
        state=state,
        queued=queued,
        delay_s=seen.delay_s,
        next_in_s=None if state in _WITHOUT_INSTANT else max(0.0, next_at - now.mono),
        limited_by=by,
        limit=1.0 / seen.delay_floor_s if by is LimitedBy.LEARNED else 0.0,
        problem=seen.latest_problem if seen.bad_since < inf else "",
        times=seen.bad_in_a_row,
        retry_after_s=seen.retry_after_s,
        failing_s=now.mono - seen.bad_since if seen.bad_since < inf else 0.0,
        fetched=parts.hosts.fetched(host) if is_known else 0,
        refused=seen.throttles,
        held_by="" if parts.shared is None else parts.shared.holder_of(host),
        p95_latency_s=seen.p95_latency_s,
        error_rate=seen.error_rate,
        tokens=seen.tokens or 0.0,
        success_streak=seen.success_streak,
        error_streak=seen.error_streak,
    )


def _state(reason: Reason | None) -> HostStatus:
    if reason in ASKED:
        return HostStatus.ASKED_TO_WAIT
    if reason in BACKING_OFF:
        return HostStatus.BACKING_OFF
    if reason is Reason.SHARED:
        return HostStatus.SHARED
    return HostStatus.PAUSED if reason is Reason.PAUSED else HostStatus.FETCHING
