"""`python -m mutants [--only TEXT] [--jobs N]`: apply each mutant, print which test noticed it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from .catalogue import MUTANTS
from .model import Fate, Mutant, Result
from .run import Tree


def main() -> int:
    """Return 0 if every mutant was killed."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name, file or promise has this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once (default 2)")
    chosen = parser.parse_args()
    mutants = [each for each in MUTANTS if chosen.only in f"{each.promise} {each.name} {each.file}"]
    if not mutants:
        print(f"no mutant has {chosen.only!r} in its promise, name or file")
        return 2
    with TemporaryDirectory(prefix="mannerly-mutants-") as folder:
        trees = [Tree(Path(folder) / str(number)) for number in range(chosen.jobs)]
        failing = trees[0].failing(sorted({test for each in mutants for test in each.tests}))
        if failing:
            print(f"these fail on the tree as it is, mend them first: {', '.join(sorted(failing))}")
        results = _try_all(mutants, trees, failing)
    counts = Counter(result.fate for result in results)
    for result in results:
        if result.fate is not Fate.KILLED:
            print(f"\n{result.fate.value}: {result.mutant.name} ({result.mutant.file})")
            print(f"  - {result.mutant.old}\n  + {result.mutant.new}\n  {result.detail}")
    print(f"\n{counts[Fate.KILLED]} of {len(results)} mutants killed")
    return 0 if counts[Fate.KILLED] == len(results) else 1


def _try_all(mutants: list[Mutant], trees: list[Tree], failing: set[str]) -> list[Result]:
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def attempt(mutant: Mutant) -> Result:
        tree = free.get()
        try:
            if failing.intersection(mutant.tests):
                result = Result(mutant, Fate.BROKEN, "its test fails without it", 0.0)
            else:
                result = tree.try_mutant(mutant)
        finally:
            free.put(tree)
        print(
            f"{result.fate.value:9} {mutant.promise} {mutant.name:52} "
            f"{result.seconds:5.1f} s  {result.detail}",
            flush=True,
        )
        return result

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(attempt, mutants))


if __name__ == "__main__":
    sys.exit(main())
