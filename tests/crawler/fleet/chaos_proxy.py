"""A TCP proxy between a worker and its server that can be cut, in one direction or both, or slow.

Connections stay open while it is cut, as in a network that loses packets: nothing arrives, and no
end is seen.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from enum import Enum
from typing import Self

PIECE = 65_536


class Way(Enum):
    """What the proxy does with bytes."""

    OPEN = "open"
    CUT = "cut"  # nothing passes
    DEAF = "deaf"  # the server hears the worker, its answers are lost
    MUTE = "mute"  # the worker hears nothing new: what it says is lost
    SLOW = "slow"  # everything takes `delay_s` longer


class ChaosProxy:
    """Forwards 127.0.0.1:`port` to another port of this machine."""

    def __init__(self, target: int, delay_s: float = 0.3) -> None:
        self.way = Way.OPEN
        self._target, self._delay_s = target, delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.drop_connections()

    def heal(self) -> None:
        """Let everything pass again; connections of before are broken, as routers do."""
        self.drop_connections()
        self.way = Way.OPEN

    def drop_connections(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except ConnectionRefusedError:
                client.close()
                continue
            except OSError:
                return
            self._open += [client, server]
            for source, sink, lost in (
                (client, server, (Way.CUT, Way.MUTE)),
                (server, client, (Way.CUT, Way.DEAF)),
            ):
                arguments = (source, sink, lost)
                threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, lost: tuple[Way, ...]) -> None:
        with suppress(OSError):
            while data := source.recv(PIECE):
                if self.way is Way.SLOW:
                    time.sleep(self._delay_s)
                if self.way not in lost:
                    sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
