"""Processes that are killed, stopped, interrupted, or run short of something."""

from __future__ import annotations

import random
import resource
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.harness import page_requests, real_pages, url_of
from tests.harness.processes import send
from tests.harness.waiting import eventually
from tests.hostile.commands import PLAIN, let_pass, pages, pending, run, watched
from torture.command import Command
from torture.metronome import SITE, Metronome

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

WORKERS = 8
GAP_S = 0.5
PAUSE_S = 2.0


def _words(web: DemoWeb, data_dir: Path, *more: str) -> list[str]:
    words = ["crawl", *web.seeds(), "--data-dir", str(data_dir), *PLAIN]
    return [*words, "--concurrency", str(WORKERS), "--allow-net", "127.0.0.0/8", *more]


def _kill_and_resume(tmp_path: Path, kills: int, seed: int) -> tuple[str, list[str]]:
    """Kill a crawl at random instants; return the figure and everything that is wrong."""
    rng = random.Random(seed)
    data_dir = tmp_path / "crawl"
    wrong = []
    sites = plain_sites(6, pages=30, neighbours=2, latency_s=0.01)
    with DemoWeb(sites, first_address=f"127.20.{seed % 250}.2") as web:
        words = _words(web, data_dir, "--processes", "2", "--scope", "any")
        killed = []
        for _ in range(kills):
            command = Command(words, tmp_path / "output.txt")
            wait_s, requests = rng.uniform(0.2, 2.0), len(web.log()) + rng.randint(1, 60)
            deadline = time.monotonic() + wait_s
            eventually(lambda: len(web.log()) >= requests or time.monotonic() > deadline)  # noqa: B023
            command.kill()
            killed.append(time.monotonic())
        ended = run(*words)
        log = web.log()
        everything = set(real_pages(web))
        edges = [0.0, *killed, float("inf")]
        runs = [
            {url_of(r) for r in page_requests(log) if start <= r.t < end and r.status == 200}
            for start, end in pairwise(edges)
        ]
    again = [len(run & set().union(*runs[n + 1 :])) for n, run in enumerate(runs[:-1])]
    counts = Counter(row["url"] for row in pages(data_dir))
    lost = everything - counts.keys()
    twice = [url for url, count in counts.items() if count > 1]
    if ended.code != 0:
        wrong.append(f"exit code {ended.code}: {ended.err[-300:]}")
    if lost or twice or pending(data_dir):
        wrong.append(f"lost {lost}, twice {twice}, pending {pending(data_dir)}")
    if max(again, default=0) > WORKERS:
        wrong.append(f"refetched {again}")
    return (
        f"{kills} kills: lost {len(lost)} of {len(everything)}, refetched {sum(again)} "
        f"(at most {max(again, default=0)} a kill), exported twice {len(twice)}"
    ), wrong


def test_killed_crawl_loses_nothing(tmp_path: Path, figure: Figure) -> None:
    """Five times kill -9 for all processes: nothing lost, at most what was in flight repeated."""
    text, wrong = _kill_and_resume(tmp_path, 5, seed=1)

    figure("F1", text)
    assert wrong == []


@pytest.mark.long
def test_killed_crawl_loses_nothing_in_fifty_kills(tmp_path: Path, figure: Figure) -> None:
    """The same, ten crawls with five kills each."""
    found = []
    for seed in range(2, 12):
        (tmp_path / str(seed)).mkdir()
        text, wrong = _kill_and_resume(tmp_path / str(seed), 5, seed=seed)
        found += wrong
        figure("F1", text)

    assert found == []


def test_fresh_retry_after_survives_a_kill(tmp_path: Path, figure: Figure) -> None:
    """Killed as soon as a host has asked for five seconds, it is not asked before they are over."""
    asked: list[float] = []

    def handler(connection: socket.socket, path: str) -> bool:
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        else:
            asked.append(time.monotonic())
            refusal = answer(b"", "429 Too Many", "Retry-After: 5")
            connection.sendall(refusal if len(asked) == 1 else answer())
        return True

    with RawServer(handler, "127.0.0.2") as server:
        words = ["crawl", server.url(), *PLAIN, "--data-dir", str(tmp_path / "crawl")]
        command = Command(words, tmp_path / "output.txt")
        eventually(lambda: asked)
        let_pass(0.05)
        command.kill()
        run(*words)
        waited_s = asked[1] - asked[0]

    figure("F1", f"killed 0.05 s after a Retry-After of 5 s: next request after {waited_s:.1f} s")
    assert waited_s >= 5.0


def test_second_process_is_refused(tmp_path: Path, figure: Figure) -> None:
    """Two runs on one data directory: the second ends at once with code 4, the first goes on."""
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(1, pages=80)) as web:
        words = _words(web, data_dir, "--delay", "0.1")
        first = Command(words, tmp_path / "output.txt")
        eventually(lambda: len(web.log()) > 2)
        second = run(*words)
        still_running = first.code is None
        code, _ = watched(first)

        missing = set(real_pages(web)) - {row["url"] for row in pages(data_dir)}
    figure("F5", f"second run: exit code {second.code}; first run: {len(missing)} pages lost")
    assert (second.code, still_running, code, missing) == (4, True, 0, set())
    assert "Traceback" not in second.err


@pytest.mark.parametrize(
    ("number", "codes"),
    [(signal.SIGINT, {130}), (signal.SIGTERM, {143}), (signal.SIGHUP, {129, 143})],
)
def test_signal_ends_a_crawl_that_can_be_resumed(
    number: signal.Signals, codes: set[int], tmp_path: Path, figure: Figure
) -> None:
    """SIGINT, SIGTERM and SIGHUP drain; the crawl is resumed and complete."""
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(2, pages=30)) as web:
        command = Command(_words(web, data_dir), tmp_path / "output.txt")
        eventually(lambda: len(web.log()) > 8)
        told_at = time.monotonic()
        command.tell(number)
        code = command.wait(60.0)
        seconds = time.monotonic() - told_at
        command.kill()
        resumed = run("resume", str(data_dir))
        urls = [row["url"] for row in pages(data_dir)]
        everything = set(real_pages(web))

    figure("F6", f"{number.name} once: exit code {code} after {seconds:.1f} s")
    assert code in codes
    assert resumed.code == 0
    assert (set(urls), len(urls)) == (everything, len(everything))


def test_second_interrupt_ends_whatever_hangs(tmp_path: Path, figure: Figure) -> None:
    """With a stopped worker and an answer that never comes, the second SIGINT ends everything."""
    data_dir, output = tmp_path / "crawl", tmp_path / "output.txt"
    with DemoWeb(plain_sites(4, pages=10, latency_s=30.0)) as web:
        words = _words(web, data_dir, "--processes", "2", "--timeout", "60", "--scope", "any")
        command = Command([*words, "--ignore-robots"], output)
        eventually(lambda: len(web.log()) >= 4)
        send(command.everyone()[1], signal.SIGSTOP)
        command.tell(signal.SIGINT)
        eventually(lambda: "Stopping" in output.read_text())
        told_at = time.monotonic()
        command.tell(signal.SIGINT)
        code = command.wait(25.0)  # less than the latency
        seconds = time.monotonic() - told_at
        is_left = not command.wait_until_gone()
        command.kill()

    figure("F6", f"SIGINT twice with a stopped worker: exit code {code} after {seconds:.1f} s")
    assert (code, is_left) == (130, False)


def test_suspended_crawl_sends_no_burst(tmp_path: Path, figure: Figure) -> None:
    """All processes stopped for three seconds, as a laptop is: afterwards each gap is kept."""
    data_dir = tmp_path / "crawl"
    sites = plain_sites(4, pages=12)
    with DemoWeb([*sites, SITE]) as web:
        words = ["crawl", *web.seeds()[:-1], "--data-dir", str(data_dir), *PLAIN]
        with Metronome(web) as metronome:
            command = Command([*words, "--delay", str(GAP_S)], tmp_path / "output.txt")
            eventually(lambda: len(web.log_of("plain-0")) > 3)
            for pid in command.everyone():
                send(pid, signal.SIGSTOP)
            let_pass(3.0)
            for pid in command.everyone():
                send(pid, signal.SIGCONT)
            code, _ = watched(command)
        pairs = [pair for site in sites for pair in pairwise(web.log_of(site.name))]
        seen = [later.t - earlier.t for earlier, later in pairs]
        gaps = [
            gap_s + 2.0 * metronome.lag_s(earlier.t)
            for gap_s, (earlier, _) in zip(seen, pairs, strict=True)
        ]

    figure("F11", f"suspended for 3 s: smallest gap at the server {min(seen):.3f} of {GAP_S} s")
    assert code == 0
    assert min(gaps) >= GAP_S - 0.02


class _RefusesOnce(RawServer):
    """Answers with links; its third answer comes when it is told to, and is a Retry-After."""

    def __init__(self, address: str) -> None:
        super().__init__(self._answer, address)
        self.asked_at: list[float] = []
        self.refused_at = 0.0
        self.is_asked, self.may_refuse = threading.Event(), threading.Event()

    def _answer(self, connection: socket.socket, path: str) -> bool:
        self.asked_at.append(time.monotonic())
        if path == "/robots.txt":
            connection.sendall(answer(b"", "404 Not Found"))
        elif len(self.asked_at) == 3:
            self.is_asked.set()
            self.may_refuse.wait(30)
            self.refused_at = time.monotonic()
            refusal = ("429 Too Many Requests", f"Retry-After: {PAUSE_S:g}")
            connection.sendall(answer(b"", *refusal))
        else:
            body = "".join(f"<a href=/{number}>x</a>" for number in range(4)).encode()
            connection.sendall(answer(body, "200 OK", "Content-Type: text/html"))
        return True


@pytest.mark.parametrize("processes", [1, 2])
def test_refusal_that_comes_while_stopped_is_kept(
    processes: int, tmp_path: Path, figure: Figure
) -> None:
    """A Retry-After arrives while all processes are stopped; the next page is due when they go on.

    The server shows that nothing was sent before its end.
    """
    with _RefusesOnce(f"127.24.0.{processes + 1}") as server:
        seeds = (server.url(), f"http://127.24.9.9:{server.port}/")  # of another shard, refused
        words = ("crawl", *seeds, *PLAIN, "--delay", "0.2", "--processes", str(processes))
        command = Command([*words, "--data-dir", str(tmp_path / "crawl")], tmp_path / "output.txt")
        assert server.is_asked.wait(60)
        let_pass(0.05)  # until it waits for the answer
        stopped = command.everyone()
        for pid in stopped:
            send(pid, signal.SIGSTOP)
        let_pass(0.1)
        server.may_refuse.set()
        let_pass(0.8)
        for pid in reversed(stopped):
            send(pid, signal.SIGCONT)
        code, _ = watched(command)
        inside = [at for at in server.asked_at if 0.0 < at - server.refused_at < PAUSE_S]

    figure("F11", f"refused while stopped: {len(inside)} requests inside the Retry-After")
    assert code in (0, 1)
    assert len(server.asked_at) == 7  # rules, 5 pages, and the refused one again
    assert inside == []


def _limit_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_few_descriptors_lose_nothing(tmp_path: Path, figure: Figure) -> None:
    """With 64 descriptors and 512 workers a crawl of 120 hosts fetches every page."""
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(120, pages=5)) as web:
        words = _words(web, data_dir, "--concurrency", "512")
        ended = run(*words, before=_limit_descriptors, within_s=60.0)
        urls = [row["url"] for row in pages(data_dir) if row["status"] == 200]
        lost = set(real_pages(web)) - set(urls)

    figure("F29", f"64 descriptors: {len(lost)} of 600 pages lost")
    assert ended.code == 0, ended.said
    assert lost == set()


def _limit_memory() -> None:
    # What the interpreter and the libraries map, and a little more.
    resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))


def test_little_memory_loses_nothing_in_silence(tmp_path: Path, figure: Figure) -> None:
    """With little address space a crawl may end early, and its exit code says so."""
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(6, pages=6, size=3_000_000)) as web:
        words = _words(web, data_dir, "--processes", "1", "--scope", "any")
        ended = run(*words, before=_limit_memory)
        found = {row["url"] for row in pages(data_dir) if row["status"] == 200}
        lost = set(real_pages(web)) - found
        if lost:
            run("resume", str(data_dir))
            with suppress(AssertionError):
                run("retry", str(data_dir), "--failed")
                run("resume", str(data_dir))
            found = {row["url"] for row in pages(data_dir) if row["status"] == 200}
        after = set(real_pages(web)) - found

    figure("F29", f"400 MB of address space: {len(lost)} of 36 pages later, {len(after)} lost")
    assert not (lost and ended.code == 0), ended.said
    assert after == set()


_TREE_PAGES = 180


def _tree(connection: socket.socket, path: str) -> bool:
    """Serve a page of a tree, of 20 kB to 3 MB: every page leads to two others."""
    if not path.strip("/").isdigit() and path != "/":
        connection.sendall(answer(b"", "404 Not Found"))
        return True
    number = int(path.strip("/") or 0)
    size = (20, 200, 700, 1500, 3000)[number % 5] * 1000
    below = [each for each in (2 * number + 1, 2 * number + 2) if each < _TREE_PAGES]
    links = "".join(f"<a href=/{each}>{each}</a>" for each in below)
    with suppress(OSError):  # the crawl died
        connection.sendall(
            answer(
                links.encode() + b"<p><b>text</b><i>x</i>" * (size // 22),
                "200 OK",
                "Content-Type: text/html",
            )
        )
    return True


@pytest.mark.long
@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("megabytes", range(84, 121, 4))
def test_very_little_memory_loses_no_page(
    processes: str, megabytes: int, tmp_path: Path, figure: Figure
) -> None:
    """A crawl that memory lacks for is completed by resume, or exits 1 and by retry."""
    data_dir, room = str(tmp_path / "crawl"), megabytes << 20
    with RawServer(_tree) as server:
        words = ("--strategy", "fixed", "--delay", "0.001", "--max-rate", "unlimited")
        words += ("--processes", processes, "--data-dir", data_dir, "--duration", "60")
        words += ("--memory", "none")
        first = run(
            *("crawl", server.url(), *words),
            before=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
            within_s=600.0,
        )
        then = run("crawl", server.url(), *words[:-4], "--memory", "none", within_s=600.0)
        missing = _TREE_PAGES - sum(row["error"] is None for row in pages(tmp_path / "crawl"))
        last = run("retry", data_dir, within_s=600.0) if missing else then
        lost = _TREE_PAGES - sum(row["error"] is None for row in pages(tmp_path / "crawl"))

    figure("F29", f"{megabytes} MB: exit {first.code}, {missing} of 180 by retry, {lost} lost")
    assert then.code == (1 if missing else 0), then.said
    assert last.code == 0, last.said
    assert lost == 0
