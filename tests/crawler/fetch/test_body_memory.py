"""The memory of bodies is bounded: transfers wait for room, and are not failed for waiting."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, says

from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.model import LocalError, Request

if TYPE_CHECKING:
    import socket

    from mannerly.crawler.model import Fetched

BODY = 400_000
LIMIT = 1_000_000
CHUNK = 16 * 1024  # what curl passes on at once
STEP = 64 * 1024  # in which the memory of a body is counted


class Peak(BodyMemory):
    """Remembers the most bytes that were ever in use."""

    __slots__ = ("_receiving", "peak")

    def __init__(self, limit: int) -> None:
        self.peak = 0
        super().__init__(limit)

    @property
    def receiving(self) -> int:  # type: ignore[override]
        return self._receiving

    @receiving.setter
    def receiving(self, value: int) -> None:
        self._receiving = value
        self.peak = max(self.peak, value)


def fetcher_with(memory: BodyMemory) -> CurlFetcher:
    return CurlFetcher(NetworkGuard(allow_net=["127.0.0.0/8"]), memory=memory)


def request(url: str, timeout_s: float = 30.0) -> Request:
    return Request(url, "127.0.0.1", timeout_s, 10 * BODY)


def run(fetcher: CurlFetcher, within_s: float = 60.0) -> list[Fetched]:
    """Wait for all requests that were started."""
    finished: list[Fetched] = []
    deadline = time.monotonic() + within_s
    while fetcher.in_flight and time.monotonic() < deadline:
        finished += fetcher.wait(0.05)
    return finished


def wait_for(fetcher: CurlFetcher, seconds: float) -> list[Fetched]:
    """Let the fetcher work for a while."""
    finished: list[Fetched] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        finished += fetcher.wait(0.02)
    return finished


def test_bodies_take_no_more_memory_than_allowed() -> None:
    """Twenty bodies at once are all received in full, within the limit and one body more."""
    memory = Peak(LIMIT)
    fetcher = fetcher_with(memory)
    with RawServer(says(answer(b"x" * BODY))) as server:
        for number in range(20):
            fetcher.start(request(server.url(f"/{number}")))
        finished = run(fetcher)
    fetcher.close()

    assert [len(each.body) for each in finished] == [BODY] * 20
    assert memory.peak <= LIMIT + BODY + CHUNK
    assert memory.used == 0


def test_bodies_that_fit_only_one_by_one_are_all_received() -> None:
    """A limit below the size of a single body delays, and never locks."""
    memory = Peak(BODY // 4)
    fetcher = fetcher_with(memory)
    with RawServer(says(answer(b"x" * BODY))) as server:
        for number in range(5):
            fetcher.start(request(server.url(f"/{number}")))
        finished = run(fetcher)
    fetcher.close()

    assert [len(each.body) for each in finished] == [BODY] * 5
    assert memory.peak <= 2 * BODY


def test_unfinished_bodies_leave_half_of_the_memory_to_those_that_go_on() -> None:
    """Large bodies wait after their first step when memory is scarce: each goes on as a whole."""
    memory = Peak(2 * LIMIT)
    memory.held = LIMIT  # half of it
    fetcher = fetcher_with(memory)
    with RawServer(says(answer(b"x" * 10 * BODY))) as server:  # none fits into the other half
        for number in range(8):
            fetcher.start(request(server.url(f"/{number}")))
        early = wait_for(fetcher, 1.0)
        taken = memory.receiving
        memory.held = 0
        finished = run(fetcher)
    fetcher.close()

    assert early == []
    assert taken <= 8 * STEP
    assert [len(each.body) for each in finished] == [10 * BODY] * 8


def test_bodies_without_an_end_are_cut_one_after_the_other_when_memory_is_scarce() -> None:
    """A body that has all it may claim is cut, not paused again: that would never end."""
    memory = Peak(LIMIT)
    fetcher = fetcher_with(memory)
    endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 11 * BODY
    with RawServer(says(endless)) as server:
        for number in range(4):
            fetcher.start(request(server.url(f"/{number}")))
        finished = run(fetcher)
    fetcher.close()

    assert [(len(each.body), each.detail) for each in finished] == [(10 * BODY, "cut_at_cap")] * 4
    assert memory.peak <= LIMIT + 10 * BODY
    assert memory.used == 0


def test_the_time_of_a_paused_transfer_stands_still() -> None:
    """It is our program that is slow, not the server: no timeout, and no lack of speed."""
    memory = BodyMemory(LIMIT)
    memory.held = LIMIT  # a program that takes its time
    fetcher = fetcher_with(memory)
    with RawServer(says(answer(b"x" * BODY))) as server:
        fetcher.start(request(server.url(), timeout_s=0.4))
        early = wait_for(fetcher, 1.0)
        memory.held = 0
        finished = run(fetcher)
    fetcher.close()

    assert early == []
    assert [(each.status, len(each.body)) for each in finished] == [(200, BODY)]


def test_a_server_that_does_not_wait_is_asked_again() -> None:
    """It closed the connection while we were not reading: that is no failure of the server."""
    memory = BodyMemory(LIMIT)
    memory.held = LIMIT
    fetcher = fetcher_with(memory)

    def begin(connection: socket.socket, _path: str) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + b"x" * 100_000)
        return False

    with RawServer(begin) as server:
        fetcher.start(request(server.url()))
        wait_for(fetcher, 0.3)
        memory.held = 0
        finished = run(fetcher)
    fetcher.close()

    assert [each.error for each in finished] == [LocalError.STALE_CONNECTION]


def test_a_compressed_body_waits_as_it_was_received() -> None:
    """A bomb takes no more memory than any body until it is decoded."""
    memory = BodyMemory(LIMIT)
    memory.held = LIMIT
    fetcher = fetcher_with(memory)
    packed = gzip.compress(bytes(50 * BODY))
    with RawServer(says(answer(packed, "200 OK", "Content-Encoding: gzip"))) as server:
        fetcher.start(request(server.url()))
        early = wait_for(fetcher, 0.3)
        memory.held = 0
        finished = run(fetcher)
    fetcher.close()

    assert early == []
    assert [each.body for each in finished] == [packed]
    assert memory.receiving == 0


@pytest.mark.parametrize("is_paused", [True, False])
def test_cancelled_transfers_give_their_memory_back(is_paused: bool) -> None:
    """What was received of them is not counted any more."""
    memory = BodyMemory(LIMIT if is_paused else 10 * LIMIT)
    memory.held = LIMIT if is_paused else 0
    fetcher = fetcher_with(memory)

    def begin(connection: socket.socket, _path: str) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + b"x" * 100_000)
        return bool(connection.recv(1))

    with RawServer(begin) as server:
        fetcher.start(request(server.url()))
        wait_for(fetcher, 0.3)
        cancelled = fetcher.cancel()
        fetcher.close()

    assert len(cancelled) == 1
    assert memory.receiving == 0
