"""Glyphs of the states of hosts, and who comes back next: in the live view, `hosts`, `watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.inspection.host_words import cause

from .figures import span
from .look import Tone, short_host

if TYPE_CHECKING:
    from mannerly.crawler.host_view import HostView

    from .look import Line

# In the order in which they are shown.
GLYPHS: dict[HostStatus, tuple[str, Tone]] = {
    HostStatus.FETCHING: ("●", Tone.GOING),
    HostStatus.ASKED_TO_WAIT: ("○", Tone.WAITING),
    HostStatus.BACKING_OFF: ("◆", Tone.REFUSED),
    HostStatus.SHARED: ("⇄", Tone.WAITING),
    HostStatus.PAUSED: ("‖", Tone.PLAIN),
    HostStatus.WAITING: ("□", Tone.PLAIN),
    HostStatus.GIVEN_UP: ("×", Tone.REFUSED),
    HostStatus.DONE: ("✓", Tone.DONE),
}
_HOST = 34  # columns of a host in a sentence


def next_back(host: HostView, *, with_cause: bool = True) -> Line:
    """Return who comes back, when, and why it is waited for."""
    said = f" {short_host(host.host, _HOST)} in {span(host.next_in_s or 0.0)}"
    why = cause(host) if with_cause else ""
    return [GLYPHS[host.state], f"{said} ({why})" if why else said]
