"""Modelled servers: each hides one kind of limit, and knows how much it would have allowed.

A server answers `request(now, in_flight)` with a status, a latency and headers; `in_flight` counts
the requests under way, this one included. Status 0 means that no connection came about; a latency
longer than the client's patience is a time-out. Two more methods are optional for a server of your
own: `reset(rng)`, which starts it afresh with that randomness (without it, repeat a run on a new
object), and `allowed(start, end)`, the oracle: how many requests the limit allowed in that span
(without it, utilisation and regret are not a number).

A server sees requests and the time, never the client: not its strategy, not its settings.
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
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ServerAnswer: TypeAlias = tuple[int, float, "Mapping[str, str]"]

LATENCY_S = 0.15
LATENCY_SPREAD = 0.25  # sigma of the log-normal: 95 % of the answers within 1.5 × the mean
SERVICE_SPREAD = 0.15  # a queue's own work varies less than a network does
REFUSAL_S = 0.03  # saying no is cheap
TOKEN_TOLERANCE = 1e-9  # a client exactly on the limit must not lose to float rounding

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)  # the wall-clock date at virtual time zero

NO_HEADERS: Mapping[str, str] = {}


class Server(Protocol):
    """Anything that answers: the only method that a server of your own needs."""

    def request(self, now: float, in_flight: int) -> ServerAnswer: ...


class RetryAfter(Enum):
    """How a refusal names the wait that it asks for."""

    ABSENT = "absent"
    SECONDS = "seconds"
    DATE = "date"


class LimitedServer(ABC):
    """Accepts or refuses by one rule, which the subclass states in `_wait_s`.

    Everything else is common to all: the latency, the price of a refusal, and what the headers say.
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
        """Forget every request so far; all further randomness comes from `rng`."""
        self._gauss = rng.gauss
        # Minus half the variance: the mean, not the median, is the latency that was asked for.
        self._scale = self.latency_s * exp(-LATENCY_SPREAD * LATENCY_SPREAD / 2)

    @abstractmethod
    def allowed(self, start: float, end: float) -> float:
        """How many requests the limit allowed from `start` to `end`."""

    @abstractmethod
    def _wait_s(self, now: float, in_flight: int, /) -> float:
        """0 when this request is accepted, else the seconds until one like it could be."""

    def _quota(self, now: float) -> tuple[float, float, float, float]:
        """Quota, its window in seconds, what remains of it, and the seconds until it is whole."""
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
            # One second more: both dates are cut to whole seconds.
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
    """Refills at a rate that may change on a schedule, holds `burst`, and refuses when empty."""

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
            raise ValueError("a schedule of rates starts at second 0")
        if burst < 1:
            raise ValueError(f"a bucket that holds {burst:g} tokens never lets anything through")
        if any(step_rate <= 0 for _, step_rate in steps):
            raise ValueError("a bucket's rate is above 0")
        self.steps = steps
        self.burst = burst
        super().__init__(retry_after=retry_after, announces=announces, latency_s=latency_s)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._tokens = self.burst
        self._filled_at = 0.0

    def allowed(self, start: float, end: float) -> float:
        """The refill; what the bucket held at the start is counted in the span that has it."""
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


class FixedWindow(LimitedServer):
    """Lets `n` requests through in each window of `w` seconds; the windows' phase is random."""

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

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._ends_at = rng.uniform(0.0, self.w)
        self._used = 0

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

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


class SlidingLog(LimitedServer):
    """Lets a request through when fewer than `n` were accepted in the last `w` seconds."""

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

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._log: deque[float] = deque()

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

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
    """Answers 503 when more than `n` requests are under way, refused ones included."""

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
    """Refuses nobody: `k` workers serve one queue, and above their rate only the wait grows."""

    def __init__(self, k: int, service_s: float) -> None:
        self.k = k
        self.service_s = service_s
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        """Empty the queue; all further randomness comes from `rng`."""
        self._gauss = rng.gauss
        self._scale = self.service_s * exp(-SERVICE_SPREAD * SERVICE_SPREAD / 2)
        self._free_at = [0.0] * self.k
        heapify(self._free_at)

    def allowed(self, start: float, end: float) -> float:
        """What the workers can serve when they never rest."""
        return self.k / self.service_s * (end - start)

    def request(self, now: float, in_flight: int) -> ServerAnswer:  # noqa: ARG002 - counts its own
        """Queue one request. A client that gives up has cost a worker's time all the same."""
        service_s = self._scale * exp(SERVICE_SPREAD * self._gauss(0.0, 1.0))
        done_at = max(now, self._free_at[0]) + service_s
        heapreplace(self._free_at, done_at)
        return 200, done_at - now, NO_HEADERS


class BanningBucket(TokenBucket):
    """A token bucket that answers nothing but refusals for `ban_s` seconds after each refusal.

    When `extends`, every request during a ban starts it again: only silence helps.
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
