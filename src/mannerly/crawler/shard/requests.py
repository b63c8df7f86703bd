"""A granted entry becomes a request for the fetcher: timeout, size and headers by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry, Request
from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from mannerly.crawler.host.inflight import Flights, InFlight
    from mannerly.crawler.settings import CrawlSettings

    from .plugin import Plugins


class RequestMaker:
    """Makes the requests of one shard."""

    def __init__(
        self,
        settings: CrawlSettings,
        flights: Flights,
        plugins: Plugins,
    ) -> None:
        # By the number of the kind: seconds, bytes, and whether it is asked with HEAD.
        self._by_kind = tuple(
            (
                getattr(settings, row.timeout),
                settings.max_bytes if row.max_bytes is None else row.max_bytes,
                row.is_head,
            )
            for row in KINDS
        )
        self._begin = flights.begin
        self._plugins = plugins
        # A From header is an e-mail address (RFC 9110 §10.1.2); a page is in the User-Agent only.
        is_mail = settings.contact is not None and "@" in settings.contact
        self._headers: tuple[tuple[str, str], ...] = (
            (("From", settings.contact or ""),) if is_mail else ()
        )

    def __call__(self, flight: InFlight) -> Request:
        """Count a granted request as in flight, and return what the fetcher is asked for."""
        self._begin(flight)
        item = flight.item
        timeout_s, size, is_head = self._by_kind[item.kind]
        host = without_port(item.host)
        if not isinstance(item, Entry):
            return Request(item.url, host, timeout_s, size, self._headers, flight, is_head)
        is_fresh = item.attempts > 0
        request = Request(item.url, host, timeout_s, size, self._headers, flight, is_head, is_fresh)
        for ask in self._plugins.ask:
            ask(item, request)
        return request
