"""A crawl of two hosts with troubles: one refuses, one fails. Each gets orders meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.crawler.control.steering import DIR, Shell
from tests.crawler.fetch.raw_server import RawServer, answer, reset
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.model import HostRecord

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from tests.crawler.control.steering import Said

RETRY_AFTER_S = 2
SLOW_S = 1.5  # what `linear` makes of its 0.5 s after a refusal
PAGES = 2000  # more than can be fetched while commands are given on a busy machine
PAGE = b"".join(b'<a href="/%d">%d</a>' % (number, number) for number in range(PAGES))


class Busy:
    """A host that refuses its third page, and all others until its robots.txt is read again.

    It asks for a pause. An order that takes longer than that finds it as it was.
    """

    def __init__(self) -> None:
        self.log: list[tuple[float, str]] = []
        self.refused_at = 0.0  # first

    def __call__(self, connection: socket.socket, path: str) -> bool:
        self.log.append((time.monotonic(), path))
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        elif len(self.log) >= 4 and self.paths().count("/robots.txt") == 1:
            header = f"Retry-After: {RETRY_AFTER_S}"
            connection.sendall(answer(b"", "429 Too Many Requests", header))
            self.refused_at = self.refused_at or time.monotonic()
        else:
            connection.sendall(answer(PAGE, "200 OK", "Content-Type: text/html"))
        return True

    def paths(self) -> list[str]:
        return [path for _, path in self.log]


class Broken:
    """A host that closes every connection until it is mended."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_mended = False

    def __call__(self, connection: socket.socket, path: str) -> bool:
        self.log.append(path)
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        elif path == "/" or self.is_mended:
            connection.sendall(answer(PAGE[:200], "200 OK", "Content-Type: text/html"))
        else:
            return reset(connection)
        return True


@dataclass
class Forgotten:
    """What was said, and what the servers saw."""

    before: HostRecord
    forgot: Said
    forgot_at: float  # the crawl had acted on the order by then
    after: HostRecord
    busy: Busy
    broken: Broken
    seen: int  # requests to the busy host when the first run ended
    given_up: HostRecord
    resume: Said
    revived: HostRecord
    given_up_again: HostRecord


def tell(shell: Shell, one: RawServer, two: RawServer, busy: Busy, broken: Broken) -> Forgotten:
    busy_host, broken_host = f"127.0.0.1:{one.port}", f"127.0.0.2:{two.port}"

    def show(host: str) -> HostRecord:
        with mannerly.open(shell.crawl_dir) as crawl:
            line = crawl.host(host).show()
        return HostRecord(host) if line is None else line.record

    words = ("crawl", one.url(), two.url(), "--data-dir", DIR, "--seeding-strategy", "none")
    options = ("--strategy", "linear", "--host-failure-limit", 1, "--processes", 1)
    with shell.start(*words, *options) as run:
        eventually(lambda: busy.refused_at)
        eventually(lambda: show(busy_host).adaptive_delay_s)
        before = show(busy_host)
        forgot = shell.say("host", "forget", DIR, busy_host)
        eventually(lambda: show(busy_host).adaptive_delay_s < before.adaptive_delay_s)
        forgot_at = time.monotonic()
        eventually(lambda: show(broken_host).retired)
        given_up = show(broken_host)
        broken.is_mended = True
        resume = shell.say("host", "resume", DIR, broken_host)
        shell.say("add", DIR, two.url("/another"))
        eventually(lambda: "/another" in broken.log)
        revived = show(broken_host)
        broken.is_mended = False
        shell.say("add", DIR, two.url("/once-more"))
        eventually(lambda: show(broken_host).retired)
        eventually(lambda: busy.paths()[4:].count("/robots.txt") and len(busy.log) >= 8)
        after = show(busy_host)
        run.interrupt()
        run.end()
        seen = len(busy.log)
    with shell.start("resume", DIR) as run:
        eventually(lambda: len(busy.log) > seen + 2)
        given_up_again = show(broken_host)
    return Forgotten(
        *(before, forgot, forgot_at, after, busy, broken, seen),
        *(given_up, resume, revived, given_up_again),
    )


def tell_in(directory: Path) -> Forgotten:
    """Run the story in a directory."""
    busy, broken = Busy(), Broken()
    with RawServer(busy) as one, RawServer(broken, "127.0.0.2") as two:
        return tell(Shell(directory), one, two, busy, broken)
