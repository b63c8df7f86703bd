"""Events that are worth a log line are kept until they are reported; the others are not."""

from __future__ import annotations

import pickle

from mannerly.crawler.events import Events, HostGivenUp, HostWaits, UrlsFound, Watched
from mannerly.crawler.runtime.event_batches import MOST, EventBatch, EventCollector
from mannerly.politeness.events import Slowed, SpedUp

SLOWED = Slowed("a.example", 1.0, 2.0, 3)
DETAILS = (SpedUp("a.example", 1.0, 2.0), HostWaits("a.example", "https://a.example/", 5.0, "pace"))


def test_details_are_told_only_if_they_are_asked_for() -> None:
    """A change to the worse is always told."""
    events = Events()
    ordinary, close = EventCollector(events, Watched.HOSTS), EventCollector(events, Watched.CLOSELY)

    for event in (UrlsFound(3), *DETAILS, SLOWED):
        events.emit(event)

    assert ordinary.take() == EventBatch([SLOWED])
    assert close.take() == EventBatch([*DETAILS, SLOWED])
    assert ordinary.take() == EventBatch([])


def test_flood_is_cut_and_counted() -> None:
    """Ten thousand hosts may be given up in one turn."""
    events = Events()
    news = EventCollector(events, Watched.HOSTS)

    for number in range(MOST + 7):
        events.emit(HostGivenUp(f"h{number}.example", "it fails"))
    told = news.take()

    assert (len(told.events), told.left_out) == (MOST, 7)


def test_news_can_be_sent_to_another_process() -> None:
    """A worker reports them to its supervisor."""
    told = EventBatch([SLOWED, *DETAILS])

    assert pickle.loads(pickle.dumps(told)) == told
