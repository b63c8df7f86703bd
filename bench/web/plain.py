"""A file server without dependencies, used where nginx is not installed.

    python -m bench.web.plain HOSTS_DIRECTORY PORT [--cold] [--tls CHAIN KEY]

One process, one callback a request, files read anew each time (the system's page cache is quicker
than a cache of ours would be worth). HTTP/1.1 with keep-alive and pipelining, GET and HEAD, nothing
else; loopback only. Several times as fast as the fastest crawler that is measured against it.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import cast

TYPES = {".html": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8"}
LONGEST_HEAD = 64 * 1024


class Connection(asyncio.Protocol):
    """The protocol of one client connection."""

    def __init__(self, root: str, *, is_cold: bool) -> None:
        self._root = root
        self._is_cold = is_cold
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not transport.get_extra_info("peername")[0].startswith("127."):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            self._answer(head.decode("latin-1"))
        if len(self._received) > LONGEST_HEAD:
            self._transport.abort()

    def _answer(self, head: str) -> None:
        request, *lines = head.split("\r\n")
        method, _, rest = request.partition(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        is_last = self._is_cold or headers.get("connection", "").lower() == "close"
        found = self._find(headers.get("host", ""), rest.partition(" ")[0])
        status, body = ("200 OK", found[0]) if found else ("404 Not Found", b"nothing here\n")
        content_type = found[1] if found else TYPES[".txt"]
        answer = (
            f"HTTP/1.1 {status}\r\nServer: plain\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: {'close' if is_last else 'keep-alive'}\r\n"
        )
        self._transport.write(f"{answer}\r\n".encode() + (b"" if method == "HEAD" else body))
        if is_last:
            self._transport.close()

    def _find(self, host: str, target: str) -> tuple[bytes, str] | None:
        path = target.partition("?")[0]
        name = f"{path}index.html" if path.endswith("/") else path
        host = host.partition(":")[0]
        if "/." in f"/{host}{name}":
            return None
        try:
            with open(f"{self._root}/{host}{name}", "rb") as file:  # noqa: PTH123 - the hot path
                return file.read(), TYPES.get(name[name.rfind(".") :], "application/octet-stream")
        except OSError:
            return None


async def serve(root: str, port: int, *, is_cold: bool, tls: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(root, is_cold=is_cold), "0.0.0.0", port, backlog=4096, ssl=tls
    )
    async with server:
        await server.serve_forever()


def main(arguments: list[str]) -> None:
    parser = ArgumentParser(prog="python -m bench.web.plain")
    parser.add_argument("root", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--cold", action="store_true", help="close after every answer")
    parser.add_argument("--tls", nargs=2, metavar=("CHAIN", "KEY"))
    given = parser.parse_args(arguments)
    context = None
    if given.tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*given.tls)
    asyncio.run(serve(str(given.root), given.port, is_cold=given.cold, tls=context))


if __name__ == "__main__":
    main(sys.argv[1:])
