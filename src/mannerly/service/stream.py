"""Send the live state of a crawl to any number of readers, as server-sent events.

The state is computed once for all readers, and only while there are any. Each reader gets the
newest state when it is ready for it, at most four times a second: one that reads slowly misses
states, and costs no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import Receive, Scope, Send

    from .server import LastAnswers

INTERVAL_S = 0.25
ALIVE_S = 15.0  # between two comments while nothing changes, so that a dead connection is noticed
MOST_READERS = 200


class LiveStream:
    """The readers of one crawl's live state.

    Args:
        state: returns the state, and a number that changes with it.
    """

    def __init__(self, state: Callable[[], tuple[int, object]]) -> None:
        self._state = state
        self._encoded = (-1, b"")
        self.readers = 0

    def response(self, ending: LastAnswers) -> StreamingResponse:
        """Return an answer that goes on until the end; it counts as a reader from now on."""
        self.readers += 1
        return _Counted(
            self,
            self._events(ending),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _events(self, ending: LastAnswers) -> AsyncIterator[bytes]:
        sent, quiet_s, is_last = -1, 0.0, False
        while not is_last:
            is_last = ending.has_begun
            version, event = self._event()
            if version != sent:
                sent, quiet_s = version, 0.0
                yield event
            elif quiet_s >= ALIVE_S:
                quiet_s = 0.0
                yield b": alive\n\n"
            await ending.sleep(INTERVAL_S)
            quiet_s += INTERVAL_S

    def _event(self) -> tuple[int, bytes]:
        version, state = self._state()
        if version != self._encoded[0]:
            self._encoded = (version, b"data: " + msgspec.json.encode(state) + b"\n\n")
        return self._encoded


class _Counted(StreamingResponse):
    """The answer to one reader: whatever ends it, the reader is not counted any more."""

    def __init__(self, stream: LiveStream, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.readers -= 1
