"""The server process of a demonstration web: it serves all hosts until its parent is done.

Started as `python -P -m mannerly.demo.server`, it exchanges JSON lines with its parent over stdin
and stdout. The first line it reads is a `ServerConfig`; the first line it writes names the hosts.
Every further line it reads is a request for the log, answered with all records so far. It ends
when its input ends or its parent is gone. Use `DemoWeb`, which starts and stops it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from . import traps
from .connection import AccessLog, Connection, WallClock
from .host import DemoHost
from .pages import WebMap
from .sites import CANARY, Feature, RobotsFile, ServerConfig
from .sockets import open_sockets
from .wellknown import robots_reply

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from .sites import Site

HEARTBEAT_S = 1.0
# A full garbage collection over a long log takes a tenth of a second. Requests that arrive in that
# time are logged late, and the gap to the next one looks too short. Collections of young objects
# take less than a millisecond and find the reference cycles that asyncio makes.
YOUNG_ONLY = (2_000, 5, 1_000_000)
# Open files to ask for: enough for every host and client, else the OPEN_MAX of macOS, which is
# the most that some of its versions grant.
FILE_LIMITS = (65_536, 10_240)


def build_hosts(sites: Sequence[Site], netlocs: Sequence[str], canary: str) -> list[DemoHost]:
    """Return the hosts of a web, then the canary; slow content is built now, not on request."""
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


def _tell(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _answer_parent(loop: asyncio.AbstractEventLoop, log: AccessLog, done: asyncio.Event) -> None:
    """Write the log for every line of input; set `done` at the end of the input.

    Runs in a thread: the event loop of Windows cannot watch a standard stream. It reads the file
    descriptor itself, because a thread inside `sys.stdin` would hold a lock when Python exits.
    """
    descriptor = sys.stdin.fileno()
    with suppress(RuntimeError):  # the loop has ended for another reason
        while data := os.read(descriptor, 4_096):
            for _ in range(data.count(b"\n")):
                loop.call_soon_threadsafe(_tell_log, log)
        loop.call_soon_threadsafe(done.set)


def _tell_log(log: AccessLog) -> None:
    _tell([exchange.record() for exchange in log.exchanges])


async def _serve(hosts: list[DemoHost], sockets: list[socket.socket], log: AccessLog) -> None:
    loop = asyncio.get_running_loop()
    clock = WallClock()
    servers = [
        await loop.create_server(partial(Connection, host, log, clock), sock=listener)
        for host, listener in zip(hosts, sockets, strict=True)
    ]
    done = asyncio.Event()
    with suppress(NotImplementedError):  # Windows: there SIGTERM ends the process at once
        loop.add_signal_handler(signal.SIGTERM, done.set)
    parent = os.getppid()
    Thread(target=_answer_parent, args=(loop, log, done), daemon=True).start()
    *netlocs, canary = [host.netloc for host in hosts]
    _tell({"hosts": netlocs, "canary": canary})
    # The input does not end with the parent if another child of it has inherited the pipe.
    while not done.is_set() and os.getppid() == parent:
        try:
            await asyncio.wait_for(done.wait(), HEARTBEAT_S)
        except TimeoutError:
            log.flush()
    for server in servers:
        server.close()
    await log.close()


def _raise_file_limit() -> None:
    """Allow as many open connections as the system permits; too few of them is not an error."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in FILE_LIMITS:
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return


def main() -> None:
    """Serve the web that the first line of input describes, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops us
    _raise_file_limit()
    try:
        config = ServerConfig.from_json(sys.stdin.readline())
        sockets = open_sockets(len(config.sites), config.port, config.first_address)
        names = ["{}:{}".format(*listener.getsockname()) for listener in sockets]
        hosts = build_hosts(config.sites, names[:-1], names[-1])
        file = config.log_path and Path(config.log_path).open("a", encoding="utf-8")  # noqa: SIM115
    except (OSError, ValueError) as error:
        _tell({"error": str(error)})
        return
    gc.set_threshold(*YOUNG_ONLY)
    with file or nullcontext() as opened:
        asyncio.run(_serve(hosts, sockets, AccessLog(opened)))


if __name__ == "__main__":
    main()
