"""What goes wrong without any limit: noise and outages, in front of whatever server there is.

A wrapper passes requests, resets and the oracle on to the server inside, so outages can be stacked
and work with a server of your own. They know nothing of limits, and limits nothing of them.
"""

from __future__ import annotations

import random
from enum import Enum
from math import inf, nan
from typing import TYPE_CHECKING

from .servers import NO_HEADERS, REFUSAL_S

if TYPE_CHECKING:
    from .servers import Server, ServerAnswer


class ServerWrapper:
    """A server in front of another: passes everything on until a subclass says otherwise."""

    def __init__(self, inner: Server) -> None:
        self.inner = inner
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        """Start the inner server afresh as well, if it can."""
        if reset := getattr(self.inner, "reset", None):
            reset(rng)

    def allowed(self, start: float, end: float) -> float:
        """The inner server's limit."""
        oracle = getattr(self.inner, "allowed", None)
        return float(oracle(start, end)) if oracle else nan

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        """The inner server's answer."""
        return self.inner.request(now, in_flight)


class Noise(ServerWrapper):
    """Turns a random share of the requests into 503s that have nothing to do with any limit."""

    def __init__(self, inner: Server, share: float) -> None:
        self.share = share
        super().__init__(inner)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._random = rng.random

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if self._random() < self.share:
            return 503, REFUSAL_S, NO_HEADERS
        return self.inner.request(now, in_flight)


class OutageKind(Enum):
    """What a client sees of a server that is out: an error at once, no connection, or silence."""

    ERROR = (503, REFUSAL_S)
    UNREACHABLE = (0, REFUSAL_S)
    HANG = (0, inf)


class Outage(ServerWrapper):
    """Every request from `start_s` to `end_s` fails in the same way; the limit allows none then."""

    def __init__(
        self, inner: Server, start_s: float, end_s: float, failure: OutageKind = OutageKind.ERROR
    ) -> None:
        self.start_s = start_s
        self.end_s = end_s
        self.failure = failure
        super().__init__(inner)

    def allowed(self, start: float, end: float) -> float:
        lost_from, lost_to = max(start, self.start_s), min(end, self.end_s)
        lost = super().allowed(lost_from, lost_to) if lost_from < lost_to else 0.0
        return super().allowed(start, end) - lost

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if self.start_s <= now < self.end_s:
            status, latency_s = self.failure.value
            return status, latency_s, NO_HEADERS
        return self.inner.request(now, in_flight)
