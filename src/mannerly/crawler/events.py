"""Everything that happens in a crawl and that somebody may want to know, as frozen values.

A shard and its engine emit events; statistics, logs, the progress line, metrics and a program that
uses the library listen. A listener is called at once and in order; it must be quick, and it must
not call the crawl back. The events of the politeness core (`mannerly.politeness.events`) pass
through unchanged, so a listener sees one stream.

    RequestSent      a request has left
    RobotsAnswered   a robots.txt came back
    PageSettled      a page has its record: fetched, or failed for good
    ListSettled      the same for a sitemap or a public index
    PageRetried      a page will be asked for again
    UrlsDropped      queued URLs will not be fetched
    UrlsFound        links that were new
    HostGivenUp      a host will not be contacted any more
    ShardMeasured    now and then: where the hosts are
    BatchCommitted   a batch is in the store
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.politeness.events import Event as PolitenessEvent

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, PageRecord, RobotsRequest
    from mannerly.politeness.model import Outcome, Reason


class RequestSent(NamedTuple):
    """A request has left. `gap_s` is the time since the one before to the same budget."""

    host: str
    gap_s: float | None  # None: it is the first
    delay_s: float  # the gap in force
    is_early: bool  # closer than the operator's minimum: must never happen


class RobotsAnswered(NamedTuple):
    """A request for a robots.txt came back; no status: it failed."""

    request: RobotsRequest
    status: int | None


class PageSettled(NamedTuple):
    """A page has its record. `passed_over` counts links that were not taken, by reason."""

    entry: Entry
    record: PageRecord
    outcome: Outcome
    latency_s: float
    passed_over: Mapping[str, int]
    is_local: bool = False  # it failed on our side: that says nothing about the host


class ListSettled(NamedTuple):
    """A sitemap or a public index was read, or could not be."""

    entry: Entry
    record: PageRecord
    passed_over: Mapping[str, int]


class PageRetried(NamedTuple):
    """A page will be asked for again. `is_refusal`: the server refused it for the moment."""

    entry: Entry
    is_refusal: bool


class UrlsDropped(NamedTuple):
    """URLs that were queued or found will not be fetched."""

    reason: str
    urls: int


class UrlsFound(NamedTuple):
    """So many URLs were new."""

    urls: int


class HostGivenUp(NamedTuple):
    """A host will not be contacted any more."""

    host: str
    reason: str


class HostPlaces(NamedTuple):
    """How many hosts of a shard wait for what."""

    active: int
    ready: int
    heaped: int
    waiting: Mapping[Reason, int]
    busy: int
    other: int
    next_in_s: float | None


class ShardMeasured(NamedTuple):
    """Where the hosts of a shard are, and how much is left."""

    shard: int
    in_flight: int
    undelivered: int  # pages that wait for the program that iterates over the crawl
    queued: int
    places: HostPlaces


class BatchCommitted(NamedTuple):
    """A batch is in the store."""

    pages: int
    took_s: float


Event: TypeAlias = (
    RequestSent
    | RobotsAnswered
    | PageSettled
    | ListSettled
    | PageRetried
    | UrlsDropped
    | UrlsFound
    | HostGivenUp
    | ShardMeasured
    | BatchCommitted
    | PolitenessEvent
)

Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Passes events on to everybody who listens."""

    __slots__ = ("_listeners",)

    def __init__(self, *listeners: Listener) -> None:
        self._listeners: list[Listener] = list(listeners)

    def listen(self, listener: Listener) -> None:
        """Call this function for every event from now on."""
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        """Tell everybody."""
        for listener in self._listeners:
            listener(event)
