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
from typing import TYPE_CHECKING, Self

from mannerly.demo import Site

if TYPE_CHECKING:
    from mannerly.demo import DemoWeb

PERIOD_S = 0.02
NEAR_S = 0.05
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
        for record in self._web.log_of(NAME):
            if record.path in self._sent:
                self._noted.append(record.t)
                self._lags.append(record.t - self._sent[record.path])

    def lag_s(self, instant: float) -> float:
        """Return by how much a request was late that was noted at this instant."""
        first = bisect_left(self._noted, instant - NEAR_S)
        last = bisect_right(self._noted, instant + NEAR_S)
        return max(self._lags[max(0, first - 1) : last + 1], default=0.0)

    def _beat(self) -> None:
        host, _, port = self._web.host(NAME).rpartition(":")
        number = 0
        while not self._is_over.is_set():
            with suppress(OSError), socket.create_connection((host, int(port)), 5.0) as connection:
                while not self._is_over.is_set():
                    number += 1
                    path = f"/{number}"
                    self._sent[path] = time.monotonic()
                    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
                    if not connection.recv(65536):
                        break
                    time.sleep(PERIOD_S)
