"""The page of one crawl (`crawl --dashboard`), in a process beside the crawl.

The crawl sends its reports and events through a channel and never waits: what the page does not
read in time is left out. When the crawl's process ends, the channel ends, and so does the page.
`main` is the process; `beside` is the crawl's side of it.
"""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from mannerly.crawler.control import in_force
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import CHANGEABLE, OPTIONS
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.stored import open_crawl

from .app import dashboard_app
from .background import Background
from .beside import PageReady
from .connections import web_config
from .crawl_api import CrawlApi
from .jobs_api import JobChange, NewSeeds, WhatToRetry, check_changes
from .live_crawl import LiveCrawl
from .metrics import Reading
from .operations import Operation, decoded, json_answer, not_found, wrong_values
from .server import LastAnswers, WebServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from mannerly.crawler.runtime.child import Channel
    from mannerly.crawler.stored import StoredCrawl

    from .beside import PageOrder

ID = "this"  # the only crawl of the page
FIRST_PORT, PORTS = 7465, 20
READ_S = 0.1
WATCH_HOSTS_S = 2.0
CONTROL_S = 1.0  # between two readings of the control records


class OneCrawlApi:
    """The operations on the only crawl of a page: control records, as the command writes them."""

    def __init__(self, live: LiveCrawl, ending: LastAnswers) -> None:
        self.background = Background()
        self._live = live
        self._ending = ending

    def operations(self) -> list[Operation]:
        """Return all operations; those of a crawl itself are in `CrawlApi`."""
        one, done = "/api/jobs/{id}", HTTPStatus.NO_CONTENT
        return [
            Operation("GET", "/api/jobs", self.jobs),
            Operation("PATCH", one, self.change, JobChange, None, done),
            Operation("POST", f"{one}/pause", self.pause, None, None, done),
            Operation("POST", f"{one}/resume", self.resume, None, None, done),
            Operation("POST", f"{one}/stop", self.stop, None, None, done),
            Operation("POST", f"{one}/retry", self.retry, WhatToRetry, None, done),
            Operation("POST", f"{one}/seeds", self.add_seeds, NewSeeds, None, done),
            *CrawlApi(self.find, self._ending).operations(),
        ]

    def find(self, crawl_id: str) -> LiveCrawl:
        """Return the crawl, if it is this one."""
        if crawl_id != ID:
            raise not_found("crawl with this id")
        return self._live

    def reading(self) -> Reading:
        """Return the totals and limits of the crawl, for metrics."""
        live = self._live
        return Reading(live.stats, live.limit_uses(), live.at, background=self.background.health())

    async def jobs(self, _request: Request) -> Response:
        """List the only crawl."""
        return json_answer({"jobs": [{"id": ID, "name": self._live.name, "is_only": True}]})

    async def change(self, request: Request) -> Response:
        """Change options of the crawl: max_rate, max_urls, duration, concurrency, exclude."""
        change = await decoded(request, JobChange)
        check_changes(change)
        return await self._order(request, lambda crawl: crawl.set(**_typed(change.options)))

    async def pause(self, request: Request) -> Response:
        """Pause the crawl; requests in flight finish."""
        return await self._order(request, lambda crawl: crawl.pause())

    async def resume(self, request: Request) -> Response:
        """Continue after a pause."""
        return await self._order(request, lambda crawl: crawl.unpause())

    async def stop(self, request: Request) -> Response:
        """Stop the crawl; it can be resumed."""
        return await self._order(request, lambda crawl: crawl.stop())

    async def retry(self, request: Request) -> Response:
        """Queue URLs again that failed or were given up."""
        wanted = await decoded(request, WhatToRetry)
        return await self._order(request, lambda crawl: crawl.retry(host=wanted.host))

    async def add_seeds(self, request: Request) -> Response:
        """Add seeds."""
        wanted = await decoded(request, NewSeeds)
        return await self._order(request, lambda crawl: crawl.add(wanted.urls))

    async def _order(self, request: Request, act: Callable[[StoredCrawl], object]) -> Response:
        self.find(request.path_params["id"])

        def write() -> None:
            with open_crawl(self._live.location) as crawl:
                act(crawl)

        with wrong_values():
            await asyncio.to_thread(write)
        return Response(status_code=HTTPStatus.NO_CONTENT)


def _typed(options: dict[str, Any]) -> Any:
    """Whole numbers come as floats from a page; options check the rest themselves."""
    return {
        name: int(value)
        if name in CHANGEABLE
        and OPTIONS[name].kind is ValueKind.INTEGER
        and isinstance(value, float)
        and value.is_integer()
        else value
        for name, value in options.items()
    }


def main(channel: Channel) -> None:
    """Serve the page until the crawl's process ends."""
    order: PageOrder = channel.wait()
    try:
        opened = _listen(order)
    except OSError as error:
        channel.send(PageReady("", f"cannot listen on {order.host}:{order.port}: {error.strerror}"))
        return
    asyncio.run(_serve(order, opened, channel))


async def _serve(order: PageOrder, opened: socket.socket, channel: Channel) -> None:
    live = LiveCrawl(order.name, order.location, order.limits)
    ending = LastAnswers()
    api = OneCrawlApi(live, ending)
    app = dashboard_app(
        api,
        ending,
        hosts=order.allow_hosts,
        token=order.token,
        has_open_metrics=order.has_open_metrics,
    )
    config = web_config(app, log_level="critical", lifespan=False)
    server = WebServer(config, ending, has_signals=False)  # it ends with the crawl
    serving = asyncio.create_task(server.serve([opened]))
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    fragment = f"#token={order.token}" if order.token else ""
    channel.send(PageReady(f"http://{shown}:{port}/{fragment}"))
    api.background.repeat("hosts", partial(_watch_hosts, live), WATCH_HOSTS_S)
    api.background.repeat("orders", partial(_watch_orders, live), CONTROL_S)
    while not channel.is_ended:
        now = time.time()
        for report in channel.receive():
            for batch in report.batches:
                live.hear(batch, now)
            live.report(report.stats, report.elapsed_s, now)
        await asyncio.sleep(READ_S)
    await api.background.close()
    live.over()
    server.should_exit = True
    await serving


async def _watch_hosts(live: LiveCrawl) -> None:
    """Keep the traces of hosts up to date, also while no page is open."""

    def read() -> None:
        with suppress(StoreError), open_crawl(live.location) as crawl, crawl.view() as view:
            live.hosts.watch(view)

    async with live.reading:
        await asyncio.to_thread(read)


async def _watch_orders(live: LiveCrawl) -> None:
    """Take over the limits that were changed while the crawl runs, from wherever."""

    def read() -> None:
        # Without a store it has just begun, or was removed.
        with suppress(StoreError), open_crawl(live.location) as crawl:
            live.options = dict(in_force(crawl.store.orders()).options)

    await asyncio.to_thread(read)


def _listen(order: PageOrder) -> socket.socket:
    """Open the port that was asked for, or the first free one."""
    ports = [order.port] if order.port else list(range(FIRST_PORT, FIRST_PORT + PORTS))
    family = socket.AF_INET6 if ":" in order.host else socket.AF_INET
    for port in ports:
        opened = socket.socket(family)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((order.host, port))
            opened.listen(128)
        except OSError:
            opened.close()
            if port == ports[-1]:
                raise
        else:
            return opened
    raise AssertionError("the last port returns or raises")
