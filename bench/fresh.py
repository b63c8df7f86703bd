"""A second set of servers as operators set them up, by which a change of the limiter is judged.

Written later than `bench.families`, before the changes that it judges and without knowledge of
them. The same rules hold: no constant is chosen on it, traces of it are not looked at while
choosing, and a model that turns out to be inconvenient stays. A model knows requests and the time,
not the client. Every limit is at most 8/s, the ceiling of the default settings.

    python -m bench strategies --only learned --set fresh
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from email.utils import format_datetime
from heapq import heapify, heapreplace
from math import ceil, exp, floor
from typing import TYPE_CHECKING

from bench.families import SPAN_S, Trial
from mannerly.simulation.servers import (
    EPOCH,
    NO_HEADERS,
    REFUSAL_S,
    ConcurrencyCap,
    FixedWindow,
    LimitedServer,
    SlidingLog,
    TokenBucket,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from mannerly.simulation.servers import ServerAnswer


class NginxNoDelay(TokenBucket):
    """3/s with a burst of 20, more get 503. Limit: 3/s. nginx: `limit_req burst=20 nodelay`."""

    refusal_status = 503

    def __init__(self) -> None:
        super().__init__(3.0, 20)


class SlidingCounter(LimitedServer):
    """180 a minute, counted by two counters, Retry-After to the minute's end. Limit: 3/s.

    Kong, Upstash and many gateways keep the count of this minute and of the last one, and take of
    the last one the part that a sliding minute still covers.
    """

    n, w = 180, 60.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._offset_s = rng.uniform(0.0, self.w)
        self._minute, self._now, self._before = 0, 0, 0

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        minute, since_s = divmod(now + self._offset_s, self.w)
        if minute != self._minute:
            self._before = self._now if minute == self._minute + 1 else 0
            self._minute, self._now = int(minute), 0
        if self._before * (1.0 - since_s / self.w) + self._now >= self.n:
            return self.w - since_s
        self._now += 1
        return 0.0

    def _refusal_headers(self, _now: float, wait_s: float) -> Mapping[str, str]:
        return {"retry-after": str(ceil(wait_s))}


class WindowOfTheClient(LimitedServer):
    """100 in 30 s, counted from the client's first request. Limit: 3.3/s.

    express-rate-limit and other counters in memory or in Redis: a key with a time to live, which
    the first request after its end makes anew.
    """

    n, w = 100, 30.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._ends_at, self._used = 0.0, 0

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        if now >= self._ends_at:
            self._ends_at, self._used = now + self.w, 0
        if self._used >= self.n:
            return self._ends_at - now
        self._used += 1
        return 0.0


class EpochHeaders(FixedWindow):
    """400 in 100 s, announced with X-RateLimit-Reset as seconds of the epoch. Limit: 4/s.

    GitHub and the many APIs that copied its headers.
    """

    def __init__(self) -> None:
        super().__init__(400, 100.0, announces=True)

    def _quota_headers(self, now: float) -> dict[str, str]:
        quota, _, remaining, reset_s = self._quota(now)
        date = EPOCH + timedelta(seconds=now)
        return {
            "date": format_datetime(date.replace(microsecond=0), usegmt=True),
            "x-ratelimit-limit": str(quota),
            "x-ratelimit-remaining": str(remaining),
            "x-ratelimit-reset": str(floor((date + timedelta(seconds=reset_s)).timestamp()) + 1),
        }


class UnevenAnswers(ConcurrencyCap):
    """3 at once, 503 beyond; answers take 0.6 s on average and sometimes seconds. Limit: 5/s.

    `limit_conn` of nginx before an application with a few slow pages.
    """

    at_once, spread = 3, 0.8

    def __init__(self) -> None:
        super().__init__(self.at_once, 0.6)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if self._wait_s(now, in_flight) > 0.0:
            return self.refusal_status, REFUSAL_S, NO_HEADERS
        variance = self.spread * self.spread
        latency_s = self.latency_s * exp(self.spread * self._gauss(0.0, 1.0) - variance / 2)
        return 200, min(latency_s, 4.5), NO_HEADERS


class Fail2Ban(TokenBucket):
    """5/s with a burst of 15, then 429; a third 429 within 60 s closes the door. Limit: 5/s.

    fail2ban reads the log of the web server and has the firewall reject connections, for 60 s the
    first time and twice as long each further time (`bantime.increment`).
    """

    strikes, within_s, first_ban_s = 3, 60.0, 60.0

    def __init__(self) -> None:
        super().__init__(5.0, 15)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._refusals: deque[float] = deque()
        self._ban_s = self.first_ban_s
        self._banned_until = 0.0

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if now < self._banned_until:
            return 0, REFUSAL_S, NO_HEADERS
        answer = super().request(now, in_flight)
        if answer[0] == self.refusal_status:
            self._refusals.append(now)
            while self._refusals[0] <= now - self.within_s:
                self._refusals.popleft()
            if len(self._refusals) >= self.strikes:
                self._refusals.clear()
                self._banned_until = now + self._ban_s
                self._ban_s *= 2.0
        return answer


class SlowDown(FixedWindow):
    """After 80 requests in 20 s each further one takes 0.2 s longer. Limit: 4/s.

    express-slow-down: nothing is refused, the answers only come later and later.
    """

    delay_s = 0.2

    def __init__(self) -> None:
        super().__init__(80, 20.0)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._beyond = 0

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        is_beyond = super()._wait_s(now, in_flight) > 0.0
        self._beyond = self._beyond + 1 if is_beyond else 0
        return 0.0

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        status, latency_s, headers = super().request(now, in_flight)
        return status, latency_s + self.delay_s * self._beyond, headers


class ModEvasive(LimitedServer):
    """5 in one second of the clock; one more, and 403 until 10 s without a request. Limit: 5/s.

    Apache's mod_evasive, with `DOSSiteCount 5` and `DOSBlockingPeriod 10`.
    """

    refusal_status = 403
    n, blocked_s = 5, 10.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._offset_s = rng.uniform(0.0, 1.0)
        self._second, self._count, self._blocked_until = -1, 0, 0.0

    def allowed(self, start: float, end: float) -> float:
        return self.n * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        if now >= self._blocked_until:
            second = floor(now + self._offset_s)
            self._count = self._count + 1 if second == self._second else 1
            self._second = second
            if self._count <= self.n:
                return 0.0
        self._blocked_until = now + self.blocked_s
        return self.blocked_s


class SecondAndQuota(FixedWindow):
    """5 in any second and 400 in 150 s, Retry-After of the one that was met. Limit: 2.7/s.

    API gateways with a "spike arrest" and a quota, such as Apigee.
    """

    def __init__(self) -> None:
        super().__init__(400, 150.0)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._any_second = SlidingLog(5, 1.0)

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        return self._any_second._wait_s(now, in_flight) or super()._wait_s(now, in_flight)

    def _refusal_headers(self, _now: float, wait_s: float) -> Mapping[str, str]:
        return {"retry-after": str(ceil(wait_s))}


class CachedBefore(TokenBucket):
    """Three of five pages come from a cache; the others, 3/s with a burst of 30. Limit: 7.5/s.

    A CDN before an origin with a rate limit, so that the limit of the host is a mean.
    """

    cached, rate = 0.6, 3.0

    def __init__(self) -> None:
        super().__init__(self.rate, 30)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._random = rng.random

    def allowed(self, start: float, end: float) -> float:
        return super().allowed(start, end) / (1.0 - self.cached)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if self._random() < self.cached:
            return 200, REFUSAL_S, NO_HEADERS
        return super().request(now, in_flight)


class WarmingUp(TokenBucket):
    """2/s after a deployment, 1/s more every 45 s until 7/s, then another one. Limit: the steps.

    Caches that are cold and workers that start one after the other; 503 for what is too much.
    """

    refusal_status = 503
    least, most, every_s = 2.0, 7.0, 45.0

    def __init__(self) -> None:
        super().__init__(self.most, 7)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self.steps, deployed_at = [], 0.0
        while deployed_at < SPAN_S:
            for step in range(int(self.most - self.least) + 1):
                self.steps.append((deployed_at + step * self.every_s, self.least + step))
            deployed_at = self.steps[-1][0] + rng.uniform(100.0, 400.0)


class EnvoyFill(FixedWindow):
    """12 tokens every 2 s, all at once. Limit: 6/s. Envoy's local rate limit: `fill_interval`."""

    def __init__(self) -> None:
        super().__init__(12, 2.0)


class Shopify(TokenBucket):
    """2/s out of a bucket of 40, with a Retry-After that has a decimal point. Limit: 2/s."""

    def __init__(self) -> None:
        super().__init__(2.0, 40)

    def _refusal_headers(self, _now: float, _wait_s: float) -> Mapping[str, str]:
        return {"retry-after": "2.0", "x-shopify-shop-api-call-limit": "40/40"}


class PhpWorkers(LimitedServer):
    """2 workers of 0.35 s; a request that waits longer than 4 s gets 504. Limit: 5.7/s.

    PHP-FPM behind a proxy with a timeout: the pages differ much, and the queue is long.
    """

    workers, service_s, spread, patience_s = 2, 0.35, 0.5, 4.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._free_at = [0.0] * self.workers
        heapify(self._free_at)

    def allowed(self, start: float, end: float) -> float:
        return self.workers / self.service_s * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        return max(0.0, self._free_at[0] - now)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        wait_s = self._wait_s(now, in_flight)
        if wait_s > self.patience_s:
            return 504, self.patience_s, NO_HEADERS
        variance = self.spread * self.spread
        service_s = self.service_s * exp(self.spread * self._gauss(0.0, 1.0) - variance / 2)
        heapreplace(self._free_at, now + wait_s + service_s)
        return 200, wait_s + service_s, NO_HEADERS


class Restarts(TokenBucket):
    """5/s with a burst of 10; every 4 minutes 502 for 12 s. Limit: 5/s, and nothing in between.

    A proxy before an application that is restarted: by a watchdog, for its memory, for a release.
    """

    rate, every_s, out_s = 5.0, 240.0, 12.0

    def __init__(self) -> None:
        super().__init__(self.rate, 10)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._first_s = rng.uniform(30.0, self.every_s)

    def _out_before(self, end: float) -> float:
        if end < self._first_s:
            return 0.0
        begun, since_s = divmod(end - self._first_s, self.every_s)
        return begun * self.out_s + min(self.out_s, since_s)

    def allowed(self, start: float, end: float) -> float:
        out_s = self._out_before(end) - self._out_before(start)
        return super().allowed(start, end) - self.rate * out_s

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if now >= self._first_s and (now - self._first_s) % self.every_s < self.out_s:
            return 502, REFUSAL_S, NO_HEADERS
        return super().request(now, in_flight)


def _own(server: type) -> str:
    return f"bench.fresh:{server.__name__}"


FRESH: dict[str, Trial] = {
    "nginx nodelay, 503": Trial(_own(NginxNoDelay)),
    "sliding counter, Retry-After": Trial(_own(SlidingCounter)),
    "window of the client": Trial(_own(WindowOfTheClient)),
    "epoch headers": Trial(_own(EpochHeaders)),
    "3 at once, uneven answers": Trial(_own(UnevenAnswers)),
    "fail2ban after 3 refusals": Trial(_own(Fail2Ban)),
    "slow-down": Trial(_own(SlowDown)),
    "mod_evasive, 403": Trial(_own(ModEvasive)),
    "second and quota, Retry-After": Trial(_own(SecondAndQuota)),
    "cache before a limit": Trial(_own(CachedBefore)),
    "warming up": Trial(_own(WarmingUp)),
    "12 tokens every 2 s": Trial(_own(EnvoyFill)),
    "bucket of 40, Retry-After 2.0": Trial(_own(Shopify)),
    "2 workers, 504": Trial(_own(PhpWorkers)),
    "restarts every 4 minutes": Trial(_own(Restarts)),
}
