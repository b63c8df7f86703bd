"""A table of hosts: what each does or waits for, its pace and limit, its queue; glyphs of states.

The same in the live view (key h), in `hosts` and in `watch`. With 116 columns and more it says
what each host waits for. Numbers are aligned right; a host name is cut in the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.host_view import STATES, WITHOUT_INSTANT, HostStatus, LimitedBy
from mannerly.crawler.inspection.host_words import cause, state_words
from mannerly.crawler.web.words import span

from .display import Tone, short_host, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.host_view import HostView

    from .display import Display, Line


# In the order in which they are shown.
GLYPHS = {state: (row.glyph[0], Tone[row.tone.upper()]) for state, row in STATES.items()}
_HOST = 34  # columns of a host in a sentence


def next_back(host: HostView, *, with_cause: bool = True) -> Line:
    """Return who comes back, when, and why it is waited for."""
    said = f" {short_host(host.host, _HOST)} in {span(host.next_in_s or 0.0)}"
    why = cause(host) if with_cause else ""
    return [GLYPHS[host.state], f"{said} ({why})" if why else said]


_NARROW = (("Next", 13), ("Pace", 7), ("Limit", 8), ("Queue", 9), ("Refused", 9))
_STATE, _WHY = 13, 19
_WIDE = (("Pace", 7), ("Limit", 7), ("Queue", 10), ("Fetched", 10), ("Refused", 9))
_NEXT = 12
_WIDE_FROM = 116  # columns: 24 are left for a host


def busiest(views: Sequence[HostView], display: Display, *, rows: int) -> list[str]:
    """Return the hosts with the longest queues, with an empty line before."""
    hosts = sorted(views, key=lambda host: -host.queued)[: max(0, rows - 2)]
    return ["", *host_table(hosts, display)] if hosts else []


def host_table(hosts: Sequence[HostView], display: Display) -> list[str]:
    """Return a head and one line a host."""
    make = _wide_row if has_states(display) else _narrow_row
    return [display.line(_head(display)), *(display.line(make(host, display)) for host in hosts)]


def has_states(display: Display) -> bool:
    """Return whether there is room for the state in words and the cause."""
    return display.columns >= _WIDE_FROM


def legend(hosts: Sequence[HostView], display: Display) -> str:
    """Return the glyphs of a table without a column for the state."""
    states = {host.state for host in hosts}
    line: Line = []
    for state, glyph in GLYPHS.items():
        if state in states:
            line += ["  " if line else "", glyph, f" {state_words(state)}"]
    return display.line(line)


def _name_columns(display: Display) -> int:
    if not has_states(display):
        return max(10, display.columns - 1 - 3 - sum(columns for _, columns in _NARROW))
    rest = 2 + _STATE + 1 + _NEXT + 1 + _WHY + sum(columns for _, columns in _WIDE)
    return min(60, display.columns - 1 - rest)


def _head(display: Display) -> Line:
    name = "Host".ljust(_name_columns(display))
    if not has_states(display):
        return ["   ", name, *(label.rjust(columns) for label, columns in _NARROW)]
    return [
        "  ",
        "State".ljust(_STATE + 1),
        name,
        "Next".rjust(_NEXT),
        " " + "Waiting for".ljust(_WHY),
        *(label.rjust(columns) for label, columns in _WIDE),
    ]


def _narrow_row(host: HostView, display: Display) -> Line:
    cells = (_next(host), _pace(host), _limit(host), f"{host.queued:,}", f"{host.refused:,}")
    numbers = [cell.rjust(columns) for cell, (_, columns) in zip(cells, _NARROW, strict=True)]
    return [GLYPHS[host.state], "  ", _name(host, display), *numbers]


def _wide_row(host: HostView, display: Display) -> Line:
    glyph, tone = GLYPHS[host.state]
    state = state_words(host.state).capitalize().ljust(_STATE)
    cells = (
        *(_pace(host), _limit(host), f"{host.queued:,}", f"{host.fetched:,}", f"{host.refused:,}"),
    )
    numbers = [cell.rjust(columns) for cell, (_, columns) in zip(cells, _WIDE, strict=True)]
    why = cause(host, short=True)
    why = why if width(why) <= _WHY else why[: _WHY - 1] + "…"
    return [
        (f"{glyph} {state} ", tone),
        _name(host, display),
        _next(host).rjust(_NEXT),
        " " + why.ljust(_WHY),
        *numbers,
    ]


def _name(host: HostView, display: Display) -> str:
    columns = _name_columns(display)
    return short_host(host.host, columns).ljust(columns)


def _next(host: HostView) -> str:
    if host.state in WITHOUT_INSTANT:
        return "–"
    if host.next_in_s and host.next_in_s >= 0.05:
        return span(host.next_in_s)
    return "–" if host.state is HostStatus.WAITING else "now"


def _pace(host: HostView) -> str:
    if not host.delay_s or host.state is HostStatus.GIVEN_UP:
        return "–"
    return f"{host.pace:.1f}" if host.pace >= 0.1 else f"{host.pace:.2f}"


def _limit(host: HostView) -> str:
    if host.state is HostStatus.GIVEN_UP:
        return "–"
    if host.limit and host.limited_by in (LimitedBy.LEARNED, LimitedBy.UNKNOWN):
        return f"{host.limit:.1f}" if host.limit >= 0.1 else f"{host.limit:.2f}"
    return "–" if host.limited_by is LimitedBy.LEARNED else host.limited_by.value or "–"
