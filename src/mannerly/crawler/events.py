"""Everything that happens in a crawl and may be of interest to a listener, as frozen values.

A shard and its engine emit events; statistics, logs, the progress line, metrics and a program that
uses the library listen. A listener is called at once and in order; it must be quick, and it must
not call the crawl back. The events of the politeness core (`mannerly.politeness.events`) pass
through unchanged, so a listener sees one stream.

    RequestSent      a request has left
    RobotsAnswered   a robots.txt came back
    PageSettled      a page has its record: fetched, or failed without a retry left
    ListSettled      the same for a sitemap or a public index
    RequisiteSettled the same for what a page needs to be shown
    ItemsExtracted   the extract function was run on a page
    HandlerLacked    no handler has the label of a page
    PageRendered     a page came back from a browser
    ShellFound       a page seems to need a browser, and was read without one
    PageRetried      a page will be asked for again
    PageVisited       a page that is warmed was asked for
    UrlsDropped      queued URLs will not be fetched
    UrlsFound        links that were new
    SitemapsLimited  no more sitemaps of a host will be fetched
    UrlsHeldBack     links that will be fetched after others, because of their pattern
    HostGivenUp      a host will not be contacted any more
    ShardMeasured    at intervals: the places of the hosts
    HostsSeen        at intervals, in a run that is watched: the standing of a few hosts
    HostWaits        in a run that is watched closely: the next request to a host has to wait
    BatchCommitted   a batch is in the store
    StoreMended      counters or numbers of the store were wrong and are right again
    LoopStalled      the loop did not look at its sockets for a while
    ShardLost        a shard of a crawl in a server was lost to another run
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.politeness.events import Event as PolitenessEvent

if TYPE_CHECKING:
    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.model import Entry, PageRecord, RobotsRequest
    from mannerly.politeness.model import Instant, Outcome, Reason


class RequestSent(NamedTuple):
    """A request has left. `gap_s` is the time since the one before to the same budget."""

    host: str
    gap_s: float | None  # None: it is the first
    delay_s: float  # the gap in force
    is_early: bool  # sent before the gap or a pause was over: must never happen


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
    is_unchanged: bool = False  # its record of an earlier crawl was kept: no body came


class ItemsExtracted(NamedTuple):
    """The extract function was run on a page; `error` is set if it failed."""

    items: int
    error: str | None


class HandlerLacked(NamedTuple):
    """A page was recorded only, since no handler of the spider has its label."""

    label: str


class PageRendered(NamedTuple):
    """A page came back from a browser; with an `error` its DOM may be incomplete."""

    url: str
    error: str | None
    refused: int  # POSTs and WebSockets


class ShellFound(NamedTuple):
    """A page was read as it is, and has next to no text, and scripts that may write it."""

    host: str


class ListSettled(NamedTuple):
    """A sitemap or a public index was read, or could not be."""

    entry: Entry
    record: PageRecord
    passed_over: Mapping[str, int]


class RequisiteSettled(NamedTuple):
    """A requisite has its record, or a page in a browser its answer.

    `passed_over` counts what it needs in turn and did not get.
    """

    entry: Entry
    status: int | None
    passed_over: Mapping[str, int]


class PageRetried(NamedTuple):
    """A page will be asked for again. `is_refusal`: the server refused it for the moment."""

    entry: Entry
    is_refusal: bool
    status: int | None = None  # None: there was no answer


class PageVisited(NamedTuple):
    """A page that is warmed was asked for. `number` is 1 for the first visit of a variant, or 2."""

    url: str
    variant: str
    number: int
    state: str | None  # a `CacheState` of `web.caches`; None: it failed
    status: int | None
    latency_s: float
    is_last: bool  # the page is settled with this visit


class UrlsDropped(NamedTuple):
    """URLs that were queued or found will not be fetched."""

    reason: str
    urls: int


class UrlsFound(NamedTuple):
    """So many URLs were new."""

    urls: int


class SitemapsLimited(NamedTuple):
    """A host has more sitemaps than are fetched of one host. It comes once for each host."""

    host: str
    sitemaps: int  # that were taken
    bytes: int  # that were read of them


class UrlsHeldBack(NamedTuple):
    """Links that will be fetched after other pages of their host: there are many of one pattern."""

    patterns: Mapping[str, int]  # host and pattern (`web.patterns`) → links


class HostGivenUp(NamedTuple):
    """A host will not be contacted any more."""

    host: str
    reason: str


class HostPlaces(NamedTuple):
    """The number of hosts of a shard, by what they wait for."""

    known: int  # that the crawl has met, done and given up included
    active: int
    ready: int
    heaped: int
    waiting: Mapping[Reason, int]
    busy: int
    paused: int  # by the operator
    other: int
    next_in_s: float | None


class ShardMeasured(NamedTuple):
    """The places of a shard's hosts, and the length of its queue."""

    shard: int
    in_flight: int
    undelivered: int  # pages that wait for the program that iterates over the crawl
    queued: int
    places: HostPlaces


class ShardLost(NamedTuple):
    """Another run has this shard now, or the store went away: its requests were cancelled."""

    shard: int
    why: str


class HostsSeen(NamedTuple):
    """The standing of a few hosts: busy ones, and those that come back first."""

    shard: int
    at: Instant
    hosts: tuple[HostView, ...]


class HostWaits(NamedTuple):
    """The next request to a host has to wait: `url` is the first in its queue."""

    host: str
    url: str
    wait_s: float
    reason: str  # the limit that decides: pace, crawl_delay, retry_after …
    times: int = 1  # waits that it stands for: of short ones only some are reported


class BatchCommitted(NamedTuple):
    """A batch is in the store."""

    pages: int
    took_s: float


class StoreMended(NamedTuple):
    """Something in a store was wrong and was put right: counters, numbers out of range."""

    words: str


class LoopStalled(NamedTuple):
    """The loop of a process looked at no socket for `took_s`: it was busy, or was stopped."""

    took_s: float


Event: TypeAlias = (
    RequestSent
    | RobotsAnswered
    | PageSettled
    | ItemsExtracted
    | HandlerLacked
    | PageRendered
    | ShellFound
    | ListSettled
    | RequisiteSettled
    | PageRetried
    | PageVisited
    | UrlsDropped
    | UrlsFound
    | SitemapsLimited
    | UrlsHeldBack
    | HostGivenUp
    | ShardMeasured
    | ShardLost
    | HostsSeen
    | HostWaits
    | BatchCommitted
    | StoreMended
    | LoopStalled
    | PolitenessEvent
)

Listener: TypeAlias = Callable[[Event], None]


class Watched(Enum):
    """The amount of reports of single hosts; in a run that is not watched, nothing."""

    NO = "no"
    HOSTS = "hosts"  # the standing of a few hosts, about once a second
    CLOSELY = "closely"  # every wait of a second or more, too, and some of the shorter ones


class Events:
    """Passes events on to all listeners."""

    __slots__ = ("_listeners",)

    def __init__(self, *listeners: Listener) -> None:
        self._listeners: list[Listener] = list(listeners)

    def listen(self, listener: Listener) -> None:
        """Call this function for every event from now on."""
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        """Call every listener with the event."""
        for listener in self._listeners:
            listener(event)
