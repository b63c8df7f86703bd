"""Show a crawl while it runs: a live block on a terminal, else log lines.

On a terminal the block is drawn four times a second, and what happens is printed above it. Without
one, or with --log-format, a line is logged every few seconds, and one at once for each change of
state. Both say what the hosts wait for, so that a crawl that fetches nothing for a minute because a
site sent "Retry-After: 60" does not look stuck.

`live`, `block` and `event_log` decide what is said; this module only passes it on.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Protocol, Self

from mannerly.crawler.runtime.ending import Watcher
from mannerly.live.meter import CrawlState, Limits, Live, Meter, log_fields

from .display import error_display
from .event_log import ORDINARY, EventLog, line_of
from .terminal import note

if TYPE_CHECKING:
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats

_SECONDS = re.compile(r"\d+ s\b")


class Progress(Watcher):
    """Shows a crawl: `with Progress() as progress: run_crawl(…, watcher=progress)`.

    With a `log_format` it writes log lines even on a terminal. `is_close`: every change of pace and
    every wait of a second is reported. `location`: of the crawl, for commands that are printed.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        log_format: str | None = None,
        log_interval_s: float = 10.0,
        is_close: bool = False,
        location: str | None = None,
    ) -> None:
        self.is_close = is_close
        self._limits = limits or Limits()
        self._meter = Meter(self._limits)
        self._live: Live | None = None
        self._display = _display(log_format, log_interval_s, location)
        is_drawn = isinstance(self._display, _Block)
        leaves_out = ORDINARY if is_drawn and not is_close else frozenset()
        self._events = EventLog(log_format or "text", leaves_out=leaves_out)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Show a report."""
        self._live = self._meter.update(stats, elapsed_s)
        self._display.show(self._live)

    def hear(self, batch: EventBatch) -> None:
        """Show what happened."""
        for line in self._events.lines(batch):
            self._display.say(line)

    def stopping(self) -> None:
        """Acknowledge the first Ctrl-C at once, from the thread that hears signals."""
        live = self._live
        if live is not None and live.state is not CrawlState.STOPPING:
            live.stats.now.grace_s = self._limits.grace_s
            self._display.show(live._replace(state=CrawlState.STOPPING))

    def leaving(self) -> None:
        """Give the terminal back: the process ends now."""
        self._display.release()

    def __enter__(self) -> Self:
        self._display.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.close()


class _Display(Protocol):
    def open(self) -> None: ...

    def show(self, live: Live) -> None: ...

    def say(self, line: str) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


def _display(log_format: str | None, log_interval_s: float, location: str | None) -> _Display:
    from .screen import is_foreground

    if log_format is None and sys.stderr.isatty() and is_foreground(sys.stderr.fileno()):
        return _Block(location)
    return _Log(log_format or "text", log_interval_s)


class _Block:
    """Draws the live block; the key h shows the busiest hosts below it, or hides them."""

    def __init__(self, location: str | None) -> None:
        from .screen import Screen

        self._screen = Screen(self._press)
        self.open, self.say = self._screen.open, self._screen.print
        self.release, self.close = self._screen.release, self._screen.close
        self._shows_hosts = False
        self._location = location

    def show(self, live: Live) -> None:
        from .block import block
        from .host_table import busiest

        display = error_display()
        lines = block(live, display, self._location)
        if self._shows_hosts:
            lines += busiest(live.views, display, rows=display.rows - len(lines) - 4)
        self._screen.show(lines)

    def _press(self, key: str) -> None:
        if key in "hH":
            self._shows_hosts = not self._shows_hosts


class _Log:
    """Logs a line every few seconds, and one at once when the state changes."""

    def __init__(self, log_format: str, interval_s: float) -> None:
        self._format = log_format
        self._interval_s = self._due_s = interval_s
        self._state = CrawlState.STARTING
        self._trouble = ""  # without its seconds, which change all the time

    def show(self, live: Live) -> None:
        is_news = live.state is not self._state and live.state is not CrawlState.RUNNING
        trouble = _SECONDS.sub("", live.stats.now.trouble or "")
        is_news |= bool(trouble) and trouble != self._trouble
        self._trouble = trouble
        if live.elapsed_s < self._due_s and not is_news:
            return
        self._due_s, self._state = live.elapsed_s + self._interval_s, live.state
        self.say(line_of(self._format, live.state.value, **log_fields(live)))

    def say(self, line: str) -> None:
        note(line)

    def open(self) -> None:
        """Do nothing: log lines need no screen."""

    def release(self) -> None:
        """Do nothing, either."""

    def close(self) -> None:
        """Do nothing, either."""
