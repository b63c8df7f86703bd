"""The servers of a simulated crawl: they answer requests and count broken promises.

A server knows when each request arrived, how many are unanswered, what its answers asked for, and
when the client received them. It counts broken promises from that alone and shares no code with the
crawler, so an error of the crawler cannot hide itself:

    gap           two requests closer than the minimum delay of the settings, or than the
                  Crawl-delay that the client has received
    retry_after   a request before the end of a Retry-After that the client has received
    in_flight     more unanswered requests than the settings allow
    forbidden     a page that robots.txt disallows, or any page before robots.txt was received
    repeated      a page that was delivered completely before

This module knows no frontier, no queue and no politeness core.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from math import ceil, exp, inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.politeness.model import ErrorKind
from mannerly.simulation.audit import TOLERANCE_S, asked_wait_s
from mannerly.simulation.servers import LATENCY_SPREAD, NO_HEADERS, REFUSAL_S
from mannerly.simulation.spec import parse_server
from virtual.fetcher import FakeReply

from .web import ELSEWHERE, FORBIDDEN, ROBOTS, place_of, robots_txt

if TYPE_CHECKING:
    from mannerly.crawler.model import Request
    from mannerly.politeness import Settings
    from mannerly.simulation.servers import Server, ServerAnswer
    from virtual.fetcher import VirtualClock

    from .web import GeneratedWeb

BARE: dict[str, str] = {}  # the headers of an answer without headers
LATENCIES = 1024  # drawn in advance: drawing one per request would cost more than judging it


class Faults(NamedTuple):
    """Shares of all requests that fail at random, and the Retry-After of such a refusal."""

    timeout: float = 0.0
    error: float = 0.0  # 500
    refusal: float = 0.0  # 429 with Retry-After
    retry_after_s: int = 30


@dataclass(slots=True)
class TrafficCounts:
    """Counts of all servers together."""

    requests: int = 0
    robots: int = 0
    refused: int = 0
    broken: Counter[str] = field(default_factory=Counter)  # broken promises by name: see above
    fingerprint: int = 0  # hash over all requests in order

    def add(self, now: float, host: int, page: int) -> None:
        """Count one request."""
        self.requests += 1
        if page == ROBOTS:
            self.robots += 1
        # Hashes of numbers are equal in every process; hashes of strings are not.
        self.fingerprint = hash((self.fingerprint, now, host, page))


class Servers:
    """All hosts of a web; a `FakeFetcher` gets its answers from `answer`."""

    def __init__(
        self,
        web: GeneratedWeb,
        clock: VirtualClock,
        politeness: Settings,
        *,
        faults: Faults,
        latency_s: float,
        step_s: float,
        seed: int,
    ) -> None:
        self.seen = TrafficCounts()
        self._web = web
        self._clock = clock
        self._rng = random.Random(f"servers {seed}")
        self._faults = faults
        self._at_fault = faults.timeout + faults.error + faults.refusal
        gauss = self._rng.gauss
        self._latencies_s = [
            latency_s * exp(LATENCY_SPREAD * gauss(0.0, 1.0)) for _ in range(LATENCIES)
        ]
        self._step_s = step_s
        self._least_gap_s = max(politeness.floor_s, 1.0 / politeness.rate_ceiling)
        self._max_concurrency = politeness.max_concurrency
        self._page_headers = {"content-type": web.content_type}
        self._hosts: dict[int, _Host] = {}
        self._delivered: set[int] = set()

    def answer(self, request: Request) -> FakeReply:
        """Judge a request that arrives now, and return its answer."""
        now, url, timeout_s = self._clock.now, request.url, request.timeout_s
        number, page = place_of(url)
        host = self._hosts.get(number)
        if host is None:
            host = self._hosts[number] = self._open(number)
        self.seen.add(now, number, page)
        self._judge(host, url, page, now)
        status, latency_s, headers = self._serve(host, now)
        if latency_s > timeout_s:
            latency_s = timeout_s + TOLERANCE_S
        if self._step_s:
            # Round the arrival up to the next step.
            latency_s = ceil((now + latency_s) / self._step_s) * self._step_s - now
        received_at = now + latency_s
        host.answers.append(received_at)
        if status == 200:
            if page == ROBOTS:
                if received_at < host.robots_at:
                    host.robots_at = received_at
                return FakeReply(200, host.robots, BARE, latency_s)
            if 0 <= page < self._web.pages:
                if latency_s < timeout_s:
                    self._deliver(number, page)
                return FakeReply(200, self._web.body(number, page), self._page_headers, latency_s)
            return FakeReply(404, b"", BARE, latency_s)
        if status == 0:
            return FakeReply(latency_s=latency_s, error=ErrorKind.CONNECT)
        self.seen.refused += 1
        host.add_silence(received_at, asked_wait_s(headers))
        return FakeReply(status, b"", dict(headers), latency_s)

    def _open(self, number: int) -> _Host:
        spec, crawl_delay_s = self._web.limit_and_delay(number)
        server: Server | None = None
        if spec:
            server = parse_server(spec)
            if reset := getattr(server, "reset", None):
                reset(self._rng)
        return _Host(server, crawl_delay_s, robots_txt(crawl_delay_s))

    def _serve(self, host: _Host, now: float) -> ServerAnswer:
        """Return status, latency and headers; one random number decides fault and latency."""
        draw = self._rng.random()
        if draw < self._at_fault:
            return self._fault(draw)
        if host.server is not None:
            return host.server.request(now, len(host.answers) + 1)
        return 200, self._latencies_s[int(draw * LATENCIES)], NO_HEADERS

    def _fault(self, draw: float) -> ServerAnswer:
        timeout, error, _, retry_after_s = self._faults
        if draw < timeout:
            return 200, inf, NO_HEADERS
        if draw < timeout + error:
            return 500, REFUSAL_S, NO_HEADERS
        return 429, REFUSAL_S, {"retry-after": str(retry_after_s)}

    def _judge(self, host: _Host, url: str, page: int, now: float) -> None:
        broken = self.seen.broken
        gap_s = self._least_gap_s
        if host.crawl_delay_s > gap_s and now >= host.robots_at:
            gap_s = host.crawl_delay_s
        if now - host.last_start < gap_s - TOLERANCE_S:
            broken["gap"] += 1
        host.last_start = now
        if host.silences and any(
            since <= now < until - TOLERANCE_S for since, until in host.silences
        ):
            broken["retry_after"] += 1
        if host.answers:
            host.answers = [at for at in host.answers if at > now]
            if len(host.answers) >= self._max_concurrency:
                broken["in_flight"] += 1
        if page != ROBOTS and (now < host.robots_at or (page == ELSEWHERE and FORBIDDEN in url)):
            broken["forbidden"] += 1

    def _deliver(self, number: int, page: int) -> None:
        place = number * self._web.pages + page
        if place in self._delivered:
            self.seen.broken["repeated"] += 1
        self._delivered.add(place)


class _Host:
    """One host: its limit, and what it remembers about the client."""

    __slots__ = (
        "answers",
        "crawl_delay_s",
        "last_start",
        "robots",
        "robots_at",
        "server",
        "silences",
    )

    def __init__(self, server: Server | None, crawl_delay_s: float, robots: bytes) -> None:
        self.server = server
        self.crawl_delay_s = crawl_delay_s
        self.robots = robots
        self.last_start = -inf
        self.robots_at = inf  # when the client first received the rules
        self.answers: list[float] = []  # when the client receives the answers still under way
        self.silences: list[tuple[float, float]] | None = None  # of each Retry-After: from, until

    def add_silence(self, received_at: float, wait_s: float) -> None:
        """Remember a Retry-After of `wait_s` that the client receives at `received_at`."""
        if wait_s:
            silences = [span for span in self.silences or () if span[1] > received_at]
            self.silences = [*silences, (received_at, received_at + wait_s)]
