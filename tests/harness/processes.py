"""Processes of a session: what a command starts is found and killed together, as by a power cut."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def session(leader: int) -> list[int]:
    """Return the processes of a session that run, the leader first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # "pid (name) state ppid pgrp session …", and a name may hold anything
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    found.append(int(entry.name))
    return sorted(found, key=lambda pid: (pid != leader, pid))


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_session(leader: int) -> None:
    """Kill all processes of a session; they are stopped first, so that none starts another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in session(leader):
            send(pid, number)
