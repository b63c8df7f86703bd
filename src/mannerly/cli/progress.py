"""Show the progress of a crawl while it runs, as a live line or as log lines.

On a terminal one line is redrawn with every report; otherwise, or with --log-format, a line is
logged every few seconds. Both show the speed and what the hosts are waiting for, so that a crawl
that fetches nothing for a minute because a site sent "Retry-After: 60" does not look stuck.

`Meter`, `live_line` and `log_fields` are pure; only `Progress` looks at stderr.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from .figures import many, rate, span
from .logs import log
from .terminal import safe_term, tell

if TYPE_CHECKING:
    from types import TracebackType

    from mannerly.crawler.stats import Stats, Waits

_WINDOW_S = 10.0  # the speed is the mean over this time: longer than most delays of a host
_LONG_S = 3.0  # a request that has waited so long for its answer is described
_TROUBLE = 60  # characters of `Stats.trouble` in the live line
_BOLD, _PLAIN, _CLEAR = "\x1b[1m", "\x1b[0m", "\r\x1b[2K"
_GAP = "  "
_SECONDS = re.compile(r"\d+ s\b|\d+ requests?")


class Pace(NamedTuple):
    """The speed, and an estimate of the time left; the queue may still grow."""

    per_second: float
    left_s: float | None


class Meter:
    """Measures pages per second over the last ten seconds, from reports at any times."""

    def __init__(self, *, max_urls: int | None = None, duration_s: float | None = None) -> None:
        self._max_urls = max_urls
        self._duration_s = duration_s
        self._reports: deque[tuple[float, int]] = deque([(0.0, 0)])

    def update(self, stats: Stats, elapsed_s: float) -> Pace:
        """Add a report; return the speed and the time left."""
        reports = self._reports
        reports.append((elapsed_s, stats.pages))
        while len(reports) > 2 and reports[1][0] <= elapsed_s - _WINDOW_S:
            reports.popleft()
        since_s, before = reports[0]
        took_s = elapsed_s - since_s
        per_second = (stats.pages - before) / took_s if took_s > 0 else 0.0
        return Pace(per_second, self._left_s(stats, elapsed_s, per_second))

    def _left_s(self, stats: Stats, elapsed_s: float, per_second: float) -> float | None:
        guesses = []
        if per_second > 0:
            pages = stats.queued + stats.in_flight
            if self._max_urls is not None:
                pages = min(pages, max(0, self._max_urls - stats.pages))
            guesses.append(pages / per_second)
        if self._duration_s is not None:
            guesses.append(max(0.0, self._duration_s - elapsed_s))
        return min(guesses) if guesses else None


def live_line(stats: Stats, pace: Pace, *, width: int, color: bool) -> str:
    """Return one line of less than `width` characters; the last parts are left out first."""
    waits = stats.waits
    parts = [
        many(stats.pages, "page"),
        safe_term(stats.trouble, limit=_TROUBLE) if stats.trouble else "",
        rate(pace.per_second),
        f"queue {stats.queued:,}",
        _hosts(waits),
        _next(stats),
        f"about {span(pace.left_s)} left" if pace.left_s is not None and stats.queued else "",
        f"{sum(stats.failed.values()):,} failed" if stats.failed else "",
        f"{stats.throttles:,} refused" if stats.throttles else "",
    ]
    kept = [part for part in parts if part]
    while len(kept) > 1 and len(_GAP.join(kept)) >= width:
        kept.pop()
    line = _GAP.join(kept)[: max(1, width - 1)]
    if color and len(kept) > 1:
        return line.replace(kept[0], f"{_BOLD}{kept[0]}{_PLAIN}", 1)
    return line


def log_fields(stats: Stats, pace: Pace) -> dict[str, object]:
    """Return the same for a log line, without values that are zero."""
    waits = stats.waits
    fields: dict[str, object] = {
        "pages": stats.pages,
        "per_second": round(pace.per_second, 2),
        "queued": stats.queued,
        "in_flight": stats.in_flight,
        "ready": waits.ready,
        "on_pace": waits.pace,
        "on_retry_after": waits.retry_after,
        "breaker_open": waits.breaker,
        "refused": stats.throttles,
        "failed": sum(stats.failed.values()),
    }
    shown = {name: value for name, value in fields.items() if value or name == "pages"}
    if waits.next_in_s is not None:
        shown["next_in_s"] = round(waits.next_in_s, 1)
    return shown


def reason_to_wait(stats: Stats) -> str:
    """Return why no page was fetched lately, in one clause."""
    waits = stats.waits
    if stats.trouble:
        return safe_term(stats.trouble)
    if stats.in_flight:
        return _overdue(stats) or f"{many(stats.in_flight, 'request')} in flight, no response yet"
    causes = (
        (waits.ready, "about to be asked", ""),
        (waits.retry_after, "told to wait (Retry-After)", ""),
        (waits.pace, "waiting for its next slot", "waiting for their next slot"),
        (waits.breaker, "failing, paused to recover", ""),
        (waits.busy, "at its limit of requests in flight", "at their limit of requests in flight"),
        (waits.other, "waiting for robots.txt, paused or being read from disk", ""),
    )
    said = [
        f"{many(count, 'host')} {one if count == 1 else more or one}"
        for count, one, more in causes
        if count
    ]
    idle = f"{many(stats.queued, 'URL')} queued, none of them due yet" if stats.queued else ""
    return "; ".join(said) or idle or "nothing is queued"


class Progress:
    """Shows the progress of a crawl: `with Progress() as progress: crawl.run(watch=progress)`.

    With a `log_format` it writes log lines even on a terminal.
    """

    def __init__(
        self,
        *,
        max_urls: int | None = None,
        duration_s: float | None = None,
        log_format: str | None = None,
        log_interval_s: float = 10.0,
    ) -> None:
        self._meter = Meter(max_urls=max_urls, duration_s=duration_s)
        self._display: _Display
        if log_format is None and sys.stderr.isatty():
            self._display = _LiveLine()
        else:
            self._display = _Log(log_format or "text", log_interval_s)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Show a report."""
        self._display.show(stats, self._meter.update(stats, elapsed_s), elapsed_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._display.end()


class _Display(Protocol):
    def show(self, stats: Stats, pace: Pace, elapsed_s: float) -> None: ...

    def end(self) -> None: ...


class _LiveLine:
    """Redraws one line on stderr."""

    def __init__(self) -> None:
        self._color = not os.environ.get("NO_COLOR")

    def show(self, stats: Stats, pace: Pace, elapsed_s: float) -> None:  # noqa: ARG002 - contract
        width = shutil.get_terminal_size().columns
        self._write(live_line(stats, pace, width=width, color=self._color))

    def end(self) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        tell(_CLEAR + line)


class _Log:
    """Logs a line every few seconds: the progress, or the reason why there is none."""

    def __init__(self, log_format: str, interval_s: float) -> None:
        self._log = partial(log, log_format)
        self._interval_s = interval_s
        self._due_s = interval_s
        self._pages = 0
        self._trouble = ""  # without its seconds, which change all the time

    def show(self, stats: Stats, pace: Pace, elapsed_s: float) -> None:
        trouble = _SECONDS.sub("", stats.trouble or "")
        is_news = bool(trouble) and trouble != self._trouble
        self._trouble = trouble
        if elapsed_s < self._due_s and not is_news:
            return
        self._due_s = elapsed_s + self._interval_s
        fields = log_fields(stats, pace)
        if stats.pages > self._pages and not is_news:
            self._log("Crawling", **fields)
        else:
            self._log("Waiting", reason=reason_to_wait(stats), **fields)
        self._pages = stats.pages

    def end(self) -> None:
        """Do nothing: log lines need no cleaning up."""


def _hosts(waits: Waits) -> str:
    counts = (
        (waits.ready, "ready"),
        (waits.pace, "waiting"),
        (waits.retry_after, "on Retry-After"),
        (waits.breaker, "failing"),
        (waits.busy, "at their limit"),
        (waits.other, "not ready"),
    )
    said = [f"{count:,} {name}" for count, name in counts if count]
    return "hosts: " + ", ".join(said) if said else ""


def _next(stats: Stats) -> str:
    if stats.waits.next_in_s is not None and stats.waits.next_in_s > 0 and not stats.in_flight:
        return f"next in {span(stats.waits.next_in_s)}"
    return _overdue(stats) or (f"{stats.in_flight:,} in flight" if stats.in_flight else "")


def _overdue(stats: Stats) -> str:
    """Return how long the oldest request in flight has waited, if that is long."""
    oldest = stats.oldest
    if not stats.in_flight or oldest is None or oldest.waited_s < _LONG_S:
        return ""
    waited = f"{oldest.waited_s:.0f} of {oldest.timeout_s:.0f} s"
    tried = f", try {oldest.attempt} of {oldest.attempts}"
    if stats.in_flight == 1:
        return f"1 waiting for an answer, {waited}{tried}"
    return f"{stats.in_flight:,} waiting for an answer, the oldest {waited}{tried}"
