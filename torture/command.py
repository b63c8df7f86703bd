"""The real command in a session of its own: started, watched, signalled, and gone for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.harness.processes import kill_session, session

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT / "src"),
    "NO_COLOR": "1",
    "MANNERLY_MEMORY": "none",
}
MANNERLY = (sys.executable, "-P", "-m", "mannerly")
# The servers go first, so that their log tells when a request came and not when they had time.
_NICENESS = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
PATIENCE_S = 60.0


def ask(*words: str) -> tuple[int, str]:
    """Run a command that ends by itself; return its exit code and what it printed."""
    done = subprocess.run(
        [*MANNERLY, *words],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def status(data_dir: Path) -> dict[str, Any]:
    """Return `mannerly status --json`; empty while there is nothing to show."""
    code, text = ask("status", str(data_dir), "--json")
    with suppress(ValueError):
        if code == 0:
            found: dict[str, Any] = json.loads(text)
            return found
    return {}


class Command:
    """One run of `mannerly crawl` or `resume`, with all its processes."""

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self.words = words
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*MANNERLY, *words],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        os.setpriority(os.PRIO_PROCESS, self.process.pid, _NICENESS)
        self.started_at = time.monotonic()

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    def everyone(self) -> list[int]:
        """Return all processes of the run that live, the command first."""
        return session(self.process.pid)

    def pss_bytes(self) -> int:
        """Return the proportional memory of all processes of the run."""
        total = 0
        for pid in self.everyone():
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += 1024 * int(next(each for each in lines if each[:4] == "Pss:").split()[1])
        return total

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL for all of it at once, as a power button would; returns when it is gone."""
        kill_session(self.process.pid)
        self.process.wait()
        self.wait_until_gone()

    def wait(self, seconds: float) -> int | None:
        """Wait for the end; return the exit code, or None if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def wait_until_gone(self, seconds: float = PATIENCE_S) -> bool:
        """Wait until no process of the run is left; return whether that is so."""
        deadline = time.monotonic() + seconds
        while self.everyone():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True
