"""The requests of an engine that are on the wire, and answers that no shard has taken yet.

Answers can come while a shard is in the middle of something: its store is waited for. They are kept
here until the engine takes them. Nothing more is sent meanwhile, since one of them may forbid it;
nor what is sent once at all, since that is noted in the store first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.fetch.base import never
from mannerly.crawler.host.inflight import InFlight, flight_of
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry
from mannerly.crawler.stats import OldestRequest
from mannerly.politeness.model import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.fetch.base import Fetcher
    from mannerly.crawler.model import Fetched, Request
    from mannerly.crawler.shard.shard import Shard
    from mannerly.politeness.model import Instant

    from .engine import Clock

_REFUSED = 400  # the first status that is no page


class Wire:
    """A fetcher, and the shards that its requests belong to, by number."""

    def __init__(self, fetcher: Fetcher, clock: Clock, shards: Mapping[int, Shard]) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._shards = shards
        self._arrived: list[Fetched] = []
        self._is_store_busy = False
        self.polled_at: Instant = NEVER  # the sockets, for the last time
        self.watch, self.start = fetcher.watch, fetcher.start
        fetcher.ask(self._may_leave)

    @property
    def was_idle(self) -> bool:
        """Return whether the fetcher had nothing to do for a while when it was last called."""
        return self._fetcher.was_idle

    def oldest(self, now: Instant) -> OldestRequest | None:
        """Return what was started first of those on the wire, for screens."""
        request = self._fetcher.oldest
        if request is None:
            return None
        flight = flight_of(request)
        made = flight.item.attempts if isinstance(flight.item, Entry) else 0
        return OldestRequest(
            max(0.0, now - flight.permit.sent_at),
            request.timeout_s,
            made + 1,
            flight.permit.host.retry_policy.max_attempts,
        )

    def wait(self, timeout_s: float) -> list[Fetched]:
        """Serve the sockets, and return the answers; call it when nothing waits to be taken."""
        answers = self._fetcher.wait(timeout_s)
        self.polled_at = self._clock.now()
        self.note_sent()
        return answers

    def serve(self) -> None:
        """Serve the sockets while the store works.

        Shards learn of it later (`note_sent`, `take_arrived`), because they are in the middle of
        something.
        """
        if not self._arrived:
            self._is_store_busy = True
            try:
                self._arrived = self._fetcher.wait(0.0)
            finally:
                self._is_store_busy = False

    def take_arrived(self) -> list[Fetched]:
        """Return the answers that came while the store was waited for."""
        answers, self._arrived = self._arrived, []
        return answers

    def note_sent(self) -> None:
        """Tell the shards which of their requests have left."""
        for request, instant in self._fetcher.sent():
            flight = request.flight
            assert isinstance(flight, InFlight)  # see `flight_of`: the call would take longer
            self._shards[flight.shard].sent(flight, instant)

    def take_refusals(self, shard: int) -> list[Fetched]:
        """Return the refusals for one shard that have arrived, also those in a socket."""
        self._arrived += self._fetcher.wait(0.0)
        self.note_sent()
        refusals: list[Fetched] = []
        others: list[Fetched] = []
        for answer in self._arrived:
            is_refusal = answer.status is not None and answer.status >= _REFUSED
            is_ours = flight_of(answer.request).shard == shard
            (refusals if is_ours and is_refusal else others).append(answer)
        self._arrived = others
        return refusals

    def cancel(self, shard: int) -> list[Request]:
        """Cancel the requests of one shard, and drop its answers; return the requests of both."""
        self.note_sent()
        dropped = [each.request for each in self._arrived if flight_of(each.request).shard == shard]
        self._arrived = [each for each in self._arrived if flight_of(each.request).shard != shard]
        return dropped + self._fetcher.cancel(lambda each: flight_of(each).shard == shard)

    def cancel_all(self) -> list[Request]:
        """Cancel everything; return the requests."""
        return self._fetcher.cancel()

    def close_exit(self) -> None:
        """Let no request leave any more."""
        self._fetcher.ask(never)

    def _may_leave(self, request: Request, instant: Instant, address: str) -> bool:
        flight = request.flight
        assert isinstance(flight, InFlight)
        if self._is_store_busy and KINDS[flight.item.kind].is_sent_once:
            return False  # its note would go over the connection that waits for an answer
        return self._shards[flight.shard].may_leave(flight, instant, address)
