"""`python -m mutants [--only TEXT] [--rows [ROW …]] [--jobs N]`: print which tests notice mutants.

With --rows those of the rows of docs/requirements.md run, or of some of them, and the column of
mutants of that page is written.
"""

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
from .requirements import NO_CODE, PAGE, filled, mutants_of, rows
from .run import Tree


def main() -> int:
    """Return 0 if every mutant was killed."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name, file or promise has this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once (default 2)")
    parser.add_argument("--rows", nargs="*", metavar="ROW", help="mutants of docs/requirements.md")
    chosen = parser.parse_args()
    mutants = [each for each in MUTANTS if chosen.only in f"{each.promise} {each.name} {each.file}"]
    if chosen.rows is not None:
        wanted = set(chosen.rows)
        mutants = [
            each for each in mutants if wanted.intersection(each.rows) or (each.rows and not wanted)
        ]
        _write_rows()
    if not mutants:
        rows_named = f" and states one of {' '.join(chosen.rows)}" if chosen.rows else ""
        print(f"no mutant has {chosen.only!r} in its promise, name or file{rows_named}")
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


def _write_rows() -> None:
    """Write the column of mutants, and print the rows that lack one."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(filled(page, MUTANTS), "utf-8")
    bare = [row for row in rows(page) if row not in NO_CODE and not mutants_of(row, MUTANTS)]
    if bare:
        print(f"rows without a mutant: {' '.join(bare)}")


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
