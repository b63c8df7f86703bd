"""The command on a real pseudo-terminal: what its screen shows, and that it is given back.

The bytes go through the terminal of `fake_terminal`; the size, the mode and the signals are real.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest
from tests.cli.fake_terminal import FakeTerminal
from tests.cli.test_endings import FAST, PATIENCE_S, QUICK, SITE, SOURCE, silent
from tests.crawler.fetch.raw_server import RawServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

# Become the terminal's foreground process, then the command.
IN_FOREGROUND = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "mannerly", *sys.argv[1:]])
"""
SLOW = ("--strategy", "fixed", "--delay", "0.3")


class Pty:
    """A command in a terminal of 80 columns and 24 rows."""

    def __init__(self, directory: Path, *arguments: object, term: str = "xterm-256color") -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.mode = termios.tcgetattr(self._ours)
        self.raw = ""
        self.screen = FakeTerminal()
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_FOREGROUND, *map(str, arguments)],
            cwd=directory,
            env={
                "HOME": str(directory),
                "PATH": os.defpath,
                "PYTHONPATH": SOURCE,
                "TERM": term,
                "LC_ALL": "C.UTF-8",
                "PYTHONUTF8": "1",
            },
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def read(self, seconds: float = 0.1) -> bool:
        """Take what the command has written; return whether it may write more."""
        ready, _, _ = select.select([self._ours], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the command has ended
            return False
        text = data.decode()
        self.raw += text
        self.screen.feed(text)
        return bool(data)

    def until(self, is_so: Callable[[], bool]) -> float:
        """Read until something is so; return how long that took."""
        began = time.monotonic()
        while not is_so():
            assert time.monotonic() - began < PATIENCE_S, self.screen.text
            assert self.read() or is_so(), self.screen.text
        return time.monotonic() - began

    def shows(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.screen.text

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def end(self) -> int:
        """Read to the end; return the exit code."""
        while self.read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def mode_now(self) -> list[object]:
        return termios.tcgetattr(self._ours)


@contextlib.contextmanager
def terminal(directory: Path, *arguments: object, **options: str) -> Iterator[Pty]:
    pty = Pty(directory, *arguments, **options)
    try:
        yield pty
    finally:
        pty.close()


def test_block_is_drawn_and_replaced_by_the_summary(tmp_path: Path) -> None:
    """Nothing half-drawn stays, and the terminal has its mode back."""
    with RawServer(SITE) as server:
        options = (*QUICK, *SLOW, "--max-urls", "8")
        with terminal(tmp_path, "crawl", server.url(), *options) as pty:
            pty.until(pty.shows("of 8"))
            while_drawn = pty.mode_now()
            code = pty.end()
            assert pty.mode_now() == pty.mode

    assert code == 0
    assert while_drawn != pty.mode
    assert "● Running" not in pty.screen.text
    assert "✓ Stopped at --max-urls 8: 8 pages" in pty.screen.text
    assert pty.screen.text.endswith("\n  mannerly resume mine")
    assert "\x1b[1;38;5;32m● " in pty.raw


def test_ctrl_c_is_acknowledged_at_once(tmp_path: Path) -> None:
    """While a request is under way for 2 s: what is waited for; then how to go on."""
    with RawServer(silent) as server, terminal(tmp_path, "crawl", server.url(), *QUICK) as pty:
        pty.until(pty.shows("In flight 1"))
        pty.press("\x03")
        took_s = pty.until(pty.shows("■ Stopping  1 request under way, 2 s at most."))
        code = pty.end()
        assert pty.mode_now() == pty.mode

    assert code == 130
    assert took_s < 0.5  # 0.1 s is promised
    assert "■ Stopped by you after" in pty.screen.text
    assert pty.screen.text.endswith("\n  mannerly resume mine")


def test_key_shows_the_busiest_hosts(tmp_path: Path) -> None:
    """And hides them again; other keys do nothing and are not echoed."""
    with RawServer(SITE) as server, terminal(tmp_path, "crawl", server.url(), *QUICK, *SLOW) as pty:
        pty.until(pty.shows("At least"))
        pty.press("xyzh")
        pty.until(pty.shows("   Host "))
        pty.press("h")
        pty.until(lambda: "   Host " not in pty.screen.text)
        pty.press("\x03")
        pty.end()

    assert "xyz" not in pty.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminal_gets_its_mode_back_after_a_signal(tmp_path: Path, number: int) -> None:
    """The shell that follows must echo again."""
    with RawServer(SITE) as server, terminal(tmp_path, "crawl", server.url(), *QUICK, *SLOW) as pty:
        pty.until(pty.shows("In flight"))
        pty.process.send_signal(number)
        code = pty.end()
        assert pty.mode_now() == pty.mode

    assert code == 143


def test_without_colours_none_are_sent(tmp_path: Path) -> None:
    """A terminal that is dumb, or NO_COLOR."""
    with RawServer(SITE) as server:
        options = (*QUICK, *FAST, "--max-urls", "5")
        with terminal(tmp_path, "crawl", server.url(), *options, term="dumb") as pty:
            pty.end()

    assert "38;5" not in pty.raw
    assert "\x1b[1m" not in pty.raw


def test_watch_uses_the_whole_screen_and_gives_it_back(tmp_path: Path) -> None:
    """It shows a crawl that runs elsewhere, sorts on a key, and leaves it running."""
    slowly = (*QUICK, *SLOW)
    with RawServer(SITE) as server, terminal(tmp_path, "crawl", server.url(), *slowly) as crawl:
        crawl.until(crawl.shows("● Running"))
        with terminal(tmp_path, "watch", "mine") as pty:
            pty.until(lambda: "by queued" in pty.raw)
            pty.press("s")
            pty.until(lambda: "by fetched" in pty.raw)
            pty.press("/")
            pty.press("nowhere\r")
            pty.until(lambda: "0 of 1 host, by fetched, with “nowhere”" in pty.raw)
            pty.press("q")
            code = pty.end()
            assert pty.mode_now() == pty.mode
        is_running = crawl.process.poll() is None

    assert (code, is_running) == (0, True)
    assert pty.raw.index("\x1b[?1049h") < pty.raw.index("● ") < pty.raw.index("\x1b[?1049l")
    assert "The crawl goes on. To stop it: mannerly stop mine" in pty.raw
