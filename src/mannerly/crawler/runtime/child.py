"""Start child processes of a crawl, and exchange messages with them.

A child is a fresh interpreter that runs `bootstrap.py` on one module of this package (decision
record 0020). It is the same on Linux, macOS and Windows, for workers and for parse helpers:

- `__main__` is not imported again, so a program that uses the library needs no main guard, and a
  notebook or `python -c` can start children, too.
- The child uses the package of its parent, wherever that was found, and never has the working
  directory on its path: a file `json.py` that lies there is not run.
- It is in a process group of its own, with its own children, and ignores SIGINT, SIGTERM and
  SIGHUP: a terminal's Ctrl-C reaches only the parent, which decides what to do.
- When the parent ends, even by SIGKILL, its channel ends, and then the child ends. One that is
  frozen is killed by its parent, together with its group.

A message is a pickled value with its length in front. Both ends are sockets, since Windows can wait
for nothing else. No call blocks unless it says so: the rest of a message that does not fit into the
socket's buffer is kept, and the next call goes on sending it. Messages may arrive in pieces of any
size. Only the two processes have the socket, so only our own values are unpickled.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BOOTSTRAP = Path(__file__).absolute().with_name("bootstrap.py")
_LENGTH = struct.Struct("!Q")
_PIECE = 256 * 1024  # bytes asked for at once
_ROOM = 64 * 1024  # bytes that can be received at any time
_KILLED_S = 1.0  # for a process to end that was killed
_DONT_WAIT: int = getattr(socket, "MSG_DONTWAIT", 0)  # saves a system call for each message
_SHORT_S = 0.02  # while there is something to send and to read: the time for each in turn


class Channel:
    """One end of the connection between two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._timeout_s: float | None = -1.0
        # Received bytes from `_start` to `_end`. One buffer for all messages: one for each would
        # cost copies and page faults.
        self._buffer = bytearray(_PIECE)
        self._start = self._end = 0
        self._outgoing: deque[memoryview] = deque()  # not copied: a message may be a large page
        self.is_ended = False  # the other side is gone; its earlier messages can still be received

    def fileno(self) -> int:
        """Return the descriptor, readable when there is something to receive; -1 if closed."""
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        """Return whether part of a message is unsent: the other side does not read."""
        return bool(self._outgoing)

    def send(self, message: object) -> None:
        """Send a message without waiting; `flush` sends the rest. Lost if the peer is gone."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        length = _LENGTH.pack(len(data))
        parts = (length + data,) if len(data) < _PIECE else (length, data)
        self._outgoing.extend(map(memoryview, parts))
        self.flush()

    def flush(self, timeout_s: float = 0.0) -> bool:
        """Send what is unsent, for `timeout_s` seconds at most; return whether all was sent."""
        deadline = time.monotonic() + timeout_s if timeout_s else 0.0
        try:
            while self._outgoing:
                if timeout_s or not _DONT_WAIT:
                    self._set_timeout(max(0.0, deadline - time.monotonic()) if timeout_s else 0.0)
                rest = self._outgoing[0]
                rest = rest[self._socket.send(rest[:_PIECE], 0 if timeout_s else _DONT_WAIT) :]
                if rest:
                    self._outgoing[0] = rest
                else:
                    self._outgoing.popleft()
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:  # the other side is gone: `is_ended` says so after its last message
            self._outgoing.clear()
        return True

    def receive(self) -> list[Any]:
        """Return the messages that are complete by now, without waiting."""
        if self._outgoing:
            self.flush()
        self._set_timeout(0.0)
        while self._read():
            pass
        messages = []
        while found := self._next():
            messages += found
        return messages

    def wait(self) -> Any:
        """Wait for the next message.

        Raises:
            EOFError: the other side is gone.
        """
        while not (found := self._next()):
            if self.is_ended:
                raise EOFError("the other process has ended")
            is_sent = self.flush(_SHORT_S)
            self._set_timeout(None if is_sent else _SHORT_S)
            self._read()
        return found[0]

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        self.is_ended = True
        self._socket.close()

    def _set_timeout(self, timeout_s: float | None) -> None:
        if timeout_s != self._timeout_s and self._socket.fileno() >= 0:
            self._timeout_s = timeout_s
            self._socket.settimeout(timeout_s)

    def _read(self) -> bool:
        """Take one piece from the socket; return whether there may be more."""
        if self.is_ended:
            return False
        self._make_room()
        try:
            with memoryview(self._buffer) as buffer:
                size = self._socket.recv_into(buffer[self._end :])
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:
            size = 0
        self.is_ended = not size
        self._end += size
        return size > 0

    def _make_room(self) -> None:
        """Have room for the rest of the next message, and for some bytes in any case."""
        waiting = self._end - self._start
        if not waiting and len(self._buffer) == _PIECE:
            self._start = self._end = 0
            return
        needed = waiting + _ROOM
        if waiting >= _LENGTH.size:
            needed = max(needed, _LENGTH.size + _LENGTH.unpack_from(self._buffer, self._start)[0])
        if waiting and self._start + needed <= len(self._buffer):
            return
        moved = self._buffer if waiting and needed <= _PIECE else bytearray(max(_PIECE, needed))
        moved[:waiting] = self._buffer[self._start : self._end]
        self._buffer, self._start, self._end = moved, 0, waiting

    def _next(self) -> list[Any]:
        """Return the next message, if it is complete; otherwise an empty list."""
        start = self._start + _LENGTH.size
        if start > self._end:
            return []
        end = start + _LENGTH.unpack_from(self._buffer, self._start)[0]
        if end > self._end:
            return []
        self._start = end
        with memoryview(self._buffer) as view, view[start:end] as message:
            return [pickle.loads(message)]  # noqa: S301 - only our own processes have the socket


class Child:
    """A process that was started here, and the channel to it.

    The child runs `main(channel)` of a module; `order` is the first message that it receives.
    """

    # The process group of children that are started here: 0 is one of their own. In a child it is
    # None, its own group, so that killing the group ends grandchildren too.
    group: int | None = 0

    def __init__(self, module: str, order: object, *, directory: str | None = None) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        try:
            with theirs:
                self._process = _start(module, theirs, directory)
        except BaseException:
            ours.close()
            raise
        _running.add(self)
        self.channel.send(_path())
        self.channel.send(order)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs. One that has ended is reaped by this call."""
        return self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill the process, and those that it has started, without waiting."""
        if self._process.poll() is not None:
            return
        self._kill_group()
        self._process.kill()

    def end(self, timeout_s: float = 0.0) -> None:
        """Wait for the process to end, kill it after `timeout_s`, and reap it.

        One that even SIGKILL does not end, because it waits for a disk, is left behind.
        """
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_S)
        if self in _running:
            _running.discard(self)
            self._kill_group()  # it may have left others behind

    def _kill_group(self) -> None:
        if sys.platform != "win32" and self.group == 0:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and close its channel; closing twice is harmless."""
        self.end()
        self.channel.close()


_running: set[Child] = set()


def kill_all() -> None:
    """Kill every child of this process, without waiting. Any thread may call this."""
    for child in list(_running):
        child.kill()


def _start(module: str, theirs: socket.socket, directory: str | None) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise RuntimeError("sys.executable is empty, so no process can be started: use processes=1")
    # -P: neither the working directory nor the script's own is put on the path.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", str(BOOTSTRAP), module]
    environment = _environment()
    if sys.platform == "win32":
        return _start_on_windows(command, environment, theirs, directory)
    return subprocess.Popen(  # noqa: S603 - our own interpreter and file
        [*command, str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # stdout is for the parent's data
        pass_fds=(theirs.fileno(),),
        env=environment,
        cwd=directory,
        process_group=Child.group,
    )


def _start_on_windows(
    command: list[str], environment: dict[str, str], theirs: socket.socket, directory: str | None
) -> subprocess.Popen[bytes]:
    """Start a child that reads a copy of its socket from standard input."""
    # The python.exe of a virtual environment starts another process, and the copy must be made for
    # that one. So it is started directly; the variable names the virtual environment.
    base = getattr(sys, "_base_executable", sys.executable)
    if base != sys.executable:
        command = [base, *command[1:]]
        environment["__PYVENV_LAUNCHER__"] = sys.executable
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd=directory,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    share: Callable[[int], bytes] = getattr(theirs, "share")  # noqa: B009 - of Windows alone
    assert process.stdin is not None, "it was asked for"
    try:
        with process.stdin as pipe:
            pipe.write(share(process.pid))
    except OSError:  # it has ended already, which its channel shows
        pass
    return process


def _environment() -> dict[str, str]:
    """Return our environment without the PYTHONPATH entries relative to the working directory."""
    environment = dict(os.environ)
    given = environment.pop("PYTHONPATH", "").split(os.pathsep)
    if absolute := [entry for entry in given if Path(entry).is_absolute()]:
        environment["PYTHONPATH"] = os.pathsep.join(absolute)
    return environment


def _path() -> list[str]:
    """Return our `sys.path` without the working directory."""
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # it was removed
        here = None
    entries = [entry for entry in sys.path if Path(entry).is_absolute()]
    return [entry for entry in entries if Path(entry).resolve() != here]
