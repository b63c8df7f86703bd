"""A crawl as a command that runs, steered by further commands, judged by the server's log.

Every command is a real process. An order that was acknowledged (its command has ended) must be in
force a second later, so a window of the log is looked at that begins then.
"""

from __future__ import annotations

import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from tests.crawler.runtime.harness import page_requests
from tests.harness.commands import MANNERLY, bare, run
from tests.harness.processes import kill_session, session
from tests.harness.waiting import PATIENCE_S, eventually

from mannerly.demo import by_host, gaps_s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from mannerly.demo import DemoWeb, Record

IN_FORCE_S = 1.0  # after an order was acknowledged
# A server's process stamps a request when it gets to read it: on a busy machine that may be late.
NOTED_LATE_S = 0.06
TOLERANCE = 0.98
DIR = "mine"

Story = TypeVar("Story")


class Said(NamedTuple):
    """What a command said, and when it had ended."""

    code: int
    out: str
    err: str
    at: float


class Shell:
    """A directory in which commands are run; the crawl is in `mine`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.crawl_dir = directory / DIR
        self._runs = 0

    def say(self, *words: object) -> Said:
        """Run a command until its end."""
        done = run(*words, cwd=self.directory, env=bare(self.directory))
        return Said(done.returncode, done.stdout, done.stderr, time.monotonic())

    def say_all(self, *commands: tuple[object, ...]) -> list[Said]:
        """Run commands side by side: their orders do not depend on each other."""
        with ThreadPoolExecutor(len(commands)) as pool:
            return list(pool.map(lambda words: self.say(*words), commands))

    def start(self, *words: object) -> Running:
        """Begin a crawl, or go on with it."""
        self._runs += 1
        return Running(self.directory, words, self.directory / f"run-{self._runs}.txt")


class Running:
    """A crawl that runs in a session of its own."""

    def __init__(self, directory: Path, words: tuple[object, ...], output: Path) -> None:
        self._output = output
        with output.open("w") as stderr:
            self._process = subprocess.Popen(
                [*MANNERLY, *map(str, words)],
                cwd=directory,
                env=bare(directory),
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def text(self) -> str:
        """What it has said so far."""
        return self._output.read_text()

    def interrupt(self) -> None:
        """Press Ctrl-C once."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL for all of it at once."""
        kill_session(self._process.pid)
        self._process.wait(PATIENCE_S)
        eventually(lambda: not session(self._process.pid))

    def end(self) -> Said:
        """Wait for its end."""
        code = self._process.wait(PATIENCE_S)
        return Said(code, "", self.text, time.monotonic())


def both(tell: Callable[[int, Path], Story], directory: Path) -> dict[int, Story]:
    """Run the same story with one process and with two, side by side; each mostly waits."""
    with ThreadPoolExecutor(2) as pool:
        told = {n: pool.submit(tell, n, directory / str(n)) for n in (1, 2)}
        return {n: future.result() for n, future in told.items()}


# ---------------------------------------------------------------------- the log


def until_requests(web: DemoWeb, count: int, *, host: str | None = None) -> None:
    """Wait until this many more pages were asked for, of one host or in all."""

    def seen() -> int:
        return sum(host in (None, record.host) for record in page_requests(web.log()))

    wanted = seen() + count
    eventually(lambda: seen() >= wanted)


def window(web: DemoWeb, since: float, seconds: float) -> dict[str, list[Record]]:
    """Return the log by host, from a second after `since` for some seconds."""
    begin = since + IN_FORCE_S
    time.sleep(max(0.0, begin + seconds - time.monotonic()))
    log = [record for record in web.log() if begin <= record.t <= begin + seconds]
    found = {host: [record for record in log if record.host == host] for host in web.hosts}
    assert set(by_host(log)) <= set(found)
    return found


def keeps(records: list[Record], gap_s: float) -> bool:
    """Whether requests kept a gap: each as well as the log can tell, their mean exactly."""
    gaps = gaps_s(records)
    assert gaps, "too few requests to judge"
    return min(gaps) >= gap_s - NOTED_LATE_S and fmean(gaps) >= TOLERANCE * gap_s


def most_at_once(records: list[Record]) -> int:
    """Return the largest number of requests of all hosts that were unanswered at an instant."""
    changes = [(record.t, 1) for record in records]
    changes += [(record.answered_at, -1) for record in records if record.answered_at is not None]
    most = count = 0
    for _, change in sorted(changes):
        count += change
        most = max(most, count)
    return most
