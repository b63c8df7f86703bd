"""Servers with hidden limits as operators set them up, by which the adaptive limiter is judged.

They were written from what web servers, firewalls, balancers and APIs do, without knowledge of the
limiter, and are unchanged since the commit that added them: no constant may be chosen on them, and
a model that turns out to be inconvenient stays. A new idea goes into a new file.

`FAMILIES` are twelve kinds of servers that no other set has. `OTHERS` are limits of known kinds
with an aim of their own. A model here never knows the client: it sees requests and the time. Every
limit is at most 8/s, the ceiling of the default settings, but for the trial that raises it.

    python -m bench strategies --set families
    mannerly simulate --server bench.families:CloudflareRule
"""

from __future__ import annotations

from collections import deque
from math import cos, exp, inf, pi
from typing import TYPE_CHECKING, NamedTuple

from mannerly.simulation.servers import (
    LATENCY_S,
    NO_HEADERS,
    REFUSAL_S,
    BanningBucket,
    FixedWindow,
    LatencyKnee,
    LimitedServer,
    SlidingLog,
    TokenBucket,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from mannerly.simulation.servers import ServerAnswer

SPAN_S = 4 * 3600.0  # of the longest run; random schedules are made for so long


class Trial(NamedTuple):
    """A server as a spec, and how it is run: virtual seconds, settings other than the defaults."""

    spec: str
    duration_s: float = 900.0
    settings: Mapping[str, float] = {}


class CloudflareRule(FixedWindow):
    """40 requests in each period of 10 s; more get 403 for a minute. Limit: 4/s.

    A rate limiting rule of Cloudflare with the action "block": the counter belongs to a period, and
    the block lasts for the mitigation timeout, whatever is sent during it.
    """

    refusal_status = 403
    block_s = 60.0

    def __init__(self) -> None:
        super().__init__(40, 10.0)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._blocked_until = 0.0

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        if now < self._blocked_until:
            return self._blocked_until - now
        if super()._wait_s(now, in_flight) == 0.0:
            return 0.0
        self._blocked_until = now + self.block_s
        return self.block_s


class AwsWafRule(LimitedServer):
    """300 requests in 60 s, counted every 10 s, refused ones too; 403 while above. Limit: 5/s.

    A rate-based rule of AWS WAF: it notices late, and it lets nobody in who goes on asking.
    """

    refusal_status = 403
    n, w, look_s = 300, 60.0, 10.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._log: deque[float] = deque()
        self._looks_at = rng.uniform(0.0, self.look_s)
        self._blocks = False

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        while self._looks_at <= now:
            while self._log and self._log[0] <= self._looks_at - self.w:
                self._log.popleft()
            self._blocks = len(self._log) > self.n
            self._looks_at += self.look_s
        self._log.append(now)
        return self._looks_at - now if self._blocks else 0.0


class AkamaiPenalty(LimitedServer):
    """40 requests in any 10 s; then 403 until the pace, 403s included, is half. Limit: 4/s.

    A rate policy with a penalty box, as of Akamai and of many appliances: it closes at one rate and
    opens at a lower one, so that a client on the edge is not let in and out all the time.
    """

    refusal_status = 403
    n, w = 40, 10.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._log: deque[float] = deque()
        self._denies = False

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        while self._log and self._log[0] <= now - self.w + 1e-9:
            self._log.popleft()
        self._log.append(now)
        self._denies = len(self._log) > (self.n // 2 if self._denies else self.n)
        return self.w if self._denies else 0.0


class RobotCheck(BanningBucket):
    """Beyond 3/s and a burst of 15 every URL gets one page, status 200, for 45 s. Limit: 3/s.

    DataDome, PerimeterX, Imperva and large shops answer so: a page that says "are you a robot?"
    with the status of a success, quicker than a page.
    """

    def __init__(self) -> None:
        super().__init__(3.0, 15, 45.0)

    def request(self, now: float, in_flight: int) -> tuple[int, float, Mapping[str, str], str]:
        status, latency_s, headers = super().request(now, in_flight)
        return 200, latency_s, headers, "" if status == 200 else "are you a robot?"


class Strikes(TokenBucket):
    """6/s with a burst of 12; a third refusal within 2 minutes halves it for 5. Limit: 6/s.

    Social networks and reputation lists of WAFs: an error or two is forgiven, hammering is not.
    """

    strikes, within_s, halved_s = 3, 120.0, 300.0

    def __init__(self) -> None:
        super().__init__(6.0, 12)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._refusals: deque[float] = deque()
        self._halved_until = 0.0

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        if self._filled_at < now < self._halved_until:
            self._tokens -= self._refill(self._filled_at, now) / 2
        wait_s = super()._wait_s(now, in_flight)
        if wait_s > 0.0:
            while self._refusals and self._refusals[0] <= now - self.within_s:
                self._refusals.popleft()
            self._refusals.append(now)
            if len(self._refusals) >= self.strikes:
                self._halved_until = now + self.halved_s
                self._refusals.clear()
        return wait_s


class RollingBackends(LimitedServer):
    """Four backends in turn, each 1.75/s with a burst of 4; one may be out. Limit: 7 or 5.25/s.

    A balancer before several nginx, each with `limit_req` in its own memory. A deployment takes one
    after the other out for 40 s, and the others get its requests.
    """

    backends, rate, burst = 4, 1.75, 4
    every_s, out_s = 200.0, 40.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._first_s = rng.uniform(60.0, self.every_s)
        self._turn = 0
        self._buckets = [TokenBucket(self.rate, self.burst) for _ in range(self.backends)]

    def _restarts(self, now: float) -> tuple[int, bool]:
        """Return how many restarts have begun, and whether one is under way."""
        if now < self._first_s:
            return 0, False
        begun, since_s = divmod(now - self._first_s, self.every_s)
        return int(begun) + 1, since_s < self.out_s

    def _out_before(self, end: float) -> float:
        """Return for how many seconds one backend was out before `end`."""
        begun, _ = self._restarts(end)
        if not begun:
            return 0.0
        last = self._first_s + (begun - 1) * self.every_s
        return (begun - 1) * self.out_s + min(self.out_s, end - last)

    def allowed(self, start: float, end: float) -> float:
        out_s = self._out_before(end) - self._out_before(start)
        return self.rate * (self.backends * (end - start) - out_s)

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        begun, is_out = self._restarts(now)
        out = begun % self.backends
        self._turn = (self._turn + 1) % self.backends
        if is_out and self._turn == out:
            self._turn = (self._turn + 1) % self.backends
        return self._buckets[self._turn]._wait_s(now, in_flight)


class SecondAndMinute(FixedWindow):
    """4 in any second and 120 in each minute; Retry-After is always 1. Limit: 2/s.

    APIs with a burst limit and a quota behind one gateway, whose Retry-After is a constant of its
    configuration: true for the second, far too short for the minute.
    """

    def __init__(self) -> None:
        super().__init__(120, 60.0)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._second = SlidingLog(4, 1.0)

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        return self._second._wait_s(now, in_flight) or super()._wait_s(now, in_flight)

    def _refusal_headers(self, _now: float, _wait_s: float) -> Mapping[str, str]:
        return {"retry-after": "1"}


class BandwidthQuota(LimitedServer):
    """300 kB/s with 3 MB in reserve, pages of 60 kB on average, then 509. Limit: 5/s on average.

    Shared hosting (cPanel, mod_bw) and object stores count bytes: a large page is paid by the
    requests after it, so the same pace is refused at one time and not at another.
    """

    refusal_status = 509
    bytes_per_s, reserve, page, spread = 300e3, 3e6, 60e3, 0.8

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._left = self.reserve
        self._filled_at = 0.0

    def allowed(self, start: float, end: float) -> float:
        reserve = self.reserve if start <= 0.0 else 0.0
        return (self.bytes_per_s * (end - start) + reserve) / self.page

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        self._left = min(self.reserve, self._left + self.bytes_per_s * (now - self._filled_at))
        self._filled_at = now
        if self._left < 0.0:
            return -self._left / self.bytes_per_s
        variance = self.spread * self.spread
        self._left -= self.page * exp(self.spread * self._gauss(0.0, 1.0) - variance / 2)
        return 0.0


class NginxDelay(LimitedServer):
    """4/s: faster requests are held back, up to 12 of them; one more gets 503. Limit: 4/s.

    `limit_req` of nginx with `burst=12` and without `nodelay`: the answers become slow, up to 3 s,
    long before the first is refused, and a refused request takes no place in the line.
    """

    refusal_status = 503
    rate, burst = 4.0, 12

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._excess = 0.0
        self._seen_at = -inf

    def allowed(self, start: float, end: float) -> float:
        return self.rate * (end - start) + (self.burst + 1 if start <= 0.0 else 0)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        excess = max(0.0, self._excess + 1.0 - self.rate * (now - self._seen_at))
        if excess > self.burst + 1e-9:
            return (excess - self.burst) / self.rate
        self._excess = excess
        self._seen_at = now
        return 0.0

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        status, latency_s, headers = super().request(now, in_flight)
        held_s = self._excess / self.rate if status == 200 else 0.0
        return status, latency_s + held_s, headers


class HaproxyTarpit(BanningBucket):
    """Beyond 4/s and a burst of 8, every request of 30 s hangs for 8 s, then gets 500. Limit: 4/s.

    `http-request tarpit` of HAProxy with a stick table: nothing is refused, but the client's
    connections fill up and its own timeout comes first.
    """

    tarpit_s = 8.0

    def __init__(self) -> None:
        super().__init__(4.0, 8, 30.0)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        status, latency_s, headers = super().request(now, in_flight)
        return (status, latency_s, headers) if status == 200 else (500, self.tarpit_s, headers)


class SharedKey(TokenBucket):
    """7/s with a burst of 14, of which other clients take 0, 2 or 4.5 for a while. Limit: the rest.

    One API key, or one address behind a proxy, for several programs: jobs of the others begin and
    end after some minutes, unseen but for what is refused. The oracle is what they leave.
    """

    quota = 7.0
    others = (0.0, 2.0, 4.5)
    job_s = 60.0, 240.0

    def __init__(self) -> None:
        super().__init__(self.quota, 14)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        taken = self.others[0]
        self.steps = [(0.0, self.quota)]
        while (at := self.steps[-1][0] + rng.uniform(*self.job_s)) < SPAN_S:
            taken = rng.choice([other for other in self.others if other != taken])
            self.steps.append((at, self.quota - taken))


class BusyDatabase(LimitedServer):
    """At most 3 at once (503) and 4/s with a burst of 8 (429); a backup makes it slow at times.

    A small application server with a pool of 3 workers behind a rate limit. Answers take 0.4 s, and
    1.2 s during a backup of 60 s every 5 minutes. Limit: 4/s, and 3 / 1.2 s = 2.5/s in a backup.
    """

    at_once, rate, burst = 3, 4.0, 8
    usual_s, slow_s = 0.4, 1.2
    every_s, backup_s = 300.0, 60.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._bucket = TokenBucket(self.rate, self.burst)
        self._first_s = rng.uniform(0.0, self.every_s - self.backup_s)

    def _backup_before(self, end: float) -> float:
        begun, since_s = divmod(max(0.0, end - self._first_s), self.every_s)
        return begun * self.backup_s + min(self.backup_s, since_s)

    def allowed(self, start: float, end: float) -> float:
        slow = self._backup_before(end) - self._backup_before(start)
        usual = end - start - slow
        burst = self.burst if start <= 0.0 else 0
        return self.rate * usual + self.at_once / self.slow_s * slow + burst

    def _wait_s(self, now: float, in_flight: int, /) -> float:
        return self._bucket._wait_s(now, in_flight)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        if in_flight > self.at_once:
            return 503, REFUSAL_S, NO_HEADERS
        status, latency_s, headers = super().request(now, in_flight)
        if status != 200:
            return status, latency_s, headers
        since_s = (now - self._first_s) % self.every_s if now >= self._first_s else inf
        mean_s = self.slow_s if since_s < self.backup_s else self.usual_s
        return status, latency_s / LATENCY_S * mean_s, headers


class Forbidding(BanningBucket):
    """3/s with a burst of 6; then 403 for 20 s. Limit: 3/s. Site firewalls such as Wordfence."""

    refusal_status = 403

    def __init__(self) -> None:
        super().__init__(3.0, 6, 20.0)


class Challenge503(RobotCheck):
    """3/s with a burst of 15; then the same page with 503 for 45 s. Limit: 3/s.

    Amazon, and Cloudflare's earlier "checking your browser".
    """

    def request(self, now: float, in_flight: int) -> tuple[int, float, Mapping[str, str], str]:
        _, latency_s, headers, body = super().request(now, in_flight)
        return 503 if body else 200, latency_s, headers, body


class Closing(TokenBucket):
    """2/s with a burst of 4; more get no answer but a close. Limit: 2/s. nginx: `return 444`."""

    lost: ServerAnswer = 0, REFUSAL_S, NO_HEADERS

    def __init__(self) -> None:
        super().__init__(2.0, 4)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        answer = super().request(now, in_flight)
        return answer if answer[0] == 200 else self.lost


class Dropping(Closing):
    """2/s with a burst of 4; more are never answered. Limit: 2/s. Linux: `hashlimit … -j DROP`."""

    lost = 0, inf, NO_HEADERS


class TimeOfDay(TokenBucket):
    """5 ± 2.5/s in a wave of 400 s, with a burst of 5. Limit: the wave. A day, made short."""

    mean, swing, period_s = 5.0, 2.5, 400.0

    def __init__(self) -> None:
        super().__init__(self.mean, 5)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._phase = rng.uniform(0.0, 2 * pi)

    def _refill(self, start: float, end: float) -> float:
        turn = 2 * pi / self.period_s
        wave = cos(turn * start + self._phase) - cos(turn * end + self._phase)
        return self.mean * (end - start) + self.swing / turn * wave


class Shedding(LimitedServer):
    """Refuses more of the requests the further 10 s of them are above 42, with 503. Limit: 4.2/s.

    Load shedding of services (Envoy's admission control, Google's adaptive throttling): no edge,
    but a chance of refusal of (rate - 4.2) / 4.2, so that more than 4.2/s brings fewer pages.
    """

    refusal_status = 503
    n, w = 42, 10.0

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._random = rng.random
        self._log: deque[float] = deque()

    def allowed(self, start: float, end: float) -> float:
        return self.n / self.w * (end - start)

    def _wait_s(self, now: float, _in_flight: int, /) -> float:
        while self._log and self._log[0] <= now - self.w + 1e-9:
            self._log.popleft()
        self._log.append(now)
        return 1.0 if self._random() < len(self._log) / self.n - 1.0 else 0.0


class ShortQueue(LatencyKnee):
    """Two workers of 0.4 s and a queue of 4; one more gets 503. Limit: 5/s. Small PHP-FPM pools."""

    queue = 4

    def __init__(self) -> None:
        super().__init__(2, 0.4)

    def reset(self, rng: random.Random) -> None:
        super().reset(rng)
        self._begin: list[float] = []

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        self._begin = [at for at in self._begin if at > now]
        if len(self._begin) >= self.queue:
            return 503, REFUSAL_S, NO_HEADERS
        if self._free_at[0] > now:
            self._begin.append(self._free_at[0])
        return super().request(now, in_flight)


def _own(server: type) -> str:
    return f"bench.families:{server.__name__}"


FAMILIES: dict[str, Trial] = {
    "Cloudflare rule, 403 for 60 s": Trial(_own(CloudflareRule)),
    "AWS WAF rule, 403 while asked": Trial(_own(AwsWafRule)),
    "penalty box, 403 until half": Trial(_own(AkamaiPenalty)),
    "robot check with 200": Trial(_own(RobotCheck)),
    "three strikes halve it": Trial(_own(Strikes)),
    "4 backends that restart": Trial(_own(RollingBackends)),
    "second and minute, wrong Retry-After": Trial(_own(SecondAndMinute)),
    "bytes, 509": Trial(_own(BandwidthQuota)),
    "nginx delays, then 503": Trial(_own(NginxDelay)),
    "HAProxy tarpit": Trial(_own(HaproxyTarpit)),
    "key shared with jobs": Trial(_own(SharedKey)),
    "3 at once and 4/s, slow at times": Trial(_own(BusyDatabase)),
}

OTHERS: dict[str, Trial] = {
    "403 for 20 s beyond 3/s": Trial(_own(Forbidding)),
    "challenge with 503": Trial(_own(Challenge503)),
    "closed beyond 2/s": Trial(_own(Closing)),
    "dropped beyond 2/s": Trial(_own(Dropping)),
    "5 ± 2.5/s in 400 s": Trial(_own(TimeOfDay)),
    "refusals likelier above 4.2/s": Trial(_own(Shedding)),
    "queue of 4, then 503": Trial(_own(ShortQueue)),
    "fixed 20/60 s, Retry-After": Trial("fixed:20:60+retry-after"),
    "extending ban 10 s, 4/s b4": Trial("extending-ban:4:4:10"),
    "extending ban 1 h, 4/s b4, 4 h": Trial(
        "extending-ban:4:4:3600", SPAN_S, {"give_up_after_s": 1e9, "retire_after_opens": 10**6}
    ),
    "rise 8→32/s, ceiling 50": Trial("steps:8@0,32@300:8", settings={"max_rate": 50.0}),
    "rise 2→8/s b4": Trial("steps:2@0,8@300:4"),
    "drop 6→1.5/s b6": Trial("steps:6@0,1.5@450:6"),
}
