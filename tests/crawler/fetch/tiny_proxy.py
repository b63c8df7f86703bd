"""A real HTTP proxy in a few lines: forwards GET requests, opens tunnels for CONNECT.

It sends everything to one server, whatever name was asked for, so that a test can use names that
do not resolve: only the proxy is asked for them.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from tests.crawler.fetch.raw_server import RawServer


def proxy_to(server: RawServer) -> RawServer:
    """Return a proxy in front of this server; its `heads` are the requests that it got."""

    def handler(connection: socket.socket, asked: str) -> bool:
        with socket.create_connection((server.address, server.port)) as onward:
            if "://" in asked:
                parts = urlsplit(asked)
                head = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
                onward.sendall(head.encode("ascii"))
                connection.sendall(onward.recv(65536))  # a test's answer fits into one piece
                return True
            connection.sendall(b"HTTP/1.1 200 Connection established\r\nVia: tiny\r\n\r\n")
            back = threading.Thread(target=relay, args=(onward, connection), daemon=True)
            back.start()
            relay(connection, onward)
            back.join(5)
        return False

    return RawServer(handler)


def relay(source: socket.socket, target: socket.socket) -> None:
    """Pass on all bytes, then the end."""
    with suppress(OSError):
        while received := source.recv(65536):
            target.sendall(received)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
