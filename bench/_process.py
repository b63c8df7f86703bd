"""Measure wall time, CPU time and peak memory of a process, from outside.

CPU time and memory are what the system reports for the process and all descendants it waited for.
For several processes at once their memory is also added up ten times a second, and the larger
figure counts. Python may keep its compiled bytecode, as it does by default.
This module does not know what the process does.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self

from ._cores import on_cores
from .scale import family_mb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOOK_S = 0.1
TAIL = 2000


class ProcessFailed(Exception):  # noqa: N818 - what happened
    """A process ended with an error; the message is the end of its output."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that one process and its children used, and the output of the process."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    printed: str


def measured(
    command: Sequence[str],
    *,
    cores: set[int],
    cwd: Path | None,
    environment: Mapping[str, str],
) -> Usage:
    """Run a command on these cores, from start to end.

    Raises:
        ProcessFailed: it did not end with 0.
    """
    with TemporaryFile() as printed, TemporaryFile() as complained:
        began = time.monotonic()
        with on_cores(cores):
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": ""},
                stdout=printed,
                stderr=complained,
            )
        with _Observer(process.pid) as observer:
            _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (printed, complained):
            stream.seek(0)
        if process.returncode:
            said = complained.read().decode(errors="replace")[-TAIL:]
            raise ProcessFailed(f"{command[0]} ended with {process.returncode}:\n{said}")
        peak_mb = max(usage.ru_maxrss / 1024, observer.peak_mb)
        return Usage(wall_s, usage.ru_utime + usage.ru_stime, peak_mb, printed.read().decode())


class _Observer(threading.Thread):
    """Adds up the memory of a process and its children while they live."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self._pid = pid
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.peak_mb = max(self.peak_mb, family_mb(self._pid))
