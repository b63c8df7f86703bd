"""Run 50 jobs on 20 hosts, five at a time, and kill -9 the service five times.

    python -m bench jobs                    50 jobs, a few minutes
    python -m bench jobs --jobs 10 --hosts 5 --pages 20

The judges are the servers' log and the journal of the jobs (`tests/service/many_jobs.py`): every
page of every job is recorded once, no more is asked for again than was in flight at the kills,
every change of a state is legal, and no instant of a schedule is skipped or served twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.service.many_jobs import many_jobs

from . import _figures


def run(arguments: list[str] | None = None) -> None:
    """Run the jobs, and print what was counted; exit with 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="bench jobs")
    sizes = {"jobs": 50, "hosts": 20, "at-once": 5, "kills": 5, "pages": 40, "minutes": 3}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = vars(parser.parse_args(arguments or []))
    with tempfile.TemporaryDirectory() as root:
        verdict = many_jobs(Path(root), **wanted)
    print(f"{wanted['jobs']} jobs, {wanted['hosts']} hosts, {wanted['at_once']} at a time,")
    print(f"{wanted['kills']} kills of the service, {verdict.seconds:.0f} s")
    print(f"  pages recorded          {verdict.pages:>8,}")
    print(f"  requests for pages      {verdict.requests:>8,}")
    print(f"  asked for again         {verdict.again:>8,}  (at most {verdict.most_again:,})")
    print(f"  changes of a state      {verdict.moves:>8,}")
    print(f"  runs of a schedule      {verdict.runs:>8,}")
    for problem in verdict.problems:
        print(f"  PROBLEM: {problem}")
    _figures.write("jobs", asdict(verdict))
    if verdict.problems:
        sys.exit(1)
