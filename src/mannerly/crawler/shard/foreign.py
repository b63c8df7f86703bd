"""Requests for robots.txt that other shards have to send, because they own the host.

    a.example/robots.txt ──301──► b.example/robots.txt, a host of another shard

Only the owner of b.example knows its pace, so the next hop is the owner's to send. The worker
passes the request on with a control record (`FetchRobots`); the owner sends it in a slot of the
host, and keeps the answer in its store as the robots.txt of a.example. There the worker finds it
and brings it back. Meanwhile the pages of a.example wait, as they do for any robots.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.model import Now, RobotsRequest
    from mannerly.politeness.model import Instant

PATIENCE_S = 120.0  # then the file counts as unreachable, and is asked for again later


class ForeignRobots:
    """The requests of one shard that others have to send, until their answers are known."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[RobotsRequest, Instant]] = {}  # by origin, with a deadline
        self._new: list[RobotsRequest] = []

    def ask(self, request: RobotsRequest, now: Now) -> None:
        """Have a request sent by the shard that owns its host."""
        self._asked[request.origin] = request, now.mono + PATIENCE_S
        self._new.append(request)

    def take_new(self) -> list[RobotsRequest]:
        """Return the requests that were not passed on yet."""
        new, self._new = self._new, []
        return new

    @property
    def origins(self) -> frozenset[str]:
        """The origins whose robots.txt was asked for."""
        return frozenset(self._asked)

    def answered(self, origin: str) -> None:
        """An origin's robots.txt is known."""
        self._asked.pop(origin, None)

    def take_overdue(self, now: Now) -> list[RobotsRequest]:
        """Return the requests that were not answered in time; they are asked for no longer."""
        overdue = [request for request, until in self._asked.values() if now.mono >= until]
        for request in overdue:
            del self._asked[request.origin]
        return overdue
