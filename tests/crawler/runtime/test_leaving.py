"""Requests are judged once more when their connection is open, immediately before they are sent.

The server decides how long a connection takes: it accepts at once and shakes hands late.
"""

from __future__ import annotations

import ipaddress
import time
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.test_manners import in_virtual_time
from virtual.fetcher import FakeFetcher, VirtualClock
from virtual.fetcher import FakeReply as Reply

from mannerly.crawler.control import HostPause
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.model import Now
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.settings import CrawlSettings
from mannerly.politeness import Settings

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from mannerly.crawler.model import Request

PAUSE_S = 2.0
SLOW_S = 1.2


class SlowHands(RawServer):
    """A TLS server whose second connection takes SLOW_S to shake hands.

    The first page is refused with a Retry-After meanwhile. `asked` has the paths with their
    instants, and `paused_at` when the refusal was sent.
    """

    def __init__(self, authority: Authority) -> None:
        made = authority.certificate(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        super().__init__(self._answer, tls=made.context())
        self.asked: list[tuple[str, float]] = []
        self.paused_at: list[float] = []
        self.ca_file = str(made.file)
        self._hands = 0

    def _serve(self, connection: socket.socket) -> None:
        self._hands += 1
        if self._hands == 2:
            time.sleep(SLOW_S)
        super()._serve(connection)

    def _answer(self, connection: socket.socket, path: str) -> bool:
        self.asked.append((path, time.monotonic()))
        if self.paused_at:
            connection.sendall(answer(b"", "200 OK", "Content-Type: text/html"))
        else:
            time.sleep(SLOW_S / 2)
            self.paused_at.append(time.monotonic())
            refusal = ("503 Service Unavailable", f"Retry-After: {PAUSE_S:g}")
            connection.sendall(answer(b"", *refusal))
        return True


def test_nothing_is_sent_inside_a_retry_after_that_came_while_connecting(tmp_path: Path) -> None:
    """Two pages are under way; the second one's connection opens after the first was refused."""
    pace = Settings(strategy="fixed", delay_s=0.2, max_rate="unlimited", max_concurrency=4)
    with SlowHands(Authority(tmp_path)) as server:
        seeds = [server.url(f"/{number}") for number in range(3)]
        settings = CrawlSettings(
            politeness=pace, seeding="none", ignore_robots=True, ca_file=server.ca_file
        )
        result = crawl(settings, seeds, tmp_path / "crawl")

    (paused_at,) = server.paused_at
    later = [instant for _, instant in server.asked[1:]]
    assert result.ending is Ending.FINISHED
    assert server.connections >= 2
    assert (result.stats.fetched, len(server.asked)) == (3, 4)
    assert min(later) >= paused_at + PAUSE_S
    assert result.stats.requests.too_early == 0


CONNECT_S = {"/": 0.0, "/slow": 3.0}


def path_of(request: Request) -> str:
    return request.url.removeprefix("http://a.example")


class Site:
    """In virtual time: /slow takes 3 s to connect, and / is answered after a second."""

    def __init__(self, **refusal: str) -> None:
        self.clock = VirtualClock()
        self.asked: list[tuple[str, float]] = []
        self._refusal = Reply(429, headers=refusal, latency_s=1.0) if refusal else None
        self.fetcher = FakeFetcher(
            self.clock, self._answer, connect_s=lambda request: CONNECT_S[path_of(request)]
        )

    def _answer(self, request: Request) -> Reply:
        self.asked.append((path_of(request), self.clock.now))
        refusal, self._refusal = self._refusal, None
        return refusal or Reply(latency_s=1.0)


SEEDS = ["http://a.example/", "http://a.example/slow"]
SETTINGS = CrawlSettings(
    politeness=Settings(strategy="fixed", delay_s=0.5, seed=1), seeding="none", ignore_robots=True
)


def test_a_held_request_goes_back_to_the_queue_and_costs_nothing() -> None:
    """It is fetched after the pause, with no retry of its own counted."""
    site = Site(**{"retry-after": "60"})
    shard, engine = in_virtual_time(SETTINGS, SEEDS, site.fetcher)

    while not engine.is_idle:
        engine.turn()

    (first, *others) = site.asked
    stats = engine.stats()
    assert first == ("/", 0.0)
    assert sorted(path for path, _ in others) == ["/", "/slow"]
    assert min(instant for _, instant in others) >= 61.0
    assert (stats.fetched, stats.requests.retries, stats.requests.too_early) == (2, 1, 0)
    attempts = [record.attempts for _, record in shard.store.pages()]
    assert attempts == [1, 1]


def test_a_pause_is_in_the_store_before_anything_else_happens() -> None:
    """A kill after the turn in which a Retry-After arrived cannot make the next run forget it.

    Another host is busy, and a third one's page was committed just before.
    """
    latencies_s = {"http://a.example/": 1.0, "http://b.example/": 100.0, "http://c.example/": 0.99}
    refusal = Reply(503, headers={"retry-after": "60"}, latency_s=1.0)
    clock = VirtualClock()
    fetcher = FakeFetcher(
        clock,
        lambda request: (
            refusal
            if request.url == "http://a.example/"
            else Reply(latency_s=latencies_s[request.url])
        ),
    )
    shard, engine = in_virtual_time(SETTINGS, list(latencies_s), fetcher)

    while clock.now < 1.0:
        engine.turn()
    record = shard.store.host("a.example")

    assert clock.now == 1.0
    assert shard.store.counts().fetched == 1
    assert record is not None
    assert record.next_at - record.updated_at >= 60.0


def test_a_refusal_that_has_arrived_when_the_run_ends_is_kept() -> None:
    """It waits in its socket: the next run would contact the host inside the Retry-After."""
    clock = VirtualClock()
    refusal = Reply(503, headers={"retry-after": "60"}, latency_s=1.0)
    fetcher = FakeFetcher(clock, lambda _: refusal)
    shard, engine = in_virtual_time(SETTINGS, ["http://a.example/"], fetcher)

    engine.turn(0.0)
    clock.advance(5.0)
    engine.stop()
    record = shard.store.host("a.example")

    assert record is not None
    assert record.next_at - record.updated_at >= 60.0
    assert shard.store.counts().queued == 1


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_pause_by_the_operator_holds_for_requests_that_connect(is_paused: bool) -> None:
    """`host pause` is given while /slow connects: it is not sent, and stays in the queue."""
    site = Site()
    shard, engine = in_virtual_time(SETTINGS, SEEDS, site.fetcher)

    while site.clock.now < 20.0:
        engine.turn()
        if is_paused and 1.5 < site.clock.now < 2.0:
            shard.control(1, HostPause("a.example"), Now(site.clock.now, site.clock.now))

    assert [path for path, _ in site.asked] == (["/"] if is_paused else ["/", "/slow"])
    assert shard.store.counts().queued == int(is_paused)
