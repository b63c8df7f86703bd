"""`python -m supply lock|bom|audit`: make the lock files, the bill of materials, the audit."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Run one of the commands; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m supply", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    lock = commands.add_parser("lock", help="write locks/*.txt from pyproject.toml")
    lock.add_argument("--uv", default="uv", help="the uv program (default: from the PATH)")
    lock.add_argument("--upgrade", action="store_true", help="take the newest versions")
    bom = commands.add_parser("bom", help="write the bill of materials (CycloneDX JSON)")
    bom.add_argument("-o", "--output", type=Path, help="a file (default: standard output)")
    commands.add_parser("audit", help="ask for known security holes; needs network")
    chosen = parser.parse_args()
    if chosen.command == "lock":
        from .lock import make_locks

        make_locks(chosen.uv, upgrade=chosen.upgrade)
        return 0
    if chosen.command == "bom":
        from .bom import bill_of_materials

        text = bill_of_materials()
        if chosen.output:
            chosen.output.write_text(text, "utf-8")
        else:
            sys.stdout.write(text)
        return 0
    from .audit import audit

    code, text = audit()
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
