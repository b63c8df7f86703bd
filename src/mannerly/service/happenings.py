"""Put what happens to hosts into words, for the page: slowed, asked to wait, given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler import events as told
from mannerly.crawler.inspection.reasons import error_words
from mannerly.crawler.web.words import span
from mannerly.politeness import events as polite

if TYPE_CHECKING:
    from mannerly.crawler.events import Event


def happening(event: Event) -> tuple[str, str, str] | None:
    """Return the kind, the host and what happened to it; None if it is not shown."""
    match event:
        case polite.Slowed(host, _, delay_s, streak):
            return "slowed", host, f"slowed to {_pace(delay_s)} after {_causes(streak)}"
        case polite.SpedUp(host, _, delay_s):
            return "sped_up", host, f"sped up to {_pace(delay_s)}"
        case polite.Opened(host, at, until, _):
            return "opened", host, f"breaker opened for {span(until - at)}"
        case polite.Closed(host):
            return "closed", host, "breaker closed"
        case polite.Parked(host, at, until):
            return "asked_to_wait", host, f"asked us to wait {span(until - at)}"
        case polite.Throttled(host, _, status, float(retry_after_s)):
            words = f"answered {status} and asked us to wait {span(retry_after_s)}"
            return "asked_to_wait", host, words
        case told.HostGivenUp(host, reason):
            return "given_up", host, f"given up: {error_words(reason)}"
    return None


def _causes(refusals: int) -> str:
    """Return why a host was slowed down, by the refusals in a row."""
    if refusals == 0:
        return "an error or slow answers"
    return "a refusal" if refusals == 1 else f"{refusals} refusals"


def _pace(delay_s: float) -> str:
    if delay_s <= 0:
        return "no limit"
    return f"{1 / delay_s:.2g}/s" if delay_s <= 10 else f"one request in {span(delay_s)}"
