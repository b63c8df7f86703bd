"""Words and glyphs for the standing of hosts: the live view, `hosts` and `watch` use the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.standing import NO_ROBOTS, HostStatus, LimitedBy

from .figures import span
from .look import Tone, short_host

if TYPE_CHECKING:
    from mannerly.crawler.standing import HostStanding

    from .look import Line

# In the order in which they are shown.
GLYPHS: dict[HostStatus, tuple[str, Tone]] = {
    HostStatus.FETCHING: ("●", Tone.GOING),
    HostStatus.ASKED_TO_WAIT: ("○", Tone.WAITING),
    HostStatus.BACKING_OFF: ("◆", Tone.REFUSED),
    HostStatus.SHARED: ("⇄", Tone.WAITING),
    HostStatus.PAUSED: ("‖", Tone.PLAIN),
    HostStatus.GIVEN_UP: ("×", Tone.REFUSED),
    HostStatus.DONE: ("✓", Tone.DONE),
}
_HOST = 34  # columns of a host in a sentence


def state_words(state: HostStatus) -> str:
    """Return a state in words: asked to wait."""
    return state.value.replace("_", " ")


def cause(host: HostStanding, *, short: bool = False) -> str:
    """Return why a host waits; nothing if it does not, or if that is not known."""
    if host.state is HostStatus.ASKED_TO_WAIT:
        asked = host.retry_after_s
        return "Retry-After" if asked is None else f"Retry-After: {_as_sent(asked)}"
    if host.state is HostStatus.BACKING_OFF:
        return _backing_off(host, short=short)
    if host.state is HostStatus.GIVEN_UP:
        return problem_words(host.problem)
    if host.state is HostStatus.SHARED:
        return f"in use by crawl {host.held_by}" if host.held_by else "in use by another crawl"
    if host.state is HostStatus.PAUSED:
        return "by you"
    if host.state is HostStatus.FETCHING and host.limited_by is LimitedBy.ROBOTS:
        return f"Crawl-delay: {span(host.delay_s)}"
    return ""


def _as_sent(seconds: float) -> str:
    """Return a Retry-After as servers send it, in seconds, unless it is long."""
    return f"{seconds:.0f} s" if seconds < 120 else span(seconds)


def _backing_off(host: HostStanding, *, short: bool) -> str:
    if host.problem == NO_ROBOTS:
        return f"its {NO_ROBOTS}"
    problem = problem_words(host.problem) or "failures"
    if short:
        return f"{problem} × {host.times}; one probe" if host.times else f"{problem}; one probe"
    times = f", {host.times} time{'s' if host.times > 1 else ''}" if host.times else ""
    return f"{problem}{times}; then one probe"


def problem_words(problem: str) -> str:
    """Return a status or an error code in a few words."""
    return problem.replace("_", " ")


def next_back(host: HostStanding, *, with_cause: bool = True) -> Line:
    """Return who comes back, when, and why it is waited for."""
    said = f" {short_host(host.host, _HOST)} in {span(host.next_in_s or 0.0)}"
    why = cause(host) if with_cause else ""
    return [GLYPHS[host.state], f"{said} ({why})" if why else said]
