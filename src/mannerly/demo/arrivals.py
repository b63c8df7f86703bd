"""Note when a request arrived by the kernel's clock, however late the server gets to read it.

On a busy machine a server may read one request late and the next one at once. By its own clock the
gap between them would look too small, and a crawler would be blamed for it. Linux notes when bytes
arrive at a TCP socket (SO_TIMESTAMPNS); on loopback that is the moment in which they were sent.
Other systems do not: there an arrival is the moment in which it is read.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from contextlib import suppress

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
