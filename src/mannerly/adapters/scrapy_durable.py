"""The scheduler of `mannerly.adapters.scrapy.Durable`: a spider's queue in a file.

Scrapy tells a scheduler which requests there are, and not when one has been handled. The engine
knows: `_handle_downloader_output` gets every answer and every failure, and its Deferred fires when
the callback is exhausted and its items went through the pipelines. So the scheduler stands around
that method of one engine:

    take     the engine asks for a request; it stays in the file
    handle   the answer's page is in a context variable, which the tasks of its callback inherit:
             requests that are scheduled and items that are scraped there belong to the page
    finish   the Deferred fires: all that belongs to the page is written in one transaction

Where Scrapy's engine has no such method, or does not call it, `open` raises.

The module is long because a scheduler of Scrapy is one class: the engine asks it for everything.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import pickle
import re
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import msgspec
from itemadapter import ItemAdapter
from scrapy import Request, __version__, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from mannerly.database.errors import StoreError

from .scrapy_cookies import UNSTORABLE, Jars
from .spider_queue import PageEnd, QueuedRequest, SpiderQueue, identity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

_log = logging.getLogger(__name__)

DUPEFILTER = "scrapy.dupefilters.RFPDupeFilter"
REPEATED = frozenset({"GET", "HEAD"})  # the methods that are asked again after a kill
_HANDLE = "_handle_downloader_output"
_LIVE = 1000  # requests that wait in memory, too
_NAMED = 10  # URLs in one line of the log


class ScrapyDiffersError(RuntimeError):
    """This version of Scrapy does not tell when a request was handled."""


@dataclass(eq=False)
class _Page:
    """A request from when it is taken until it was handled."""

    scheduler: DurableScheduler
    number: int
    url: str
    outcome: PageEnd = field(default_factory=PageEnd)
    kept: list[tuple[QueuedRequest, Request]] = field(default_factory=list)
    is_open: bool = True


_handled: ContextVar[_Page | None] = ContextVar("mannerly_page", default=None)
_pages: WeakKeyDictionary[Request, _Page] = WeakKeyDictionary()


def note_sent(request: Request) -> None:
    """Note that a request leaves now, if it is one that is not repeated."""
    if request.method not in REPEATED and (page := _pages.get(request)) is not None:
        page.scheduler.queue.note_sent(page.number)


class DurableScheduler(BaseScheduler):
    """Keeps every request of a spider in a file until it was handled to its end."""

    queue: SpiderQueue

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        assert crawler.stats is not None
        self._stats = crawler.stats
        assert crawler.request_fingerprinter is not None
        self._fingerprint = crawler.request_fingerprinter.fingerprint
        # What cannot be stored, with its identity if the spider's start has given it.
        self._memory: list[tuple[int, int, Request, bytes | None]] = []
        self._live: dict[int, Request] = {}  # some that wait, so that they need not be restored
        self._open = 0
        self._started: Counter[bytes] = Counter()
        self._before: dict[bytes, int] = {}
        self._stop: asyncio.Task[None] | None = None
        self._jars = Jars()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the scheduler of a crawler."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Open the queue of the spider, and say what the process before has left.

        Raises:
            ScrapyDiffersError: this Scrapy does not tell when a request was handled.
            StoreError: the queue is in use, is another spider's, or cannot be used.
        """
        self._spider = spider
        settings = self._crawler.settings
        inner = _checked(self._crawler)
        memory_queue = load_object(settings["SCHEDULER_MEMORY_QUEUE"])
        self._start_goes_last = bool(settings["SCHEDULER_START_MEMORY_QUEUE"])
        named = settings.get("MANNERLY_DIR")
        folder = Path(named or "crawl-" + re.sub(r"[^\w.-]+", "-", spider.name))
        order = _order_of(memory_queue)
        self._is_newest_first = order == "lifo"
        self.queue = SpiderQueue(folder, spider.name, order)
        self._stand_around(inner)
        self._take_over_cookies()
        self._crawler.signals.connect(self._note_item, signals.item_scraped)
        self._say_what_is_left(folder)

    def has_pending_requests(self) -> bool:
        """Return whether the spider has to wait for anything."""
        return bool(self._open or self._memory or self.queue.waiting)

    def __len__(self) -> int:
        return self.queue.waiting + len(self._memory)

    def enqueue_request(self, request: Request) -> bool:
        """Keep a request with the page that asked for it; False: it was seen before."""
        page = self._page()
        fingerprint = started = None
        is_start = page is None and bool(request.meta.get("is_start_request"))
        if is_start or not request.dont_filter:
            identity = self._fingerprint(request)
            if is_start:
                started = identity
                if self._was_started(identity):
                    self._stats.inc_value("mannerly/known_start_requests")
                    return False
            if not request.dont_filter:
                fingerprint = identity
                if self.queue.knows(identity):
                    self._stats.inc_value("dupefilter/filtered")
                    return False
        entry = QueuedRequest(
            request.url,
            request.priority,
            self._stored(request),
            fingerprint,
            started,
            self._start_goes_last and is_start,
        )
        if page is None:
            return self._write(None, "", PageEnd([entry]), [(entry, request)]) == 1
        page.outcome.entries.append(entry)
        page.kept.append((entry, request))
        return True

    def next_request(self) -> Request | None:
        """Return the request whose turn it is; it stays in the file until it was handled."""
        if self._stop is not None:
            return None
        started = None
        if self._memory:
            _, number, request, started = heapq.heappop(self._memory)
        else:
            try:
                taken = self.queue.take()
                if taken is None:
                    return None
                number = taken
                request = self._live.pop(taken) if taken in self._live else self._restored(taken)
            except StoreError as error:
                self._fail(error)
                return None
        page = _Page(self, number, request.url)
        if started is not None:
            page.outcome.started.append(started)
        _pages[request] = page
        self._open += 1
        self._stats.inc_value("scheduler/dequeued")
        return request

    def _restored(self, number: int) -> Request:
        # The file is ours (mode 600), as a job directory of Scrapy is, which has pickles, too.
        stored = pickle.loads(self.queue.body_of(number))  # noqa: S301
        return request_from_dict(stored, spider=self._spider)

    def close(self, reason: str) -> None:  # noqa: ARG002 - the signature is Scrapy's
        """Let another process have the queue."""
        if not hasattr(self, "queue"):
            return
        if self._memory:
            _log.warning(
                "%d requests that cannot be stored end with this process: %s",
                len(self._memory),
                _listed([request.url for _, _, request, _ in self._memory]),
                extra={"spider": self._spider},
            )
        self.queue.close()

    def _was_started(self, identity: bytes) -> bool:
        """Return whether an earlier process has got this from the start of the spider, too."""
        self._started[identity] += 1
        if self._started[identity] == 1:
            self._before[identity] = self.queue.times_started(identity)
        return self._started[identity] <= self._before[identity]

    def _stored(self, request: Request) -> bytes | None:
        try:
            return pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
        except UNSTORABLE as error:
            if not self._stats.get_value("scheduler/unserializable"):
                _log.warning(
                    "%s cannot be stored and is kept in memory only (%s). Others like it are "
                    "counted as scheduler/unserializable",
                    request,
                    error,
                    extra={"spider": self._spider},
                )
            self._stats.inc_value("scheduler/unserializable")
            return None

    def _page(self) -> _Page | None:
        """Return the page that is handled here; None: this runs for no page."""
        page = _handled.get()
        return page if page is not None and page.is_open and page.scheduler is self else None

    def _write(
        self,
        number: int | None,
        url: str,
        outcome: PageEnd,
        kept: list[tuple[QueuedRequest, Request]],
    ) -> int:
        """Write what appears; return how many requests are new."""
        outcome.cookies = self._jars.changed()
        try:
            numbers = self.queue.finish(number, url, outcome)
        except BaseException:
            self._jars.mark(outcome.cookies)
            raise
        new = 0
        for (entry, request), given in zip(kept, numbers, strict=True):
            if given is None:
                self._stats.inc_value("dupefilter/filtered")
                continue
            new += 1
            if entry.body is not None:
                self._keep_live(given, request)
            else:
                heapq.heappush(self._memory, (-entry.priority, given, request, entry.started))
        if new:
            self._stats.inc_value("scheduler/enqueued", new)
        return new

    def _keep_live(self, number: int, request: Request) -> None:
        """Keep a request in memory, too, if it is one of those whose turn comes soonest."""
        if len(self._live) >= _LIVE:
            if not self._is_newest_first:
                return
            del self._live[next(iter(self._live))]
        self._live[number] = request

    def _stand_around(self, inner: Callable[[Any, Request], Deferred[None]]) -> None:
        def handle(result: Response | Request | Failure, request: Request) -> Deferred[None]:
            page = _pages.get(request)
            if page is None:
                return inner(result, request)
            token = _handled.set(page)
            try:
                handled = inner(result, request)
            finally:
                _handled.reset(token)
            return handled.addBoth(self._finish, page)

        setattr(self._crawler.engine, _HANDLE, handle)

    def _finish(self, result: object, page: _Page) -> object:
        """Write the end of a page: here its callback is exhausted and its items are through."""
        page.is_open = False
        self._open -= 1
        try:
            self._write(page.number, page.url, page.outcome, page.kept)
        except StoreError as error:
            self._fail(error)
        return result

    def _note_item(self, item: object, response: object) -> None:
        page = self._page()
        if page is None and response is not None:
            self._fail(ScrapyDiffersError(_differs("an item belongs to no page")))
            return
        try:
            line = msgspec.json.encode(ItemAdapter(item).asdict(), enc_hook=str)
        except (TypeError, ValueError, RecursionError) as error:
            self._stats.inc_value("mannerly/items_refused")
            _log.error(
                "an item of %s cannot be kept (%s): %.200r",
                page.url if page else "the start",
                error,
                item,
                extra={"spider": self._spider},
            )
            return
        self._stats.inc_value("mannerly/items")
        if page is not None:
            page.outcome.items.append(line)
            return
        identity = identity_of(line)
        if not self._was_started(identity):
            try:
                self._write(None, "", PageEnd(items=[line], started=[identity]), [])
            except StoreError as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Stop the spider: what was not written is asked again by the next process."""
        if self._stop is not None:
            return
        _log.critical("%s", error, extra={"spider": self._spider})
        assert self._crawler.engine is not None
        self._stop = asyncio.ensure_future(
            self._crawler.engine.close_spider_async(reason="mannerly_error")
        )

    def _take_over_cookies(self) -> None:
        assert self._crawler.engine is not None
        for middleware in self._crawler.engine.downloader.middleware.middlewares:
            if isinstance(middleware, CookiesMiddleware):
                self._jars.restore(self.queue.cookies())
                middleware.jars = self._jars  # type: ignore[assignment]

    def _say_what_is_left(self, folder: Path) -> None:
        unanswered, lost = self.queue.left
        extra = {"spider": self._spider}
        if self.queue.waiting:
            _log.info("Going on in %s: %d requests wait", folder, self.queue.waiting, extra=extra)
        elif not self.queue.is_new:
            _log.info(
                "Everything in %s was handled. To ask for it again, remove the directory or set "
                "another MANNERLY_DIR",
                folder,
                extra=extra,
            )
        if unanswered:
            self._stats.set_value("mannerly/unanswered", len(unanswered))
            _log.warning(
                "%d requests were in flight when the process before ended. They may have been "
                "received, so they are not sent again: %s",
                len(unanswered),
                _listed(unanswered),
                extra=extra,
            )
        if lost:
            self._stats.set_value("mannerly/lost", len(lost))
            _log.warning(
                "%d requests that could not be stored ended with the process before (those of "
                "start() come again): %s",
                len(lost),
                _listed(lost),
                extra=extra,
            )


def _order_of(queue: Any) -> Any:
    """Return in which order a memory queue of Scrapy gives what it got."""
    probe = queue()
    probe.push(1)
    probe.push(2)
    return "fifo" if probe.pop() == 1 else "lifo"


def _checked(crawler: Crawler) -> Any:
    """Return the engine's method that handles what a request came to."""
    engine = crawler.engine
    inner = getattr(engine, _HANDLE, None)
    starts = getattr(type(engine), "_start_scheduled_request", None)
    if not callable(inner) or [*signature(inner).parameters] != ["result", "request"]:
        raise ScrapyDiffersError(_differs(f"its engine has no {_HANDLE}(result, request)"))
    if _HANDLE not in getattr(getattr(starts, "__code__", None), "co_names", ()):
        raise ScrapyDiffersError(_differs(f"its engine does not call {_HANDLE}"))
    if not isinstance(getattr(engine.downloader.middleware, "middlewares", None), tuple | list):
        raise ScrapyDiffersError(_differs("its downloader does not list its middlewares"))
    if not is_asyncio_available():
        raise ScrapyDiffersError("Durable needs Scrapy's asyncio reactor: set TWISTED_REACTOR")
    return inner


def _differs(why: str) -> str:
    return (
        f"Durable cannot tell when a request was handled: this is Scrapy {__version__}, and {why}. "
        "Use Scrapy 2.15 to 2.19, or a newer mannerly; nothing was lost"
    )


def _listed(urls: list[str]) -> str:
    more = f" and {len(urls) - _NAMED} more" if len(urls) > _NAMED else ""
    return ", ".join(urls[:_NAMED]) + more
