"""Draw a run as an SVG document, without any library.

The accepted rate is an area under a line, the hidden limit is dashed, and every second with a
refusal is a tick below the axis. The background is always light, so that the picture is readable
on a dark page too. The input is a `Result`.
"""

from __future__ import annotations

from html import escape
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from .chart import bins, ceiling, duration_label, rate_ticks, time_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

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
