"""Rate control of other projects, from their published formulas, with our `reserve` and `report`.

Each class is the control law alone, without retries and robots.txt, and has the same maximum rate,
start and in-flight cap as our own strategies. So a comparison shows the law only. None of them
reads Retry-After; neither do their projects at this point of their code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.politeness import Grant
from mannerly.simulation.laws import Law

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.politeness import Response, Wait
    from mannerly.simulation.laws import Ticket

MIN_DELAY_S = 0.02  # the tuning set's ceiling of 50/s
START_DELAY_S = 0.5
MAX_DELAY_S = 60.0
MAX_IN_FLIGHT = 8


class Rival(Law):
    """A law with the figures that all rivals have in common."""

    def __init__(self) -> None:
        super().__init__()
        self.delay_s, self.least_delay_s = START_DELAY_S, MIN_DELAY_S
        self.limit = MAX_IN_FLIGHT

    def learn(self, permit: Ticket, response: Response, now: float) -> None:
        self.law(permit, response, now)

    def law(self, permit: Ticket, response: Response, now: float) -> None:
        raise NotImplementedError


def is_throttle(response: Response) -> bool:
    return response.status in (403, 429) or is_failure(response)


def is_failure(response: Response) -> bool:
    return response.error is not None or (response.status or 0) >= 500


class AutoThrottle(Rival):
    """Scrapy: the delay moves half-way to latency / N, and errors may not shorten it.

    delay' = max(latency/N, (delay + latency/N)/2); a status other than 200 can only raise it.
    """

    def __init__(self, target_concurrency: float) -> None:
        super().__init__()
        self.target_concurrency = target_concurrency

    def law(self, permit: Ticket, response: Response, now: float) -> None:  # noqa: ARG002
        target_s = response.latency_s / self.target_concurrency
        delay_s = max(target_s, (self.delay_s + target_s) / 2)
        delay_s = min(max(MIN_DELAY_S, delay_s), MAX_DELAY_S)
        if response.status == 200 or delay_s > self.delay_s:
            self.delay_s = delay_s


class AdaptiveRetry(Rival):
    """AWS SDKs, adaptive mode: a token bucket whose rate follows a cubic after each throttle.

    throttle: w = measured rate (at most the fill rate), rate = 0.7·w
    success:  rate = 0.4·(t − k)³ + w with k = (0.3·w/0.4)^(1/3), at most 2 × the measured rate
    The bucket is off until the first throttle; the rate is measured in half seconds, smoothed 0.8.
    """

    SCALE = 0.4
    BETA = 0.7
    SMOOTHING = 0.8
    BUCKET_S = 0.5
    MIN_RATE = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.delay_s = MIN_DELAY_S
        self.is_limited = False
        self.fill_rate = self.MIN_RATE
        self.w_max = self.MIN_RATE
        self.failed_at = 0.0
        self.capacity = 1.0
        self.tokens = 0.0
        self.filled_at = 0.0
        self.measured = 0.0
        self.bucket_at = 0.0
        self.bucket_count = 0

    def reserve(self, host: str, *, now: float) -> Grant | Wait:
        decision = super().reserve(host, now=now)
        if isinstance(decision, Grant) and self.is_limited:
            self.tokens -= 1.0
        return decision

    def ready_at(self, now: float) -> float:
        if not self.is_limited:
            return self.next_at
        self._refill(now)
        missing = 1.0 - self.tokens
        return max(self.next_at, now + missing / self.fill_rate if missing > 1e-9 else 0.0)

    def law(self, permit: Ticket, response: Response, now: float) -> None:  # noqa: ARG002
        self._measure(now)
        if is_throttle(response):
            rate = min(self.measured, self.fill_rate) if self.is_limited else self.measured
            self.w_max, self.failed_at, self.is_limited = rate, now, True
            new_rate = rate * self.BETA
        else:
            k = (self.w_max * (1 - self.BETA) / self.SCALE) ** (1 / 3)
            new_rate = self.SCALE * (now - self.failed_at - k) ** 3 + self.w_max
        self._set_rate(min(new_rate, 2 * self.measured), now)

    def _set_rate(self, rate: float, now: float) -> None:
        self._refill(now)
        self.fill_rate = max(rate, self.MIN_RATE)
        self.capacity = max(rate, 1.0)
        self.tokens = min(self.tokens, self.capacity)

    def _refill(self, now: float) -> None:
        fill = (now - self.filled_at) * self.fill_rate
        self.tokens = min(self.capacity, self.tokens + fill)
        self.filled_at = now

    def _measure(self, now: float) -> None:
        self.bucket_count += 1
        bucket = now // self.BUCKET_S * self.BUCKET_S
        if bucket > self.bucket_at:
            rate = self.bucket_count / (bucket - self.bucket_at)
            self.measured = self.SMOOTHING * rate + (1 - self.SMOOTHING) * self.measured
            self.bucket_count = 0
            self.bucket_at = bucket


class ConcurrencyLaw(Rival):
    """Netflix concurrency-limits: no delay between requests, only a limit of requests in flight."""

    INITIAL = 4.0

    def __init__(self) -> None:
        super().__init__()
        self.delay_s = MIN_DELAY_S
        self.limit = self.INITIAL

    def _set_limit(self, limit: float) -> None:
        self.limit = min(max(1.0, limit), MAX_IN_FLIGHT)


class AimdLimit(ConcurrencyLaw):
    """One more when half of the limit is in use, ×0.9 on a dropped request or one above 5 s."""

    def law(self, permit: Ticket, response: Response, now: float) -> None:  # noqa: ARG002
        if is_throttle(response):
            self._set_limit(self.limit * 0.9)
        elif permit.in_flight * 2 >= self.limit:
            self._set_limit(self.limit + 1)


class Gradient2(ConcurrencyLaw):
    """The limit follows long / short round-trip times, with room for a queue of 4.

    L' = 0.8·L + 0.2·(L·clamp(1.5·long/short, 0.5, 1) + 4); long averages 600 samples.
    A refusal is a very fast answer to it.
    """

    WARM_UP = 10
    LONG_FACTOR = 2 / 601

    def __init__(self) -> None:
        super().__init__()
        self.long_s = 0.0
        self.seen = 0

    def law(self, permit: Ticket, response: Response, now: float) -> None:  # noqa: ARG002
        short_s = response.latency_s
        self.seen += 1
        factor = 1 / self.seen if self.seen <= self.WARM_UP else self.LONG_FACTOR
        self.long_s += factor * (short_s - self.long_s)
        if self.long_s / short_s > 2:
            self.long_s *= 0.95
        if permit.in_flight < self.limit / 2:
            return
        gradient = max(0.5, min(1.0, 1.5 * self.long_s / short_s))
        self._set_limit(0.8 * self.limit + 0.2 * (self.limit * gradient + 4))


RIVALS: dict[str, Callable[[], Rival]] = {
    "AutoThrottle N=1": lambda: AutoThrottle(1),
    "AutoThrottle N=8": lambda: AutoThrottle(8),
    "AWS adaptive": AdaptiveRetry,
    "Netflix AIMDLimit": AimdLimit,
    "Netflix Gradient2": Gradient2,
}
