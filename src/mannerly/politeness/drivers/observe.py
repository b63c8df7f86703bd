"""Event listeners: logging and counters.

    counters = Counters()
    politeness = AsyncPoliteness(on_event=tee(counters, log_events(logging.getLogger("crawl"))))

A listener is any function of one event; `tee` combines several. The thread driver calls it while
its lock is held: counting and logging are fine, calling methods of the driver is not.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from .. import events
from .waiters import StartedLate, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from .waiters import DriverEvent

_COUNTED: dict[type, str] = {
    events.Throttled: "throttles",
    events.Retried: "retries",
    events.Cancelled: "cancellations",
    events.ConcurrencyChanged: "concurrency_overrides",
    events.Slowed: "slowdowns",
    events.SpedUp: "speedups",
    events.Probing: "probes",
    events.Recovered: "recoveries",
    events.Opened: "opens",
    events.HalfOpened: "half_opens",
    events.Closed: "closes",
    events.Parked: "parks",
    events.LongCrawlDelay: "long_crawl_delays",
    events.Stalled: "stalls",
    events.Retired: "retirements",
    events.Revived: "revivals",
    events.Evicted: "evictions",
    Waiting: "waits",
    StartedLate: "late_starts",
}


class Counters:
    """Counts each kind of event over all hosts.

    `throttles` counts refusals that ask for fewer requests (429, and some 403 and 5xx), `retries`
    repeated requests, `cancellations` permits given back, `concurrency_overrides` changes of a
    host's limit of requests in flight.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, event: DriverEvent) -> None:
        """Count one event."""
        self._counts[_COUNTED[type(event)]] += 1

    def __getitem__(self, name: str) -> int:
        """Return one count by its name, as in `as_dict`."""
        if name not in _COUNTED.values():
            raise KeyError(f"unknown counter {name!r}; known: {', '.join(self.as_dict())}")
        return self._counts[name]

    def __repr__(self) -> str:
        seen = ", ".join(f"{name}={count}" for name, count in self.as_dict().items() if count)
        return f"<Counters {seen or 'nothing yet'}>"

    def as_dict(self) -> dict[str, int]:
        """Return all counters by name, including zeros, for example for a metrics exporter."""
        return {name: self._counts[name] for name in _COUNTED.values()}


def log_events(logger: logging.Logger) -> Callable[[DriverEvent], None]:
    """Return a listener that logs: rate changes at INFO, problems at WARNING, waits at DEBUG."""

    def log(event: DriverEvent) -> None:
        line = _line(event)
        if line is not None:
            level, message, *values = line
            logger.log(level, message, *values)

    return log


def tee(*listeners: Callable[[DriverEvent], None]) -> Callable[[DriverEvent], None]:
    """Return a listener that calls all these listeners, in order."""

    def tell(event: DriverEvent) -> None:
        for listener in listeners:
            listener(event)

    return tell


def _line(event: DriverEvent) -> tuple[int, str, *tuple[object, ...]] | None:
    """Return level, message and values; None for events that are too frequent to log."""
    match event:
        case events.Slowed(host, _, delay_s, streak):
            message = "%s: slower, one request every %.3g s (error streak %d)"
            return logging.INFO, message, host, delay_s, streak
        case events.SpedUp(host, _, delay_s):
            return logging.INFO, "%s: faster, one request every %.3g s", host, delay_s
        case events.Probing(host, _, delay_s):
            return logging.INFO, "%s: trying one request every %.3g s", host, delay_s
        case events.Recovered(host, _, delay_s):
            return logging.INFO, "%s: takes requests again, every %.3g s", host, delay_s
        case events.ConcurrencyChanged(host, _, concurrency, previous):
            message = "%s: at most %d requests in flight, before: %d"
            return logging.INFO, message, host, concurrency, previous
        case events.Closed(host):
            return logging.INFO, "%s: breaker closed", host
        case Waiting():
            return _waiting_line(event)
        case _:
            return _warning_line(event)


def _warning_line(event: DriverEvent) -> tuple[int, str, *tuple[object, ...]] | None:
    match event:
        case events.Opened(host, at, until, times):
            message = "%s: breaker open for %.3g s (opened %d times in a row)"
            return logging.WARNING, message, host, until - at, times
        case events.Parked(host, at, until):
            return logging.WARNING, "%s: asks for a pause of %.0f s: parked", host, until - at
        case events.LongCrawlDelay(host, _, asked_s, delay_s):
            message = "%s: robots.txt asks for %.6g s between requests, %.6g s are kept"
            return logging.WARNING, message, host, asked_s, delay_s
        case events.Retired(host, _, reason):
            return logging.WARNING, "%s: not contacted any more: %s", host, reason
        case events.Stalled(host, _, throttles):
            message = "%s: no progress (%d refusals in a row)"
            return logging.WARNING, message, host, throttles
        case StartedLate(host, _, late_s, previous):
            message = "%s: a request started %.1f s late: the program was blocked, perhaps by %s"
            return logging.WARNING, message, host, late_s, previous or "a callback"
        case _:
            return None


def _waiting_line(event: Waiting) -> tuple[int, str, *tuple[object, ...]]:
    if event.wait_s is None:
        message = "Waiting for an answer under way before request to %s (%s, %d ahead)"
        return logging.DEBUG, message, event.host, event.reason, event.ahead
    message = "Waiting %.3gs before request to %s (%s, %d ahead)"
    return logging.DEBUG, message, event.wait_s, event.host, event.reason, event.ahead
