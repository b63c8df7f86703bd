"""The live block: at most seven lines that say what a crawl does, how far it is, what it waits for.

    1  what it does or waits for            5  queue, requests in flight, refusals, latency
    2  how far it is                        6  the hosts by state
    3  what the end depends on              7  which hosts come back first, when, and why
    4  the URL that was asked for last

A pure function of a `Live`, a `Display` and the location of the crawl: while it is paused, the
third line is the command that continues it. What does not fit is left out from the right. With
fewer than 14 rows only the first two lines are drawn, with fewer than 60 columns only the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.inspection.host_words import state_words
from mannerly.crawler.web.words import many, size, span
from mannerly.live.meter import CrawlState
from mannerly.live.sentence import ahead, doing

from .display import Tone, short_host, width
from .host_table import GLYPHS, next_back
from .steer import continue_command
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.live.meter import Live

    from .display import Display, Line

FEW_ROWS, FEW_COLUMNS = 14, 60
_HOST = 40  # columns of a host in a sentence
_STATES = {
    CrawlState.STARTING: ("●", Tone.GOING),
    CrawlState.RUNNING: ("●", Tone.GOING),
    CrawlState.WAITING: ("○", Tone.WAITING),
    CrawlState.REFUSED: ("◆", Tone.REFUSED),
    CrawlState.PAUSED: ("‖", Tone.PLAIN),
    CrawlState.HELD: ("○", Tone.WAITING),
    CrawlState.STOPPING: ("■", Tone.WAITING),
}
# When there is no room for all, states that need attention stay.
_LAST = (Tone.PLAIN, Tone.DONE)
_PRIORITY = sorted(GLYPHS, key=lambda state: GLYPHS[state][1] in _LAST)


def block(live: Live, display: Display, location: str | None = None) -> list[str]:
    """Return the lines of the block."""
    lines = [_first(live, display)]
    if display.columns >= FEW_COLUMNS:
        lines.append(_second(live, display))
        if display.rows >= FEW_ROWS:
            lines += [
                [_third(live, display, location)],
                [_url(live)],
                [_numbers(live, display)],
                _hosts(live, display),
                _back(live, display),
            ]
    drawn = [display.line(line) for line in lines]
    while drawn and not drawn[-1]:
        drawn.pop()
    return drawn


# ---------------------------------------------------------------------- what it does


def _first(live: Live, display: Display) -> Line:
    if live.state is CrawlState.STOPPING:
        return _stopping(live)
    glyph, tone = _STATES[live.state]
    head, took = f"{glyph} {live.state.value}", span(live.elapsed_s)
    room = display.columns - 1 - width(head) - 2 - width(took) - 2
    clauses = doing(live, lambda host: short_host(host, _HOST))
    said = _clauses([safe_term(clause) for clause in clauses], room)
    return [(head, tone), "  ", said, " " * (room - width(said) + 2), took]


def _stopping(live: Live) -> Line:
    """Return what a Ctrl-C leads to; it takes the place of everything else on the line."""
    glyph, tone = _STATES[CrawlState.STOPPING]
    said = "; ".join(doing(live, str))
    return [(f"{glyph} Stopping", tone), f"  {said}. Ctrl-C again stops at once."]


def _clauses(clauses: list[str], room: int) -> str:
    """Return as many clauses as fit, the first one cut if it must be."""
    said = clauses[0]
    for clause in clauses[1:]:
        if width(said) + width(clause) + 2 <= room:
            said = f"{said}; {clause}"
    return said if width(said) <= room else said[: max(0, room - 1)] + "…"


# ---------------------------------------------------------------------- how far it is


def _second(live: Live, display: Display) -> Line:
    """Return a bar where there is an end, and the numbers behind it."""
    done, total, text = _end(live)
    room = display.columns - 1 - width(text) - 2
    if total <= 0 or room < 10:
        return [text]
    full = min(room, int(room * min(1.0, done / total)))
    tip = "╸" if full < room else ""
    return [("━" * full + tip, Tone.GOING), "─" * (room - full - len(tip)), "  ", text]


def _end(live: Live) -> tuple[float, float, str]:
    """Return how much is done, of how much, and both in words."""
    limits, pages, stats = live.limits, live.pages, live.stats
    ends: list[tuple[float, float, str]] = []
    if limits.max_urls is not None:
        ends.append((stats.pages, limits.max_urls, f"{stats.pages:,} of {limits.max_urls:,}"))
    if limits.duration_s is not None:
        took_s = min(live.elapsed_s, limits.duration_s)
        text = f"{many(pages, 'page')}, {span(took_s)} of {span(limits.duration_s)}"
        ends.append((live.elapsed_s, limits.duration_s, text))
    if ends:
        return max(ends, key=lambda end: end[0] / max(end[1], 1e-9))
    if stats.is_left_to_others:
        return 0, 0, f"{many(pages, 'page')} of this worker"
    if live.grows:
        return 0, 0, f"{many(pages, 'page')}, and more URLs found than fetched"
    known = pages + stats.now.queued + stats.now.in_flight
    return pages, known, f"{pages:,} of {known:,} known"


def _third(live: Live, display: Display, location: str | None) -> str:
    if live.state is CrawlState.PAUSED:
        return "" if location is None else _how_to_continue(live, display, location)
    room = max(20, display.columns - 1 - 60)
    return ahead(live, lambda host: short_host(host, room), is_short=not display.is_wide)


def _url(live: Live) -> str:
    """Return the URL that was asked for last, while requests are sent."""
    url = live.stats.now.latest_url
    if not url or live.state not in (CrawlState.STARTING, CrawlState.RUNNING):
        return ""
    return f"{'Fetching' if live.stats.now.in_flight else 'Fetched'} {safe_term(url)}"


def _how_to_continue(live: Live, display: Display, location: str) -> str:
    """Return the command that ends the pause, whole: half a command cannot be pasted."""
    command = safe_term(continue_command(live, location))
    forms = (f"To continue: {command}", command)
    fitting = (form for form in forms if width(form) < display.columns)
    return next(fitting, "To continue: mannerly unpause DIR, mannerly host resume DIR HOST")


# ---------------------------------------------------------------------- numbers and hosts


def _numbers(live: Live, display: Display) -> str:
    stats = live.stats
    flying = f"In flight {stats.now.in_flight:,}"
    if display.is_wide and live.limits.concurrency:
        flying += f" of {live.limits.concurrency:,}"
    fields = [
        f"Queue {stats.now.queued:,}",
        flying,
        _refusals(live, display),
        _times(live, display),
    ]
    if stats.failed:
        fields.append(f"Failed {sum(stats.failed.values()):,}")
    if stats.requisites:
        fields.append(f"Requisites {stats.requisites:,}")
    if display.is_wide and stats.bytes:
        fields.append(size(stats.bytes))
    return _fitting([field for field in fields if field], "   ", display)


def _refusals(live: Live, display: Display) -> str:
    stats, refused = live.stats, live.stats.requests.throttles
    if not refused:
        return "Refused 0"
    said = f"Refused {percent(refused, stats.fetched + stats.robots + refused)}"
    return f"{said} ({refused:,})" if display.is_wide else said


def percent(part: int, whole: int) -> str:
    """Return a share: 0.08 %, 1.9 %, 38 %."""
    share = 100.0 * part / whole if whole else 0.0
    return f"{share:.2f} %" if share < 1 else f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def _times(live: Live, display: Display) -> str:
    if live.state in (CrawlState.WAITING, CrawlState.REFUSED, CrawlState.PAUSED, CrawlState.HELD):
        return f"last page {span(live.idle_s)} ago" if live.stats.pages else ""
    latencies = live.stats.latencies
    if not latencies:
        return ""
    within = "95 % within" if display.is_wide else "95 %"
    half, most = (short_time(latencies.within(share)) for share in (0.5, 0.95))
    return f"Latency {half}, {within} {most}"


def short_time(seconds: float) -> str:
    """Return a response time in two figures: 42 ms, 140 ms, 2.1 s."""
    if seconds >= 0.995:
        return span(seconds)
    return f"{seconds * 1000:.0f} ms" if seconds < 0.0995 else f"{seconds * 100:.0f}0 ms"


def _fitting(fields: Iterable[str], gap: str, display: Display) -> str:
    kept = list(fields)
    while len(kept) > 1 and width(gap.join(kept)) > display.columns - 1:
        kept.pop()
    return gap.join(kept)


def _hosts(live: Live, display: Display) -> Line:
    """Return the number of hosts by state; what does not fit is one number."""
    counts = {state: count for state, count in live.counts.items() if count}
    shown = [state for state in _PRIORITY if state in counts]
    others = 0
    while True:
        line: Line = []
        for state in GLYPHS:
            if state in shown:
                glyph, tone = GLYPHS[state]
                words = f" {counts[state]:,} {state_words(state)}"
                line += ["  " if line else "", (glyph, tone), words]
        if others:
            line += [f"  + {others:,} others"]
        if _width(line) <= display.columns - 1 or len(shown) <= 1:
            return line
        others += counts[shown.pop()]


def _back(live: Live, display: Display) -> Line:
    """Return who comes back first; as many as fit."""
    line: Line = []
    used = width("Next back: ")
    for host in live.back:
        room = display.columns - 1 - used - (2 if line else 0)
        forms = (next_back(host), next_back(host, with_cause=False))
        item = next((form for form in forms if not line or _width(form) <= room), None)
        if item is None:
            break
        used += _width(item) + (2 if line else 0)
        line += [", " if line else "Next back: ", *item]
    return line


def _width(line: Line) -> int:
    return sum(width(piece if isinstance(piece, str) else piece[0]) for piece in line)
