"""Random errors and outages, as wrappers around any modelled server.

A wrapper forwards `request`, `reset` and `allowed` to the server inside it. So wrappers can be
combined, and also work with a server of your own.
"""

from __future__ import annotations

import random
from enum import Enum
from math import ceil, inf, nan
from typing import TYPE_CHECKING

from .servers import NO_HEADERS, REFUSAL_S

if TYPE_CHECKING:
    from .servers import Server, ServerAnswer


class ServerWrapper:
    """A server that forwards every call to the server inside; base of the wrappers below."""

    def __init__(self, inner: Server) -> None:
        self.inner = inner
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        """Reset the inner server, if it has this method."""
        if reset := getattr(self.inner, "reset", None):
            reset(rng)

    def allowed(self, start: float, end: float) -> float:
        """Return what the inner server's limit allows, or nan if it does not say."""
        oracle = getattr(self.inner, "allowed", None)
        return float(oracle(start, end)) if oracle else nan

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        """Return the inner server's answer."""
        return self.inner.request(now, in_flight)


class Noise(ServerWrapper):
    """Answers a random share of the requests with 503, independently of any limit."""

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


class Pauses(ServerWrapper):
    """Answers a random share of the requests with 429 or 503 and a Retry-After of some seconds.

    What is sent inside a Retry-After is answered like any other request: the log shows it.
    """

    def __init__(self, inner: Server, share: float, least_s: float, most_s: float) -> None:
        self.share = share
        self.least_s, self.most_s = least_s, most_s
        super().__init__(inner)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._chance = rng

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if self._chance.random() < self.share:
            pause_s = ceil(self._chance.uniform(self.least_s, self.most_s))
            return self._chance.choice((429, 503)), REFUSAL_S, {"retry-after": str(pause_s)}
        return self.inner.request(now, in_flight)


class OutageKind(Enum):
    """The failure that a client sees in an outage: a 503 at once, no connection, or no answer."""

    ERROR = (503, REFUSAL_S)
    UNREACHABLE = (0, REFUSAL_S)
    HANG = (0, inf)


class Outage(ServerWrapper):
    """Every request from `start_s` to `end_s` fails; `allowed` counts none in that time."""

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
