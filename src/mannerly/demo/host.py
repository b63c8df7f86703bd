"""One host of the web: decides status, latency, headers and content of the answer to a request.

First the host's limit decides, using the simulator's model of a server with the real time, then
the path. Every request counts against the limit, also robots.txt and redirects, as it does on most
real servers.

Second 0 of the model is the host's first request, so that an outage "from second 4" does not depend
on how long the crawler took to start. The model's dates start in 2030; they are converted to
today's.

This module opens no socket and reads no clock: `connection` passes the time and sends the answer.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from mannerly.simulation.spec import parse_server

from .pages import document, number_of, render
from .traps import trap_reply
from .wellknown import MOVED_ROBOTS_PATH, ROBOTS_PATH, robots_reply, rules, sitemap_reply
from .wire import TEXT, SiteReply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .pages import WebMap
    from .sites import Site

_REFUSED = SiteReply(0, b"not now", TEXT)


class LimitDecision(NamedTuple):
    """The limit's decision on one request.

    `silent_until` is the instant until which a Retry-After asks for no further request, on the
    same clock as `now`; None without a Retry-After.
    """

    status: int
    latency_s: float
    headers: Mapping[str, str]
    silent_until: float | None


class DemoHost:
    """A site with its address, its limit's state, and the number of its unanswered requests."""

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
        """Return the limit's decision on a request that arrives now.

        The caller has added the request to `in_flight` before.

        Args:
            now: monotonic seconds.
            wall: the same instant as seconds since the epoch, for dates.
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
        """Return the content at a target (path and query); for a status but 200, an error page."""
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
    """Return the headers with today's dates, and the seconds that their Retry-After asks for."""
    value = headers["retry-after"]
    if value.isdigit():
        return headers, float(value)
    asked = parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])
    until = datetime.fromtimestamp(floor(wall), UTC) + timedelta(seconds=asked.total_seconds())
    named = {name: text for name, text in headers.items() if name != "date"}
    return named | {"retry-after": format_datetime(until, usegmt=True)}, until.timestamp() - wall
