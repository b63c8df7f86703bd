"""The process that serves a web: it listens, takes orders from its parent, and dies with it.

Every host has an address of its own (127.0.0.2, 127.0.0.3, …) and all share one port, because that
is how the web looks to a crawler: hosts differ by name, not by port. Where the machine has no such
addresses, they are ports of 127.0.0.1. Nothing ever listens outside 127.0.0.0/8.

Started as `python -m mannerly.demo.server`, it speaks JSON lines with its parent: the first line it
reads is the web, the first it writes is where the hosts are; "log" is answered with all records.
The end of its input, or a new parent, is its own end. Use `DemoWeb` rather than this.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import resource
import signal
import socket
import sys
from contextlib import ExitStack
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from . import traps
from .connection import AccessLog, Connection, WallClock
from .host import DemoHost
from .pages import WebMap
from .server_config import ServerConfig
from .sites import CANARY, Feature, RobotsFile
from .wellknown import robots_reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sites import Site

BACKLOG = 512
PORT_ATTEMPTS = 50  # a port that is free on the first address may be taken on another
HEARTBEAT_S = 1.0
# A full collection over a long log would hold up arrivals for a tenth of a second, and a late stamp
# looks like a short gap. Young ones take less than a millisecond and find asyncio's own cycles.
YOUNG_ONLY = (2_000, 5, 1_000_000)
MAX_FILES = 65_536  # enough for every host and every client; some systems allow no "unlimited"


def open_sockets(count: int, port: int, first_address: str) -> list[socket.socket]:
    """Listening sockets for `count` hosts and, last, one for the canary on 127.0.0.1.

    Port 0 picks one that is free on all addresses; a port of the caller's choice must be.

    Raises:
        OSError: the port is taken.
        ValueError: an address outside 127.0.0.0/8.
    """
    first = IPv4Address(first_address)
    if not (first.is_loopback and (first + count).is_loopback):
        raise ValueError(f"{count} hosts from {first_address} on would leave 127.0.0.0/8")
    sockets = _open_addresses(first, count, port)
    sockets.append(_listen("127.0.0.1", 0))
    return sockets


def _open_addresses(first: IPv4Address, count: int, port: int) -> list[socket.socket]:
    for _ in range(PORT_ATTEMPTS):
        with ExitStack() as undo:
            try:
                lead = undo.enter_context(_listen(str(first), port))
                shared = lead.getsockname()[1]
                others = [
                    undo.enter_context(_listen(str(first + number), shared))
                    for number in range(1, count)
                ]
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    # Not Linux: only 127.0.0.1 exists, so hosts differ by port.
                    return [_listen("127.0.0.1", port and port + n) for n in range(count)]
                if error.errno != errno.EADDRINUSE or port:
                    raise
            else:
                undo.pop_all()
                return [lead, *others]
    raise OSError(errno.EADDRINUSE, f"no port is free on {count} addresses from {first} on")


def _listen(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def build_hosts(sites: Sequence[Site], netlocs: Sequence[str], canary: str) -> list[DemoHost]:
    """The hosts of a web, and last the canary; what takes long to make is made now."""
    origins = tuple(f"http://{netloc}" for netloc in netlocs)
    hosts = [
        DemoHost(site, WebMap(origins, own, canary), netloc=netloc)
        for own, (site, netloc) in enumerate(zip(sites, netlocs, strict=True))
    ]
    if any(Feature.BOMB in site.features for site in sites):
        traps.bomb()
    for host in hosts:
        if host.site.robots is RobotsFile.HUGE:
            robots_reply(host.site, host.web)
    return [*hosts, DemoHost(CANARY, WebMap((f"http://{canary}",), 0), netloc=canary)]


class _Orders(asyncio.Protocol):
    """The pipe from the parent: "log" asks for the log, its end is ours."""

    def __init__(self, log: AccessLog, finished: asyncio.Event) -> None:
        self._log = log
        self._finished = finished

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"log\n")):
            _tell([exchange.record() for exchange in self._log.exchanges])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._finished.set()


def _tell(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def _serve(hosts: list[DemoHost], sockets: list[socket.socket], log: AccessLog) -> None:
    loop = asyncio.get_running_loop()
    clock = WallClock()
    servers = [
        await loop.create_server(partial(Connection, host, log, clock), sock=listener)
        for host, listener in zip(hosts, sockets, strict=True)
    ]
    finished = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, finished.set)
    parent = os.getppid()
    await loop.connect_read_pipe(lambda: _Orders(log, finished), sys.stdin)
    *netlocs, canary = [host.netloc for host in hosts]
    _tell({"hosts": netlocs, "canary": canary})
    while not finished.is_set() and os.getppid() == parent:
        try:
            await asyncio.wait_for(finished.wait(), HEARTBEAT_S)
        except TimeoutError:
            log.flush()
    for server in servers:
        server.close()
    await log.close()


def main() -> None:
    """Serve the web that the first line of input describes, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops us
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if most == resource.RLIM_INFINITY else min(most, MAX_FILES)
    if files != resource.RLIM_INFINITY and files < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    order = ServerConfig.from_json(sys.stdin.readline())
    try:
        sockets = open_sockets(len(order.sites), order.port, order.first_address)
    except (OSError, ValueError) as error:
        _tell({"error": str(error)})
        return
    names = ["{}:{}".format(*listener.getsockname()) for listener in sockets]
    hosts = build_hosts(order.sites, names[:-1], names[-1])
    gc.set_threshold(*YOUNG_ONLY)
    if order.log_path is None:
        asyncio.run(_serve(hosts, sockets, AccessLog()))
        return
    with Path(order.log_path).open("a", encoding="utf-8") as file:
        asyncio.run(_serve(hosts, sockets, AccessLog(file)))


if __name__ == "__main__":
    main()
