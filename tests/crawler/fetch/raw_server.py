"""A server that may say anything: real sockets on 127.0.0.0/8, one thread a connection.

A handler gets the connection and the path that was asked for. It writes whatever it likes and
returns whether the connection stays open. The server's own counts are the judge of a test.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.harness.arrivals import next_arrival, note_arrivals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    Handler = Callable[[socket.socket, str], bool]


def answer(body: bytes = b"hello", status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def says(reply: bytes, *, keeps_open: bool = True) -> Handler:
    """A handler that sends the same bytes to everyone."""

    def handler(connection: socket.socket, _path: str) -> bool:
        connection.sendall(reply)
        return keeps_open

    return handler


def routes(table: Mapping[str, bytes]) -> Handler:
    """A handler that answers by path; other paths are 404."""

    def handler(connection: socket.socket, path: str) -> bool:
        connection.sendall(table.get(path, answer(b"", "404 Not Found")))
        return True

    return handler


def reset(connection: socket.socket) -> bool:
    """End a connection with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def hold(connection: socket.socket) -> bool:
    """Say nothing more until the client goes away."""
    while connection.recv(65536):
        pass
    return False


class RawServer:
    """Listens on a free port; use as a context manager."""

    def __init__(
        self, handler: Handler, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._tls = tls
        self._listener = socket.create_server((address, 0), backlog=128)
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        note_arrivals(self._listener)
        self.connections = 0
        self.arrivals: list[float] = []  # of requests, by `time.monotonic`
        self.heads: list[str] = []
        self.resumed: list[bool] = []
        self.address = address
        self.port: int = self._listener.getsockname()[1]

    def url(self, path: str = "/", host: str | None = None) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{host or self.address}:{self.port}{path}"

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with self._lock:
                    self.connections += 1
                    self._open.add(connection)
                self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        if self._tls:
            with self._lock:
                self._open.discard(connection)
                connection = self._tls.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
                self._open.add(connection)
        with suppress(OSError):
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
                self.resumed.append(bool(connection.session_reused))
            self._talk(connection)
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _talk(self, connection: socket.socket) -> None:
        buffer = b""
        while True:
            arrived_at = time.monotonic() if buffer else next_arrival(connection)
            while b"\r\n\r\n" not in buffer:
                received = connection.recv(65536)
                if not received:
                    return
                buffer += received
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            self.arrivals.append(arrived_at)
            self.heads.append(head.decode("latin-1"))
            if not self._handler(connection, head.split(b" ")[1].decode("latin-1")):
                return
