"""Politeness for Scrapy (2.15 or newer): `ADDONS = {"mannerly.adapters.scrapy.Polite": 0}`.

`Durable` in its place is the same and keeps the spider's queue in a file, so that a spider that was
killed goes on with the same command (`mannerly.adapters.scrapy_durable`).

The add-on wraps the download handlers of http and https. A request waits for its slot where Scrapy
counts it as a transfer of its host, so a slow host takes CONCURRENT_REQUESTS_PER_DOMAIN places and
no more. Retries, hops of redirects and robots.txt are requests of their own there. Scrapy's own
DOWNLOAD_DELAY and AutoThrottle stay in force; leave them off to be as fast as each host allows.

Settings, all optional:

    MANNERLY_SETTINGS    settings of the politeness core: {"max_rate": 2}
    MANNERLY_MEMORY      "user", a path or the URL of a server: hosts are shared with all crawls and
                         programs that name the same place, and what was learned is kept there
    MANNERLY_DIR         the directory of a durable spider; "crawl-<spider>" if it is not set

Unless you set it, CONCURRENT_REQUESTS is 128 instead of 16: requests that wait for a slow host must
not keep others from their turn. It needs the asyncio reactor, which is Scrapy's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, cast
from weakref import WeakKeyDictionary

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)
from scrapy.utils.misc import build_from_crawler, load_object

from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.headers import RELEVANT
from mannerly.politeness.model import NO_HEADERS, ErrorKind

from .attempts import Attempts, attempted_async
from .scrapy_durable import DUPEFILTER, DurableScheduler, note_sent
from .sending import SlotOptions, digest_of, sending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from mannerly.politeness.drivers.slots import Slot

    from .sending import Kinds

CONCURRENT_REQUESTS = 128
_SCHEDULER = f"{DurableScheduler.__module__}.{DurableScheduler.__qualname__}"
_WRAPPED = "MANNERLY_WRAPPED_HANDLERS"  # the handlers that were set before, by scheme
_KINDS: Kinds = (
    (DownloadTimeoutError, ErrorKind.TIMEOUT),
    (CannotResolveHostError, ErrorKind.DNS),
    (DownloadConnectionRefusedError, ErrorKind.CONNECT),
    (ResponseDataLossError, ErrorKind.RESET),
    (DownloadFailedError, ErrorKind.RESET),
)
_ERRORS = 400
_LIMITS = frozenset(name.title().encode() for name in RELEVANT)  # as Scrapy spells names
_shared: WeakKeyDictionary[Crawler, AsyncPoliteness] = WeakKeyDictionary()


class Polite:
    """The add-on: it puts polite download handlers in place."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Wrap the handlers of http and https.

        Raises:
            SettingsError: a value of MANNERLY_SETTINGS is not allowed.
        """
        _chosen(settings)  # a mistake is found now, not with the first request
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        polite = {handler.scheme: handler for handler in self._handlers()}
        settings.set(_WRAPPED, {scheme: handlers[scheme] for scheme in polite}, "addon")
        settings["DOWNLOAD_HANDLERS"].update(polite, "cmdline")
        settings.set("CONCURRENT_REQUESTS", CONCURRENT_REQUESTS, "addon")

    def _handlers(self) -> tuple[type[PoliteHttp], ...]:
        return PoliteHttp, PoliteHttps


class Durable(Polite):
    """The add-on that also keeps the queue of the spider in a file."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Put the durable scheduler in place.

        Raises:
            ValueError: the project has a scheduler or a filter of duplicates of its own.
            SettingsError: a value of MANNERLY_SETTINGS is not allowed.
        """
        super().update_settings(settings)
        settings.set("SCHEDULER", _SCHEDULER, "addon")
        if settings["SCHEDULER"] != _SCHEDULER:
            raise ValueError(
                f"SCHEDULER is {settings['SCHEDULER']!r}: Durable is a scheduler, so take one of "
                "them out of the settings"
            )
        if settings["DUPEFILTER_CLASS"] != DUPEFILTER:
            raise ValueError(
                f"DUPEFILTER_CLASS is {settings['DUPEFILTER_CLASS']!r}: Durable keeps what was "
                "seen in its file. Take it out, and say with REQUEST_FINGERPRINTER_CLASS which "
                "requests are equal"
            )

    def _handlers(self) -> tuple[type[PoliteHttp], ...]:
        return DurableHttp, DurableHttps


class PoliteHttp:
    """A download handler that keeps the pace of every host, around the one that was there."""

    lazy = True
    scheme: ClassVar = "http"

    def __init__(self, handler: DownloadHandlerProtocol, politeness: AsyncPoliteness) -> None:
        self._handler = handler
        self._politeness = politeness

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the handler that is wrapped, and share one pace between http and https."""
        wrapped = load_object(crawler.settings[_WRAPPED][cls.scheme])
        return cls(build_from_crawler(wrapped, crawler), _politeness_of(crawler))

    async def download_request(self, request: Request) -> Response:
        """Wait for a slot of the request's host, send it, and report what came back.

        Raises:
            IgnoreRequest: the host was given up after refusing for long.
        """
        attempts: Attempts[Response] = Attempts(0, request.method, is_repeatable=False)

        async def ask(slot: Slot) -> Response:
            with sending(slot, _KINDS) as sent:
                response = await self._send(request)
                sent.answered(response.status, _read(response))
                sent.nbytes, sent.digest = len(response.body), digest_of(response.body)
            return response

        async def keep(_: Response) -> None:
            """Nothing: its body was read, and Scrapy repeats by itself."""

        try:
            waiting = SlotOptions(wait_when_open=True)
            return await attempted_async(
                attempts, self._politeness, request.url, waiting, ask, keep
            )
        except HostUnavailable as error:
            raise IgnoreRequest(str(error)) from error

    async def _send(self, request: Request) -> Response:
        return await self._handler.download_request(request)

    async def close(self) -> None:
        """Close the handler inside, and keep what was learned."""
        await self._handler.close()
        await self._politeness.aclose()


class PoliteHttps(PoliteHttp):
    """The same for https, whose handler may be another one."""

    scheme: ClassVar = "https"


class DurableHttp(PoliteHttp):
    """The same, which notes a request that must not be repeated before it leaves."""

    async def _send(self, request: Request) -> Response:
        note_sent(request)
        return await super()._send(request)


class DurableHttps(DurableHttp, PoliteHttps):
    """The same for https."""


def _read(response: Response) -> Mapping[str, str]:
    """Return the headers of an answer, if one of them may set a limit: most have none."""
    if response.status < _ERRORS and _LIMITS.isdisjoint(response.headers):
        return NO_HEADERS
    return cast("Mapping[str, str]", response.headers.to_unicode_dict())


def _politeness_of(crawler: Crawler) -> AsyncPoliteness:
    if crawler not in _shared:
        memory = crawler.settings.get("MANNERLY_MEMORY") or None
        _shared[crawler] = AsyncPoliteness(_chosen(crawler.settings), memory=memory)
    return _shared[crawler]


def _chosen(settings: BaseSettings) -> Settings:
    return Settings(**settings.getdict("MANNERLY_SETTINGS"))
