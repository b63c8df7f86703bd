"""Measure the peak memory of a crawl that meets nothing but large bodies.

500 hosts on loopback answer at once, a third of them each way: 10 MB of HTML, a gzip bomb of
100 MB, and a body without an end. `--hosts` and `--seconds` change the size of it. The figure is
the largest sum of the proportional set sizes (PSS) of all processes of the crawl, parse helpers
included; the bound is in docs/explanation/memory.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MEGABYTE = 1 << 20
LINK = b'<a href="/%d">a link to page number %d</a><p>and some text beside it</p>\n'
PAGES = 3  # of a host


def _answers() -> tuple[bytes, bytes, bytes]:
    lines = b"".join(LINK % (number % PAGES, number) for number in range(10 * MEGABYTE // 75))
    page = lines[: 10 * MEGABYTE]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
    bomb = gzip.compress(page[:1000] + bytes(100 * MEGABYTE), 6)
    return (
        head + b"Content-Length: %d\r\n\r\n" % len(page) + page,
        head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb,
        head + b"\r\n" + page[: 64 * 1024],
    )


def serve(hosts: list[str], ready: Connection) -> None:
    """Serve all hosts on one port until the process is ended."""
    answers = _answers()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        kind = hosts.index(host) % len(answers)
        with suppress(OSError, asyncio.IncompleteReadError):
            asked = await reader.readuntil(b"\r\n\r\n")
            if b"robots.txt" in asked.partition(b"\r\n")[0]:
                writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                writer.write(answers[kind])
            await writer.drain()
            while kind == len(answers) - 1:  # a body without an end
                writer.write(answers[kind][-64 * 1024 :])
                await writer.drain()
        writer.close()

    async def main() -> None:
        port = 0
        for host in hosts:
            server = await asyncio.start_server(answer, host, port, backlog=64)
            port = server.sockets[0].getsockname()[1]
        ready.send(port)
        await asyncio.Event().wait()

    asyncio.run(main())


def pss_of_session(leader: int) -> int:
    """Return the bytes that all processes of a session take, shared pages divided among them."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader:
                    rollup = (entry / "smaps_rollup").read_text()
                    total += int(rollup.partition("\nPss:")[2].split()[0]) * 1024
    return total


def peak(hosts: int, seconds: float, processes: int, *options: str) -> tuple[int, str]:
    """Crawl so many hosts; return the peak in bytes and what the crawl printed."""
    names = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(hosts)]
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(names, theirs))
    server.start()
    port = ours.recv()
    with tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory) / "seeds.txt"
        seeds.write_text("".join(f"http://{name}:{port}/0\n" for name in names))
        command = [sys.executable, "-m", "mannerly", "crawl", str(seeds)]
        command += ["--data-dir", f"{directory}/crawl", "--processes", str(processes)]
        command += ["--duration", str(seconds), "--seeding-strategy", "none", *options]
        crawl = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        largest = 0
        while crawl.poll() is None:
            largest = max(largest, pss_of_session(crawl.pid))
            time.sleep(0.1)
        _, printed = crawl.communicate()
    server.kill()
    server.join()
    return largest, printed


def run(options: list[str] | None = None) -> None:
    """Print the peak at the defaults, in two processes."""
    parser = argparse.ArgumentParser(prog="python -m bench bodies")
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=2)
    given, rest = parser.parse_known_args(options or [])
    largest, printed = peak(given.hosts, given.seconds, given.processes, *rest)
    print(printed.strip())
    print(f"\n{given.hosts} hosts, {given.processes} processes")
    print(f"peak PSS of all processes: {largest / MEGABYTE:.0f} MB (target 450)")


if __name__ == "__main__":
    run(sys.argv[1:])
