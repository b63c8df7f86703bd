"""Hosts that have not answered yet, not even for their robots.txt, and the cause of each.

While there is anything else to do, such a host is asked again after a minute, then after two: it
may be restarting. When nothing else is left in the shard, waiting would only keep the crawl from
ending: the host is asked `TRIES` times in all, as soon as its pace allows, and then given up with
the cause. So the crawl of a misspelled host ends within seconds, and says that its name was not
found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import LocalError
from mannerly.crawler.robots.gate import UNREACHABLE

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Now, RobotsRequest

    from .parts import Parts

TRIES = 3
# Time-outs of this file have a limit of their own: --robots-timeout, not --timeout.
TIMEOUTS = frozenset({"timeout", "first_byte_timeout", "body_timeout"})


class _Silence(NamedTuple):
    origin: str
    cause: str  # a reason code
    tries: int


class UnreachableHosts:
    """The hosts of a shard that wait for a robots.txt without an answer."""

    def __init__(self) -> None:
        self._silent: dict[str, _Silence] = {}

    def __contains__(self, host: str) -> bool:
        """Return whether this process has asked a host, and got no answer."""
        return host in self._silent

    def learn(self, request: RobotsRequest, answer: Fetched) -> None:
        """Note whether a host has answered a request for its robots.txt."""
        host = request.host
        if answer.error is None:
            self._silent.pop(host, None)
        elif request.hops == 0 and not isinstance(answer.error, LocalError):
            known = self._silent.get(host)
            cause = answer.detail or answer.error.value
            cause = "robots_timeout" if cause in TIMEOUTS else cause
            self._silent[host] = _Silence(request.origin, cause, known.tries + 1 if known else 1)

    def because(self, host: str, reason: str) -> str:
        """Return a reason for which a URL is dropped, with the cause if its robots.txt is that."""
        silence = self._silent.get(host) if reason == UNREACHABLE else None
        return reason if silence is None else f"{reason}: {silence.cause}"

    def forget(self, host: str) -> None:
        """Begin to count anew for a host: it was revived."""
        self._silent.pop(host, None)

    def press(self, parts: Parts, now: Now) -> None:
        """If nothing else is left in the shard: ask these hosts again, or give them up."""
        if not self._silent or parts.flights.pending or parts.batch or parts.given_up:
            return
        queued = {host for host, _ in parts.store.queued_hosts()}
        if not queued or not queued <= self._silent.keys():
            return
        for host in queued - parts.paused_hosts:
            silence = self._silent[host]
            if parts.robots.has_rules(silence.origin):
                del self._silent[host]  # an older copy, or none is needed: its pages answer
            elif silence.tries >= TRIES:
                del self._silent[host]
                parts.given_up.give_up(host, silence.cause, parts, now)
            else:
                parts.robots.expire(silence.origin, now.mono)
                parts.frontier.wake(host, now=now.mono)
