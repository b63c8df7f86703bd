"""Draw a run: the rate over time, the hidden limit, and the refusals; in a terminal or as SVG.

Both have the same bins, axes and ticks, and need no library. The input is a `Result`; the caller
decides about colour and width of the text.

In SVG the accepted rate is an area under a line, the hidden limit is dashed, and every second with
a refusal is a tick below the axis. The background is always light, so that the picture is readable
on a dark page too.
"""

from __future__ import annotations

from html import escape
from math import ceil, floor, isnan, log10
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .result import Result


WIDTH, HEIGHT = 860, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 76, 84
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"
SERVED, WANTED, LIMIT, REFUSED = "#2a78b5", "#e08a1e", "#333333", "#c8321f"
GRID, TEXT, BACKGROUND = "#e3e6ea", "#40464d", "#fcfcfb"
POINTS = 180  # bins across the picture: short probes stay visible, and the line is not too ragged


def plot_svg(result: Result, title: str) -> str:
    """Draw the run as a standalone SVG document."""
    columns = bins(result, POINTS)
    top = ceiling(columns)
    axes = _Axes(result.duration_s, top, len(columns))
    has_limit = not isnan(columns[-1].limit)
    body = [
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='{BACKGROUND}'/>",
        f"<text x='{LEFT}' y='28' {_TITLE}>{escape(title)}</text>",
        _legend(result, has_limit=has_limit),
        *_grid(axes),
        _area(axes, [b.accepted for b in columns]),
        _line(axes, [b.wanted for b in columns], WANTED, "stroke-width='1.2'"),
        _line(axes, [b.accepted for b in columns], SERVED, "stroke-width='1.8'"),
        _line(axes, [b.limit for b in columns], LIMIT, "stroke-width='1.5' stroke-dasharray='6 4'"),
        *_refusals(axes, result),
    ]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' "
        f"width='{WIDTH}' height='{HEIGHT}' {FONT} role='img' aria-label='{escape(title)}'>\n"
        + "\n".join(part for part in body if part)
        + "\n</svg>\n"
    )


class _Axes(NamedTuple):
    """Converts seconds and rates to coordinates of the picture."""

    duration_s: float
    top: float
    columns: int

    def x(self, at_s: float) -> float:
        return LEFT + at_s / self.duration_s * (WIDTH - LEFT - RIGHT)

    def y(self, rate: float) -> float:
        return HEIGHT - BOTTOM - rate / self.top * (HEIGHT - TOP - BOTTOM)

    def middle(self, column: int) -> float:
        return self.x((column + 0.5) * self.duration_s / self.columns)


def _grid(axes: _Axes) -> list[str]:
    parts = []
    for rate in rate_ticks(axes.top):
        y = axes.y(rate)
        parts.append(
            f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='{GRID}'/>"
            f"<text x='{LEFT - 8}' y='{y + 4:.1f}' text-anchor='end' {_SMALL}>{rate:g}</text>"
        )
    base = HEIGHT - BOTTOM
    for at_s in time_ticks(axes.duration_s, 10):
        x = axes.x(at_s)
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{base + 18}' y2='{base + 23}' stroke='{TEXT}'/>"
            f"<text x='{x:.1f}' y='{base + 38}' text-anchor='middle' {_SMALL}>"
            f"{duration_label(at_s)}</text>"
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{base}' y2='{base}' stroke='{TEXT}'/>"
        f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{base + 18}' y2='{base + 18}' "
        f"stroke='{TEXT}'/>"
        f"<text x='{middle}' y='{HEIGHT - 14}' text-anchor='middle' {_SMALL}>time</text>"
        f"<text transform='translate(18 {(TOP + base) / 2}) rotate(-90)' text-anchor='middle' "
        f"{_SMALL}>requests per second</text>"
    )
    return parts


_TITLE = "font-size='16' font-weight='600' fill='#1d2126'"
_SMALL = f"font-size='12' fill='{TEXT}'"


def _area(axes: _Axes, rates: Sequence[float]) -> str:
    base = HEIGHT - BOTTOM
    points = " ".join(f"{axes.middle(i):.1f},{axes.y(rate):.1f}" for i, rate in enumerate(rates))
    first, last = axes.middle(0), axes.middle(len(rates) - 1)
    return (
        f"<polygon points='{first:.1f},{base} {points} {last:.1f},{base}' "
        f"fill='{SERVED}' fill-opacity='0.13'/>"
    )


def _line(axes: _Axes, rates: Sequence[float], ink: str, style: str) -> str:
    points = " ".join(
        f"{axes.middle(i):.1f},{axes.y(min(rate, axes.top)):.1f}"
        for i, rate in enumerate(rates)
        if not isnan(rate)
    )
    return (
        f"<polyline points='{points}' fill='none' stroke='{ink}' {style} stroke-linejoin='round'/>"
        if points
        else ""
    )


def _refusals(axes: _Axes, result: Result) -> list[str]:
    base = HEIGHT - BOTTOM
    return [
        f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{base + 2}' y2='{base + 16}' stroke='{REFUSED}' "
        f"stroke-width='1.4'/>"
        for second, values in enumerate(result.timeline)
        if values.refused and (x := axes.x(second + 0.5))
    ]


def _legend(result: Result, *, has_limit: bool) -> str:
    entries = [(SERVED, "served", "")]
    if any(not isnan(second.wanted) for second in result.timeline):
        entries.append((WANTED, "pace asked for", ""))
    if has_limit:
        entries.append((LIMIT, "the hidden limit", "stroke-dasharray='6 4'"))
    entries.append((REFUSED, f"refused: {result.refused} of {len(result.starts)}", ""))
    parts, x = [], LEFT
    for ink, label, dash in entries:
        parts.append(
            f"<path d='M{x} 50h24' stroke='{ink}' stroke-width='2.4' {dash}/>"
            f"<text x='{x + 30}' y='54' {_SMALL}>{label}</text>"
        )
        x += 30 + 7 * len(label) + 24
    return "".join(parts)


BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS = 12  # height of the chart in the terminal
GUTTER = 7  # columns for the y axis in the terminal
RATE_INK, LIMIT_INK, REFUSED_INK, RESET = "\x1b[36m", "\x1b[33m", "\x1b[31m", "\x1b[0m"


class Bin(NamedTuple):
    """Mean rates over a few seconds, in requests/s; `refused` is a count."""

    accepted: float
    limit: float
    wanted: float
    refused: int


def bins(result: Result, count: int) -> list[Bin]:
    """Divide the timeline into at most `count` bins of equally many whole seconds."""
    timeline = result.timeline
    width = max(1, ceil(len(timeline) / max(1, count)))
    # Second 0 includes what a token bucket holds at the start, which is not a rate: use second 1.
    limits = [second.allowed for second in timeline]
    limits[:1] = limits[1:2] or limits[:1]
    cut = []
    for first in range(0, len(timeline), width):
        span = timeline[first : first + width]
        cut.append(
            Bin(
                accepted=sum(second.accepted for second in span) / len(span),
                limit=sum(limits[first : first + width]) / len(span),
                wanted=sum(second.wanted for second in span) / len(span),
                refused=sum(second.refused for second in span),
            )
        )
    return cut


def plot_text(result: Result, title: str, *, width: int = 80, color: bool = False) -> str:
    """Draw the run with block characters, at most `width` columns wide."""
    columns = bins(result, max(20, width - GUTTER))
    top = ceiling(columns)
    ink = _painter(color=color)
    lines = [title, ""]
    labels = {round(rate / top * ROWS): f"{rate:g}" for rate in rate_ticks(top)}
    for row in range(ROWS, 0, -1):
        label = labels.get(row, "")
        lines.append(f"{label:>5} ┤" + "".join(_cell(b, row, top, ink) for b in columns))
    lines.append(f"{'0':>5} ┼" + "─" * len(columns))
    marks = "".join(ink("×", REFUSED_INK) if b.refused else " " for b in columns)
    lines.append(f"{'':>5}  {marks}".rstrip())
    lines.append(f"{'':>5}  {_time_labels(result.duration_s, len(columns))}")
    lines.append("")
    limit = "" if isnan(columns[-1].limit) else f"   {ink('━', LIMIT_INK)} the hidden limit"
    refused = f"   {ink('×', REFUSED_INK)} refused ({result.refused} of {len(result.starts)})"
    lines.append(f"{'':>5}  {ink('█', RATE_INK)} served, requests/s{limit}{refused}")
    return "\n".join(lines)


def _painter(*, color: bool) -> Callable[[str, str], str]:
    return lambda text, ink: f"{ink}{text}{RESET}" if color else text


def _cell(column: Bin, row: int, top: float, ink: Callable[[str, str], str]) -> str:
    limit_row = None if isnan(column.limit) else max(1, ceil(column.limit / top * ROWS))
    filled = column.accepted / top * ROWS - (row - 1)
    if row == limit_row and filled < 0.95:
        return ink("━", LIMIT_INK)
    block = BLOCKS[min(8, max(0, round(filled * 8)))]
    return block if block == " " else ink(block, RATE_INK)


def _time_labels(duration_s: float, columns: int) -> str:
    line = [" "] * (columns + 8)
    for at_s in time_ticks(duration_s, max(2, columns // 9)):
        label = duration_label(at_s)
        at = round(at_s / duration_s * (columns - 1))
        line[at : at + len(label)] = label
    return "".join(line).rstrip()


def ceiling(columns: Sequence[Bin]) -> float:
    """Return a round rate above all accepted rates and limits; the wanted rate may exceed it."""
    rates = [value for b in columns for value in (b.accepted, b.limit) if not isnan(value)]
    highest = 1.05 * max(rates, default=0.0) or 1.0
    step = _round_step(highest, 4)
    return step * ceil(highest / step)


def rate_ticks(top: float, about: int = 4) -> list[float]:
    """Return about `about` round rates from 0 to `top`."""
    step = _round_step(top, about)
    return [step * i for i in range(floor(top / step + 1e-9) + 1)]


def _round_step(top: float, about: int) -> float:
    raw = top / about
    magnitude: float = 10.0 ** floor(log10(raw))
    return next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if magnitude * factor >= raw)


def time_ticks(duration_s: float, most: int) -> list[float]:
    """Return at most about `most` round instants from 0 to the end, in seconds."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
    step = next((step for step in steps if duration_s / step <= most), duration_s)
    return [step * i for i in range(floor(duration_s / step + 1e-9) + 1)]


def duration_label(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes and rest:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes} min" if minutes else f"{rest} s"
