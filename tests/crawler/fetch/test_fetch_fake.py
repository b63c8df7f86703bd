"""The fake fetcher moves a virtual clock and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock

from mannerly.crawler.model import LocalError, Request
from mannerly.politeness.model import ErrorKind


def request(number: int, timeout_s: float = 60.0) -> Request:
    return Request(f"http://example.com/{number}", "example.com", timeout_s, flight=number)


def test_fake_jumps_to_the_next_answer() -> None:
    """`wait` moves the clock to the next answer, and no further than its own timeout."""
    clock = VirtualClock(100.0)
    fetcher = FakeFetcher(clock, lambda request: FakeReply(latency_s=float(request.flight)))
    for number in (3, 1, 2):
        fetcher.start(request(number))

    log = []
    for timeout_s in (0.5, 10, 10, 10, 10):
        tags = [fetched.request.flight for fetched in fetcher.wait(timeout_s)]
        log.append((clock.now, tags))

    assert log == [(100.5, []), (101.0, [1]), (102.0, [2]), (103.0, [3]), (113.0, [])]


def test_fake_never_turns_the_clock_back() -> None:
    """An answer that became due while time passed elsewhere comes back at the present."""
    clock = VirtualClock()
    fetcher = FakeFetcher(clock, {})
    fetcher.start(request(1))
    clock.advance(50)

    (fetched,) = fetcher.wait(10)

    assert (clock.now, fetched.status) == (50, 404)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_fake_times_out_like_a_real_server() -> None:
    """A reply slower than the request's timeout is a timeout at that very moment."""
    clock = VirtualClock()
    fetcher = FakeFetcher(clock, lambda _: FakeReply(latency_s=30))
    fetcher.start(request(1, timeout_s=20))

    (fetched,) = fetcher.wait(100)

    assert (clock.now, fetched.error, fetched.latency_s) == (20, ErrorKind.TIMEOUT, 20)


@pytest.mark.parametrize("error", [ErrorKind.RESET, LocalError.BLOCKED_ADDRESS])
def test_fake_plays_errors(error: ErrorKind | LocalError) -> None:
    """An error in the script comes back in place of a status."""
    fetcher = FakeFetcher(VirtualClock(), lambda _: FakeReply(error=error, detail="why"))
    fetcher.start(request(1))

    (fetched,) = fetcher.wait(1)

    assert (fetched.status, fetched.error, fetched.detail) == (None, error, "why")


@given(st.lists(st.floats(0, 100), max_size=50), st.floats(0.1, 10))
def test_fake_is_in_order_and_complete(latencies: list[float], timeout_s: float) -> None:
    """Answers come in the order of their instants, ties in the order of start, none is lost."""
    clock = VirtualClock()
    fetcher = FakeFetcher(clock, lambda request: FakeReply(latency_s=latencies[request.flight]))
    for number in range(len(latencies)):
        fetcher.start(request(number, timeout_s=1000))

    order = []
    while fetcher.in_flight:
        order += [fetched.request.flight for fetched in fetcher.wait(timeout_s)]

    assert order == sorted(range(len(latencies)), key=lambda number: (latencies[number], number))
