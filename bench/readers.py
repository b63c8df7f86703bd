"""Measure what the live page costs a crawl of 5,000 hosts at full speed.

    python -m bench readers                12 rounds, about ten minutes
    python -m bench readers --rounds 3 --pages 3000

Three crawls take turns in every round: without a page, with a page and five readers of its event
stream, and with fifty readers that never read. CPU time is that of the crawl's own process, without
the page's, as the system has it when the process has ended. A ratio is taken within each round; the
interval holds the mean ratio with a probability of 90 %. The memory is the peak of the page's
process.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from math import exp, log, sqrt
from pathlib import Path
from typing import NamedTuple, Self

from mannerly.demo import DemoWeb, plain_sites

from . import _figures

HOSTS = 5000
ALONE, FIVE, SLOW = "no page", "page, 5 readers", "page, 50 that never read"
READERS = {ALONE: 0, FIVE: 5, SLOW: 50}
MOST_PERCENT, MOST_MB = 2.0, 80.0
# Student's t for an interval of 90 %, by degrees of freedom.
T = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13, 5: 2.02, 7: 1.89, 9: 1.83, 11: 1.80, 15: 1.75, 23: 1.71}


class Crawled(NamedTuple):
    """One crawl."""

    us_a_page: float  # CPU of its own process
    page_mb: float  # peak of the page's process


def run(arguments: list[str] | None = None) -> None:
    """Run the rounds, and print the ratios; exit with 1 if one is too high."""
    parser = argparse.ArgumentParser(prog="bench readers")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--pages", type=int, default=10_000)
    wanted = parser.parse_args(arguments or [])
    costs: dict[str, list[float]] = {name: [] for name in READERS}
    page_mb = 0.0
    with DemoWeb(plain_sites(HOSTS, pages=20)) as web:
        _crawl(web, ALONE, wanted.pages)  # warms the caches of the machine
        for number in range(wanted.rounds):
            names = list(READERS)
            for name in names[number % 3 :] + names[: number % 3]:
                done = _crawl(web, name, wanted.pages)
                costs[name].append(done.us_a_page)
                page_mb = max(page_mb, done.page_mb)
            print(
                f"round {number + 1}: " + ", ".join(f"{costs[n][-1]:.0f}" for n in READERS),
                flush=True,
            )
    figures: dict[str, object] = {"page_mb": round(page_mb, 1), "rounds": wanted.rounds}
    is_kept = page_mb <= MOST_MB
    for name in (FIVE, SLOW):
        mean, low, high = _interval(costs[name], costs[ALONE])
        print(f"{name:26} {mean:+.1f} % CPU a page (90 %: {low:+.1f} to {high:+.1f})")
        figures[name] = {"percent": round(mean, 2), "low": round(low, 2), "high": round(high, 2)}
        is_kept &= low <= MOST_PERCENT
    print(f"peak of the page's process {page_mb:.0f} MB")
    figures["us_a_page"] = round(statistics.median(costs[ALONE]), 1)
    _figures.write("readers", figures)
    if not is_kept:
        sys.exit(1)


def _interval(costs: list[float], base: list[float]) -> tuple[float, float, float]:
    """Return the mean of the ratios and its interval, in percent above one."""
    logs = [log(one / other) for one, other in zip(costs, base, strict=True)]
    mean, count = statistics.fmean(logs), len(logs)
    error = statistics.stdev(logs) / sqrt(count) if count > 1 else 0.0
    t = next((T[known] for known in sorted(T, reverse=True) if known < count), 0.0)
    return tuple(100 * (exp(each) - 1) for each in (mean, mean - t * error, mean + t * error))  # type: ignore[return-value]


def _crawl(web: DemoWeb, name: str, pages: int) -> Crawled:
    """Run one crawl from its start to its end."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        seeds = Path(directory) / "seeds.txt"
        seeds.write_text("\n".join(web.seeds()))
        command = [
            *(sys.executable, "-m", "mannerly", "crawl", str(seeds), "--processes", "1"),
            *("--max-rate", "unlimited", "--start-rate", "100", "--seeding-strategy", "none"),
            *("--max-urls", str(pages), "--data-dir", f"{directory}/crawl"),
        ]
        if READERS[name]:
            command.append("--dashboard")
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1)
        assert process.stderr is not None
        watch = None
        if READERS[name]:
            lines = iter(process.stderr.readline, "")
            address = next(line.split()[-1] for line in lines if line.startswith("Live page:"))
            port = int(address.rsplit(":", 1)[1].strip("/"))
            watch = stack.enter_context(_Readers(port, READERS[name], reads=name == FIVE))
            watch.page = _child(process.pid)
        rest = threading.Thread(target=process.stderr.read, daemon=True)
        rest.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        cpu_s = _own_cpu_s(process.pid)
        if process.wait():
            raise RuntimeError(f"the crawl ended with {process.returncode}")
        rest.join()
        process.stderr.close()
        return Crawled(1e6 * cpu_s / pages, 0.0 if watch is None else watch.peak_mb)


class _Readers:
    """Readers of the event stream, and a look at the page's process now and then."""

    def __init__(self, port: int, count: int, *, reads: bool) -> None:
        self.page: int | None = None
        self.peak_mb = 0.0
        self._is_over = threading.Event()
        self._lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        request = f"GET /api/jobs/this/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        for line in self._lines:
            line.sendall(request.encode())
        self._threads = [threading.Thread(target=self._look, daemon=True)]
        if reads:
            self._threads += [
                threading.Thread(target=self._read, args=(line,), daemon=True)
                for line in self._lines
            ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        for thread in self._threads:
            thread.join(5)

    def _read(self, line: socket.socket) -> None:
        with suppress(OSError):
            while line.recv(65536):
                pass

    def _look(self) -> None:
        while not self._is_over.wait(0.5):
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{self.page}/status").read_text().splitlines()
                line = next(each for each in lines if each.startswith("VmHWM"))
                self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)


def _child(pid: int) -> int:
    """Return the first child of a process: that of the page."""
    while not (found := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        time.sleep(0.01)
    return int(found[0])


def _own_cpu_s(pid: int) -> float:
    """Return the CPU time of a process without its children; it has ended and is not reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
