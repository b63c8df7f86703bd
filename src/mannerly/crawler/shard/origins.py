"""robots.txt in a shard: bring an origin's rules into memory, ask for them, obey them.

The gate (`robots.gate`) decides what is known and what an answer means. Here its requests go to the
frontier, its records into the batch, its delays to the politeness core, and hosts are woken.
A redirect to a host of another shard is followed by that shard (`foreign`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import RobotsAnswered
from mannerly.crawler.model import Fetched, Request, RobotsRequest
from mannerly.crawler.robots.gate import request_for
from mannerly.crawler.web.urls import host_key_of
from mannerly.politeness.model import ErrorKind

from . import sitemaps, unreachable

if TYPE_CHECKING:
    from mannerly.crawler.frontier.model import Need
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Now, RobotsRecord
    from mannerly.crawler.robots.gate import Learned

    from .parts import Parts


def is_admitted(need: Need, parts: Parts, now: Now) -> bool:
    """Return whether a host may be contacted now; if not, it is asked again when it may be."""
    admitted_at = parts.admit(need.host, now)
    if admitted_at > now.mono:
        parts.frontier.wake(parts.hosts.get(need.host), now=now.mono, at=admitted_at)
    return admitted_at <= now.mono


def provide(need: Need, parts: Parts, now: Now) -> None:
    """Bring a host's record and an origin's rules into memory, or ask for the rules."""
    name, origin = need
    robots, frontier = parts.robots, parts.frontier
    host = parts.given_up.recall(name, parts, now)
    if robots.needs(origin, now.mono):
        # Rules that expired in memory are not loaded again: a record from a wall clock that was
        # years ahead would never end.
        record = None if origin in robots else parts.stored_robots(origin)[origin]
        if record is not None and not _is_untried(record, host):
            _obey(robots.load(record, now), parts, now)
        if robots.needs(origin, now.mono) and host.given_up is None:
            frontier.request(robots.request(origin), now=now.mono)
            return
    frontier.wake(host, now=now.mono)


def _is_untried(record: RobotsRecord, host: Host) -> bool:
    """Return whether only an earlier process got no answer, perhaps because it was stopped."""
    return record.status is None and record.body is None and host.silence is None


def answered(request: RobotsRequest, answer: Fetched, parts: Parts, now: Now) -> None:
    """Learn from an answer, or follow its redirect with a slot of the other host."""
    parts.emit(RobotsAnswered(request, answer.status))
    unreachable.learn(request, answer, parts.hosts)
    for origin in request.origins[1:]:
        # This answer is that origin's own robots.txt, too: its queued request is not needed.
        own = request_for(origin)
        if parts.frontier.unrequest(own):
            parts.robots.withdrawn(own)
            parts.frontier.wake(parts.hosts.get(own.host), now=now.mono)
    stored = parts.stored_robots(*request.origins)
    follows = parts.robots.answered(request, answer, stored, now)
    if isinstance(follows, RobotsRequest):
        follow(follows, parts, now)
        return
    _learn(follows, parts, now)
    if not follows:  # it failed on our side for the moment: its pages are judged again
        host = parts.hosts.get(host_key_of(request.origin + "/"))
        parts.frontier.wake(host, now=now.mono)


def follow(request: RobotsRequest, parts: Parts, now: Now) -> None:
    """Send the next hop of a redirect, or have it sent by the shard that owns its host."""
    if not parts.routes.owns(request.host):
        parts.foreign.ask(request, now)
        return
    if parts.given_up.recall(request.host, parts, now).given_up is None:
        parts.frontier.request(request, now=now.mono)
    else:
        give_up(request, parts, now)


def found_elsewhere(record: RobotsRecord, parts: Parts, now: Now) -> None:
    """Take over a robots.txt that another shard has fetched for an origin of this one."""
    parts.foreign.answered(record.origin)
    if record.origin in parts.robots.fetching:
        parts.robots.withdrawn(request_for(record.origin))
        _learn([parts.robots.load(record, now)], parts, now)


def give_up_overdue(parts: Parts, now: Now) -> None:
    """Learn that no other shard has answered: the file is unreachable for the moment."""
    for request in parts.foreign.take_overdue(now):
        if request.origin in parts.robots.fetching:
            asked = Request(request.url, "", 0.0)
            answered(request, Fetched(asked, error=ErrorKind.TIMEOUT), parts, now)


def give_up(request: RobotsRequest, parts: Parts, now: Now) -> None:
    """A request cannot be sent: its origin's pages must not wait for it."""
    stored = parts.stored_robots(*request.origins)
    _learn(parts.robots.give_up(request, stored, now), parts, now)


def _learn(result: list[Learned], parts: Parts, now: Now) -> None:
    """Keep rules, obey them, and let the pages go that waited for them."""
    for learned in result:
        parts.pending.batch.robots[learned.origin] = learned.record
        if parts.routes.owns(learned.host):  # else another shard finds it in the store
            _obey(learned, parts, now)
        if learned.sitemaps and parts.settings.seeding in ("sitemap", "all"):
            sitemaps.listed(learned.origin + "/robots.txt", learned.sitemaps, parts)
        host = parts.hosts.get(learned.host)
        parts.frontier.wake(host, now=now.mono)
        parts.hosts.touch([] if host is None else [host])


def _obey(learned: Learned, parts: Parts, now: Now) -> None:
    if learned.record.failing_since and learned.record.body is None:
        return  # a file that cannot be read says nothing: a delay that was known before holds
    delay_s = learned.crawl_delay_s
    parts.politeness.robots(learned.host, crawl_delay_s=delay_s, now=now.mono)
    budget = parts.hosts.budget(parts.hosts.key(learned.host))
    budget.robots(delay_s, is_grouped=parts.hosts.is_grouped)
