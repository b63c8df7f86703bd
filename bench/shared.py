"""One budget a host: what it costs a crawl that is alone, and what five crawls of one host get.

    python -m bench shared                     both, fifteen minutes
    python -m bench shared --seconds 0         the cost only
    python -m bench shared --hosts 0           the five crawls only
    python -m bench shared --hosts 0 --crawls 1 --jobs 0 --programs 2 [--server]

**Cost.** A crawl of 100,000 hosts in virtual time (`simulated`), with a memory of hosts in a file
and without one, both at once on one core (`_shared_cost`). No other crawl wants its hosts, as in
nearly every crawl. The promise is broken if the 90 % interval of the median of the rounds' ratios
lies above it.

**Shares.** Three crawls and two jobs of `mannerly serve`, or programs with httpx (`--programs`),
all on one host of the demo's servers at a fixed delay, each a process of its own, for five minutes;
then the one that sends is killed with -9. They share a file, or a Valkey server (`--server`). The
log of the demo says who sent when: each has a User-Agent of its own. No gap may be below the delay,
each should have the same part of the requests, and after the kill another one goes on within a
minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import Request, urlopen

from tests.crawler.store.valkey_server import LocalServer

from bench import _figures
from bench._pairs import ROUNDS
from bench._shared_cost import measure
from mannerly.demo import DemoWeb, gaps_s, plain_sites, smallest_gap_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench._shared_cost import Cost
    from mannerly.demo import Record

HOSTS, SECONDS = 100_000, 300.0
DELAY_S = 0.5
NOTED_S = 0.02  # requests take unequal time from the client to the server
CRAWLS, JOBS = 3, 2
AFTER_KILL_S = 20.0
PORT = 7599
MOST_COST = 0.03
MOST_OFF, MOST_IDLE_S = 0.2, 60.0


class Shares(NamedTuple):
    """What the server of five crawls saw."""

    smallest_gap_s: float  # kill -9 included
    least: float  # of a crawl or program, against an equal part of all requests
    most: float
    idle_s: float  # from kill -9 of the sender to the next request of another

    @property
    def is_fair(self) -> bool:
        """Return whether every promise was kept."""
        is_spaced = self.smallest_gap_s >= DELAY_S - NOTED_S
        return is_spaced and max(-self.least, self.most) <= MOST_OFF and self.idle_s <= MOST_IDLE_S


def cost(hosts: int, rounds: int) -> Cost:
    """Measure and print the cost of sharing for a crawl that is alone."""
    found = measure(hosts, rounds)
    print(
        f"{hosts:,} hosts in {rounds} rounds: {found.alone_us:.0f} µs CPU a host alone, "
        f"{found.shared_us:.0f} µs with a memory: {found.ratio.median - 1:+.1%}, 90 % interval "
        f"{found.ratio.low - 1:+.1%} to {found.ratio.high - 1:+.1%} (at most {MOST_COST:+.0%})"
    )
    return found


def shares(
    seconds: float, crawls: int, jobs: int, programs: int = 0, *, in_server: bool = False
) -> Shares:
    """Run all on one host, then kill -9 the one that sends; print what its server saw."""
    names = [f"crawl-{n}" for n in range(crawls)] + [f"job-{n}" for n in range(jobs)]
    names += [f"program-{n}" for n in range(programs)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mannerly-bench-")))
        web = stack.enter_context(DemoWeb(plain_sites(1, pages=4000)))
        (seed,) = web.seeds()
        memory = str(folder / "hosts.sqlite")
        if in_server:
            memory = stack.enter_context(LocalServer()).url
        environment = os.environ | {"MANNERLY_MEMORY": memory, "PYTHONPATH": str(Path.cwd())}
        command = [sys.executable, "-m", "mannerly"]

        def start(*arguments: str, command: list[str] = command) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([*command, *arguments], env=environment, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        listen, network = f"--listen=127.0.0.1:{PORT}", "--allow-net=127.0.0.0/8"
        if jobs:
            start("serve", "--data-root=jobs", listen, network, f"--jobs={jobs}")
        options = {"delay": DELAY_S, "strategy": "fixed", "seeding_strategy": "none"}
        killable = {}
        for name in names[:crawls]:
            flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            place = f"--data-dir={name}"
            killable[name] = start("crawl", seed, *flags, "--quiet", f"--user-agent={name}", place)
        for name in names[crawls + jobs :]:
            program = [sys.executable, "-m", "bench._shared_program"]
            killable[name] = start(name, seed, memory, str(DELAY_S), command=program)
        for name in names[crawls : crawls + jobs]:
            _create_job({"seeds": [seed], "options": {**options, "user_agent": name}})
        time.sleep(seconds)
        log = web.log()
        while (sender := _sender(web.log()[-1])) not in killable:
            time.sleep(0.1)
        killable[sender].kill()
        killed_at = time.monotonic()
        while not (after := [each for each in web.log() if each.t > killed_at]):
            time.sleep(0.1)
        time.sleep(AFTER_KILL_S)
        found = _judged(names, log, web.log(), after[0].t - killed_at)
    _print_shares(names, log, found)
    return found


def _sender(record: Record) -> str:
    return record.user_agent.split()[0]


def _judged(names: list[str], log: list[Record], whole: list[Record], idle_s: float) -> Shares:
    by_name = Counter(map(_sender, log))
    share = len(log) / len(names)
    parts = [by_name[name] / share - 1.0 for name in names]
    return Shares(smallest_gap_s(whole), min(parts), max(parts), idle_s)


def _create_job(job: dict[str, object]) -> None:
    request = Request(
        f"http://127.0.0.1:{PORT}/api/jobs",
        json.dumps(job).encode(),
        {"Content-Type": "application/json"},
    )
    for _ in range(200):
        try:
            urlopen(request, timeout=10).close()
        except ConnectionError:
            time.sleep(0.1)
        except OSError as error:
            if not isinstance(getattr(error, "reason", None), ConnectionError):
                raise
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("mannerly serve does not answer")


def _print_shares(names: list[str], log: list[Record], found: Shares) -> None:
    gaps = gaps_s(log)
    print(f"{len(log)} requests, median gap {median(gaps):.3f} s, in force {DELAY_S:g} s")
    pairs = zip(gaps, pairwise(map(_sender, log)), strict=True)
    turns = [gap for gap, (one, other) in pairs if one != other]
    print(f"{len(turns)} times the sender changed; smallest gap there {min(turns):.3f} s")
    share = len(log) / len(names)
    for name in names:
        mine = [record.t for record in log if _sender(record) == name]
        longest = max((b - a for a, b in pairwise([log[0].t, *mine])), default=0.0)
        part = len(mine) / share - 1.0
        print(f"{name:<10} {len(mine):>5} ({part:+.0%}), longest wait {longest:.0f} s")
    print(f"smallest gap, kill -9 included: {found.smallest_gap_s:.3f} s")
    print(f"after kill -9 of the sender another one sent within {found.idle_s:.1f} s")


def run(options: Sequence[str] = ()) -> None:
    """Measure and print; exit with 1 if a promise was not kept."""
    parser = ArgumentParser(prog="python -m bench shared")
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--crawls", type=int, default=CRAWLS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--server", action="store_true")
    asked = parser.parse_args(list(options))
    figures: dict[str, object] = {}
    is_kept = True
    if asked.hosts:
        spent = cost(asked.hosts, asked.rounds)
        figures["cost"] = {**spent._asdict(), "ratio": spent.ratio._asdict()}
        is_kept &= spent.ratio.low <= 1.0 + MOST_COST
    if asked.seconds:
        found = shares(
            asked.seconds, asked.crawls, asked.jobs, asked.programs, in_server=asked.server
        )
        figures["shares"] = found._asdict()
        is_kept &= found.is_fair
    _figures.write("shared", figures)
    if not is_kept:
        sys.exit(1)


if __name__ == "__main__":
    run()
