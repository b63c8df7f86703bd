"""`python -m tests.docs PAGE…`: run the commands of pages and print what they print.

For writing and mending pages: copy what a reader should see.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.console import complaints, run
from tests.docs.pretend_web import PretendWeb


def main(names: list[str]) -> int:
    """Return 1 if a page says something that its commands do not do."""
    wrong = 0
    for name in names:
        text = Path(name).read_text("utf-8")
        with tempfile.TemporaryDirectory() as place, PretendWeb(Path(place)) as web:
            directory = Path(place) / "here"
            directory.mkdir()
            done = run(text, web, directory)
        for each in done:
            print(f"$ {each.command}\n{each.printed}" + (f"[{each.status}]" * bool(each.status)))
        for complaint in complaints(text, done):
            wrong = 1
            print(f"--- {name}\n{complaint}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
