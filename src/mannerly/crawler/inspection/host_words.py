"""Words for the view of a host: every screen, the API and the live page use the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.host_view import NO_ROBOTS, STATES, HostStatus, LimitedBy
from mannerly.crawler.web.words import span
from mannerly.hosts.base import said_of

from .reasons import error_words

if TYPE_CHECKING:
    from mannerly.crawler.host_view import HostView


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
            said = "Retry-After" if asked is None else f"Retry-After: {_as_sent(asked)}"
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


def _as_sent(seconds: float) -> str:
    """Return a Retry-After as servers send it, in seconds, unless it is long."""
    return f"{seconds:.0f} s" if seconds < 120 else span(seconds)


def _backing_off(host: HostView, *, short: bool) -> str:
    if host.problem == NO_ROBOTS:
        return f"its {NO_ROBOTS}"
    problem = problem_words(host.problem) or "failures"
    if short:
        return f"{problem} × {host.times}; one probe" if host.times else f"{problem}; one probe"
    times = f", {host.times} time{'s' if host.times > 1 else ''}" if host.times else ""
    return f"{problem}{times}; then one probe"
