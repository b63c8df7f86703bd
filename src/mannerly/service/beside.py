"""The crawl's side of its live page: the process of the page, and what is sent to it.

Nothing of the web server is imported here, so a crawl with a page pays for the messages alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.runtime.child import Child

if TYPE_CHECKING:
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats
    from mannerly.live.meter import Limits

PROCESS = "mannerly.service.dashboard"
END_S = 4.0  # for the last answers; then the page is killed
PACKAGES = ("starlette", "uvicorn", "prometheus_client")  # that the page needs


class PageOrder(NamedTuple):
    """Everything that the process of a page gets."""

    location: str
    name: str
    limits: Limits
    host: str
    port: int  # 0: the first that is free from 7465 on
    allow_hosts: tuple[str, ...]
    token: str | None
    has_open_metrics: bool = False  # /metrics needs no token


class PageReport(NamedTuple):
    """The totals of the crawl, and what happened since the last report."""

    stats: Stats
    elapsed_s: float
    batches: list[EventBatch]


class PageReady(NamedTuple):
    """From the page: its address, or why there is none."""

    address: str
    error: str = ""


class Dashboard:
    """The crawl's side of its page."""

    def __init__(self, order: PageOrder) -> None:
        self._child = Child(PROCESS, order)
        self._batches: list[EventBatch] = []

    def ready(self) -> PageReady:
        """Wait until the page can be opened."""
        try:
            ready: PageReady = self._child.channel.wait()
        except EOFError:
            return PageReady("", "its process has ended")
        return ready

    def show(self, stats: Stats, elapsed_s: float) -> None:
        """Send a report, unless the last one was not read yet."""
        channel = self._child.channel
        if channel.is_ended or (channel.has_unsent and not channel.flush()):
            return
        channel.send(PageReport(stats, elapsed_s, self._batches))
        self._batches = []

    def hear(self, batch: EventBatch) -> None:
        """Keep what happened for the next report; a page that does not read misses it."""
        if batch.events and len(self._batches) < 20:
            self._batches.append(batch)

    def close(self) -> None:
        """End the page."""
        self._child.channel.close()
        self._child.end(END_S)


def name_of(location: str) -> str:
    """Return the name of a crawl for its page: that of its directory, or its own in a server."""
    from mannerly.crawler import store

    if store.is_in_server(location):
        return f"{store.name_of(location)} (this worker)"  # the figures are its own
    return Path(location).name or location
