"""Workers of a crawl in a real server, as real processes; the web's log is the judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.harness.commands import SOURCE_PATH
from tests.harness.commands import run as fleet_run
from tests.harness.waiting import eventually

from mannerly.crawler.store.base import StoreMissing
from mannerly.crawler.stored import StoredCrawl, open_crawl
from mannerly.demo.log import GAP_TOLERANCE, by_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.crawler.store.valkey_server import LocalServer

    from mannerly.demo import DemoWeb

PATIENCE_S = 120.0
SECRETS = ("MANNERLY_REDIS_URL", "MANNERLY_REDIS_PASSWORD_FILE")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return fleet_run(*arguments, env=_environment(environment), within_s=PATIENCE_S)


def _environment(more: dict[str, str]) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return clean | {"PYTHONPATH": SOURCE_PATH} | more


def come_first(pid: int) -> bool:
    """Let a process have a processor whenever it needs one; return whether that is allowed."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except (AttributeError, OSError):
        return False
    return True


def require_gaps(log: list[Any], gap_s: float, *, is_punctual: bool) -> None:
    """Check that no request came too close to another one to its host, whoever sent them.

    The log of a web that has to wait for a processor is late, and then gaps seem too short: by
    one sender, on one connection. Requests of two senders come on two connections.
    """
    least_s = gap_s * (1 - GAP_TOLERANCE) - 0.02
    for first, after in _successive(log):
        if is_punctual or first.connection != after.connection:
            assert after.t - first.t >= least_s, (first, after)


def _successive(log: list[Any]) -> Iterator[tuple[Any, Any]]:
    for records in by_host(log).values():
        yield from pairwise(records)


class Worker:
    """One `mannerly crawl --redis-url …` in a session of its own."""

    def __init__(
        self,
        url: str,
        name: str,
        home: Path,
        seeds: list[str],
        *options: str,
        program: str = "mannerly",
    ) -> None:
        self.home, self.output = home, home.with_suffix(".jsonl")
        self.waits = home.with_suffix(".waits")  # see `bench._fleet_waits`
        self._errors = home.with_suffix(".err")
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", program, "crawl", *seeds, "--redis-url", url),
                    *("--crawl", name, "--data-dir", str(home), "-o", str(self.output)),
                    *("--log-format", "text", *options),
                ],
                env=_environment({"FLEET_WAITS": str(self.waits)}),
                stderr=errors,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._errors.read_text()

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def end(self, within_s: float = PATIENCE_S) -> int:
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end: {self.said}") from None

    def pages(self) -> list[str]:
        """Return the URLs in its output."""
        lines = self.output.read_text().splitlines()
        return [json.loads(line)["url"] for line in lines]


class Fleet:
    """A crawl in a server, and its workers."""

    program = "mannerly"

    def __init__(self, url: str, web: DemoWeb, folder: Path, *options: str) -> None:
        self.url, self.web, self.folder = url, web, folder
        self.name = f"test-{uuid4().hex[:8]}"
        shards = () if "--shards" in options else ("--shards", "32")
        self.crawl_options = (
            *("--scope", "any", "--allow-net", "127.0.0.0/8", "--seeding-strategy", "none"),
            *("--strategy", "fixed", *options),
        )
        self.options = (*self.crawl_options, *shards)
        self.seeds = [f"http://{host}/" for host in web.hosts]
        self.workers: list[Worker] = []
        self.before = len(web.log())
        self._is_punctual = come_first(web.pid)

    def join(self, *options: str, url: str | None = None) -> Worker:
        home = self.folder / f"w{len(self.workers)}"
        more = (*self.options, *options)
        worker = Worker(url or self.url, self.name, home, self.seeds, *more, program=self.program)
        self.workers.append(worker)
        return worker

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the crawl: the URL and the name follow its first word."""
        word, *rest = arguments
        return run(word, self.url, *rest, "--crawl", self.name, **environment)

    def status(self) -> dict[str, Any]:
        done = self.command("status", "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def shares(self) -> list[int]:
        """Return how many shards each worker has; nothing before the crawl is there."""
        try:
            with open_crawl(f"{self.url}#{self.name}") as crawl:
                return [len(heartbeat["shards"]) for heartbeat in crawl.status().workers]
        except StoreMissing:
            return []

    def log(self) -> list[Any]:
        return self.web.log()[self.before :]

    def hold(self) -> None:
        """Pause the crawl as soon as it exists, so that it cannot end before the next step.

        Not by a command: on a busy machine that takes longer than a small crawl.
        """
        eventually(lambda: self._is_ordered(StoredCrawl.pause))

    def go_on(self) -> None:
        """End what `hold` began."""
        assert self._is_ordered(StoredCrawl.unpause)

    def _is_ordered(self, order: Callable[[StoredCrawl], None]) -> bool:
        try:
            with open_crawl(f"{self.url}#{self.name}") as crawl:
                order(crawl)
        except StoreMissing:
            return False
        return True

    def until_requests(self, number: int) -> None:
        eventually(lambda: len(self.log()) >= number)

    def exported(self, *workers: Worker) -> tuple[int, list[str]]:
        """Return the exit code and the URLs of an export from the directories of workers."""
        homes = [word for each in workers for word in ("--data-dir", str(each.home))]
        done = self.command("export", "-o", "-", *homes)
        return done.returncode, [json.loads(line)["url"] for line in done.stdout.splitlines()]

    def fetched(self) -> Counter[str]:
        """Return how often each page was asked for, as the servers saw it."""
        pages = (each for each in self.log() if each.path != "/robots.txt")
        return Counter(f"http://{each.host}{each.path}" for each in pages)

    def smallest_gap_s(self) -> float:
        """Return the smallest gap between two requests to one host, whoever sent them."""
        return min(after.t - first.t for first, after in _successive(self.log()))

    def require_gaps(self, gap_s: float) -> None:
        """Check that no request came too close to another one to its host, whoever sent them."""
        require_gaps(self.log(), gap_s, is_punctual=self._is_punctual)

    def server_cpu_s(self, server: LocalServer) -> float:
        """Return the CPU time that the server has used so far."""
        with server.client() as client:
            used = client.info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
