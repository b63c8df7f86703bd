"""The instant at which a request arrived: the kernel notes it, however late a test reads it.

A server that waits for a processor looks at its clock too late, and then the gap to the next
request seems too short.
"""

from __future__ import annotations

import socket
import struct
import time

_STAMPS = 35  # SO_TIMESTAMPNS of Linux, which Python does not name
_STAMP = struct.Struct("@qq")


def note_arrivals(listening: socket.socket) -> None:
    """Have the arrivals noted on all connections that a socket accepts."""
    listening.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)


def next_arrival(connection: socket.socket) -> float:
    """Wait for bytes, and return the `time.monotonic` of their arrival. They stay to be read.

    With TLS the clock is read at once.
    """
    if type(connection) is not socket.socket:
        return time.monotonic()
    _, notes, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(_STAMP.size), socket.MSG_PEEK)
    for level, kind, stamp in notes:
        if (level, kind) == (socket.SOL_SOCKET, _STAMPS):
            seconds, nanoseconds = _STAMP.unpack(stamp)
            return time.monotonic() - (time.time() - seconds - nanoseconds / 1e9)
    return time.monotonic()
