"""Hosts that have not answered yet, not even for their robots.txt, and the cause of each.

While there is anything else to do, such a host is asked again after a minute, then after two: it
may be restarting. When nothing else is left in the shard, waiting would only keep the crawl from
ending: the host is asked `TRIES` times in all, as soon as its pace allows, and then given up with
the cause. So the crawl of a misspelled host ends within seconds, and says that its name was not
found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import LocalError
from mannerly.crawler.robots.gate import UNREACHABLE

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Fetched, Now, RobotsRequest

    from .parts import Parts

TRIES = 3
# Time-outs of this file have a limit of their own: --robots-timeout, not --timeout.
TIMEOUTS = frozenset({"timeout", "first_byte_timeout", "body_timeout"})


def learn(request: RobotsRequest, answer: Fetched, hosts: Hosts) -> None:
    """Note whether a host has answered a request for its robots.txt."""
    host = hosts.get(request.host)
    if host is None or host.budget is None:
        return  # it is of another shard
    if answer.error is None:
        hosts.answered(host)
    elif request.hops == 0 and not isinstance(answer.error, LocalError):
        cause = answer.detail or answer.error.value
        hosts.fell_silent(host, request.origin, "robots_timeout" if cause in TIMEOUTS else cause)


def because(host: Host | None, reason: str) -> str:
    """Return a reason for which a URL is dropped, with the cause if its robots.txt is that."""
    if host is None or host.silence is None or reason != UNREACHABLE:
        return reason
    return f"{reason}: {host.silence.cause}"


def press(parts: Parts, now: Now) -> None:
    """If nothing else is left in the shard: ask these hosts again, or give them up."""
    hosts = parts.hosts
    if not hosts.silent or parts.flights.pending or parts.pending.batch or parts.given_up:
        return
    queued = [hosts.get(name) for name, _ in parts.store.queued_hosts()]
    silent = [host for host in queued if host is not None and host.silence is not None]
    if len(silent) < len(queued):
        return
    for host in silent:
        silence = host.silence
        if silence is None or host.is_paused:
            continue
        if parts.robots.has_rules(silence.origin):
            hosts.answered(host)  # an older copy, or none is needed: its pages answer
        elif silence.tries >= TRIES:
            hosts.answered(host)
            parts.given_up.give_up(host.name, silence.cause, parts, now)
        else:
            parts.robots.expire(silence.origin, now.mono)
            parts.frontier.wake(host, now=now.mono)
