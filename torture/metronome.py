"""How late a server's notes are: a thread asks it many times a second, and compares the instants.

A server that is scheduled late, or busy with another answer, notes a request late, and the gap to
the next one looks too short. Both sides read the same clock, so what was sent at one instant and
noted at another tells by how much. The judge adds that to its tolerance, and nothing else.
"""

from __future__ import annotations

import socket
import threading
import time
from bisect import bisect_left, bisect_right
from contextlib import suppress
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Self

from mannerly.demo import Site

if TYPE_CHECKING:
    from mannerly.demo import DemoWeb

PERIOD_S = 0.01
NEAR_S = 0.25  # how long ago a busy moment may have been, between two beats
NAME = "metronome"
SITE = Site(name=NAME, pages=1, disallow=("/",))  # every web that is judged has this host, too


class Metronome:
    """Use as a context manager within that of the web; `lag_s` is known after its end."""

    def __init__(self, web: DemoWeb) -> None:
        self._web = web
        self._sent: dict[str, float] = {}
        self._noted: list[float] = []
        self._lags: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        looked_until = inf
        for record in self._web.log_of(NAME):
            if record.path in self._sent:
                sent = self._sent[record.path]
                # Between two beats nothing is seen: as much may have been late there, too.
                unseen_s = max(0.0, sent - looked_until)
                looked_until = record.t
                self._noted.append(record.t)
                self._lags.append(max(record.t - sent, unseen_s))

    def lag_s(self, instant: float) -> float:
        """Return by how much a request may have been late that was noted at this instant."""
        first = bisect_left(self._noted, instant - NEAR_S)
        last = bisect_right(self._noted, instant + NEAR_S)
        return max(self._lags[max(0, first - 1) : last + 1], default=0.0)

    def _beat(self) -> None:
        """Ask on a new connection each time: accepting one takes the server a turn more."""
        host, _, port = self._web.host(NAME).rpartition(":")
        for number in count(1):
            if self._is_over.wait(PERIOD_S):
                return
            path = f"/{number}"
            with suppress(OSError), socket.create_connection((host, int(port)), 5.0) as connection:
                self._sent[path] = time.monotonic()
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
                connection.recv(1024)
