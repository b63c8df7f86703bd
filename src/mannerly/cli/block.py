"""The live block: at most seven lines that say what a crawl does, how far it is, what it waits for.

    1  what it does or waits for            5  queue, requests in flight, refusals, latency
    2  how far it is                        6  the hosts by state
    3  what the end depends on              7  which hosts come back first, when, and why
    4  empty

A pure function of a `Live` and a `Look`. What does not fit is left out from the right. With fewer
than 14 rows only the first two lines are drawn, with fewer than 60 columns only the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.standing import HostStatus

from .figures import many, size, span
from .host_words import GLYPHS, next_back, state_words
from .live import CrawlState, at_least_s
from .look import Tone, short_host, width
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .live import Live
    from .look import Line, Look

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
# When there is no room for all, what needs a look stays.
_PRIORITY = (
    *(HostStatus.FETCHING, HostStatus.ASKED_TO_WAIT, HostStatus.BACKING_OFF, HostStatus.GIVEN_UP),
    *(HostStatus.PAUSED, HostStatus.DONE),
)


def block(live: Live, look: Look) -> list[str]:
    """Return the lines of the block."""
    lines = [_first(live, look)]
    if look.columns >= FEW_COLUMNS:
        lines.append(_second(live, look))
        if look.rows >= FEW_ROWS:
            lines += [[_third(live, look)], [], [_numbers(live, look)], _hosts(live, look)]
            lines.append(_back(live, look))
    drawn = [look.line(line) for line in lines]
    while drawn and not drawn[-1]:
        drawn.pop()
    return drawn


# ---------------------------------------------------------------------- what it does


def _first(live: Live, look: Look) -> Line:
    if live.state is CrawlState.STOPPING:
        return _stopping(live)
    glyph, tone = _STATES[live.state]
    head, took = f"{glyph} {live.state.value}", span(live.elapsed_s)
    room = look.columns - 1 - width(head) - 2 - width(took) - 2
    said = _clauses(_sentence(live), room)
    return [(head, tone), "  ", said, " " * (room - width(said) + 2), took]


def _stopping(live: Live) -> Line:
    """Return what a Ctrl-C leads to; it takes the place of everything else on the line."""
    glyph, tone = _STATES[CrawlState.STOPPING]
    under_way = many(live.stats.in_flight, "request")
    most = f"{live.stats.grace_s or 0.0:.0f} s at most"
    said = f"  {under_way} under way, {most}. Ctrl-C again stops at once."
    return [(f"{glyph} Stopping", tone), said]


def _clauses(clauses: list[str], room: int) -> str:
    """Return as many clauses as fit, the first one cut if it must be."""
    said = clauses[0]
    for clause in clauses[1:]:
        if width(said) + width(clause) + 2 <= room:
            said = f"{said}; {clause}"
    return said if width(said) <= room else said[: max(0, room - 1)] + "…"


def _sentence(live: Live) -> list[str]:
    stats = live.stats
    if live.state is CrawlState.PAUSED:
        return ["by you: mannerly unpause continues"]
    if live.state is CrawlState.HELD:
        return [safe_term(stats.trouble or "")]
    if live.state is CrawlState.RUNNING:
        return [f"{_speed(live.per_second)} from {_who(live)}", *_asked(live), *_late(live)]
    if live.is_late:
        return _late(live)
    if live.state is CrawlState.REFUSED:
        return [f"{_left(live, 'refuses us', 'refuse us')}; the next try {_when(live)}"]
    if live.state is CrawlState.STARTING:
        return [f"{many(stats.in_flight, 'request')} under way"] if stats.in_flight else ["…"]
    return [_waiting(live)]


def _waiting(live: Live) -> str:
    waits, back, when = live.stats.waits, live.back, _when(live)
    if waits.asked_to_wait and not waits.fetching:
        if waits.asked_to_wait == 1 and back:
            return f"{short_host(back[0].host, _HOST)} asked us to come back {when}"
        hosts = many(waits.asked_to_wait, "host")
        return f"{hosts} asked us to come back, the next one {when}"
    if waits.backing_off and not waits.fetching:
        return f"{_left(live, 'fails', 'fail')}; the next try {when}"
    return f"the next request goes {when}: {many(waits.fetching, 'host')} at its own pace"


def _left(live: Live, one: str, more: str) -> str:
    count = live.stats.waits.backing_off
    if count == 1 and live.back:
        return f"{short_host(live.back[0].host, _HOST)} {one}"
    return f"all {count:,} hosts left {more}"


def _when(live: Live) -> str:
    due_s = live.next_in_s
    return f"in {span(due_s)}" if due_s else "now"


def _who(live: Live) -> str:
    standings, hosts = live.stats.standings, live.hosts
    if hosts == 1 and standings:
        return short_host(standings[0].host, _HOST)
    return f"{live.counts[HostStatus.FETCHING]:,} of {many(hosts, 'host')}"


def _asked(live: Live) -> list[str]:
    count, back = live.stats.waits.asked_to_wait, live.back
    if not count or not back:
        return []
    return [
        f"{many(count, 'host')} asked us to wait, the next one for {span(back[0].next_in_s or 0.0)}"
    ]


def _late(live: Live) -> list[str]:
    oldest = live.stats.oldest
    if not live.is_late or oldest is None:
        return []
    waited = f"{oldest.waited_s:.0f} of {oldest.timeout_s:.0f} s"
    tried = f"try {oldest.attempt} of {oldest.attempts}"
    if live.stats.in_flight == 1:
        return [f"1 waiting for an answer, {waited}, {tried}"]
    return [f"{live.stats.in_flight:,} waiting for an answer, the oldest {waited}, {tried}"]


def _speed(per_second: float) -> str:
    if per_second >= 100:
        return f"{per_second:,.0f} pages/s"
    if per_second >= 0.1 or per_second == 0:
        return f"{per_second:.1f} pages/s"
    return f"{per_second * 60:.1f} pages/min"


# ---------------------------------------------------------------------- how far it is


def _second(live: Live, look: Look) -> Line:
    """Return a bar where there is an end, and the numbers behind it."""
    done, total, text = _end(live)
    room = look.columns - 1 - width(text) - 2
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
    if live.grows:
        return 0, 0, f"{many(pages, 'page')}, and more URLs found than fetched"
    known = pages + stats.queued + stats.in_flight
    return pages, known, f"{pages:,} of {known:,} known"


def _third(live: Live, look: Look) -> str:
    limits, stats = live.limits, live.stats
    if live.state is CrawlState.REFUSED:
        return _refused(live, look)
    if limits.max_urls is not None and live.per_second > 0:
        left = min(limits.max_urls - stats.pages, stats.queued + stats.in_flight)
        if left < stats.queued + stats.in_flight:
            return f"About {span(left / live.per_second)} to go at {_speed(live.per_second)}"
    left_s, slowest = at_least_s(live), live.slowest
    if left_s is None or slowest is None:
        return ""
    if left_s == 0.0:
        return f"--duration is over: {many(stats.in_flight, 'request')} under way"
    if left_s < slowest.needs_s:
        return f"{span(left_s)} left of --duration"
    room = look.columns - 1 - 60
    host = short_host(slowest.host, max(20, room))
    pace = _pace(1.0 / slowest.delay_s)
    return f"At least {span(left_s)} to go: {host} has {many(slowest.queued, 'URL')} at {pace}"


def _pace(per_second: float) -> str:
    return f"{per_second:.1f}/s" if per_second >= 0.1 else f"{per_second * 60:.1f}/min"


def _refused(live: Live, look: Look) -> str:
    failing = [host for host in live.stats.standings if host.state is HostStatus.BACKING_OFF]
    statuses = sorted({host.problem for host in failing if host.problem})
    longest_s = max((host.failing_s for host in failing), default=0.0)
    after = span(live.limits.give_up_after_s)
    more = " of nothing but refusals" if look.is_wide else ""
    rule = f"A host is given up after {after}{more} (--give-up-after)."
    return f"{_and(statuses)} for {span(longest_s)}. {rule}" if statuses else rule


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


# ---------------------------------------------------------------------- numbers and hosts


def _numbers(live: Live, look: Look) -> str:
    stats = live.stats
    flying = f"In flight {stats.in_flight:,}"
    if look.is_wide and live.limits.workers:
        flying += f" of {live.limits.workers:,}"
    fields = [f"Queue {stats.queued:,}", flying, _refusals(live, look), _times(live, look)]
    if stats.failed:
        fields.append(f"Failed {sum(stats.failed.values()):,}")
    if look.is_wide and stats.bytes:
        fields.append(size(stats.bytes))
    return _fitting([field for field in fields if field], "   ", look)


def _refusals(live: Live, look: Look) -> str:
    stats = live.stats
    if not stats.throttles:
        return "Refused 0"
    said = f"Refused {percent(stats.throttles, stats.fetched + stats.robots + stats.throttles)}"
    return f"{said} ({stats.throttles:,})" if look.is_wide else said


def percent(part: int, whole: int) -> str:
    """Return a share: 0.08 %, 1.9 %, 38 %."""
    share = 100.0 * part / whole if whole else 0.0
    return f"{share:.2f} %" if share < 1 else f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def _times(live: Live, look: Look) -> str:
    if live.state in (CrawlState.WAITING, CrawlState.REFUSED, CrawlState.PAUSED, CrawlState.HELD):
        return f"last page {span(live.idle_s)} ago" if live.stats.pages else ""
    latencies = live.stats.latencies
    if not latencies:
        return ""
    within = "95 % within" if look.is_wide else "95 %"
    half, most = (short_time(latencies.within(share)) for share in (0.5, 0.95))
    return f"Latency {half}, {within} {most}"


def short_time(seconds: float) -> str:
    """Return a response time in two figures: 42 ms, 140 ms, 2.1 s."""
    if seconds >= 0.995:
        return span(seconds)
    return f"{seconds * 1000:.0f} ms" if seconds < 0.0995 else f"{seconds * 100:.0f}0 ms"


def _fitting(fields: Iterable[str], gap: str, look: Look) -> str:
    kept = list(fields)
    while len(kept) > 1 and width(gap.join(kept)) > look.columns - 1:
        kept.pop()
    return gap.join(kept)


def _hosts(live: Live, look: Look) -> Line:
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
        if _width(line) <= look.columns - 1 or len(shown) <= 1:
            return line
        others += counts[shown.pop()]


def _back(live: Live, look: Look) -> Line:
    """Return who comes back first; as many as fit."""
    line: Line = []
    used = width("Next back: ")
    for host in live.back:
        room = look.columns - 1 - used - (2 if line else 0)
        forms = (next_back(host), next_back(host, with_cause=False))
        item = next((form for form in forms if not line or _width(form) <= room), None)
        if item is None:
            break
        used += _width(item) + (2 if line else 0)
        line += [", " if line else "Next back: ", *item]
    return line


def _width(line: Line) -> int:
    return sum(width(piece if isinstance(piece, str) else piece[0]) for piece in line)
