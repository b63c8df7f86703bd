"""Views of hosts for tests, with the counts of their records."""

from __future__ import annotations

from typing import Any

from mannerly.crawler.host_view import HostStatus, HostView
from mannerly.crawler.model import HostRecord


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
