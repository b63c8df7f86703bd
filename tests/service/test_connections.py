"""Connections that say nothing are closed, and never take the place of those that do."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest
from starlette.responses import PlainTextResponse
from tests.service.running import ServiceProcess
from uvicorn.server import ServerState

from mannerly.politeness.testing import FakeClock
from mannerly.service.connections import (
    FEWEST_CONNECTIONS,
    HEADERS_S,
    MOST_CONNECTIONS,
    QUIET_S,
    ClientConnection,
    RepeatedLines,
    most_connections,
    web_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

HALF = b"GET / HTTP/1.1\r\nHost: a"
WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Timer:
    """A call that comes later, unless it is cancelled."""

    def __init__(self, at: float, call: Callable[[], object]) -> None:
        self.at, self.call = at, call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """An event loop whose time the test turns; its tasks begin and are never continued."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.clock.now()

    def call_later(self, delay_s: float, call: Callable[[], object]) -> Timer:
        self.timers.append(Timer(self.time() + delay_s, call))
        return self.timers[-1]

    def create_task(self, coroutine: Coroutine[Any, Any, Any], **_: object) -> Any:
        coroutine.close()
        return _Task()

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        due = [each for each in self.timers if each.at <= self.time() and not each.is_cancelled]
        self.timers = [each for each in self.timers if each not in due]
        for timer in due:
            timer.call()


class _Task:
    def add_done_callback(self, _call: object) -> None: ...


class Transport:
    """The transport of a connection."""

    def __init__(self) -> None:
        self.is_aborted = False

    def get_extra_info(self, _name: str, default: object = None) -> object:
        return default

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_aborted = True


class Server:
    """A server for a few connections."""

    def __init__(self, connections: int = 3) -> None:
        app = PlainTextResponse("ok")
        self.config = web_config(app, log_level="critical", connections=connections)
        self.state, self.loop = ServerState(), Loop()

    def opened(self, data: bytes = b"") -> Transport:
        """Return the transport of a new connection that has sent this."""
        made = ClientConnection(self.config, self.state, {}, self.loop)  # type: ignore[arg-type]
        transport = Transport()
        made.connection_made(transport)  # type: ignore[arg-type]
        if data:
            made.data_received(data)
        return transport


@pytest.mark.parametrize(("data", "is_closed"), [(b"", True), (HALF, True), (WHOLE, False)])
def test_headers_have_to_arrive_in_time(data: bytes, is_closed: bool) -> None:
    """A request that is being answered takes as long as it takes."""
    server = Server()
    transport = server.opened(data)
    server.loop.wait(HEADERS_S - 0.1)
    before = transport.is_aborted

    server.loop.wait(0.2)

    assert not before
    assert transport.is_aborted is is_closed


def test_bytes_one_by_one_do_not_prolong_the_time() -> None:
    """The time is that of the headers, not of their parts."""
    server = Server()
    made = ClientConnection(server.config, server.state, {}, server.loop)  # type: ignore[arg-type]
    transport = Transport()
    made.connection_made(transport)  # type: ignore[arg-type]

    for byte in HALF[:11]:
        made.data_received(bytes([byte]))
        server.loop.wait(1.0)

    assert transport.is_aborted


def test_one_connection_too_many_takes_the_place_of_the_one_that_waits_longest() -> None:
    """Requests that are being answered are left alone."""
    server = Server(connections=3)
    made = []
    for data in (WHOLE, HALF, HALF):
        made.append(server.opened(data))
        server.loop.wait(1.0)

    newest = server.opened()

    assert [each.is_aborted for each in (*made, newest)] == [False, True, False, False]
    assert len(server.state.connections) == 3


def test_one_connection_too_many_is_closed_if_all_are_being_answered() -> None:
    """No answer that is under way is cut off."""
    server = Server(connections=2)
    made = [server.opened(WHOLE) for _ in range(2)]

    newest = server.opened()

    assert [each.is_aborted for each in (*made, newest)] == [False, False, True]


def test_number_of_connections_fits_the_descriptors_of_the_process() -> None:
    """There are some for everything else, whatever the limit is."""
    assert FEWEST_CONNECTIONS <= most_connections() <= MOST_CONNECTIONS


def test_lines_that_repeat_are_written_once_in_a_while() -> None:
    """With the number of those that were left out; other lines are written at once."""
    lines = RepeatedLines()

    def is_written(text: str, at: float) -> str | None:
        record = logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None)
        record.created = 1000.0 + at
        return record.getMessage() if lines.filter(record) else None

    said = [is_written("no descriptor", 0.01 * each) for each in range(500)]

    assert said == ["no descriptor", *[None] * 499]
    assert is_written("another", 6.0) == "another"
    assert is_written("no descriptor", QUIET_S + 1.0) == (
        "no descriptor (and 499 more times since the last such line)"
    )


@pytest.mark.processes
def test_service_answers_beside_half_requests(tmp_path: Path) -> None:
    """More of them than it has connections for, on a real socket."""
    with ServiceProcess(tmp_path / "jobs", descriptors=160) as service:
        half = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(200)]
        for each in half:
            each.sendall(HALF)

        answers = [service.call("GET", "/api/jobs")[0] for _ in range(3)]

        for each in half:
            each.close()
    assert answers == [200, 200, 200]
