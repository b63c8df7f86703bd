"""Open the listening sockets of a demonstration web, on loopback addresses only.

Where possible every host has an address of its own (127.0.0.2, 127.0.0.3, …) and all share one
port: on the real web, too, hosts differ by name and not by port. Linux and Windows accept every
address of 127.0.0.0/8. macOS and the BSDs have 127.0.0.1 alone, and there each host is a port of
it. A crawler keeps one pace per host and port, so both layouts test the same promises.

A request is noted at the instant at which it arrived by the kernel's clock, however late the server
gets to read it. On a busy machine a server may read one request late and the next one at once: by
its own clock the gap between them would look too small, and a crawler would be blamed for it. Linux
notes when bytes arrive at a TCP socket (SO_TIMESTAMPNS); on loopback that is the moment in which
they were sent. On other systems an arrival is the moment in which it is read.

This module knows nothing of sites or HTTP.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
import time
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address

_OPTION = 35  # SO_TIMESTAMPNS of Linux, also the type of the message; Python does not name it
_SPACE = socket.CMSG_SPACE(16) if hasattr(socket, "CMSG_SPACE") else 0
_TIMESPEC = struct.Struct("qq")


class Arrived(bytes):
    """Bytes that were received, with the monotonic instant at which the last of them arrived."""

    at: float


class StampingSocket(socket.socket):
    """A socket whose `recv` returns `Arrived` bytes, and whose `accept` returns such sockets.

    asyncio calls these two methods and passes the bytes on as they are.
    """

    def accept(self) -> tuple[StampingSocket, object]:
        """Accept a connection; its arrivals are noted from the first byte on."""
        accepted, address = super().accept()
        return StampingSocket(fileno=accepted.detach()), address

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive bytes, with the instant of their arrival."""
        data, messages, _, _ = self.recvmsg(size, _SPACE, flags)
        received = Arrived(data)
        received.at = now = time.monotonic()
        for level, kind, content in messages:
            if (level, kind) == (socket.SOL_SOCKET, _OPTION) and len(content) == _TIMESPEC.size:
                seconds, nanoseconds = _TIMESPEC.unpack(content)
                received.at = min(now, now - (time.time() - seconds - nanoseconds / 1e9))
        return received


def stamping(listener: socket.socket) -> socket.socket:
    """Return a listening socket that notes arrivals, where the system can; else the same one."""
    if sys.platform == "linux":
        with suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, _OPTION, 1)
            return StampingSocket(fileno=listener.detach())
    return listener


ONLY_ADDRESS = IPv4Address("127.0.0.1")
BACKLOG = 512
PORT_ATTEMPTS = 50  # a port that is free on the first address may be taken on another
MAX_PORT = 65_535
# Windows answers EACCES for a port that another program holds, or that the system reserves.
_TAKEN = frozenset({errno.EADDRINUSE, errno.EACCES})
# On Windows SO_REUSEADDR would let two programs listen on one port at the same time; the option
# with the opposite meaning exists only there.
_REUSE = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)


def open_sockets(count: int, port: int, first_address: str) -> list[socket.socket]:
    """Return listening sockets for `count` hosts, then one for the canary on 127.0.0.1.

    Args:
        count: number of hosts.
        port: the port of every host, or, where only 127.0.0.1 exists, of the first host, followed
            by the next `count - 1` ports. 0 picks free ports.
        first_address: of the first host; the next host has the next address.

    Raises:
        OSError: a port is taken.
        ValueError: an address would lie outside 127.0.0.0/8, or a port above 65,535.
    """
    first = IPv4Address(first_address)
    if not (first.is_loopback and (first + count).is_loopback):
        raise ValueError(f"{count} hosts from {first_address} on would leave 127.0.0.0/8")
    with ExitStack() as opened:
        try:
            sockets = _open_addresses(opened, first, count, port)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            opened.close()  # the first address may have been 127.0.0.1 itself: free its port
            sockets = _open_ports(opened, count, port)
        sockets.append(opened.enter_context(_listen(ONLY_ADDRESS, 0)))
        opened.pop_all()
    return sockets


def _open_addresses(
    opened: ExitStack, first: IPv4Address, count: int, port: int
) -> list[socket.socket]:
    """One address per host and the same port on all of them."""
    for _ in range(PORT_ATTEMPTS):
        try:
            lead = opened.enter_context(_listen(first, port))
            shared = lead.getsockname()[1]
            return [
                lead,
                *(opened.enter_context(_listen(first + n, shared)) for n in range(1, count)),
            ]
        except OSError as error:
            if error.errno not in _TAKEN or port:
                raise
            opened.close()
    raise OSError(errno.EADDRINUSE, f"no port is free on {count} addresses from {first} on")


def _open_ports(opened: ExitStack, count: int, port: int) -> list[socket.socket]:
    """One port of 127.0.0.1 per host: consecutive from `port` on, or any if that is 0."""
    if port and port + count - 1 > MAX_PORT:
        raise ValueError(f"{count} hosts need the ports from {port} on, which end at {MAX_PORT}")
    return [
        opened.enter_context(_listen(ONLY_ADDRESS, port + n if port else 0)) for n in range(count)
    ]


def _listen(address: IPv4Address, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, _REUSE, 1)
        listener.bind((str(address), port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{address}:{port}: {error.strerror}") from error
    return stamping(listener)
