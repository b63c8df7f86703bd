"""Collect the events that are worth a log line, until they are reported.

Most events happen for every request, so only a few kinds are kept, and of these a bounded number
between two reports: what is left out is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler import events as crawl_events
from mannerly.crawler.events import Watched
from mannerly.crawler.shard.host_samples import WORTH_TELLING_S
from mannerly.politeness import events as polite

if TYPE_CHECKING:
    from mannerly.crawler.events import Event, Events

MOST = 200  # between two reports, a quarter of a second

NOTABLE = frozenset(
    {
        polite.Slowed,
        polite.Parked,
        polite.LongCrawlDelay,
        polite.Opened,
        polite.Closed,
        polite.Stalled,
        crawl_events.HostGivenUp,
        crawl_events.SitemapsLimited,
        crawl_events.LoopStalled,
    }
)
DETAILS = frozenset(
    {
        polite.SpedUp,
        polite.Probing,
        polite.Recovered,
        polite.Throttled,
        polite.Revived,
        polite.ConcurrencyChanged,
        crawl_events.HostWaits,
    }
)


class EventBatch(NamedTuple):
    """Events in order, and how many more there were."""

    events: list[Event]
    left_out: int = 0

    def notable(self) -> EventBatch:
        """Return the same without details."""
        kept = [event for event in self.events if event.__class__ in NOTABLE]
        return EventBatch(kept, self.left_out)


class EventCollector:
    """Listens to the events of one process."""

    def __init__(self, events: Events, watched: Watched) -> None:
        self._kinds = NOTABLE | DETAILS if watched is Watched.CLOSELY else NOTABLE
        self._events: list[Event] = []
        self._left_out = 0
        events.listen(self)

    def __call__(self, event: Event) -> None:
        """Keep an event that is worth a line."""
        if event.__class__ not in self._kinds:
            return
        if isinstance(event, crawl_events.HostWaits) and event.wait_s < WORTH_TELLING_S:
            return
        if len(self._events) < MOST:
            self._events.append(event)
        else:
            self._left_out += 1

    def take(self) -> EventBatch:
        """Return what was kept, and begin anew."""
        taken = EventBatch(self._events, self._left_out)
        self._events, self._left_out = [], 0
        return taken
