"""The process of a live page, requests to it over plain sockets, and what holds them up."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from tests.harness.sites import free_port
from tests.harness.waiting import PATIENCE_S, eventually

from mannerly.crawler.runtime.child import Channel, Child
from mannerly.live.meter import Limits
from mannerly.service import dashboard
from mannerly.service.beside import PROCESS, PageOrder, PageReady

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def page_of(location: str) -> Iterator[tuple[Child, str]]:
    """The process of a page, as a crawl starts it; yield it and its address."""
    child = Child(PROCESS, _order(location))
    try:
        ready: PageReady = child.channel.wait()
        yield child, ready.address
    finally:
        ended(child)


@contextmanager
def page_within(location: str) -> Iterator[tuple[Channel, str]]:
    """The same in a thread, for tests that change what it does; yield the crawl's end of it."""
    ours, theirs = map(Channel, socket.socketpair())
    thread = threading.Thread(target=dashboard.main, args=(theirs,), daemon=True)
    thread.start()
    ours.send(_order(location))
    try:
        ready: PageReady = ours.wait()
        yield ours, ready.address
    finally:
        ours.close()
        thread.join(PATIENCE_S)
        theirs.close()


def _order(location: str) -> PageOrder:
    return PageOrder(location, "c", Limits(), "127.0.0.1", free_port(), (), None)


def ended(child: Child) -> int | None:
    """Do what a crawl does at its end; return the exit status of the page."""
    child.channel.close()
    child.end(PATIENCE_S)
    return child.exit_status


def authorization(address: str) -> dict[str, str]:
    """Return the header with the token that a printed address carries."""
    token = urlsplit(address).fragment.removeprefix("token=")
    return {"Authorization": f"Bearer {token}"} if token else {}


class Answer(NamedTuple):
    """The answer to a request; without a status the connection was closed before there was one."""

    status: int | None
    kind: str = ""
    body: bytes = b""
    is_whole: bool = False


class Asked:
    """A request that was sent; its answer is read when it is asked for."""

    def __init__(self, address: str, path: str, method: str = "GET") -> None:
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
        self._connection.request(method, path, headers=authorization(address))
        self._response: HTTPResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def first_line(self) -> bytes:
        """Return the first line of the body, and keep the rest for `answer`."""
        self._response = self._connection.getresponse()
        return self._response.readline()

    def answer(self) -> Answer:
        """Wait for the end of the answer."""
        with self:
            return self._read()

    def _read(self) -> Answer:
        try:
            response = self._response or self._connection.getresponse()
        except (HTTPException, OSError):
            return Answer(None)
        with response:
            kind = response.headers.get_content_type()
            try:
                return Answer(response.status, kind, response.read(), is_whole=True)
            except IncompleteRead as cut:
                return Answer(response.status, kind, cut.partial)
            except OSError:
                return Answer(response.status, kind)


def never_reading(address: str, path: str, times: int) -> socket.socket:
    """Send a request many times, one after the other, and read no answer."""
    place = urlsplit(address)
    opened = socket.create_connection((str(place.hostname), place.port or 80))
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode() * times)
    return opened


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, by any of its threads."""
    found = []
    with suppress(FileNotFoundError):  # it, or one of its threads, has just ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += [int(each) for each in (thread / "children").read_text().split()]
    return found


def page_process(crawl: int) -> int:
    """Return the process of a crawl's live page."""
    return _running(crawl, b"mannerly.service.dashboard")[0]


def frozen_report(address: str, path: str, server: int) -> Asked:
    """Ask for a report, and freeze the process that writes it: the answer is under way."""
    asked = Asked(address, path)
    # A child that is frozen before it runs its program would freeze the server, too (vfork).
    eventually(lambda: _running(server, b"report"))
    for pid in _running(server, b"report"):
        os.kill(pid, signal.SIGSTOP)
    return asked


def _running(parent: int, argument: bytes) -> list[int]:
    """Return the children of a process whose command has an argument."""
    found = []
    for pid in children(parent):
        with suppress(OSError):  # it has just ended
            if argument in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                found.append(pid)
    return found
