"""Logs and counters are folds over the stream of events, made here and nowhere else.

    counters = Counters()
    politeness = AsyncPoliteness(on_event=tee(counters, log_events(logging.getLogger("crawl"))))

A listener is any function of one event; `tee` joins several. The thread driver calls it with its
lock held: counting and logging are fine, calling back into the politeness is not.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from .. import events
from .waiters import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from .waiters import Notice

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
    events.Stalled: "stalls",
    events.Retired: "retirements",
    events.Revived: "revivals",
    events.Evicted: "evictions",
    Waiting: "waits",
}


class Counters:
    """How often each kind of thing happened, over all hosts. Document 001's four are the first.

    `throttles` counts refusals (429, and 403 or 503 that meant our pace), `retries` second tries,
    `cancellations` permits given back, `concurrency_overrides` changes of a host's limit.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, event: Notice) -> None:
        """Count one event."""
        self._counts[_COUNTED[type(event)]] += 1

    def __getitem__(self, name: str) -> int:
        """The count by its name, as in `as_dict`."""
        if name not in _COUNTED.values():
            raise KeyError(f"there is no counter {name!r}; there are {', '.join(self.as_dict())}")
        return self._counts[name]

    def __repr__(self) -> str:
        seen = ", ".join(f"{name}={count}" for name, count in self.as_dict().items() if count)
        return f"<Counters {seen or 'nothing yet'}>"

    def as_dict(self) -> dict[str, int]:
        """Every counter, those at zero included: what a metrics exporter wants."""
        return {name: self._counts[name] for name in _COUNTED.values()}


def log_events(logger: logging.Logger) -> Callable[[Notice], None]:
    """A listener that logs: changes of pace at info, trouble at warning, every wait at debug."""

    def log(event: Notice) -> None:
        line = _line(event)
        if line is not None:
            level, message, *values = line
            logger.log(level, message, *values)

    return log


def tee(*listeners: Callable[[Notice], None]) -> Callable[[Notice], None]:
    """One listener that tells them all, in this order."""

    def tell(event: Notice) -> None:
        for listener in listeners:
            listener(event)

    return tell


def _line(event: Notice) -> tuple[int, str, *tuple[object, ...]] | None:
    """Level, message and values; None for what a log would drown in."""
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
            return logging.INFO, "%s: %d requests at once, not %d", host, concurrency, previous
        case events.Closed(host):
            return logging.INFO, "%s: breaker closed", host
        case Waiting():
            return _waiting_line(event)
        case _:
            return _warning_line(event)


def _warning_line(event: Notice) -> tuple[int, str, *tuple[object, ...]] | None:
    match event:
        case events.Opened(host, at, until, times):
            message = "%s: breaker open for %.3g s (opened %d times in a row)"
            return logging.WARNING, message, host, until - at, times
        case events.Parked(host, at, until):
            return logging.WARNING, "%s: asks for a pause of %.0f s: parked", host, until - at
        case events.Retired(host, _, reason):
            return logging.WARNING, "%s: not contacted any more: %s", host, reason
        case events.Stalled(host, _, throttles):
            message = "%s: no progress (%d refusals in a row)"
            return logging.WARNING, message, host, throttles
        case _:
            return None


def _waiting_line(event: Waiting) -> tuple[int, str, *tuple[object, ...]]:
    if event.wait_s is None:
        message = "Waiting for an answer under way before request to %s (%s, %d ahead)"
        return logging.DEBUG, message, event.host, event.reason, event.ahead
    message = "Waiting %.3gs before request to %s (%s, %d ahead)"
    return logging.DEBUG, message, event.wait_s, event.host, event.reason, event.ahead
