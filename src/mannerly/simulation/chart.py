"""Draw a run in the terminal: the rate over time, the hidden limit, and the refusals.

`svg` shares the bins, axes and ticks and draws the same picture as SVG. The input is a `Result`;
the caller decides about colour and width.
"""

from __future__ import annotations

from math import ceil, floor, isnan, log10
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .result import Result

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
