"""One host, told the time: what a request to it gets, how long that takes, and what it asks for.

First the limit decides, with the simulator's own model on the real clock, then the path. Whatever
arrives counts against the limit, robots.txt and redirects too, as it does on most real servers.

The model's second 0 is the host's first request, so that an outage "from second 4" does not depend
on how long the crawler took to start. Its dates start in 2030; they are moved to the wall clock.

Sans-IO: no socket, no clock. `server` sends what is decided here.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from mannerly.simulation.spec import parse_server

from .pages import document, number_of, render
from .reply import TEXT, SiteReply
from .traps import trap_reply
from .wellknown import MOVED_ROBOTS_PATH, ROBOTS_PATH, robots_reply, rules, sitemap_reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .pages import WebMap
    from .sites import Site

_REFUSED = SiteReply(0, b"not now", TEXT)


class LimitDecision(NamedTuple):
    """What the limit decided on one request.

    `silent_until` is the instant before which the answer asks not to be disturbed, on the same
    clock as `now`; None if it asks for nothing.
    """

    status: int
    latency_s: float
    headers: Mapping[str, str]
    silent_until: float | None


class DemoHost:
    """A site at its place in the web."""

    def __init__(self, site: Site, web: WebMap, *, netloc: str) -> None:
        self.site = site
        self.web = web
        self.netloc = netloc
        self.in_flight = 0
        self._first_at: float | None = None
        self._model = None if site.limit is None else parse_server(site.limit)
        if reset := getattr(self._model, "reset", None):
            reset(random.Random(f"{site.name} {site.seed}"))

    def decide(self, now: float, wall: float) -> LimitDecision:
        """What the limit says to a request that arrives now; `in_flight` counts it already.

        Args:
            now: monotonic seconds.
            wall: seconds since the epoch, for dates.
        """
        if self._model is None:
            return LimitDecision(200, self.site.latency_s, {}, None)
        if self._first_at is None:
            self._first_at = now
        status, latency_s, headers = self._model.request(now - self._first_at, self.in_flight)
        if "retry-after" not in headers:
            return LimitDecision(status, latency_s, headers, None)
        named, silence_s = _on_wall_clock(headers, wall + latency_s)
        return LimitDecision(status, latency_s, named, now + latency_s + silence_s)

    def content(self, target: str, status: int = 200) -> SiteReply:
        """What stands at a target (path and query), or the refusal with another status."""
        if status != 200:
            return SiteReply(status, _REFUSED.body, _REFUSED.content_type)
        path = target.partition("?")[0]
        site, web = self.site, self.web
        number = number_of(path)
        if number is not None and number < site.pages:
            return SiteReply(200, render(site, number, web))
        if path == ROBOTS_PATH:
            return robots_reply(site, web)
        if path == MOVED_ROBOTS_PATH:
            return SiteReply(200, rules(site, web), TEXT)
        found = trap_reply(site, web, path) or sitemap_reply(site, web, path)
        return found or SiteReply(404, document("no such page", ['<a href="/">home</a>']))


def _on_wall_clock(headers: Mapping[str, str], wall: float) -> tuple[Mapping[str, str], float]:
    """The same headers with today's dates, and the seconds of silence that they ask for."""
    value = headers["retry-after"]
    if value.isdigit():
        return headers, float(value)
    asked = parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])
    until = datetime.fromtimestamp(floor(wall), UTC) + timedelta(seconds=asked.total_seconds())
    named = {name: text for name, text in headers.items() if name != "date"}
    return named | {"retry-after": format_datetime(until, usegmt=True)}, until.timestamp() - wall
