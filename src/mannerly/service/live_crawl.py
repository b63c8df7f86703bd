"""One crawl as the page shows it: its live state, its course over time, its hosts and errors.

Reports and events come from the process that runs the crawl; everything else is read from its
store. A crawl that does not run has no reports: then the state is made from the store alone.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import mannerly
from mannerly.crawler import events as crawl_events
from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.inspection.reasons import error_words
from mannerly.crawler.stats import Stats
from mannerly.crawler.web.words import many, span
from mannerly.live.meter import CrawlState, Meter, limit_uses
from mannerly.live.sentence import ahead, doing
from mannerly.politeness import events as polite
from mannerly.report.proof import sentence

from .errors import ErrorIndex
from .history import History, Point
from .host_table import HostTable
from .stream import LiveStream

if TYPE_CHECKING:
    from collections import Counter

    from mannerly.crawler.events import Event
    from mannerly.crawler.inspection.status import Status
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Latencies
    from mannerly.live.meter import Limits, LimitUse, Live

_NOTHING_YET = "It waits for its turn."
EVENTS = 500  # that are remembered, the latest ones
SHOWN_EVENTS = 20
WINDOW_S = 10.0  # latency is that of the last so many seconds


class _Sample(NamedTuple):
    at: float
    refused: int
    latencies: Latencies


class LiveCrawl:
    """One crawl as the page shows it."""

    def __init__(self, name: str, location: str, limits: Limits) -> None:
        self.name = name
        self.location = location
        self.history = History()
        self.errors = ErrorIndex()
        self.hosts = HostTable()
        self.stream = LiveStream(self.state)
        self.reading = asyncio.Lock()  # held while its store is read
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        self.options: dict[str, float | None] = {}  # that were changed while it ran
        self._is_over = False
        self._limits = limits
        self._meter = Meter(limits)
        self._live: Live | None = None
        self._at = 0.0
        self._samples: deque[_Sample] = deque()
        self._point: Point | None = None
        self._stored: dict[str, Any] = _stopped("queued", None, "")
        self._version = 0

    def report(self, stats: Stats, elapsed_s: float, now: float) -> None:
        """Take a report of the process that runs the crawl."""
        self._live = self._meter.update(stats, elapsed_s)
        self._at = now
        self._version += 1
        self._measure(stats, now)

    def hear(self, batch: EventBatch, now: float) -> None:
        """Remember what happened."""
        for event in batch.events:
            found = happening(event)
            if found is not None:
                kind, host, words = found
                self.events.append({"at": now, "kind": kind, "host": host, "words": words})

    def ended(self) -> None:
        """Forget the last report: the crawl does not run any more, and the store says the rest."""
        if self._live is not None:
            self._live = None
            self._meter = Meter(self._limits)
            self._version += 1

    def over(self) -> None:
        """Say in the last state that the crawl has ended, and the page with it."""
        self._is_over = True
        self._version += 1

    @property
    def stats(self) -> Stats:
        """Return the totals of the latest report."""
        return Stats() if self._live is None else self._live.stats

    @property
    def at(self) -> float:
        """Return the wall time of the latest report."""
        return self._at

    def limit_uses(self) -> dict[str, LimitUse]:
        """Return the limits that are set, by name, with their use."""
        elapsed_s = 0.0 if self._live is None else self._live.elapsed_s
        return limit_uses(self._limits, self.stats, elapsed_s, self.options)

    def stored(self, state: str, status: Status | None, now: float, *, words: str = "") -> None:
        """Take the state of a crawl that does not run, from its job and its store."""
        described = _stopped(state, status, words)
        if described != self._stored or self._at == 0.0:
            self._stored, self._at = described, now
            self._version += 1

    def state(self) -> tuple[int, dict[str, Any]]:
        """Return everything that changes while a crawl runs, and the number of this version."""
        shared = {
            "at": self._at,
            "is_over": self._is_over,
            "name": self.name,
            "version": mannerly.__version__,
            "shell": f"mannerly watch {shlex.quote(self.location)}",
            "events": list(self.events)[-SHOWN_EVENTS:],
        }
        described = self._stored if self._live is None else self._running(self._live)
        return self._version, {**_EMPTY, **shared, **described}

    def _running(self, live: Live) -> dict[str, Any]:
        stats, clauses = live.stats, doing(live, str)
        said = "; ".join(clauses)
        median, high = self._latency_ms()
        return {
            "is_running": True,
            "is_paused": live.state is CrawlState.PAUSED,
            "state": live.state.value.lower(),
            "badge": live.state.value,
            "sentence": said[:1].upper() + said[1:],
            "detail": ahead(live, str),
            "proof": sentence(stats.requests.audited, stats.requests.too_early),
            "early": stats.requests.too_early,
            "elapsed_s": live.elapsed_s,
            "latest_url": stats.now.latest_url,
            "hosts": live.hosts,
            "states": {state.value: count for state, count in live.counts.items()},
            "numbers": {
                "pages_s": live.per_second,
                "refused": stats.requests.throttles,
                "requests": stats.requests.audited,
                "queue": stats.now.queued,
                "found": stats.found,
                "in_flight": stats.now.in_flight,
                "concurrency": self._limit("concurrency", live.limits.concurrency),
                "median_ms": median,
                "high_ms": high,
                "fetched": live.pages,
                "requisites": stats.requisites,
                "bytes": stats.bytes,
            },
            "limits": {
                "max_urls": self._limit("max_urls", live.limits.max_urls),
                "duration": self._limit("duration", live.limits.duration_s),
                "max_rate": self._limit("max_rate", live.limits.max_rate),
                "concurrency": self._limit("concurrency", live.limits.concurrency),
            },
            "point": self._point,
        }

    def _limit(self, name: str, given: float | None) -> float | None:
        return self.options.get(name, given)

    def _measure(self, stats: Stats, now: float) -> None:
        """Add a point to the history, once a second."""
        samples = self._samples
        if samples and now - samples[-1].at < 0.95:
            return
        samples.append(_Sample(now, stats.requests.throttles, stats.latencies.copy()))
        while len(samples) > 2 and samples[1].at <= now - WINDOW_S:
            samples.popleft()
        before = samples[-2] if len(samples) > 1 else samples[-1]
        took_s = max(1e-9, now - before.at)
        refused_s = (
            max(0, stats.requests.throttles - before.refused) / took_s if before.at < now else 0.0
        )
        median, high = self._latency_ms()
        assert self._live is not None, "a report has come"
        self._point = Point(
            round(now, 1),
            round(self._live.per_second, 2),
            round(refused_s, 2),
            stats.now.queued,
            stats.now.in_flight,
            median,
            high,
        )
        self.history.add(self._point)

    def _latency_ms(self) -> tuple[float | None, float | None]:
        """Return the median and the 95 % latency of the last seconds."""
        if len(self._samples) < 2:
            return None, None
        first, last = self._samples[0].latencies, self._samples[-1].latencies
        recent = last.copy()
        recent.subtract(first)
        shown = type(last)({step: count for step, count in recent.items() if count > 0})
        if not shown:
            return None, None
        return tuple(round(shown.within(share) * 1000, 1) for share in (0.5, 0.95))  # type: ignore[return-value]


_EMPTY: dict[str, Any] = {
    "is_running": False,
    "is_paused": False,
    "detail": "",
    "proof": "",
    "early": 0,
    "elapsed_s": 0.0,
    "latest_url": "",
    "hosts": 0,
    "states": {},
    "numbers": {
        "pages_s": 0.0, "refused": 0, "requests": 0, "queue": 0, "found": 0, "in_flight": 0,
        "concurrency": 0, "median_ms": None, "high_ms": None, "fetched": 0, "bytes": 0,
    },
    "limits": {},
    "point": None,
}  # fmt: skip


def _stopped(state: str, status: Status | None, words: str) -> dict[str, Any]:
    """Describe a crawl that does not run."""
    if status is None:
        return {"state": state, "badge": state.capitalize(), "sentence": words or _NOTHING_YET}
    total = status.total
    pages = many(total["fetched"] + total["failed"], "page")
    left = many(total["pending"], "URL")
    said = {
        "queued": f"It waits for its turn; {left} are queued",
        "finished": f"{pages}; {left} are left"
        if total["pending"]
        else f"{pages}; nothing is left",
        "paused": f"By you; {left} stay queued, nothing is sent",
    }.get(state, f"{pages}; {left} are left")
    if total["given_up"] and state == "finished":
        state, said = "incomplete", f"{pages}; {many(total['given_up'], 'URL')} were given up"
    return {
        "is_paused": state == "paused",
        "state": state,
        "badge": state.capitalize(),
        "sentence": said,
        "detail": words,
        "hosts": total["hosts"],
        "states": {},
        "numbers": {
            **_EMPTY["numbers"],
            "queue": total["queued"],
            "fetched": total["fetched"] + total["failed"],
        },
    }


def counted(counts: Counter[HostStatus]) -> dict[str, int]:
    """Return the number of hosts by status, all of them named."""
    return {status.value: counts[status] for status in HostStatus}


def happening(event: Event) -> tuple[str, str, str] | None:
    """Return the kind, the host and what happened to it; None if it is not shown."""
    match event:
        case polite.Slowed(host, _, delay_s, streak):
            return "slowed", host, f"slowed to {_pace(delay_s)} after {_causes(streak)}"
        case polite.SpedUp(host, _, delay_s):
            return "sped_up", host, f"sped up to {_pace(delay_s)}"
        case polite.Opened(host, at, until, _):
            return "opened", host, f"breaker opened for {span(until - at)}"
        case polite.Closed(host):
            return "closed", host, "breaker closed"
        case polite.Parked(host, at, until):
            return "asked_to_wait", host, f"asked us to wait {span(until - at)}"
        case polite.Throttled(host, _, status, float(retry_after_s)):
            words = f"answered {status} and asked us to wait {span(retry_after_s)}"
            return "asked_to_wait", host, words
        case crawl_events.HostGivenUp(host, reason):
            return "given_up", host, f"given up: {error_words(reason)}"
    return None


def _causes(refusals: int) -> str:
    """Return why a host was slowed down, by the refusals in a row."""
    if refusals == 0:
        return "an error or slow answers"
    return "a refusal" if refusals == 1 else f"{refusals} refusals"


def _pace(delay_s: float) -> str:
    if delay_s <= 0:
        return "no limit"
    return f"{1 / delay_s:.2g}/s" if delay_s <= 10 else f"one request in {span(delay_s)}"
