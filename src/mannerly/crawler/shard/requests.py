"""A granted entry becomes a request for the fetcher: timeout, size and headers by its kind.

What an entry carries is read from the store here, and no sooner: windows of the queue have no
payloads in memory. Secrets are read here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry, Request
from mannerly.crawler.options.secrets import read_reference
from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from mannerly.crawler.host.inflight import Flights, InFlight
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore

    from .plugin import Plugins
    from .subrequests import SubRequests


UNREADABLE = "secret_missing"  # the reason of a request whose secret cannot be read


class Unsendable(Exception):  # noqa: N818 - the reason of a dropped entry
    """The payload of a request is lost, or names a secret that cannot be read."""


class RequestMaker:
    """Makes the requests of one shard."""

    def __init__(
        self,
        settings: CrawlSettings,
        flights: Flights,
        plugins: Plugins,
        store: ShardStore,
        subrequests: SubRequests,
    ) -> None:
        self._store = store
        self._subrequests = subrequests
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
        """Count a granted request as in flight, and return what the fetcher is asked for.

        Raises:
            Unsendable: it cannot be made.
        """
        self._begin(flight)
        item = flight.item
        timeout_s, size, is_head = self._by_kind[item.kind]
        host = without_port(item.host)
        if not isinstance(item, Entry):
            return Request(item.url, host, timeout_s, size, self._headers, flight, is_head)
        is_fresh = item.attempts > 0
        request = Request(item.url, host, timeout_s, size, self._headers, flight, is_head, is_fresh)
        if KINDS[item.kind].carries:
            if item.seq < 0:
                self._subrequests.complete(item, request)
            else:
                self._add_payload(item, request)
        for ask in self._plugins.ask:
            ask(item, request)
        return request

    def _add_payload(self, entry: Entry, request: Request) -> None:
        payload = self._store.payload(entry.seq)
        if payload is None:
            raise Unsendable("payload_lost")
        try:
            method, headers, body = payload.sendable(read_reference)
        except ValueError as error:
            raise Unsendable(f"{UNREADABLE}: {error}") from None
        request.payload, request.method, request.body = payload, method, body
        request.headers += headers
        request.is_head = method == "HEAD"
        # One that may have been kept alive too long cannot tell whether it was received.
        request.is_fresh |= KINDS[entry.kind].is_sent_once
