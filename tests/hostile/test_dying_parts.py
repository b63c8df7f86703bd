"""Workers and parse helpers that are killed, frozen, or run out of memory or descriptors.

One crawl, ten faults in the order, at the instants and with the victims that a seed draws. Each has
to be named on standard error, none may cost a URL or a link, and two Ctrl-C end everything while
parts are frozen. The judge is another crawl of the same web, to which nothing was done.
"""

from __future__ import annotations

import random
import resource
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.harness.processes import has_taken, send
from tests.harness.waiting import eventually
from tests.hostile.commands import PLAIN, let_pass, pages, run
from torture.command import Command

from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.runtime.helpers import STARTING_S
from mannerly.demo import DemoWeb, Site, plain_sites

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

AT_ONCE_S = 1.0
UNFELT_S = 30.0  # then a process had enough of what was taken from it
NAMED_S = 2 * STARTING_S  # a helper may be frozen while it starts
LONG_S = 600.0  # for a whole crawl on a busy machine
PAGE_WORDS = 50_000  # five bytes each
QUICK = ("kill worker", "kill helper", "descriptors of worker", "memory of helper")
TEN = (
    *("kill worker", "kill worker", "kill helper", "kill helper", "freeze worker"),
    *("freeze helper", "memory of worker", "memory of helper"),
    *("descriptors of worker", "descriptors of worker"),
)
LACKS = ("out of file descriptors", "no file descriptor is left", "out of memory")


class Faults(NamedTuple):
    """What became of a crawl with faults."""

    named_s: list[float]  # for each fault: until it was named
    stop_s: float  # from the second Ctrl-C to the end of all processes
    stop_code: int | None
    end_code: int | None
    lost_urls: set[str]
    lost_links: int


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        threads = Path(f"/proc/{pid}/task").iterdir()
        found = {int(each) for each in text.split()}
        for thread in threads:
            with suppress(OSError):
                found |= {int(each) for each in (thread / "children").read_text().split()}
        return sorted(found)
    return []


def _workers(command: Command) -> list[int]:
    return _children(command.process.pid)


def _helpers(command: Command) -> list[int]:
    return [helper for worker in _workers(command) for helper in _children(worker)]


def _inflict(fault: str, command: Command, rng: random.Random) -> tuple[int, Callable[[], None]]:
    """Do something to a part of a crawl; return the process, and what ends it."""
    act, _, part = fault.rpartition(" ")
    found = _workers if part == "worker" else _helpers
    eventually(lambda: found(command))
    pid = rng.choice(found(command))
    if act == "kill":
        send(pid, signal.SIGKILL)
    elif act == "freeze":
        send(pid, signal.SIGSTOP)
    elif act == "memory of":  # an old one has memory for pages: starve its successor
        known = set(found(command))
        eventually(lambda: part == "worker" or _is_idle(pid))
        send(pid, signal.SIGKILL)
        eventually(lambda: set(found(command)) - known)
        pid = max(set(found(command)) - known)
        return pid, _starve(pid, resource.RLIMIT_AS)
    else:
        return pid, _starve(pid, resource.RLIMIT_NOFILE)
    return pid, lambda: None


def _is_idle(pid: int) -> bool:
    """Return whether a process uses no CPU, or is gone."""

    def used() -> list[str]:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]

    try:
        before = used()
        let_pass(0.2)
        return used() == before
    except OSError:
        return True


def _starve(pid: int, kind: int) -> Callable[[], None]:
    """Let a process have no more of something than it has now, until the result is called."""
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (1, before[1]))

    def feed() -> None:
        with suppress(ProcessLookupError):  # it may have ended for lack of it
            resource.prlimit(pid, kind, before)

    return feed


def _named_after_s(fault: str, command: Command, output: Path, rng: random.Random) -> float:
    """Inflict a fault, and return how long it took until standard error named it.

    A process may go on without more memory or descriptors for a while. Then another one is chosen.
    """
    may_be_unfelt = fault.startswith(("memory", "descriptors"))
    patience_s = UNFELT_S if may_be_unfelt else NAMED_S
    while True:
        before = len(output.read_text())
        pid, end = _inflict(fault, command, rng)
        began = time.monotonic()
        words = [f" {pid} ", *LACKS]

        def is_over(before: int = before, words: list[str] = words, began: float = began) -> bool:
            said = output.read_text()[before:]
            is_named = any(each in said for each in words)
            return is_named or command.code is not None or time.monotonic() > began + patience_s

        eventually(is_over, within_s=2 * patience_s)
        took_s = time.monotonic() - began
        end()
        assert command.code is None, output.read_text()[-2000:]
        if took_s < patience_s or not may_be_unfelt:
            return took_s


def _closing(pages: int) -> Callable[[socket.socket, str], bool]:
    """A site that closes every connection: each page needs a descriptor, and memory."""

    def handler(connection: socket.socket, path: str) -> bool:
        number = int(path[1:] or 0) if path[1:].isdigit() or path == "/" else pages
        if number >= pages:
            connection.sendall(answer(b"", "404 Not Found", "Connection: close"))
        else:
            links = "".join(f"<a href=/{2 * number + n}>x</a>" for n in (1, 2))
            body = links.encode() + b"text " * PAGE_WORDS
            head = ("Content-Type: text/html", "Connection: close")
            connection.sendall(answer(body, "200 OK", *head))
        return False

    return handler


def _crawl_with_faults(tmp_path: Path, faults: tuple[str, ...], seed: int) -> Faults:
    rng = random.Random(seed)
    order = list(faults)
    rng.shuffle(order)
    data_dir, output = tmp_path / "crawl", tmp_path / "output.txt"
    # Enough for half a minute a fault: what has nothing to do any more is not missed when it dies.
    big = Site(name="big", pages=10 * len(faults), size=BIG_BYTES + 1, crawl_delay_s=3.0)
    most = 30 * len(faults)
    sites = plain_sites(4, pages=most, neighbours=2)
    with ExitStack() as servers:
        web = servers.enter_context(DemoWeb([*sites, big], first_address=f"127.21.{seed}.2"))
        closing = [
            servers.enter_context(RawServer(_closing(most), f"127.22.{seed}.{number}"))
            for number in range(2, 8)
        ]
        seeds = (*web.seeds(), *(server.url() for server in closing))
        # One helper a worker, so that the next large page is read by the one that was hit.
        common = (*seeds, *PLAIN, "--processes", "2", "--parse-processes", "1", "--scope", "any")
        reference = tmp_path / "reference"
        fast = ("--delay", "0.005", "--ignore-robots")
        undisturbed = run("crawl", *common, "--data-dir", str(reference), *fast, within_s=LONG_S)
        assert undisturbed.code == 0, undisturbed.said
        words = ["crawl", *common, "--data-dir", str(data_dir), "--delay", "1"]
        command = Command(words, output)
        eventually(lambda: _helpers(command))
        named_s = []
        for fault in order:
            let_pass(rng.uniform(0.2, 2.0))
            named_s.append(_named_after_s(fault, command, output, rng))
        stop_s, stop_code = _stop_with_frozen_parts(command)
        ended = run("resume", str(data_dir), *fast, within_s=LONG_S)
    found, expected = _links(data_dir), _links(reference)
    lost_links = sum(found[url] < links for url, links in expected.items() if url in found)
    lost_urls = expected.keys() - found.keys()
    return Faults(named_s, stop_s, stop_code, ended.code, lost_urls, lost_links)


def _stop_with_frozen_parts(command: Command) -> tuple[float, int | None]:
    """Freeze a worker and a helper, and press Ctrl-C twice; return how long the end took."""
    eventually(lambda: _helpers(command))
    for pid in (_workers(command)[0], _helpers(command)[0]):
        send(pid, signal.SIGSTOP)
    command.tell(signal.SIGINT)
    eventually(lambda: has_taken(command.process.pid, signal.SIGINT))
    told_at = time.monotonic()
    command.tell(signal.SIGINT)
    code = command.wait(20.0)
    command.wait_until_gone(20.0)
    stop_s = time.monotonic() - told_at
    command.kill()
    return stop_s, code


def _links(data_dir: Path) -> dict[str, int]:
    return {row["url"]: row["links"] for row in pages(data_dir) if row["status"] == 200}


def _judge(faults: Faults, figure: Figure, count: int) -> None:
    figure(
        "F33",
        f"{count} faults: {len(faults.lost_urls)} URLs and {faults.lost_links} links lost, each "
        f"named within {max(faults.named_s):.1f} s; Ctrl-C twice with a frozen worker and helper: "
        f"exit code {faults.stop_code} after {faults.stop_s:.1f} s; resumed: exit code "
        f"{faults.end_code}",
    )
    assert faults.lost_urls == set()
    assert faults.lost_links == 0
    assert (faults.stop_code, faults.end_code) == (130, 0)
    assert max(faults.named_s) < NAMED_S, "a process that died or hangs was not named"
    assert faults.stop_s <= 5 * AT_ONCE_S


def test_dying_workers_and_helpers_cost_nothing(tmp_path: Path, figure: Figure) -> None:
    """Four faults that are noticed at once, then two Ctrl-C with a frozen worker and helper."""
    _judge(_crawl_with_faults(tmp_path, QUICK, seed=1), figure, len(QUICK))


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
def test_ten_random_deaths_cost_nothing(seed: int, tmp_path: Path, figure: Figure) -> None:
    """Killed, frozen, out of memory and descriptors, ten times at random in one crawl."""
    _judge(_crawl_with_faults(tmp_path, TEN, seed), figure, len(TEN))
