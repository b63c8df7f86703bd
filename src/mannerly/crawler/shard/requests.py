"""A granted entry becomes a request for the fetcher: timeout, size and headers by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import Entry, Kind, Request
from mannerly.crawler.page.checks import CHECKS
from mannerly.crawler.page.checks import MAX_BYTES as CHECK_MAX_BYTES
from mannerly.crawler.web.urls import without_port

if TYPE_CHECKING:
    from mannerly.crawler.model import InFlight
    from mannerly.crawler.settings import CrawlSettings

    from .inflight import Flights
    from .recheck import Headers, Rechecks
    from .warming import Warming

ROBOTS_MAX_BYTES = 600 * 1024  # more than the 500 KiB that are read
LIST_MAX_BYTES = 60 * 1024 * 1024

_PAGE, _ROBOTS, _CHECK = Kind.PAGE, Kind.ROBOTS, Kind.CHECK


class RequestMaker:
    """Makes the requests of one shard."""

    def __init__(
        self,
        settings: CrawlSettings,
        flights: Flights,
        rechecks: Rechecks,
        warming: Warming | None = None,
    ) -> None:
        self._settings = settings
        self._begin = flights.begin
        self._rechecks = rechecks
        self._warming = warming
        # A From header is an e-mail address (RFC 9110 §10.1.2); a page is in the User-Agent only.
        is_mail = settings.contact is not None and "@" in settings.contact
        self._headers: Headers = (("From", settings.contact or ""),) if is_mail else ()

    def __call__(self, flight: InFlight) -> Request:
        """Count a granted request as in flight, and return what the fetcher is asked for."""
        self._begin(flight)
        item, settings = flight.item, self._settings
        timeout_s, size = settings.timeout_s, settings.max_bytes
        if item.kind == _ROBOTS:
            timeout_s, size = settings.robots_timeout_s, ROBOTS_MAX_BYTES
        elif item.kind != _PAGE:
            size = CHECK_MAX_BYTES if item.kind in CHECKS else LIST_MAX_BYTES
        headers = self._headers
        if self._warming is not None:
            headers += self._warming.headers(item)
        elif self._rechecks.is_on:
            headers += self._rechecks.validators(item)
        host, is_head = without_port(item.host), item.kind == _CHECK
        is_fresh = isinstance(item, Entry) and item.attempts > 0
        return Request(item.url, host, timeout_s, size, headers, flight, is_head, is_fresh)
