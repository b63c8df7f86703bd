"""Claims about counters and logs: folds over the events, and nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, get_args

import pytest
from tests.politeness.cases import case

from mannerly.politeness import Reason, Settings, events
from mannerly.politeness.drivers.observe import Counters, log_events, tee
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.drivers.waiters import Waiting
from mannerly.politeness.testing import FakeClock

if TYPE_CHECKING:
    from mannerly.politeness.drivers.waiters import DriverEvent

HOST = "example.com"
LOGGER = logging.getLogger("mannerly.test")

EXAMPLES: dict[type, DriverEvent] = {
    type(event): event
    for event in (
        events.Slowed(HOST, 1.0, 2.5, 3),
        events.SpedUp(HOST, 1.0, 0.5),
        events.Probing(HOST, 1.0, 0.5),
        events.Throttled(HOST, 1.0, 429, None),
        events.Recovered(HOST, 1.0, 2.5),
        events.Parked(HOST, 1.0, 3601.0),
        events.LongCrawlDelay(HOST, 1.0, 1e9, 60.0),
        events.Opened(HOST, 1.0, 6.0, 2),
        events.HalfOpened(HOST, 1.0),
        events.Closed(HOST, 1.0),
        events.Stalled(HOST, 1.0, 20),
        events.Retired(HOST, 1.0, "too many failures"),
        events.Revived(HOST, 1.0),
        events.ConcurrencyChanged(HOST, 1.0, 3, 4),
        events.Retried(HOST, 1.0, 2.0, 2),
        events.Cancelled(HOST, 1.0),
        events.Evicted(HOST, 1.0),
        Waiting(HOST, 1.0, 5.0, 0, Reason.CRAWL_DELAY),
    )
}


def test_every_kind_of_event_has_an_example_here() -> None:
    """A new event cannot be forgotten in these tests."""
    assert set(EXAMPLES) == {*get_args(events.Event), Waiting}


def test_every_event_is_counted_once() -> None:
    """Each kind of event has one counter of its own."""
    for event in EXAMPLES.values():
        with case(event):
            counters = Counters()

            counters(event)

            assert sum(counters.as_dict().values()) == 1


def test_counters_have_the_names_of_document_001() -> None:
    """Refusals, retries, cancellations and concurrency overrides are counted."""
    counters = Counters()

    for kind in (events.Throttled, events.Throttled, events.Retried, events.Cancelled):
        counters(EXAMPLES[kind])
    counters(EXAMPLES[events.ConcurrencyChanged])

    assert counters["throttles"] == 2
    assert counters["retries"] == counters["cancellations"] == 1
    assert counters["concurrency_overrides"] == 1
    assert repr(counters) == (
        "<Counters throttles=2, retries=1, cancellations=1, concurrency_overrides=1>"
    )


def test_unknown_counter_is_an_error() -> None:
    """A misspelt name does not read as zero."""
    with pytest.raises(KeyError, match="throttles"):
        Counters()["throtles"]


def test_throttle_change_is_logged_with_delay_and_streak(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Document 001's info line: the host, the new delay, the error streak."""
    caplog.set_level(logging.INFO)

    log_events(LOGGER)(EXAMPLES[events.Slowed])

    (record,) = caplog.records
    assert record.levelno == logging.INFO
    expected = "example.com: slower, one request every 2.5 s (error streak 3)"
    assert record.getMessage() == expected


@pytest.mark.parametrize(
    "kind",
    [events.Opened, events.Parked, events.LongCrawlDelay, events.Retired, events.Stalled],
)
def test_trouble_is_a_warning(kind: type, caplog: pytest.LogCaptureFixture) -> None:
    """What an operator should look at is a warning, and names the host."""
    log_events(LOGGER)(EXAMPLES[kind])

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert HOST in record.getMessage()


def test_wait_is_logged_in_the_words_of_document_000(caplog: pytest.LogCaptureFixture) -> None:
    """A wait for a Crawl-delay of five seconds can be found in the debug log."""
    caplog.set_level(logging.DEBUG)

    log_events(LOGGER)(EXAMPLES[Waiting])
    log_events(LOGGER)(Waiting(HOST, 1.0, None, 2, Reason.IN_FLIGHT))

    first, second = caplog.messages
    assert first.startswith("Waiting 5s before request to example.com")
    assert second == (
        "Waiting for an answer under way before request to example.com (in_flight, 2 ahead)"
    )


@pytest.mark.parametrize("event", EXAMPLES.values(), ids=lambda event: type(event).__name__)
def test_every_event_can_be_logged(event: DriverEvent, caplog: pytest.LogCaptureFixture) -> None:
    """No event breaks the log, and each one gives a line or none."""
    caplog.set_level(logging.DEBUG)

    log_events(LOGGER)(event)

    assert all(HOST in message for message in caplog.messages)
    assert len(caplog.messages) <= 1


def test_tee_tells_everyone_in_order() -> None:
    """Several listeners hear the same event."""
    heard: list[tuple[str, DriverEvent]] = []
    both = tee(
        lambda event: heard.append(("first", event)), lambda event: heard.append(("second", event))
    )

    both(EXAMPLES[events.Closed])

    assert [who for who, _ in heard] == ["first", "second"]


def test_counters_follow_a_driver() -> None:
    """Hung on a driver, the counters agree with its snapshot."""
    clock, counters = FakeClock(), Counters()
    settings = Settings(strategy="linear", seed=1)
    politeness = ThreadedPoliteness(settings, clock=clock, on_event=counters)

    for _ in range(6):
        slot = politeness.try_slot(HOST)
        assert isinstance(slot, Slot)
        slot.report(status=429)
        slot.retry()
        clock.advance(60.0)
    slot = politeness.try_slot(HOST)
    assert isinstance(slot, Slot)
    slot.cancel()

    snapshot = politeness.snapshot()
    assert counters["throttles"] == snapshot.throttled == 6
    assert counters["retries"] == snapshot.retries == 6
    assert counters["cancellations"] == snapshot.cancelled == 1
    assert counters["concurrency_overrides"] == 1
