"""The state of a running crawl as its operator sees it: a fold over the reports of the run.

`Meter` gets the totals four times a second and returns a `Live`; `sentence` puts it into words,
and `log_fields` into a log line.

    Starting    no page yet                 Waiting    nothing can be sent now, or no answer comes
    Running     pages arrive                Refused    all hosts that are left refuse us
    Paused      by the operator             Held       by the machine: the disk is full, ...
    Stopping    the operator stopped it

The time to go is the longest queued × delay of all hosts, so it is said as "at least": a queue may
still grow. With --max-urls or --duration the end is known, and the bar runs to it.
"""

from __future__ import annotations

from collections import Counter, deque
from enum import StrEnum
from math import inf, isinf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.host_view import BACK, HostStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats

WINDOW_S = 10.0  # the speed is the mean over this time: longer than most delays of a host
LONG_S = 3.0  # a wait of this length is said
_REASONS = {HostStatus.ASKED_TO_WAIT: "retry_after", HostStatus.SHARED: "in_use"}
_REFUSALS = ("401", "403", "429", "503")


class CrawlState(StrEnum):
    """The state of a running crawl."""

    STARTING = "Starting"
    RUNNING = "Running"
    WAITING = "Waiting"
    REFUSED = "Refused"
    PAUSED = "Paused"
    HELD = "Held"
    STOPPING = "Stopping"


class Limits(NamedTuple):
    """The limits of the run, and the pages that earlier runs have fetched."""

    max_urls: int | None = None
    max_requests: int | None = None  # of every kind, in this run
    duration_s: float | None = None
    concurrency: int = 0
    grace_s: float = 2.0
    give_up_after_s: float = 3600.0
    pages_before: int = 0
    memory_limit: int | None = None  # bytes of bodies
    frontier_limit: int | None = None  # URLs in the queue
    heap_limit: int | None = None  # hosts that are scheduled
    robots_limit: int | None = None  # robots.txt files fetched at once
    parse_limit: int | None = None  # big pages that wait for a parse helper
    max_rate: float | None = None  # requests a second to one host; None: as each host allows


def limits_of(settings: CrawlSettings, pages_before: int = 0) -> Limits:
    """Return the limits of a run with these settings."""
    return Limits(
        max_urls=settings.max_urls,
        max_requests=settings.max_requests,
        duration_s=settings.duration_s,
        concurrency=settings.concurrency,
        grace_s=settings.grace_s,
        give_up_after_s=settings.politeness.give_up_after_s,
        pages_before=pages_before,
        memory_limit=settings.memory_limit,
        frontier_limit=settings.frontier_limit,
        heap_limit=settings.heap_limit,
        robots_limit=settings.robots_limit,
        parse_limit=settings.parse_limit,
        max_rate=None if isinf(ceiling := settings.politeness.rate_ceiling) else ceiling,
    )


class Live(NamedTuple):
    """A running crawl at one moment."""

    state: CrawlState
    stats: Stats
    elapsed_s: float
    per_second: float
    idle_s: float  # since the last page
    grows: bool = False  # more URLs are found than fetched
    limits: Limits = Limits()

    @property
    def pages(self) -> int:
        """Return the pages of the crawl, earlier runs included."""
        return self.limits.pages_before + self.stats.pages

    @property
    def counts(self) -> dict[HostStatus, int]:
        """Return the number of hosts by state."""
        stats, waits = self.stats, self.stats.now.waits
        states = Counter({HostStatus.FETCHING: waits.fetching, **waits.states})
        if stats.now.is_paused:  # nothing is sent to any of them, whatever each of them waited for
            states = Counter({HostStatus.PAUSED: waits.active})
        states[HostStatus.GIVEN_UP] = stats.hosts_given_up
        states[HostStatus.DONE] = max(0, stats.hosts_known - waits.active - stats.hosts_given_up)
        return {state: states[state] for state in HostStatus}

    @property
    def hosts(self) -> int:
        """Return the number of all hosts."""
        return sum(self.counts.values())

    @property
    def views(self) -> list[HostView]:
        """Return a few hosts: the busy ones, and those that come back first."""
        views = self.stats.now.host_views
        return [host.as_paused() for host in views] if self.stats.now.is_paused else views

    @property
    def slowest(self) -> HostView | None:
        """Return the host whose queue takes longest, if that is known."""
        return max(self.views, key=lambda host: host.needs_s, default=None)

    @property
    def back(self) -> list[HostView]:
        """Return the hosts that come back after a wait, the first one first."""
        waiting = [host for host in self.views if host.state in BACK and host.next_in_s]
        return sorted(waiting, key=lambda host: host.next_in_s or inf)

    @property
    def next_in_s(self) -> float | None:
        """Return when the next request goes."""
        return self.stats.now.waits.next_in_s

    @property
    def is_late(self) -> bool:
        """Return whether an answer is waited for unusually long."""
        oldest = self.stats.now.oldest
        return bool(self.stats.now.in_flight and oldest is not None and oldest.waited_s >= LONG_S)


class Meter:
    """Folds the reports of a run into what is shown."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._reports: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)])
        self._per_second, self._rated_at = 0.0, -1
        self._last_page_s = 0.0
        self._pages_waiting: int | None = None  # the pages when the present wait began

    def update(self, stats: Stats, elapsed_s: float) -> Live:
        """Add a report; return what to show. The speed changes once a second."""
        reports, pages = self._reports, stats.pages
        if pages != reports[-1][1]:
            self._last_page_s = elapsed_s
        reports.append((elapsed_s, pages, stats.now.queued))
        while len(reports) > 2 and reports[1][0] <= elapsed_s - WINDOW_S:
            reports.popleft()
        since_s, before, queued = reports[0]
        took_s = elapsed_s - since_s
        if int(elapsed_s) != self._rated_at and took_s > 0:
            self._rated_at = int(elapsed_s)
            self._per_second = (pages - before) / took_s
        live = Live(
            CrawlState.RUNNING,
            stats,
            elapsed_s,
            self._per_second,
            elapsed_s - self._last_page_s,
            stats.now.queued - queued > pages - before > 0,
            self._limits,
        )
        return live._replace(state=self._state(live))

    def _state(self, live: Live) -> CrawlState:
        stats = live.stats
        if stats.now.grace_s is not None:
            return CrawlState.STOPPING
        if stats.now.is_paused or is_left_to_paused_hosts(stats):
            return CrawlState.PAUSED
        if stats.now.trouble:
            return CrawlState.HELD
        if stats.is_left_to_others:
            return CrawlState.WAITING
        if self._is_waiting(live):
            return _why(stats)
        return CrawlState.RUNNING if stats.pages else CrawlState.STARTING

    def _is_waiting(self, live: Live) -> bool:
        """Return whether nothing arrives: from a long wait on, until the next page comes."""
        stats, due_s = live.stats, live.next_in_s
        if stats.pages != self._pages_waiting:
            self._pages_waiting = None
        is_long = not stats.now.in_flight and due_s is not None and due_s >= LONG_S
        if is_long or (live.is_late and live.idle_s >= LONG_S):
            self._pages_waiting = stats.pages
        return self._pages_waiting is not None


def is_left_to_paused_hosts(stats: Stats) -> bool:
    """Return whether every host that has work left was paused by the operator."""
    waits = stats.now.waits
    return 0 < waits.states[HostStatus.PAUSED] == waits.active and not stats.now.in_flight


def _why(stats: Stats) -> CrawlState:
    waits = stats.now.waits
    is_refused = waits.states[HostStatus.BACKING_OFF] and not waits.states[HostStatus.ASKED_TO_WAIT]
    if not is_refused or waits.fetching or stats.now.in_flight:
        return CrawlState.WAITING
    problems = [
        host.problem for host in stats.now.host_views if host.state is HostStatus.BACKING_OFF
    ]
    is_refusal = any(problem in _REFUSALS for problem in problems)
    return CrawlState.REFUSED if is_refusal else CrawlState.WAITING


def at_least_s(live: Live) -> float | None:
    """Return how long the crawl still takes at least, if that can be said."""
    if live.state is CrawlState.PAUSED:
        return None
    limits, guesses = live.limits, list[float]()
    slowest = live.slowest
    if slowest is not None and slowest.needs_s > 0:
        guesses.append(slowest.needs_s)
    if limits.duration_s is not None:
        guesses.append(max(0.0, limits.duration_s - live.elapsed_s))
    return min(guesses, default=None)


def log_fields(live: Live) -> dict[str, object]:
    """Return the numbers of a log line, in a fixed order; hosts without those that are zero."""
    stats = live.stats
    fields: dict[str, object] = {
        "pages": live.pages,
        "per_second": round(live.per_second, 1),
        "queued": stats.now.queued,
        "in_flight": stats.now.in_flight,
        "refused": stats.requests.throttles,
    }
    if stats.failed:
        fields["failed"] = sum(stats.failed.values())
    fields |= {state.value: count for state, count in live.counts.items() if count}
    left_s = at_least_s(live)
    if left_s is not None and live.state is CrawlState.RUNNING:
        fields["at_least_s"] = round(left_s)
    return fields | _waits_for(live)


def _waits_for(live: Live) -> dict[str, object]:
    """Return what is waited for, in fields."""
    stats, back = live.stats, live.back
    if live.state is CrawlState.STOPPING:
        return {"grace_s": round(stats.now.grace_s or 0.0, 1)}
    if live.state is CrawlState.HELD:
        return {"reason": stats.now.trouble}
    if stats.is_left_to_others:
        return {"reason": stats.now.idle_reason}
    if live.state not in (CrawlState.WAITING, CrawlState.REFUSED, CrawlState.STARTING):
        return {}
    if live.is_late and stats.now.oldest is not None:
        oldest = stats.now.oldest
        return {
            "reason": "answer",
            "waited_s": round(oldest.waited_s),
            "timeout_s": round(oldest.timeout_s),
            "attempt": oldest.attempt,
            "attempts": oldest.attempts,
        }
    fields: dict[str, object] = {"next_host": back[0].host} if back else {}
    if live.next_in_s is not None:
        fields["next_in_s"] = round(live.next_in_s, 1)
    return fields | {"reason": reason_word(stats)}


def reason_word(stats: Stats) -> str:
    """Return what most of the hosts wait for, in one word."""
    waits = stats.now.waits
    words = (
        *((count, _REASONS.get(state, state.value)) for state, count in waits.states.items()),
        (waits.ready + waits.pace, "pace"),
        (waits.busy, "in_flight"),
        (waits.other, "robots_txt"),
    )
    count, word = max(words, key=lambda pair: pair[0])
    return word if count else "nothing_due" if stats.now.queued else "nothing_queued"


class LimitUse(NamedTuple):
    """A limit, and how much of it is used."""

    limit: float
    used: float


def limit_uses(
    limits: Limits,
    stats: Stats,
    elapsed_s: float,
    changed: Mapping[str, float | None] | None = None,
) -> dict[str, LimitUse]:
    """Return the limits that are set, by the name of their option.

    `changed` are options that were changed while the crawl runs; None: no limit.
    """
    uses = {
        "max_urls": (limits.max_urls, stats.pages),
        "max_requests": (limits.max_requests, stats.requests.audited),
        "duration": (limits.duration_s, elapsed_s),
        "concurrency": (limits.concurrency, stats.now.in_flight),
        "memory_limit": (limits.memory_limit, stats.now.body_bytes),
        "frontier_limit": (limits.frontier_limit, stats.now.queued),
        "heap_limit": (limits.heap_limit, stats.now.scheduled),
        "robots_limit": (limits.robots_limit, stats.now.robots_in_flight),
        "parse_limit": (limits.parse_limit, stats.now.parsing),
    }
    now = changed or {}
    return {
        name: LimitUse(limit, used)
        for name, (given, used) in uses.items()
        if (limit := now.get(name, given)) is not None
    }


def added_up(several: Iterable[Mapping[str, LimitUse]]) -> dict[str, LimitUse]:
    """Return the sum of the limits and uses of several crawls."""
    total: dict[str, LimitUse] = {}
    for uses in several:
        for name, (limit, used) in uses.items():
            before = total.get(name, LimitUse(0.0, 0.0))
            total[name] = LimitUse(before.limit + limit, before.used + used)
    return total
