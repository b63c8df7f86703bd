"""The work of a shard beside its requests: let URLs in, bring them back, give hosts up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import origins, unreachable

if TYPE_CHECKING:
    from mannerly.crawler.model import Now

    from .parts import Parts

ADMIT = 10_000  # URLs of the waiting room let in per tick


def upkeep(parts: Parts, now: Now) -> None:
    """Let in what waits for room, bring back what is to be tried again, drop what is given up."""
    frontier, store = parts.frontier, parts.store
    room = parts.settings.frontier_limit - frontier.queued
    if room > 0 and store.counts().waiting:
        frontier.add(store.admit_waiting(min(room, ADMIT)), now=now.mono)
    frontier.add(parts.given_up.bring_back(parts, now), now=now.mono)
    origins.give_up_overdue(parts, now)
    parts.given_up.follow(parts, now)
    unreachable.press(parts, now)
    for request in parts.given_up.drop_urls(parts, now):
        origins.give_up(request, parts, now)
    is_idle = not frontier.queued and not parts.flights.pending and not parts.pending.batch
    if is_idle and store.counts().queued:
        # Nothing left as far as memory knows. If the store knows better, it is right.
        frontier.load(store.queued_hosts(), now=now.mono)
