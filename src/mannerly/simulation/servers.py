"""Models of servers, each with one kind of limit that the client is not told.

A server answers `request(now, in_flight)` with a status, a latency in seconds and headers;
`in_flight` is the number of unanswered requests, including this one. Status 0 means that there was
no connection; a latency longer than the client's timeout becomes a timeout. A fourth value, if not
empty, is a body that every URL gets instead of its page, such as "are you a robot?". A server of
your own may have two more methods:

    reset(rng)             forget all requests and use this random generator; without it, use a new
                           object for every run
    allowed(start, end)    the number of requests that the limit allows in that span; without it,
                           utilisation and regret are nan

A server knows requests and the time, but not the client's strategy or settings.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from heapq import heapify, heapreplace
from math import ceil, exp, floor, inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ServerAnswer: TypeAlias = tuple[int, float, "Mapping[str, str]"]

LATENCY_S = 0.15
LATENCY_SPREAD = 0.25  # sigma of the log-normal: 95 % of the answers within 1.5 × the mean
SERVICE_SPREAD = 0.15  # of a server's own work, which varies less than a network
REFUSAL_S = 0.03  # latency of a refusal, which costs a server little
TOKEN_TOLERANCE = 1e-9  # float rounding must not refuse a client that is exactly at the limit

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)  # the wall-clock date at virtual time zero

NO_HEADERS: Mapping[str, str] = {}


class Server(Protocol):
    """The one method that every server has, also one of your own."""

    def request(self, now: float, in_flight: int) -> ServerAnswer: ...


class ModelAnswer(NamedTuple):
    """The answer of a server, of which the first three values are enough."""

    status: int
    latency_s: float
    headers: Mapping[str, str]
    same_body: str = ""


class RetryAfter(Enum):
    """The form of Retry-After in a refusal."""

    ABSENT = "absent"
    SECONDS = "seconds"
    DATE = "date"


class LimitedServer(ABC):
    """Base of the servers that accept or refuse by one rule, the `_wait_s` of the subclass.

    Latency, refusals and headers are the same for all of them.
    """

    refusal_status = 429

    def __init__(
        self,
        *,
        retry_after: RetryAfter = RetryAfter.ABSENT,
        announces: bool = False,
        latency_s: float = LATENCY_S,
    ) -> None:
        self.retry_after = retry_after
        self.announces = announces
        self.latency_s = latency_s
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        """Forget all requests so far; take random numbers from `rng` from now on."""
        self._gauss = rng.gauss
        # Minus half the variance, so that `latency_s` is the mean and not the median.
        self._scale = self.latency_s * exp(-LATENCY_SPREAD * LATENCY_SPREAD / 2)

    @abstractmethod
    def allowed(self, start: float, end: float) -> float:
        """Return the number of requests that the limit allows from `start` to `end`."""

    @abstractmethod
    def _wait_s(self, now: float, in_flight: int, /) -> float:
        """Return 0 to accept this request, else the seconds until one could be accepted."""

    def _quota(self, now: float) -> tuple[float, float, float, float]:
        """Return quota, its window in seconds, what remains, and the seconds until it is full."""
        raise NotImplementedError(f"{type(self).__name__} has no quota to announce")

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        """Accept or refuse one request."""
        wait_s = self._wait_s(now, in_flight)
        if wait_s > 0.0:
            return self.refusal_status, REFUSAL_S, self._refusal_headers(now, wait_s)
        latency_s = self._scale * exp(LATENCY_SPREAD * self._gauss(0.0, 1.0))
        return 200, latency_s, self._quota_headers(now) if self.announces else NO_HEADERS

    def _refusal_headers(self, now: float, wait_s: float) -> Mapping[str, str]:
        headers = self._quota_headers(now) if self.announces else {}
        seconds = ceil(wait_s)
        if self.retry_after is RetryAfter.SECONDS:
            headers["retry-after"] = str(seconds)
        elif self.retry_after is RetryAfter.DATE:
            answered = EPOCH + timedelta(seconds=floor(now))
            headers["date"] = format_datetime(answered, usegmt=True)
            # One second more, because both dates are rounded down to whole seconds.
            until = answered + timedelta(seconds=seconds + 1)
            headers["retry-after"] = format_datetime(until, usegmt=True)
        return headers

    def _quota_headers(self, now: float) -> dict[str, str]:
        quota, window_s, remaining, reset_s = self._quota(now)
        return {
            "ratelimit-policy": f'"default";q={floor(quota)};w={ceil(window_s)}',
            "ratelimit": f'"default";r={floor(remaining)};t={ceil(reset_s)}',
        }


class TokenBucket(LimitedServer):
    """A token bucket: holds `burst` tokens, refills at a rate that may change at given seconds."""

    def __init__(
        self,
        rate: float | Sequence[tuple[float, float]],
        burst: float,
        *,
        retry_after: RetryAfter = RetryAfter.ABSENT,
        announces: bool = False,
        latency_s: float = LATENCY_S,
    ) -> None:
        steps = [(0.0, rate)] if isinstance(rate, int | float) else sorted(rate)
        if not steps or steps[0][0] != 0.0:
            raise ValueError("a schedule of rates must start at second 0")
        if burst < 1:
            raise ValueError(
                f"burst is {burst:g}, but must be at least 1: a request takes one token"
            )
        if any(step_rate <= 0 for _, step_rate in steps):
            raise ValueError("every rate must be above 0")
        self.steps = steps
        self.burst = burst
        super().__init__(retry_after=retry_after, announces=announces, latency_s=latency_s)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._tokens = self.burst
        self._filled_at = 0.0

    def allowed(self, start: float, end: float) -> float:
        """Return the refill, plus the initial `burst` tokens if the span includes second 0."""
        return self._refill(start, end) + (self.burst if start <= 0.0 else 0.0)

    def _refill(self, start: float, end: float) -> float:
        if len(self.steps) == 1:
            return self.steps[0][1] * (end - start)
        total = 0.0
        for index, (since, rate) in enumerate(self.steps):
            until = self.steps[index + 1][0] if index + 1 < len(self.steps) else inf
            total += rate * max(0.0, min(end, until) - max(start, since))
        return total

    def _rate(self, now: float) -> float:
        return next(rate for since, rate in reversed(self.steps) if since <= now)

    def _fill(self, now: float) -> None:
        if now > self._filled_at:
            self._tokens = min(self.burst, self._tokens + self._refill(self._filled_at, now))
            self._filled_at = now

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        self._fill(now)
        if self._tokens >= 1.0 - TOKEN_TOLERANCE:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self._rate(now)

    def _quota(self, now: float) -> tuple[float, float, float, float]:
        self._fill(now)
        rate = self._rate(now)
        tokens = max(0.0, self._tokens)
        return self.burst, self.burst / rate, tokens, (self.burst - tokens) / rate


class _WindowServer(LimitedServer):
    """Accepts `n` requests in `w` seconds."""

    def __init__(
        self,
        n: int,
        w: float,
        *,
        retry_after: RetryAfter = RetryAfter.ABSENT,
        announces: bool = False,
        latency_s: float = LATENCY_S,
    ) -> None:
        self.n = n
        self.w = w
        super().__init__(retry_after=retry_after, announces=announces, latency_s=latency_s)

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)


class FixedWindow(_WindowServer):
    """Accepts `n` requests in each window of `w` seconds; the first window's end is random."""

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._ends_at = rng.uniform(0.0, self.w)
        self._used = 0

    def _turn(self, now: float) -> None:
        if now >= self._ends_at:
            self._ends_at += self.w * (floor((now - self._ends_at) / self.w) + 1)
            self._used = 0

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        self._turn(now)
        if self._used < self.n:
            self._used += 1
            return 0.0
        return self._ends_at - now

    def _quota(self, now: float) -> tuple[float, float, float, float]:
        self._turn(now)
        return self.n, self.w, self.n - self._used, self._ends_at - now


class SlidingLog(_WindowServer):
    """Accepts a request if fewer than `n` were accepted in the last `w` seconds."""

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._log: deque[float] = deque()

    def _expire(self, now: float) -> None:
        log = self._log
        while log and log[0] <= now - self.w + TOKEN_TOLERANCE:
            log.popleft()

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        self._expire(now)
        if len(self._log) < self.n:
            self._log.append(now)
            return 0.0
        return self._log[0] + self.w - now

    def _quota(self, now: float) -> tuple[float, float, float, float]:
        self._expire(now)
        reset_s = self._log[-1] + self.w - now if self._log else 0.0
        return self.n, self.w, self.n - len(self._log), reset_s


class ConcurrencyCap(LimitedServer):
    """Answers 503 while more than `n` requests are unanswered, including refused ones."""

    refusal_status = 503

    def __init__(
        self,
        n: int,
        latency_s: float,
        *,
        retry_after: RetryAfter = RetryAfter.ABSENT,
    ) -> None:
        self.n = n
        super().__init__(retry_after=retry_after, latency_s=latency_s)

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.latency_s * (end - start)

    def _wait_s(self, _now: float, in_flight: int, /) -> float:
        return 0.0 if in_flight <= self.n else self.latency_s / self.n


class LatencyKnee:
    """Never refuses: `k` workers serve one queue, so above their rate the latency grows."""

    def __init__(self, k: int, service_s: float) -> None:
        self.k = k
        self.service_s = service_s
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        """Empty the queue; take random numbers from `rng` from now on."""
        self._gauss = rng.gauss
        self._scale = self.service_s * exp(-SERVICE_SPREAD * SERVICE_SPREAD / 2)
        self._free_at = [0.0] * self.k
        heapify(self._free_at)

    def allowed(self, start: float, end: float) -> float:
        """Return the number of requests that always busy workers can serve."""
        return self.k / self.service_s * (end - start)

    def request(self, now: float, in_flight: int) -> ServerAnswer:  # noqa: ARG002 - counts its own
        """Queue one request; it uses a worker's time even if the client times out."""
        service_s = self._scale * exp(SERVICE_SPREAD * self._gauss(0.0, 1.0))
        done_at = max(now, self._free_at[0]) + service_s
        heapreplace(self._free_at, done_at)
        return 200, done_at - now, NO_HEADERS


class BanningBucket(TokenBucket):
    """A token bucket that refuses every request for `ban_s` seconds after a refusal.

    With `extends`, a request during a ban starts the ban again, so only silence ends it.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        ban_s: float,
        *,
        extends: bool = False,
        retry_after: RetryAfter = RetryAfter.ABSENT,
    ) -> None:
        self.ban_s = ban_s
        self.extends = extends
        super().__init__(rate, burst, retry_after=retry_after)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._banned_until = 0.0

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        if now < self._banned_until:
            if self.extends:
                self._banned_until = now + self.ban_s
            return self._banned_until - now
        if super()._wait_s(now, in_flight) == 0.0:
            return 0.0
        self._banned_until = now + self.ban_s
        return self.ban_s
