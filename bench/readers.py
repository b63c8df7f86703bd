"""Measure what the live page costs a crawl of 5,000 hosts at full speed.

    python -m bench readers                12 rounds, about ten minutes
    python -m bench readers --rounds 3

A round has two pairs of crawls: one without a page beside one with a page and five readers of its
event stream, then one without beside one with fifty readers that never read. The crawls of a pair
run at once on one core (`_pairs.py`); so each is at half its speed, and what the page costs a
second counts double for a page. The page's process runs on the server's core. CPU time is that of
the crawl's own process, as the system has it when the process has ended. The memory is the peak of
the page's process.
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
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from . import _figures
from ._cores import on_cores, two_cores
from ._pairs import ROUNDS, at_once, ratio
from .peers import UNPACED
from .variants import CROWD
from .web import Serving, served

ALONE, FIVE, SLOW = "no page", "page, 5 readers", "page, 50 that never read"
_TOLD = [word for word in UNPACED if word != "--quiet"]  # as with a page: what happens is told
READERS = {ALONE: 0, FIVE: 5, SLOW: 50}
MOST_RATIO, MOST_MB = 1.02, 80.0


class Crawled(NamedTuple):
    """One crawl."""

    us_a_page: float  # CPU of its own process
    page_mb: float  # peak of the page's process


def run(arguments: list[str] | None = None) -> None:
    """Run the rounds, and print the ratios; exit with 1 if one is too high."""
    parser = argparse.ArgumentParser(prog="bench readers")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    wanted = parser.parse_args(arguments or [])
    mine, theirs = two_cores()
    costs: dict[str, list[float]] = {FIVE: [], SLOW: []}
    alone: dict[str, list[float]] = {FIVE: [], SLOW: []}
    page_mb = 0.0
    with on_cores({theirs}), served(CROWD, core=theirs) as web:
        _crawl(web, ALONE, mine, theirs)  # warms the caches of the machine
        for number in range(wanted.rounds):
            for name in (FIVE, SLOW):
                pair = {each: partial(_crawl, web, each, mine, theirs) for each in (ALONE, name)}
                done = at_once(pair)
                alone[name].append(done[ALONE].us_a_page)
                costs[name].append(done[name].us_a_page)
                page_mb = max(page_mb, done[name].page_mb)
                told = f"{costs[name][-1]:.0f} µs, without {alone[name][-1]:.0f} µs"
                print(f"round {number + 1}, {name}: {told}", flush=True)
    figures: dict[str, object] = {"page_mb": round(page_mb, 1), "rounds": wanted.rounds}
    is_kept = page_mb <= MOST_MB
    for name, found in costs.items():
        share = ratio(found, alone[name])
        print(f"{name:26} CPU a page {share}")
        figures[name] = share.figures()
        is_kept &= share.low <= MOST_RATIO
    print(f"peak of the page's process {page_mb:.0f} MB")
    figures["us_a_page"] = round(statistics.median(alone[FIVE]), 1)
    _figures.write("readers", figures)
    if not is_kept:
        sys.exit(1)


def _crawl(web: Serving, name: str, core: int, elsewhere: int) -> Crawled:
    """Run one crawl from its start to its end on one core, its page on the other one."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        seeds = Path(directory) / "seeds.txt"
        seeds.write_text("\n".join(web.spec.homes()))
        command = [sys.executable, "-m", "mannerly", "crawl", str(seeds), *_TOLD]
        command += ["--processes", "1", "--data-dir", f"{directory}/crawl"]
        if READERS[name]:
            command.append("--dashboard")
        with on_cores({core}):
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
            )
        assert process.stderr is not None
        watch = None
        if READERS[name]:
            lines = iter(process.stderr.readline, "")
            address = next(line.split()[-1] for line in lines if line.startswith("Live page:"))
            watch = stack.enter_context(_Readers(address, READERS[name], reads=name == FIVE))
            watch.page = _child(process.pid)
            _move(watch.page, elsewhere)
        rest = threading.Thread(target=process.stderr.read, daemon=True)
        rest.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        cpu_s = _own_cpu_s(process.pid)
        if process.wait():
            raise RuntimeError(f"the crawl ended with {process.returncode}")
        rest.join()
        process.stderr.close()
        return Crawled(1e6 * cpu_s / web.spec.total, 0.0 if watch is None else watch.peak_mb)


class _Readers:
    """Readers of the event stream, and a look at the page's process now and then."""

    def __init__(self, address: str, count: int, *, reads: bool) -> None:
        page = urlsplit(address)
        token = page.fragment.removeprefix("token=")
        self.page: int | None = None
        self.peak_mb = 0.0
        self._is_over = threading.Event()
        self._lines = [
            socket.create_connection(("127.0.0.1", page.port or 0)) for _ in range(count)
        ]
        host, bearer = f"Host: {page.netloc}", f"Authorization: Bearer {token}"
        request = f"GET /api/jobs/this/events HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n"
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


def _move(pid: int, core: int) -> None:
    """Let all threads of a process run on another core."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


def _own_cpu_s(pid: int) -> float:
    """Return the CPU time of a process without its children; it has ended and is not reaped."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
