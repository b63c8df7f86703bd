"""What every fetcher promises, held against curl on real sockets and the fake in virtual time."""

from __future__ import annotations

import os
import select
import selectors
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, hold, reset
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock

from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.model import Fetched, LocalError, Request
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from mannerly.crawler.fetch.base import Fetcher


class World(NamedTuple):
    """A fetcher and a site with /page, /big, /busy (429), /reset and /silent (no answer)."""

    fetcher: Fetcher
    origin: str

    def request(self, path: str, *, max_bytes: int = 10_000, flight: object = None) -> Request:
        return Request(self.origin + path, "127.0.0.1", 0.1, max_bytes, flight=flight)

    def run(self, *requests: Request) -> list[Fetched]:
        for request in requests:
            self.fetcher.start(request)
        finished: list[Fetched] = []
        while self.fetcher.in_flight:
            finished += self.fetcher.wait(1.0)
        return finished


def curl_world(stack: ExitStack) -> World:
    pages = {
        "/page": answer(b"hello", "200 OK", "Content-Type: text/plain"),
        "/big": answer(b"x" * 5000),
        "/busy": answer(b"", "429 Too Many", "Retry-After: 7"),
    }

    def handler(connection: socket.socket, path: str) -> bool:
        if path == "/silent":
            return hold(connection)
        if path == "/reset":
            return reset(connection)
        connection.sendall(pages[path])
        return True

    server = stack.enter_context(RawServer(handler))
    fetcher = CurlFetcher(NetworkGuard(seeds=[server.url()]))
    stack.callback(fetcher.close)
    return World(fetcher, server.url(""))


def fake_world(stack: ExitStack) -> World:
    pages = {
        "/page": FakeReply(body=b"hello", headers={"content-type": "text/plain"}, latency_s=0.01),
        "/big": FakeReply(body=b"x" * 5000, latency_s=0.02),
        "/busy": FakeReply(429, headers={"retry-after": "7"}, latency_s=0.01),
        "/silent": FakeReply(latency_s=1e9),
        "/reset": FakeReply(error=ErrorKind.RESET, latency_s=0.01),
    }
    origin = "http://127.0.0.1"
    table = {origin + path: reply for path, reply in pages.items()}
    fetcher = FakeFetcher(VirtualClock(), table, address_of=lambda host: host)
    stack.callback(fetcher.close)
    return World(fetcher, origin)


# The system's own way to wait, and what remains where there is no epoll.
POLLERS = [None, "DefaultSelector", "PollSelector", "SelectSelector"]


@pytest.fixture(params=POLLERS, ids=["native", "default-selector", "poll", "select"])
def _poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is None:
        return
    chosen = getattr(selectors, request.param, None)
    if chosen is None:
        pytest.skip(f"no {request.param} on this system")
    monkeypatch.delattr(select, "epoll", raising=False)
    monkeypatch.setattr(selectors, "DefaultSelector", chosen)


@pytest.fixture(params=[curl_world, fake_world], ids=["curl", "fake"])
def world(request: pytest.FixtureRequest, _poller: None) -> Iterator[World]:
    with ExitStack() as stack:
        yield request.param(stack)


def test_fetcher_brings_status_headers_and_body(world: World) -> None:
    """An answer carries its status, its headers in lower case, its body and its latency."""
    (fetched,) = world.run(world.request("/page"))

    assert (fetched.status, fetched.body, fetched.error) == (200, b"hello", None)
    assert fetched.headers["content-type"] == "text/plain"
    assert 0 < fetched.latency_s <= fetched.total_s
    assert not fetched.is_truncated


def test_fetcher_returns_the_flight_untouched(world: World) -> None:
    """Whatever the caller hung on a request comes back as the same object."""
    tag = object()

    (fetched,) = world.run(world.request("/page", flight=tag))

    assert fetched.request.flight is tag


def test_fetcher_brings_every_request_back_once(world: World) -> None:
    """Of many requests at once each comes back exactly once."""
    paths = ["/page", "/big", "/busy"] * 20

    finished = world.run(*(world.request(path, flight=number) for number, path in enumerate(paths)))

    assert sorted(fetched.request.flight for fetched in finished) == list(range(60))
    assert all((fetched.status is None) != (fetched.error is None) for fetched in finished)


def test_fetcher_tells_once_when_each_request_left(world: World) -> None:
    """What politeness counts from: every request that was sent, with its instant, and only once."""
    requests = [world.request("/page", flight=number) for number in range(3)]
    world.run(*requests)

    sent = world.fetcher.sent()

    assert sorted(request.flight for request, _ in sent) == [0, 1, 2]
    instants = [instant for _, instant in sent]
    assert instants == sorted(instants)
    assert world.fetcher.sent() == []


def test_fetcher_cuts_a_body_at_its_cap(world: World) -> None:
    """A body over the cap is an answer, cut to the byte and marked."""
    (fetched,) = world.run(world.request("/big", max_bytes=1234))

    assert (fetched.status, len(fetched.body), fetched.is_truncated) == (200, 1234, True)
    assert fetched.detail == "cut_at_cap"


def test_fetcher_takes_a_body_of_exactly_the_cap(world: World) -> None:
    """A body that just fits is whole."""
    (fetched,) = world.run(world.request("/big", max_bytes=5000))

    assert (len(fetched.body), fetched.is_truncated) == (5000, False)


def test_fetcher_gives_up_on_a_silent_server(world: World) -> None:
    """No answer within the timeout is a timeout, with no status."""
    (fetched,) = world.run(world.request("/silent"))

    assert (fetched.status, fetched.error) == (None, ErrorKind.TIMEOUT)
    assert fetched.detail == "first_byte_timeout"
    assert fetched.total_s >= 0.1


def test_fetcher_reports_a_reset_at_once(world: World) -> None:
    """A connection that is reset while its answer is awaited ends long before the timeout."""
    began = time.monotonic()

    (fetched,) = world.run(replace(world.request("/reset"), timeout_s=60))

    assert (fetched.status, fetched.error) == (None, ErrorKind.RESET)
    assert time.monotonic() - began < 30


def test_fetcher_wait_ends_with_its_time(world: World) -> None:
    """Without an answer `wait` returns nothing when its own time is over."""
    world.fetcher.start(world.request("/silent"))

    assert world.fetcher.wait(0.01) == []
    assert world.fetcher.in_flight == 1


def test_fetcher_says_that_it_had_nothing_to_do(world: World) -> None:
    """A wait that nothing ends is idle: the loop had time for more requests."""
    world.fetcher.start(world.request("/silent"))

    world.fetcher.wait(0.05)

    assert world.fetcher.was_idle


def test_fetcher_wait_ends_when_a_watched_descriptor_is_readable(world: World) -> None:
    """A byte in a watched pipe ends `wait` long before its time, as often as it is there."""
    reader, writer = os.pipe()
    world.fetcher.watch(reader)
    world.fetcher.start(replace(world.request("/silent"), timeout_s=3600))
    os.write(writer, b"!")

    woken = [world.fetcher.wait(3600), world.fetcher.wait(3600)]

    os.close(reader)
    os.close(writer)
    assert woken == [[], []]


def test_fetcher_names_what_it_cancels(world: World) -> None:
    """Cancelling gives back every request in flight, and none of them comes back later."""
    requests = [world.request("/silent", flight=number) for number in range(3)]
    for request in requests:
        world.fetcher.start(request)

    cancelled = world.fetcher.cancel()

    assert cancelled == requests
    assert world.fetcher.in_flight == 0
    assert world.fetcher.wait(0) == []


def test_fetcher_works_on_after_a_cancel(world: World) -> None:
    """A cancelled request leaves nothing behind that the next one could trip over."""
    world.fetcher.start(world.request("/silent"))
    world.fetcher.wait(0.01)
    world.fetcher.cancel()

    (fetched,) = world.run(world.request("/page"))

    assert fetched.body == b"hello"


def test_fetcher_closes_twice_without_complaint(world: World) -> None:
    """Closing is safe with requests in flight, and safe again."""
    world.fetcher.start(world.request("/silent"))

    world.fetcher.close()
    world.fetcher.close()

    assert world.fetcher.in_flight == 0


def test_a_request_that_may_not_leave_is_not_sent(world: World) -> None:
    """It is asked once a connection to an address is open; it comes back, and others are sent."""
    asked = []
    addresses = set()

    def may_leave(request: Request, instant: float, address: str) -> bool:
        asked.append((request.url, instant))
        addresses.add(address)
        return not request.url.endswith("/page")

    world.fetcher.ask(may_leave)
    finished = world.run(world.request("/page"), world.request("/big"))
    sent = world.fetcher.sent()

    assert {answer.request.url: answer.error for answer in finished} == {
        world.origin + "/page": LocalError.HELD,
        world.origin + "/big": None,
    }
    assert addresses == {"127.0.0.1"}
    assert sorted(url for url, _ in asked) == [world.origin + "/big", world.origin + "/page"]
    ((left, left_at),) = sent
    assert left.url.endswith("/big")
    assert left_at >= next(instant for url, instant in asked if url == left.url)
