"""One budget a host: what it costs a crawl that is alone, and what five crawls of one host get.

    python -m bench shared                     both, ten minutes
    python -m bench shared --seconds 0         the cost only
    python -m bench shared --hosts 0           the five crawls only

**Cost.** A crawl of 100,000 hosts in virtual time (`simulated`), with a memory of hosts in a file
and without one, in alternating rounds; the figure is the median of the rounds' ratios of CPU time.
No other crawl wants its hosts, as in nearly every crawl.

**Shares.** Three crawls and two jobs of `mannerly serve`, all on one host of the demo's servers at
a fixed delay, each a process of its own, for five minutes. The server's log says who sent when:
each crawl has a User-Agent of its own. No gap may be below the delay, whoever sends, and each crawl
should have a fifth of the requests.
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
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from bench._rounds import Rounds
from bench.simulated import settings_of, web_of
from mannerly.demo import DemoWeb, plain_sites
from mannerly.simulation.crawl import simulate_crawl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.demo import Record

HOSTS, ROUNDS, SECONDS = 100_000, 5, 300.0
DELAY_S = 0.5
CRAWLS, JOBS = 3, 2
PORT = 7599


def cost(hosts: int, rounds: int) -> float:
    """Return how much more CPU time a crawl takes that shares its hosts: 0.01 is one per cent."""

    def measure(memory: str | None) -> float:
        settings, faults = settings_of()
        began = time.process_time()
        simulate_crawl(
            web_of(hosts),
            settings,
            faults=faults,
            step_s=0.05,
            check_every=10**9,
            memory=memory,
            turn_s=0.25,
        )
        return (time.process_time() - began) / hosts

    with TemporaryDirectory(prefix="mannerly-bench-") as folder:
        measured = Rounds(
            {
                "alone": lambda _: measure(None),
                "shared": lambda number: measure(f"{folder}/hosts-{number}.sqlite"),
            },
            rounds,
        )
    ratio = measured.ratio("shared", "alone") - 1.0
    print(
        f"{hosts:,} hosts, {rounds} rounds: {measured.microseconds('alone'):.0f} µs a host alone, "
        f"{measured.microseconds('shared'):.0f} µs with a memory: {ratio:+.1%}"
    )
    return ratio


def shares(seconds: float) -> list[Record]:
    """Run five crawls of one host; print and return what its server saw."""
    names = [f"crawl-{n}" for n in range(CRAWLS)] + [f"job-{n}" for n in range(JOBS)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mannerly-bench-")))
        web = stack.enter_context(DemoWeb(plain_sites(1, pages=4000)))
        (seed,) = web.seeds()
        environment = os.environ | {"MANNERLY_MEMORY": str(folder / "hosts.sqlite")}
        command = [sys.executable, "-m", "mannerly"]

        def start(*arguments: str) -> None:
            process = subprocess.Popen([*command, *arguments], env=environment, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        listen, network = f"--listen=127.0.0.1:{PORT}", "--allow-net=127.0.0.0/8"
        start("serve", "--data-root=jobs", listen, network, f"--jobs={JOBS}")
        options = {"delay": DELAY_S, "strategy": "fixed", "seeding_strategy": "none"}
        for name in names[:CRAWLS]:
            flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            start("crawl", seed, *flags, "--quiet", f"--user-agent={name}", f"--data-dir={name}")
        for name in names[CRAWLS:]:
            _create_job({"seeds": [seed], "options": {**options, "user_agent": name}})
        time.sleep(seconds)
        log = web.log()
    _print_shares(names, log)
    return log


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


def _print_shares(names: list[str], log: list[Record]) -> None:
    by_name = Counter(record.user_agent.split()[0] for record in log)
    times = sorted(record.t for record in log)
    gaps = [after - before for before, after in pairwise(times)]
    print(f"{len(log)} requests, smallest gap {min(gaps):.3f} s, median {median(gaps):.3f} s")
    senders = [record.user_agent for record in sorted(log)]
    turns = [gap for gap, (one, other) in zip(gaps, pairwise(senders), strict=True) if one != other]
    print(f"{len(turns)} times the sender changed; smallest gap there {min(turns):.3f} s")
    share = len(log) / len(names)
    for name in names:
        mine = sorted(record.t for record in log if record.user_agent.startswith(name))
        longest = max((b - a for a, b in pairwise([times[0], *mine])), default=0.0)
        part = by_name[name] / share - 1.0
        print(f"{name:<10} {by_name[name]:>5} ({part:+.0%}), longest wait {longest:.0f} s")


def run(options: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = ArgumentParser(prog="python -m bench shared")
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    asked = parser.parse_args(list(options))
    if asked.hosts:
        cost(asked.hosts, asked.rounds)
    if asked.seconds:
        shares(asked.seconds)


if __name__ == "__main__":
    run()
