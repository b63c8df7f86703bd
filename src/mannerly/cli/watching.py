"""Show a crawl of another process as a live table, read from its store: `mannerly watch`.

    s  sort by the next column        /  show only hosts whose name has a text; Enter ends it
    j  select the next host           k  the one before
    p  pause the selected host, or resume it
    q  leave; the crawl goes on

The whole screen is used and given back. What is shown is at most a second or two old: the more
hosts a crawl has, the longer the time between two updates: reading takes a tenth of one core
at most. `lines` is pure.
"""

from __future__ import annotations

import select
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.host_view import NOT_FETCHING, HostStatus
from mannerly.crawler.stats import Present, Stats, Waits
from mannerly.crawler.web.words import many
from mannerly.live.meter import CrawlState, Limits, Live, Meter

from .block import block
from .display import Display, display_of
from .host_table import host_table
from .screen import Keys
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.inspection.status import Status
    from mannerly.crawler.stored import StoredCrawl

SORTS = ("queued", "fetched", "refused", "delay")
_SHARE = 10  # reading that takes 1 s is repeated after 10 s
_FROM, _TO = "\x1b[?1049h", "\x1b[?1049l"  # another screen, and back
_INVERTED, _PLAIN = "\x1b[7m", "\x1b[0m"
_HOME, _ERASE_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class Seen(NamedTuple):
    """A crawl at one moment, as its store knows it."""

    status: Status
    hosts: list[HostView]
    live: Live
    sort: str = "queued"
    wanted: str = ""  # a part of the names that are shown
    is_typing: bool = False
    selected: str = ""  # the host that `p` pauses
    said: str = ""  # the answer to the last key


def lines(seen: Seen, display: Display) -> list[str]:
    """Return the screen: three lines about the crawl, then as many hosts as there are rows."""
    rows = max(display.rows, 20)
    head = block(seen.live, display._replace(rows=rows), seen.status.crawl)[:3]
    hosts = [host for host in seen.hosts if seen.wanted in host.host]
    rows = display.rows - len(head) - 4
    hosts = hosts[: max(0, rows)]
    table = host_table(hosts, display)
    for number, host in enumerate(hosts):
        if host.host == seen.selected:
            table[number + 1] = marked(table[number + 1], display)
    total = seen.status.total["hosts"]
    foot = f"{len(hosts):,} of {many(total, 'host')}, by {seen.sort}"
    if seen.wanted or seen.is_typing:
        foot += f", with “{safe_term(seen.wanted, limit=30)}”"
    keys = "s sort  / filter  j k select  p pause host  q quit (the crawl goes on)"
    return [*head, "", *table, "", display.line([f"{foot}.  {seen.said or keys}"])]


def marked(line: str, display: Display) -> str:
    """Return the line of the selected host: inverted, or with a sign where there is no colour."""
    if display.colors:
        return f"{_INVERTED}{line.replace(_PLAIN, _PLAIN + _INVERTED)}{_PLAIN}"
    return f">{line[1:]}" if line else line


class Watch:
    """Reads a crawl again and again, and obeys keys in between."""

    def __init__(self, crawl: StoredCrawl, interval_s: float, keys: Keys) -> None:
        self._crawl = crawl
        self._interval_s = interval_s
        self._keys = keys
        self._sort, self._wanted, self._is_typing = 0, "", False
        self._selected, self._said = "", ""
        self._hosts: list[HostView] = []  # that are shown
        self._wants_end = False
        self._meter = _StoredMeter(time.time())

    def run(self) -> Seen:
        """Show the crawl until it ends or a key ends it; return what was seen last."""
        while True:
            began = time.monotonic()
            seen = self._read()
            self._draw(seen)
            if self._wants_end or seen.status.state in ("stopped", "finished"):
                return seen
            took_s = time.monotonic() - began
            self._wait(max(self._interval_s, _SHARE * took_s))

    def _read(self) -> Seen:
        status = self._crawl.status()
        rows = 10_000 if self._wanted else display_of(sys.stdout).rows
        hosts = self._crawl.hosts(SORTS[self._sort], rows)
        slowest = self._crawl.slowest_host()
        known = hosts if slowest is None else [*hosts, slowest]
        live = self._meter.update(status, known, self._crawl.host_counts(), time.time())
        self._hosts = [host for host in hosts if self._wanted in host.host]
        said, self._said = self._said, ""
        sort = SORTS[self._sort]
        return Seen(status, hosts, live, sort, self._wanted, self._is_typing, self._selected, said)

    def _draw(self, seen: Seen) -> None:
        display = display_of(sys.stdout)
        drawn = [f"{line}{_ERASE_LINE}" for line in lines(seen, display)[: display.rows]]
        sys.stdout.write(_HOME + "\r\n".join(drawn) + _ERASE_BELOW)
        sys.stdout.flush()

    def _wait(self, seconds: float) -> None:
        """Wait for the next update, or for a key."""
        descriptors = [self._keys.descriptor] if self._keys.is_taken else []
        ready, _, _ = select.select(descriptors, [], [], seconds)
        for key in self._keys.read() if ready else "":
            self._press(key)

    def _press(self, key: str) -> None:
        if self._is_typing:
            if key in "\r\n\x1b":
                self._is_typing = False
            elif key in "\x7f\b":
                self._wanted = self._wanted[:-1]
            elif key.isprintable():
                self._wanted += key
        elif key in "qQ":
            self._wants_end = True
        elif key in "sS":
            self._sort = (self._sort + 1) % len(SORTS)
        elif key == "/":
            self._is_typing, self._wanted = True, ""
        elif key in "jk":
            self._select(1 if key == "j" else -1)
        elif key == "p":
            self._pause_selected()

    def _select(self, by: int) -> None:
        names = [host.host for host in self._hosts]
        if names:
            at = names.index(self._selected) + by if self._selected in names else 0
            self._selected = names[max(0, min(len(names) - 1, at))]

    def _pause_selected(self) -> None:
        """Pause the selected host; resume it if it is paused or was given up."""
        host = next((each for each in self._hosts if each.host == self._selected), None)
        if host is None:
            self._said = "Select a host with j and k first."
            return
        handle = self._crawl.host(host.host)
        if host.state in (HostStatus.PAUSED, HostStatus.GIVEN_UP):
            handle.resume()
            self._said = f"{safe_term(host.host)} goes on within a second."
        else:
            handle.pause()
            self._said = f"{safe_term(host.host)} is paused; p resumes it."


class _StoredMeter:
    """Makes a `Live` of what the store says, as `Meter` does of the reports of a run."""

    def __init__(self, now: float) -> None:
        self._meter = Meter()
        self._began = now
        self._before: int | None = None  # pages at the first update

    def update(
        self,
        status: Status,
        hosts: list[HostView],
        counts: Counter[HostStatus],
        now: float,
    ) -> Live:
        """Return what to show; requests in flight are not stored."""
        total = status.total
        pages = total["fetched"] + total["failed"]
        self._before = pages if self._before is None else self._before
        waits = Waits(
            pace=counts[HostStatus.FETCHING],
            states=Counter({state: counts[state] for state in NOT_FETCHING}),
            next_in_s=min((each.next_in_s for each in hosts if each.next_in_s), default=None),
        )
        stats = Stats(
            fetched=pages - self._before,
            hosts_known=total["hosts"],
            hosts_given_up=counts[HostStatus.GIVEN_UP],
            now=Present(
                queued=total["pending"],
                waits=waits,
                host_views=hosts,
                trouble=next((each["waits_for"] for each in status.workers), None),
                is_paused=status.state == "paused",
            ),
        )
        live = self._meter.update(stats, now - self._began)
        state = CrawlState.RUNNING if live.state is CrawlState.STARTING else live.state
        limits = Limits(pages_before=self._before)
        return live._replace(state=state, limits=limits)


@contextmanager
def whole_screen() -> Iterator[Keys]:
    """Use the whole screen, and give it back whatever happens, SIGTERM included."""

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    keys = Keys()
    previous = signal.signal(signal.SIGTERM, leave)
    keys.take()
    sys.stdout.write(_FROM)
    try:
        yield keys
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        sys.stdout.write(_TO)
        sys.stdout.flush()
        keys.give_back()
        signal.signal(signal.SIGTERM, previous)
