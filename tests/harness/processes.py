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


def has_taken(pid: int, number: signal.Signals) -> bool:
    """Return whether a signal that was sent has arrived: until then another one is lost."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        masks = (int(line[8:], 16) for line in lines if line[3:8] == "Pnd:\t")
        return not any(mask >> (number - 1) & 1 for mask in masks)
    return True


def kill_session(leader: int) -> None:
    """Kill all processes of a session; they are stopped first, so that none starts another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in session(leader):
            send(pid, number)
