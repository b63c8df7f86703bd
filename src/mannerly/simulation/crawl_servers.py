"""The other end of a simulated crawl: every host answers, and watches how it is treated.

A host knows what any server knows: when a request came, how many are unanswered, what it asked for
and when that answer arrived. From that alone it counts broken promises, so that an error in the
crawler cannot excuse itself:

    gap           two starts closer than the operator's floor, or than the Crawl-delay that the
                  client has read
    retry_after   a start inside a Retry-After that the client has received
    in_flight     more unanswered requests than the operator allows
    forbidden     a page that robots.txt forbids, or any page before robots.txt was asked for
    repeated      a page that was delivered whole before

This file knows no frontier, no queue and no politeness core.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from math import ceil, exp, inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.fetch.fake import FakeReply
from mannerly.politeness.model import ErrorKind

from .crawl_web import ELSEWHERE, FORBIDDEN, ROBOTS, place_of, robots_txt
from .servers import LATENCY_SPREAD, NO_HEADERS, REFUSAL_S
from .spec import parse_server
from .witness import TOLERANCE_S, announced_wait_s

if TYPE_CHECKING:
    from mannerly.crawler.fetch.fake import VirtualClock
    from mannerly.crawler.model import Request
    from mannerly.politeness import Settings

    from .crawl_web import Web
    from .servers import Answer, Server

BARE: dict[str, str] = {}  # the headers of an answer that needs none
LATENCIES = 1024  # drawn beforehand: one more draw per request would cost more than judging it


class Faults(NamedTuple):
    """Shares of all requests that go wrong for no reason, and what a refusal asks for."""

    timeout: float = 0.0
    error: float = 0.0  # 500
    refusal: float = 0.0  # 429 with Retry-After
    retry_after_s: int = 30


@dataclass(slots=True)
class Seen:
    """What all servers together have seen."""

    requests: int = 0
    robots: int = 0
    refused: int = 0
    broken: Counter[str] = field(default_factory=Counter)  # promises, by name: see above
    fingerprint: int = 0  # of every start, in order

    def add(self, now: float, host: int, page: int) -> None:
        """A request has come."""
        self.requests += 1
        if page == ROBOTS:
            self.robots += 1
        # Numbers hash alike in every process; texts do not.
        self.fingerprint = hash((self.fingerprint, now, host, page))


class Servers:
    """All hosts of a web: `answer` is what a `FakeFetcher` asks."""

    def __init__(
        self,
        web: Web,
        clock: VirtualClock,
        manners: Settings,
        *,
        faults: Faults,
        latency_s: float,
        step_s: float,
        seed: int,
    ) -> None:
        self.seen = Seen()
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
        self._least_gap_s = max(manners.floor_s, 1.0 / manners.rate_ceiling)
        self._max_concurrency = manners.max_concurrency
        self._page_headers = {"content-type": web.content_type}
        self._hosts: dict[int, _Host] = {}
        self._delivered: set[int] = set()

    def answer(self, request: Request) -> FakeReply:
        """What a request meets, judged as it comes."""
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
            # Drawn out to the next step: the network delivers in bunches.
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
        host.hear_silence(received_at, announced_wait_s(headers))
        return FakeReply(status, b"", dict(headers), latency_s)

    def _open(self, number: int) -> _Host:
        spec, crawl_delay_s = self._web.dealt(number)
        server: Server | None = None
        if spec:
            server = parse_server(spec)
            if reset := getattr(server, "reset", None):
                reset(self._rng)
        return _Host(server, crawl_delay_s, robots_txt(crawl_delay_s))

    def _serve(self, host: _Host, now: float) -> Answer:
        """One draw decides whether something goes wrong, and if not, how long the answer takes."""
        draw = self._rng.random()
        if draw < self._at_fault:
            return self._mishap(draw)
        if host.server is not None:
            return host.server.request(now, len(host.answers) + 1)
        return 200, self._latencies_s[int(draw * LATENCIES)], NO_HEADERS

    def _mishap(self, draw: float) -> Answer:
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
    """One host: its limit, and what it remembers of its visitor."""

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
        self.answers: list[float] = []  # when the unanswered requests will be answered
        self.silences: list[tuple[float, float]] | None = None  # received at, to last until

    def hear_silence(self, received_at: float, wait_s: float) -> None:
        """The client will have been asked to stay away."""
        if wait_s:
            silences = [span for span in self.silences or () if span[1] > received_at]
            self.silences = [*silences, (received_at, received_at + wait_s)]
