"""`python -m tests.hostile [--quick]`: run all tests, write docs/explanation/reliability.md."""

from __future__ import annotations

import argparse
import sys

from tests.hostile.table import PAGE, measure, page


def main() -> int:
    """Return 0 if every test of every row passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the long cases")
    outcomes = measure(with_long=not parser.parse_args().quick)
    PAGE.write_text(page(outcomes), "utf-8")
    failed = sorted(test for test, passed in outcomes.passed.items() if not passed)
    print(f"{len(outcomes.passed)} tests in {outcomes.seconds:.0f} s; written: {PAGE}")
    for test in failed:
        print(f"failed: {test}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
