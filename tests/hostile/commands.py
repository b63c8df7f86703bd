"""The real command against fault-injecting servers, and what it left behind."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.harness.waiting import eventually
from torture.command import ENVIRONMENT, MANNERLY, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PATIENCE_S = 120.0  # for what takes some seconds on a machine that is not overloaded
BRISK = ("--strategy", "fixed", "--delay", "0.05", "--max-rate", "unlimited")
PLAIN = (*BRISK, "--seeding-strategy", "none", "--processes", "1", "--timeout", "5")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int | None  # None: it did not end, and was killed
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


def run(
    *words: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    stdin: bytes = b"",
    within_s: float = PATIENCE_S,
) -> Ended:
    """Run the command to its end; `before` runs in the child, to take something away from it."""
    done = subprocess.run(
        [*MANNERLY, *words],
        cwd=cwd,
        env=ENVIRONMENT | dict(env or {}),
        input=stdin,
        capture_output=True,
        preexec_fn=before,
        timeout=within_s,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def records(data_dir: Path) -> list[dict[str, Any]]:
    """Return what the command exports of a crawl, skipped URLs included."""
    done = run("export", str(data_dir), "-o", "-", "--include-skipped")
    target = data_dir.parent / f"{data_dir.name}-pages.jsonl"
    if done.code != 0:
        done = run("export", str(data_dir), "-o", str(target))
        assert done.code == 0, done.said
        return [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in done.out.splitlines()]


def pages(data_dir: Path) -> list[dict[str, Any]]:
    """Return the records of fetched pages."""
    return [row for row in records(data_dir) if row.get("fetched_at")]


def status(data_dir: Path) -> dict[str, Any]:
    done = run("status", str(data_dir), "--json")
    assert done.code == 0, done.said
    found: dict[str, Any] = json.loads(done.out)
    return found


def pending(data_dir: Path) -> int:
    total = status(data_dir)["total"]
    return int(total["queued"] + total["outgoing"])


def watched(command: Command, within_s: float = PATIENCE_S) -> tuple[int | None, int]:
    """Wait for the end; return the exit code and the most memory that all processes took."""
    deadline, peak = time.monotonic() + within_s, 0
    while time.monotonic() < deadline:
        code = command.wait(0.1)
        if code is not None:
            return code, peak
        peak = max(peak, command.pss_bytes())
    command.kill()
    return None, peak


def let_pass(seconds: float) -> None:
    """Let time pass, where passing time is the fault: a process is stopped, a host is silent."""
    deadline = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > deadline, within_s=seconds + PATIENCE_S)


def megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"
