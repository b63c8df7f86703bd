"""The work that a shard has left: whether it is idle or hopeless, and has anything to write.

The store has the last word: "finished" is never derived from counters in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.model import Now
    from mannerly.politeness.model import Instant

    from .parts import Parts

SOON_S = 1.0  # a host that is due sooner is waited for, whatever it asks for


class Remaining:
    """The work that is left in one shard, as its loop asks about it."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def has_batch(self) -> bool:
        """Return whether a commit would write anything that came from the web."""
        return bool(self._parts.pending.batch)

    @property
    def is_urgent(self) -> bool:
        """Return whether a host asked for a pause that a crash now would forget."""
        return self._parts.pending.is_urgent

    @property
    def uncommitted(self) -> int:
        """Pages that came in and are not committed."""
        return len(self._parts.pending.batch.pages)

    @property
    def has_outgoing(self) -> bool:
        """Return whether links that were found here wait to be delivered to other shards."""
        parts = self._parts
        return parts.routes.leads_elsewhere and parts.store.counts().outgoing > 0

    @property
    def is_idle(self) -> bool:
        """Nothing queued, under way, to be committed or to be delivered. The inbox may differ."""
        if self._is_busy:
            return False
        counts = self._parts.store.counts()
        return not (counts.queued or counts.outgoing or counts.retries)

    @property
    def _is_busy(self) -> bool:
        parts = self._parts
        return bool(parts.flights.pending or parts.pending.batch or parts.given_up)

    def is_hopeless(self, due: Instant | None, now: Now) -> bool:
        """Return whether only hosts are left that would be given up before their next request.

        Such a host is waited for as long as there is anything else to do in the crawl. `due` is
        when the shard may start its next request.
        """
        if self._is_busy or (due is not None and due - now.mono < SOON_S):
            return False
        store, waits_too_long = self._parts.store, self._parts.politeness.waits_too_long
        counts = store.counts()
        if not counts.queued or counts.waiting or counts.outgoing or counts.retries:
            return False
        for host in self._parts.hosts.scheduled:  # the store is asked only if these are hopeless
            if not host.is_spent and not waits_too_long(host.name, now=now.mono):
                return False
        return all(waits_too_long(name, now=now.mono) for name, _ in store.queued_hosts())
