"""Run all benchmarks (`python -m bench`) or one (`python -m bench strategies --seeds 2`).

A benchmark is a module of this package with a function `run()`. Options after a single name are
passed to that function as a list of strings.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import takewhile
from pkgutil import iter_modules

from bench import __path__ as here


def main(arguments: list[str]) -> int:
    # No benchmark learns from another one: those about the memory of hosts name a file.
    os.environ.setdefault("MANNERLY_MEMORY", "none")
    words = list(takewhile(lambda word: not word.startswith("-"), arguments))
    options = arguments[len(words) :]
    names = [word.replace("-", "_") for word in words]
    known = {module.name for module in iter_modules(here) if not module.name.startswith("_")}
    if unknown := [name for name in names if name not in known]:
        print(f"no benchmark is called {unknown[0]!r}: {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    if options and len(names) != 1:
        print("options need the name of one benchmark before them", file=sys.stderr)
        return 2
    for name in names or sorted(known):
        benchmark = getattr(import_module(f"bench.{name}"), "run", None)
        if benchmark is None:  # a helper module of other benchmarks, such as `rivals`
            continue
        print(f"\n== {name} ==\n", flush=True)
        benchmark(*([options] if options else []))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
