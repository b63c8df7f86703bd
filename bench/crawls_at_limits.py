"""Real crawls, on real sockets, of sites with limits that are hard to tell from pages of their own.

    python -m bench crawls-at-limits                     every row, 20 minutes
    python -m bench crawls-at-limits --only closed       one row
    python -m bench crawls-at-limits --pages 150

Each row is one `mannerly crawl` with the default settings of a site of 301 pages on loopback. The
limits are the models of `families`, which no constant was chosen for; a site notes what it answered
to whom. Pages fetched: pages of the site that have a record with status 200. Lost or refused: the
share of all requests that got no page because of the limit. `10 % forbidden` is a site where every
tenth page is answered with 403 for good, and `plain` the same site without them: with
`--max-rate 4`, so that the time is that of the pace and not of this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import contextmanager
from math import isinf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from bench import _figures
from bench.families import (
    AkamaiPenalty,
    Challenge503,
    Closing,
    CloudflareRule,
    Forbidding,
    RobotCheck,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGES = 301
LONGEST_S = 900.0


class Row(NamedTuple):
    """A site, and what a crawl of it has to reach."""

    server: Callable[[], Any] | None  # None: without a limit
    most_lost: float
    least_pages: float = 0.97
    forbids_tenth: bool = False
    options: tuple[str, ...] = ()


ROWS = {
    "closed beyond 2/s": Row(Closing, 0.03),
    "challenge with 200": Row(RobotCheck, 0.03),
    "challenge with 503": Row(Challenge503, 0.03),
    "403 for 20 s": Row(Forbidding, 0.04),
    "403 for 60 s": Row(CloudflareRule, 0.04),
    "403 until half": Row(AkamaiPenalty, 0.04),
    "plain": Row(None, 0.0, options=("--max-rate=4",)),
    "10 % forbidden": Row(None, 0.0, forbids_tenth=True, options=("--max-rate=4",)),
}


class Site:
    """The pages of a site behind a limit, and the log of its answers."""

    def __init__(self, row: Row, pages: int) -> None:
        self.pages = pages
        self.model = None if row.server is None else row.server()
        self.forbids_tenth = row.forbids_tenth
        self.log: list[tuple[float, str, int]] = []  # instant, path, status; 0: no answer
        self._in_flight = 0
        self._began = time.monotonic()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                if not await self._answer(path, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> bool:
        self._in_flight += 1
        status, latency_s, headers, body = self._judged(path)
        self.log.append((time.monotonic() - self._began, path, status))
        await asyncio.sleep(min(latency_s, 60.0))
        self._in_flight -= 1
        if status == 0 or isinf(latency_s):
            return False
        text = body or self._page(path, status)
        lines = [f"HTTP/1.1 {status} Status", "Content-Type: text/html"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(text.encode())}", "", text]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        return True

    def _judged(self, path: str) -> tuple[int, float, dict[str, str], str]:
        status, latency_s, headers, body = 200, 0.05, {}, ""
        if self.model is not None:
            now = time.monotonic() - self._began
            status, latency_s, headers, *rest = self.model.request(now, self._in_flight)
            body = rest[0] if rest else ""
        if status == 200 and not body:
            number = path.removeprefix("/page/")
            if path == "/robots.txt":
                status = 404
            elif self.forbids_tenth and number.isdigit() and int(number) % 10 == 3:
                status = 403
        return status, latency_s, dict(headers), body

    def _page(self, path: str, status: int) -> str:
        if status != 200:
            return f"<title>{status}</title><p>{status} {'forbidden' if status == 403 else ''}</p>"
        if path != "/":
            return f"<title>{path}</title><p>The page {path}</p>" + 40 * f"<p>{path} says</p>"
        return "<title>All</title>" + "".join(
            f'<a href="/page/{number}">{number}</a> ' for number in range(1, self.pages)
        )


@contextmanager
def running(site: Site) -> Iterator[str]:
    """Serve a site in a thread; yield its origin."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    origins: list[str] = []

    async def start() -> None:
        server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
        origins.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()

    def work() -> None:
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield origins[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def crawl(row: Row, pages: int) -> dict[str, float]:
    """Crawl the site of a row; return pages fetched, requests, lost ones, seconds."""
    site = Site(row, pages)
    with TemporaryDirectory(prefix="mannerly-bench-") as folder, running(site) as origin:
        place = Path(folder) / "crawl"
        began = time.monotonic()
        subprocess.run(
            [
                *(sys.executable, "-m", "mannerly", "crawl", origin, "--allow-net=127.0.0.0/8"),
                *("--quiet", "--memory=none", f"--data-dir={place}", *row.options),
            ],
            timeout=LONGEST_S,
            check=False,
            cwd=folder,
            env=os.environ,
        )
        seconds = time.monotonic() - began
        records = subprocess.run(
            [sys.executable, "-m", "mannerly", "export", str(place), "-o", "-"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    found = [json.loads(line) for line in records.splitlines()]
    fetched = {each["url"] for each in found if each.get("status") == 200}
    asked = Counter(path for _, path, _ in site.log)
    real = [path for path in asked if path != "/robots.txt"]
    forbidden = [path for _, path, status in site.log if status == 403 and row.forbids_tenth]
    lost = sum(status not in (200, 404) for _, _, status in site.log) - len(forbidden)
    if site.model is not None and row.server is RobotCheck:  # its refusals have status 200
        lost = len(site.log) - len(fetched) - asked["/robots.txt"]
    return {
        "pages": len(fetched) / pages,
        "requests": len(site.log),
        "lost": max(0, lost) / max(1, len(site.log)),
        "repeats": len(forbidden) / max(1, len(set(forbidden))) - 1.0 if forbidden else 0.0,
        "asked": len(real),
        "seconds": seconds,
    }


def run(options: Sequence[str] = ()) -> None:
    """Measure and print; exit with 1 if a row is missed."""
    parser = ArgumentParser(prog="python -m bench crawls-at-limits")
    parser.add_argument("--only", default="")
    parser.add_argument("--pages", type=int, default=PAGES)
    asked = parser.parse_args(list(options))
    figures: dict[str, dict[str, float]] = {}
    is_kept = True
    for name, row in ROWS.items():
        if asked.only not in name:
            continue
        found = figures[name] = crawl(row, asked.pages)
        wanted = row.least_pages if not row.forbids_tenth else 0.87
        is_reached = found["pages"] >= wanted and found["lost"] <= row.most_lost
        is_kept &= is_reached
        print(
            f"{name:<20} {found['pages']:>6.1%} of the pages, {found['requests']:>4.0f} requests, "
            f"{found['lost']:>5.1%} lost, {found['repeats']:.2f} repeats of forbidden pages, "
            f"{found['seconds']:.0f} s{'' if is_reached else '   MISSED'}",
            flush=True,
        )
    _figures.write("crawls_at_limits", figures)
    if not is_kept:
        sys.exit(1)


if __name__ == "__main__":
    run()
