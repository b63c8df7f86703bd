"""The DevTools protocol over a pair of pipes: messages in JSON, each ended by a NUL.

A command has a number, and its reply comes back to the function that was given with it. All else is
an event, with the session that it belongs to. Nothing here blocks: what does not fit into the pipe
waits in memory, and `flush` goes on.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Values: TypeAlias = dict[str, Any]
    Then: TypeAlias = Callable[[Values | None], None]

READ_BYTES = 1 << 20
LONGEST_MESSAGE = 256 << 20  # bytes; a page cannot make the crawl hold more


class Event(NamedTuple):
    """Something that happened in the browser."""

    method: str
    values: Values
    session: str  # empty: the browser itself


class BrowserClosed(Exception):  # noqa: N818 - expected or not
    """The browser has ended, or says what cannot be read."""


class DevTools:
    """One end of the pipes. `to_browser` and `from_browser` are descriptors that it owns."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        os.set_blocking(to_browser, False)
        os.set_blocking(from_browser, False)
        self._number = 0
        self._waiting: dict[int, Then] = {}
        self._unsent = bytearray()
        self._received: list[bytes] = []  # parts of a message that is not complete
        self._size = 0

    @property
    def reading(self) -> int:
        """Return the descriptor that is readable when something came."""
        return self._in

    @property
    def descriptors(self) -> tuple[int, int]:
        """Return both descriptors."""
        return self._in, self._out

    @property
    def writing(self) -> int | None:
        """Return the descriptor to wait for until it takes more; None: all was sent."""
        return self._out if self._unsent else None

    def send(
        self,
        method: str,
        values: Values | None = None,
        session: str = "",
        then: Then | None = None,
    ) -> None:
        """Send a command; `then` gets its result, or None if it failed.

        Raises:
            BrowserClosed: the browser has ended.
        """
        self._number += 1
        message: Values = {"id": self._number, "method": method}
        if values:
            message["params"] = values
        if session:
            message["sessionId"] = session
        if then is not None:
            self._waiting[self._number] = then
        self._unsent += msgspec.json.encode(message) + b"\0"
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the pipe takes it.

        Raises:
            BrowserClosed: the browser has ended.
        """
        try:
            while self._unsent:
                sent = os.write(self._out, self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            return
        except OSError as error:
            raise BrowserClosed(str(error)) from None

    def receive(self) -> list[Event]:
        """Return the events that have come; replies went to those who wait for them.

        Raises:
            BrowserClosed: the browser has ended.
        """
        try:
            data = os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise BrowserClosed(str(error)) from None
        if not data:
            raise BrowserClosed("the browser has ended")
        *ended, rest = data.split(b"\0")
        events = []
        for part in ended:
            self._received.append(part)
            message = b"".join(self._received)
            self._received, self._size = [], 0
            event = self._read(message)
            if event is not None:
                events.append(event)
        self._received.append(rest)
        self._size += len(rest)
        if self._size > LONGEST_MESSAGE:
            raise BrowserClosed("a message of the browser is too long")
        return events

    def _read(self, text: bytes) -> Event | None:
        try:
            message = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            return None  # it has half a surrogate pair, for example
        number = message.get("id")
        if number is None:
            return Event(
                message.get("method", ""), message.get("params", {}), message.get("sessionId", "")
            )
        then = self._waiting.pop(number, None)
        if then is not None:
            then(message.get("result"))
        return None

    def close(self) -> None:
        """Close the descriptors, at which the browser ends by itself."""
        self._waiting.clear()
        for descriptor in (self._out, self._in):
            with suppress(OSError):
                os.close(descriptor)
