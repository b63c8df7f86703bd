"""Words for the view of a host: every screen, the API and the live page use the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.host_view import NO_ROBOTS, STATES, HostStatus, LimitedBy
from mannerly.crawler.web.words import many, span
from mannerly.hosts.base import said_of
from mannerly.politeness.pace.kinds import LimitKind

from .reasons import error_words

if TYPE_CHECKING:
    from mannerly.crawler.host_view import HostView
    from mannerly.politeness.pace.kinds import KnownLimit


def state_words(state: HostStatus) -> str:
    """Return a state in words: asked to wait."""
    return state.value.replace("_", " ")


def sentence(host: HostView) -> str:
    """Return what a host does, why, and until when: backing off: 503, 3 times; …, 41 s to go."""
    why = cause(host)
    said = f"{state_words(host.state)}: {why}" if why else state_words(host.state)
    return f"{said}, {span(host.next_in_s)} to go" if host.next_in_s else said


def cause(host: HostView, *, short: bool = False) -> str:
    """Return why a host waits; nothing if it does not, or if that is not known."""
    match host.state:
        case HostStatus.ASKED_TO_WAIT:
            asked = host.retry_after_s
            said = "Retry-After" if asked is None else f"Retry-After: {_seconds(asked)}"
        case HostStatus.BACKING_OFF:
            said = _backing_off(host, short=short)
        case HostStatus.GIVEN_UP:
            said = error_words(host.problem)
        case HostStatus.SHARED:
            said = (
                f"in use by {said_of(host.held_by)}" if host.held_by else STATES[host.state].cause
            )
        case HostStatus.FETCHING if host.limited_by is LimitedBy.ROBOTS:
            said = f"Crawl-delay: {span(host.delay_s)}"
        case _:
            said = STATES[host.state].cause
    return said


def problem_words(problem: str) -> str:
    """Return a status or an error code in a few words."""
    return problem.replace("_", " ")


def limit_words(host: HostView) -> list[str]:
    """Return the limits whose kind is known: 20 requests in 60 s, window starts at :12, 94 % sure.

    A second of the minute, or a minute of the hour: all windows that are compared divide those.
    """
    return [_limit_words(known, host) for known in host.known_limits]


def _limit_words(known: KnownLimit, host: HostView) -> str:
    said = []
    match known.kind:
        case LimitKind.BUCKET:
            said += [f"{known.rate:.2f} requests/s", f"{known.burst:.0f} more at once"]
        case LimitKind.SLIDING:
            said.append(f"{known.requests:.0f} requests in any {_seconds(known.seconds)}")
        case LimitKind.FIXED:
            said.append(f"{known.requests:.0f} requests in {_seconds(known.seconds)}")
            if host.record.updated_at:
                said.append(f"window starts {_opening(known)}")
        case LimitKind.BAN:
            pause = f"refuses everything for {_seconds(known.pause_s)}"
            said += [f"{pause} beyond {known.rate:.2f}/s", f"{known.burst:.0f} more at once"]
        case LimitKind.CONCURRENCY:
            said.append(f"at most {many(round(known.requests), 'request')} at once")
        case LimitKind.QUEUE:
            said.append(f"gets slow beyond {known.rate:.2f} requests/s")
    if known.sure:
        said.append("over 99 % sure" if known.sure > 0.99 else f"{100 * known.sure:.0f} % sure")
    return ", ".join(said)


def _opening(known: KnownLimit) -> str:
    """Return when windows open, as a second of the minute or a minute of the hour."""
    seconds = round(known.opens_at) % round(known.seconds)
    if known.seconds <= 60.0:
        repeated = "" if known.seconds == 60.0 else f" and every {_seconds(known.seconds)}"
        return f"at :{seconds:02d}{repeated}"
    repeated = "" if known.seconds == 3600.0 else f" and every {_seconds(known.seconds)}"
    return f"at {seconds // 60:02d}:{seconds % 60:02d} of each hour (UTC){repeated}"


def _known_limits(host: HostView) -> list[dict[str, Any]]:
    written_at = host.record.updated_at
    return [
        {
            "words": words,
            "kind": known.kind.value,
            "requests": known.requests,
            "seconds": known.seconds,
            "burst": known.burst,
            "pause_s": known.pause_s,
            "opened_at": (
                written_at - (written_at - known.opens_at) % known.seconds
                if known.kind is LimitKind.FIXED and written_at
                else None
            ),
            "sure": known.sure or None,
        }
        for known, words in zip(host.known_limits, limit_words(host), strict=True)
    ]


def fields_of(host: HostView) -> dict[str, Any]:
    """Return a host as JSON has it: what is kept of it, and what is seen of it."""
    kept = host.record._asdict()
    del kept["doing"]  # what was seen, packed
    return kept | {
        "state": host.state.value,
        "because": cause(host),
        "next_in_s": host.next_in_s,
        "pace": host.pace or None,
        "delay_s": host.delay_s,
        "limited_by": host.limited_by.value,
        "limit": host.limit,
        "known_limits": _known_limits(host),
        "problem": host.problem,
        "times": host.times,
        "retry_after_s": host.retry_after_s,
        "held_by": host.held_by,
        "queued": host.queued,
        "given_up": host.given_up,
        "p95_latency_s": host.p95_latency_s,
        "error_rate": host.error_rate,
        "tokens": host.tokens,
        "success_streak": host.success_streak,
        "error_streak": host.error_streak,
        "age_s": round(host.age_s, 3),
    }


def _seconds(seconds: float) -> str:
    """Return a time as servers send and count it, in seconds, unless it is long."""
    return f"{seconds:.0f} s" if seconds < 120 else span(seconds)


def _backing_off(host: HostView, *, short: bool) -> str:
    if host.problem == NO_ROBOTS:
        return f"its {NO_ROBOTS}"
    problem = problem_words(host.problem) or "failures"
    if short:
        return f"{problem} × {host.times}; one probe" if host.times else f"{problem}; one probe"
    times = f", {host.times} time{'s' if host.times > 1 else ''}" if host.times else ""
    return f"{problem}{times}; then one probe"
