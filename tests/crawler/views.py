"""Views of hosts for tests, with the counts of their records."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mannerly.crawler.host_view import NOT_FETCHING, HostStatus, HostView
from mannerly.crawler.model import HostRecord
from mannerly.crawler.stats import Waits


def a_view(
    host: str,
    state: HostStatus,
    queued: int = 0,
    delay_s: float = 0.0,
    next_in_s: float | None = None,
    *,
    fetched: int = 0,
    refused: int = 0,
    **fields: Any,
) -> HostView:
    """Return a host that is seen so."""
    record = HostRecord(host, fetched=fetched, refused=refused)
    return HostView(record, state, queued, delay_s, next_in_s, **fields)


def named(view: HostView, host: str, **fields: Any) -> HostView:
    """Return another host that is seen as this one, but for some fields."""
    return view._replace(record=view.record._replace(host=host), **fields)


def a_wait(**counts: Any) -> Waits:
    """Return how many hosts wait for what: by the fields of `Waits` and the names of states."""
    states = {HostStatus(name): counts.pop(name) for name in list(counts) if name in NOT_FETCHING}
    return Waits(**counts, states=Counter(states))
