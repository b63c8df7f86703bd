"""Say in words what a crawl does or waits for, and what its end depends on.

`doing` returns clauses, the most important first, so that a narrow screen can leave the last ones
out. `ahead` returns one sentence. Names of hosts pass through `name`, which may cut them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.host_view import NO_ROBOTS, HostStatus
from mannerly.crawler.web.words import many, span
from mannerly.hosts.base import said_of

from .meter import CrawlState, at_least_s, reason_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from .meter import Live


def doing(live: Live, name: Callable[[str], str]) -> list[str]:
    """Return what a crawl does or waits for, as clauses of a sentence."""
    stats = live.stats
    if live.state is CrawlState.PAUSED:
        return [_paused(live, name)]
    if live.state is CrawlState.HELD:
        return [stats.now.trouble or ""]
    if live.state is CrawlState.STOPPING:
        under_way = many(stats.now.in_flight, "request")
        return [f"{under_way} under way, {stats.now.grace_s or 0.0:.0f} s at most"]
    if live.state is CrawlState.RUNNING:
        return [f"{speed(live.per_second)} from {_who(live, name)}", *_asked(live), *_late(live)]
    if stats.is_left_to_others:
        return [stats.now.idle_reason or ""]
    if live.is_late:
        return _late(live)
    if live.state is CrawlState.REFUSED:
        return [f"{_left(live, 'refuses us', 'refuse us', name)}; the next try {_when(live)}"]
    if live.state is CrawlState.STARTING:
        return (
            [f"{many(stats.now.in_flight, 'request')} under way"] if stats.now.in_flight else ["…"]
        )
    return [_waiting(live, name)]


def ahead(live: Live, name: Callable[[str], str], *, is_short: bool = False) -> str:
    """Return how long the crawl still takes at least, and why; nothing if that is not known."""
    limits, stats = live.limits, live.stats
    if live.state is CrawlState.PAUSED:
        return ""
    if live.state is CrawlState.REFUSED:
        return _refused(live, is_short=is_short)
    if limits.max_urls is not None and live.per_second > 0:
        left = min(limits.max_urls - stats.pages, stats.now.queued + stats.now.in_flight)
        if left < stats.now.queued + stats.now.in_flight:
            return f"About {span(left / live.per_second)} to go at {speed(live.per_second)}"
    left_s, slowest = at_least_s(live), live.slowest
    if left_s is None or slowest is None:
        return ""
    if left_s == 0.0:
        return f"--duration is over: {many(stats.now.in_flight, 'request')} under way"
    if left_s < slowest.needs_s:
        return f"{span(left_s)} left of --duration"
    if slowest.queue_s < slowest.needs_s:
        return f"At least {span(left_s)} to go: {name(slowest.host)} is waited for until then"
    queue, pace = many(slowest.queued, "URL"), _pace(1.0 / slowest.delay_s)
    return f"At least {span(left_s)} to go: {name(slowest.host)} has {queue} at {pace}"


def speed(per_second: float) -> str:
    """Return a number of pages by time: 31.4 pages/s."""
    if per_second >= 100:
        return f"{per_second:,.0f} pages/s"
    if per_second >= 0.1 or per_second == 0:
        return f"{per_second:.1f} pages/s"
    return f"{per_second * 60:.1f} pages/min"


def _paused(live: Live, name: Callable[[str], str]) -> str:
    stats = live.stats
    if stats.now.is_paused:
        return "by you: nothing is sent"
    hosts = [host.host for host in stats.now.host_views if host.state is HostStatus.PAUSED]
    paused = stats.now.waits.states[HostStatus.PAUSED]
    if paused == 1 and len(hosts) == 1:
        return f"you paused {name(hosts[0])}, the only host left"
    return f"you paused all {many(paused, 'host')} that have URLs left"


def _waiting(live: Live, name: Callable[[str], str]) -> str:
    waits, back, when = live.stats.now.waits, live.back, _when(live)
    states = Counter[HostStatus]() if waits.fetching else waits.states
    if asked := states[HostStatus.ASKED_TO_WAIT]:
        if asked == 1 and back:
            return f"{name(back[0].host)} asked us to come back {when}"
        return f"{many(asked, 'host')} asked us to come back, the next one {when}"
    if failing := states[HostStatus.BACKING_OFF]:
        if back and all(host.problem == NO_ROBOTS for host in back):
            hosts = name(back[0].host) if failing == 1 else "the hosts that are left"
            return f"the robots.txt of {hosts} is unreachable; the next try {when}"
        return f"{_left(live, 'fails', 'fail', name)}; the next try {when}"
    if states[HostStatus.SHARED]:
        return in_use(live, name)
    if reason_word(live.stats) == "robots_txt":
        return f"the robots.txt of {_hosts(live, name)} is asked for"
    return f"the next request goes {when}, as the pace of {_hosts(live, name)} allows"


def in_use(live: Live, name: Callable[[str], str]) -> str:
    """Return who sends to the hosts that are waited for: a.example is in use by crawl b."""
    waiting = [host for host in live.stats.now.host_views if host.state is HostStatus.SHARED]
    holders = {host.held_by for host in waiting if host.held_by}
    by = said_of(min(holders)) if len(holders) == 1 else "other crawls"
    count = live.stats.now.waits.states[HostStatus.SHARED]
    if count == 1 and waiting:
        return f"{name(waiting[0].host)} is in use by {by}"
    return f"{many(count, 'host')} are in use by {by}"


def _hosts(live: Live, name: Callable[[str], str]) -> str:
    host_views, count = live.stats.now.host_views, live.stats.now.waits.fetching
    if count == 1 and len(host_views) == 1:
        return name(host_views[0].host)
    return "the hosts that are left"


def _left(live: Live, one: str, more: str, name: Callable[[str], str]) -> str:
    count = live.stats.now.waits.states[HostStatus.BACKING_OFF]
    if count == 1 and live.back:
        return f"{name(live.back[0].host)} {one}"
    return f"all {count:,} hosts left {more}"


def _when(live: Live) -> str:
    due_s = live.next_in_s
    return f"in {span(due_s)}" if due_s else "now"


def _who(live: Live, name: Callable[[str], str]) -> str:
    host_views, hosts = live.stats.now.host_views, live.hosts
    if hosts == 1 and host_views:
        return name(host_views[0].host)
    return f"{live.counts[HostStatus.FETCHING]:,} of {many(hosts, 'host')}"


def _asked(live: Live) -> list[str]:
    count, back = live.stats.now.waits.states[HostStatus.ASKED_TO_WAIT], live.back
    if not count or not back:
        return []
    return [
        f"{many(count, 'host')} asked us to wait, the next one for {span(back[0].next_in_s or 0.0)}"
    ]


def _late(live: Live) -> list[str]:
    oldest = live.stats.now.oldest
    if not live.is_late or oldest is None:
        return []
    waited, limit = f"{oldest.waited_s:.0f} s", f"limit {oldest.timeout_s:.0f} s"
    tried = f"try {oldest.attempt} of {oldest.attempts}"
    if live.stats.now.in_flight == 1:
        return [f"1 request waiting {waited} for an answer ({limit}), {tried}"]
    waiting = many(live.stats.now.in_flight, "request")
    return [f"{waiting} waiting for an answer, the oldest {waited} ({limit}), {tried}"]


def _refused(live: Live, *, is_short: bool) -> str:
    failing = [host for host in live.stats.now.host_views if host.state is HostStatus.BACKING_OFF]
    statuses = sorted({host.problem for host in failing if host.problem})
    longest_s = max((host.failing_s for host in failing), default=0.0)
    after = span(live.limits.give_up_after_s)
    more = "" if is_short else " of nothing but refusals"
    rule = f"A host is given up after {after}{more} (--give-up-after)."
    return f"{_and(statuses)} for {span(longest_s)}. {rule}" if statuses else rule


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _pace(per_second: float) -> str:
    return f"{per_second:.1f}/s" if per_second >= 0.1 else f"{per_second * 60:.1f}/min"
