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
from zlib import crc32

from mannerly.crawl.fetch.fake import Reply
from mannerly.politeness.model import ErrorKind

from .crawl_web import FORBIDDEN, place_of
from .servers import LATENCY_SPREAD, NO_HEADERS, REFUSAL_S
from .spec import parse_server
from .witness import TOLERANCE_S, announced_wait_s

if TYPE_CHECKING:
    from mannerly.crawl.fetch.base import Request
    from mannerly.crawl.fetch.fake import VirtualClock
    from mannerly.politeness import Settings

    from .crawl_web import Web
    from .servers import Answer, Server

HTML = {"content-type": "text/html; charset=utf-8"}


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

    def add(self, now: float, url: str) -> None:
        """A request has come."""
        self.requests += 1
        self.fingerprint = crc32(f"{now!r} {url}".encode(), self.fingerprint)


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
        self._latency_s = latency_s
        self._step_s = step_s
        self._least_gap_s = max(manners.floor_s, 1.0 / manners.rate_ceiling)
        self._max_concurrency = manners.max_concurrency
        self._hosts: dict[int, _Host] = {}
        self._delivered: set[str] = set()

    def answer(self, request: Request) -> Reply:
        """What a request meets, judged as it comes."""
        now, url = self._clock.now, request.url
        number, page = place_of(url)
        host = self._hosts.get(number)
        if host is None:
            host = self._hosts[number] = self._open(number)
        self.seen.add(now, url)
        self._judge(host, url, now)
        status, latency_s, headers = self._mishap() or self._serve(host, now)
        latency_s = self._arriving(now, min(latency_s, request.timeout_s + TOLERANCE_S))
        host.answers.append(now + latency_s)
        if status == 0:
            return Reply(latency_s=latency_s, error=ErrorKind.CONNECT)
        if status != 200:
            self.seen.refused += 1
            host.hear_silence(now + latency_s, announced_wait_s(headers))
            return Reply(status, headers=dict(headers), latency_s=latency_s)
        if url.endswith("/robots.txt"):
            host.robots_at = min(host.robots_at, now + latency_s)
            return Reply(body=self._web.robots(number), latency_s=latency_s)
        if not 0 <= page < self._web.pages:
            return Reply(404, latency_s=latency_s)
        self._deliver(url, latency_s < request.timeout_s)
        return Reply(200, self._web.body(number, page), HTML, latency_s)

    def _open(self, number: int) -> _Host:
        spec = self._web.limit(number)
        server: Server | None = None
        if spec:
            server = parse_server(spec)
            if reset := getattr(server, "reset", None):
                reset(self._rng)
        return _Host(server, self._web.crawl_delay_s(number))

    def _mishap(self) -> Answer | None:
        timeout, error, refusal, retry_after_s = self._faults
        draw = self._rng.random()
        if draw < timeout:
            return 200, inf, NO_HEADERS
        if draw < timeout + error:
            return 500, REFUSAL_S, NO_HEADERS
        if draw < timeout + error + refusal:
            return 429, REFUSAL_S, {"retry-after": str(retry_after_s)}
        return None

    def _serve(self, host: _Host, now: float) -> Answer:
        if host.server is not None:
            return host.server.request(now, len(host.answers) + 1)
        return 200, self._latency_s * exp(LATENCY_SPREAD * self._rng.gauss(0.0, 1.0)), NO_HEADERS

    def _arriving(self, now: float, latency_s: float) -> float:
        """The latency, drawn out to the next step: the network delivers in bunches."""
        if not self._step_s:
            return latency_s
        return ceil((now + latency_s) / self._step_s) * self._step_s - now

    def _judge(self, host: _Host, url: str, now: float) -> None:
        broken = self.seen.broken
        is_robots = url.endswith("/robots.txt")
        self.seen.robots += is_robots
        gap_s = self._least_gap_s
        if now >= host.robots_at and host.crawl_delay_s > gap_s:
            gap_s = host.crawl_delay_s
        if now - host.last_start < gap_s - TOLERANCE_S:
            broken["gap"] += 1
        host.last_start = now
        if any(since <= now < until - TOLERANCE_S for since, until in host.silences):
            broken["retry_after"] += 1
        host.answers = [at for at in host.answers if at > now]
        if len(host.answers) >= self._max_concurrency:
            broken["in_flight"] += 1
        if not is_robots and (FORBIDDEN in url or now < host.robots_at):
            broken["forbidden"] += 1

    def _deliver(self, url: str, is_whole: bool) -> None:  # noqa: FBT001
        if is_whole and url in self._delivered:
            self.seen.broken["repeated"] += 1
        if is_whole:
            self._delivered.add(url)


class _Host:
    """One host: its limit, and what it remembers of its visitor."""

    __slots__ = ("answers", "crawl_delay_s", "last_start", "robots_at", "server", "silences")

    def __init__(self, server: Server | None, crawl_delay_s: float) -> None:
        self.server = server
        self.crawl_delay_s = crawl_delay_s
        self.last_start = -inf
        self.robots_at = inf  # when the client first received the rules
        self.answers: list[float] = []  # when the unanswered requests will be answered
        self.silences: list[tuple[float, float]] = []  # received at, to last until

    def hear_silence(self, received_at: float, wait_s: float) -> None:
        """The client will have been asked to stay away."""
        if wait_s:
            self.silences = [span for span in self.silences if span[1] > received_at]
            self.silences.append((received_at, received_at + wait_s))
