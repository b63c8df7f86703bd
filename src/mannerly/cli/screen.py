"""Draw a block of lines at the bottom of a terminal, and print other lines above it.

A thread of its own writes, so that a terminal that is slow, stopped or gone never slows the crawl:
a block that was not drawn before the next one arrives is skipped. `redraw` is pure: it returns what
to send, one write for each change.

Nothing is hidden, and the screen is not switched: the cursor moves up, each line that differs is
written again and erased to its end. Terminals wrap lines anew when they become narrower, so the
rows of the old block are counted at the new width: that is what leaves no ghosts.

Keys are read without waiting for Enter, and not echoed, while the process is in the foreground of
a terminal. Whatever happens, the terminal gets back the mode that it had.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .display import width
from .terminal import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

try:
    import termios
except ImportError:  # on Windows: no keys are read there
    _HAS_KEYS = False
else:
    _HAS_KEYS = True

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # one update of the screen, where a terminal knows it
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_LEAVE_S = 0.5  # for the last write


def redraw(
    old: Sequence[str], new: Sequence[str], above: Sequence[str] = (), *, columns: int
) -> str:
    """Return what replaces one block by another, with lines printed above it.

    The cursor is at the end of the last line, before and after. `columns` is the present width.
    """
    up = sum(max(1, -(-_columns(line) // max(1, columns))) for line in old) - 1
    said = ["\r", f"\x1b[{up}A" if up > 0 else ""]
    said += [f"{line}{_ERASE_LINE}\r\n" for line in above]
    is_same_place = not above and up == len(old) - 1
    lines = []
    for number, line in enumerate(new):
        is_known = is_same_place and number < len(old) and old[number] == line
        lines.append(f"\x1b[{_columns(line)}C" if is_known and line else line + _ERASE_LINE)
    said.append("\r\n".join(lines))
    if above or len(new) < len(old) or up >= len(old):
        said.append(_ERASE_BELOW)
    return "".join(said)


def _columns(line: str) -> int:
    """Return the columns of a line, without its colours."""
    if "\x1b" not in line:
        return width(line)
    plain_parts = [
        part.partition("m")[2] if number else part for number, part in enumerate(line.split("\x1b"))
    ]
    return width("".join(plain_parts))


class Screen:
    """The bottom of a terminal. `on_key` is called with each key, by the thread that draws."""

    def __init__(self, on_key: Callable[[str], None] | None = None) -> None:
        self._out, self._encoding = sys.stderr.fileno(), sys.stderr.encoding
        self._on_key = on_key
        self._keys = Keys() if on_key is not None else None
        self._lock = threading.Lock()
        self._block: Sequence[str] | None = None  # to be drawn
        self._above: list[str] = []
        self._drawn: Sequence[str] = ()
        self._is_over = False
        self._is_lost = False  # the cursor may be anywhere
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._thread = threading.Thread(target=self._work, name="screen", daemon=True)
        self._previous: Any = None

    def open(self) -> None:
        """Begin to draw."""
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGCONT"):
            self._previous = signal.signal(signal.SIGCONT, self._continued)
        if self._keys is not None:
            self._keys.take()
        self._thread.start()

    def show(self, lines: Sequence[str]) -> None:
        """Replace the block, soon. Any thread may call this."""
        with self._lock:
            self._block = lines
        self._ring()

    def print(self, text: str) -> None:
        """Print lines above the block, soon."""
        with self._lock:
            self._above += plain(text).split("\n")
        self._ring()

    def close(self) -> None:
        """Remove the block, print what is left, and give the terminal back."""
        self.show(())
        self._is_over = True
        self._ring()
        if self._thread.is_alive():
            self._thread.join(_LEAVE_S)
        self.release()
        if self._previous is not None:
            signal.signal(signal.SIGCONT, self._previous)

    def release(self) -> None:
        """Give the terminal its mode back: the process may end at once."""
        if self._keys is not None:
            self._keys.give_back()

    def _ring(self) -> None:
        with suppress(OSError):
            self._wake.send(b"!")

    def _continued(self, _number: int, _frame: object) -> None:
        """After a suspend the shell has written: draw below it, and take the keys again."""
        self._is_lost = True
        if self._keys is not None:
            self._keys.take()
        self._ring()

    def _work(self) -> None:
        while True:
            self._listen()
            is_over = self._is_over
            with suppress(OSError):  # the terminal is gone: the crawl goes on
                self._draw()
            if is_over:
                return

    def _listen(self) -> None:
        woken = self._woken.fileno()
        keys = [] if self._keys is None or not self._keys.is_taken else [self._keys.descriptor]
        ready, _, _ = select.select([woken, *keys], [], [])
        if woken in ready:
            self._woken.recv(4096)
        elif self._keys is not None and self._on_key is not None:
            for key in self._keys.read():
                self._on_key(key)

    def _draw(self) -> None:
        if not is_foreground(self._out):
            self._is_lost = True
            return
        with self._lock:
            block, above = self._block, self._above
            self._block, self._above = None, []
        if block is None and not above:
            return
        if self._is_lost:
            self._drawn, self._is_lost = (), False
        new = self._drawn if block is None else block
        if above or list(new) != list(self._drawn):
            text = redraw(self._drawn, new, above, columns=os.get_terminal_size(self._out).columns)
            self._write(f"{_BEGIN}{text}{_END}".encode(self._encoding, "replace"))
            self._drawn = new

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]


class Keys:
    """The keys of the terminal that is stdin: each at once, and none echoed."""

    def __init__(self) -> None:
        self.is_taken = False
        self._mode: list[Any] | None = None
        self.descriptor = -1
        with suppress(OSError, ValueError, AttributeError):
            self.descriptor = sys.stdin.fileno()

    def take(self) -> None:
        """Read keys from now on, if there is a terminal and this process is in its foreground."""
        if not _HAS_KEYS or not is_foreground(self.descriptor):
            return
        with suppress(termios.error):
            mode = termios.tcgetattr(self.descriptor)
            if self._mode is None:
                self._mode = mode
                atexit.register(self.give_back)
            single = [*mode[:3], mode[3] & ~(termios.ICANON | termios.ECHO), *mode[4:]]
            termios.tcsetattr(self.descriptor, termios.TCSANOW, single)
            self.is_taken = True

    def give_back(self) -> None:
        """Restore the mode that the terminal had. A process in the background must not."""
        if self._mode is None or not self.is_taken or not is_foreground(self.descriptor):
            return
        self.is_taken = False
        with suppress(termios.error):
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self._mode)

    def read(self) -> str:
        """Return the keys that were pressed; after the end of input none are read any more."""
        try:
            pressed = os.read(self.descriptor, 64)
        except OSError:
            pressed = b""
        self.is_taken = self.is_taken and bool(pressed)
        return pressed.decode("ascii", "ignore")


def is_foreground(descriptor: int) -> bool:
    """Return whether a descriptor is a terminal that this process may draw on and read from."""
    try:
        return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
    except AttributeError:  # not on Windows
        return os.isatty(descriptor)
