"""`python -m torture [--seed N] [--minutes M] [--round I]`: rounds until the time is over."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from .round import Report, Round


def main() -> int:
    """Return 0 if no promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run (default: random)")
    parser.add_argument("--minutes", type=float, default=5.0, help="(default 5)")
    parser.add_argument("--round", type=int, default=None, help="this round of the seed alone")
    parser.add_argument("--keep", action="store_true", help="keep the directories of all rounds")
    chosen = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    folder = Path(mkdtemp(prefix="mannerly-torture-"))
    print(f"seed {seed}, {chosen.minutes:g} minutes, in {folder}", flush=True)
    # Started by `nohup`, or in the background of a shell, the crawls would ignore these, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    deadline = time.monotonic() + 60 * chosen.minutes
    number = 0 if chosen.round is None else chosen.round
    rounds: list[Report] = []
    while not rounds or (chosen.round is None and time.monotonic() < deadline):
        directory = folder / str(number)
        report = Round(f"{seed}/{number}", directory).run()
        rounds.append(report)
        _print(number, report)
        if report.violations:
            print(f"  repeat: python -m torture --seed {seed} --round {number} --keep")
            print(f"  its files: {directory}", flush=True)
        elif not chosen.keep:
            shutil.rmtree(directory)
        number += 1
    broken = sum(len(report.violations) for report in rounds)
    print(
        f"seed {seed}: {len(rounds)} rounds, {sum(r.runs for r in rounds)} runs, "
        f"{sum(r.requests for r in rounds):,} requests, {sum(r.pages for r in rounds):,} pages, "
        f"peak {max(r.peak_bytes for r in rounds) / 1e6:.0f} MB, {broken} violations"
    )
    if not broken and not chosen.keep:
        shutil.rmtree(folder)
    return 1 if broken else 0


def _print(number: int, report: Report) -> None:
    print(
        f"round {number}: {report.runs} runs, {report.requests} requests, {report.pages} pages, "
        f"peak {report.peak_bytes / 1e6:.0f} MB, silence {report.longest_silence_s:.0f} s, "
        f"{report.seconds:.0f} s; {', '.join(report.acts) or 'nothing done'}",
        flush=True,
    )
    for violation in report.violations[:20]:
        print(f"  {violation.promise}: {violation.text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
