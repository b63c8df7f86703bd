"""Crawls on loopback as programs make them, in this process and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.crawler.runtime.harness import page_requests, url_of
from tests.harness.commands import ROOT
from tests.harness.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.options.keywords import CrawlOptions
    from mannerly.demo import DemoWeb

# As fast as loopback allows, links alone.
FAST: CrawlOptions = {
    "strategy": "fixed",
    "max_rate": "unlimited",
    "seeding_strategy": "none",
    "scope": "any",
    "allow_net": "127.0.0.0/8",
    "timeout": 5.0,
}

_HEAD = """
import json, os, sys, time
import mannerly
given = json.loads(sys.argv[1])
seeds, options = given["seeds"], given["options"]

def say(*words):
    # One system call: a line is either written or not, whenever the process is killed.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

"""


class Program:
    """A program that uses the library, in a process of its own.

    It finds `seeds` and `options`, and writes lines with `say`.
    """

    def __init__(
        self,
        text: str,
        web: DemoWeb,
        out: Path,
        *,
        cwd: Path | None = None,
        by_file: bool = False,
        **options: Any,
    ) -> None:
        self.out = out
        source = _HEAD + textwrap.dedent(text)
        script = out.with_suffix(".py")
        script.write_text(source)
        given = json.dumps({"seeds": web.seeds(), "options": {**FAST, **options}})
        temporary = out.with_suffix(".tmp")
        temporary.mkdir(exist_ok=True)
        self.temporary = temporary
        command = [sys.executable, str(script)] if by_file else [sys.executable, "-c", source]
        with out.open("ab") as stdout:
            self.process = subprocess.Popen(
                [*command, given],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd=cwd or out.parent,
                env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(temporary)},
            )

    @property
    def lines(self) -> list[str]:
        """Return what was said so far, by this program and those before it on the same file."""
        return self.out.read_text().splitlines()

    def kill(self) -> None:
        """SIGKILL; the program's workers, if it has any, have to leave by themselves."""
        self.process.kill()
        self.process.communicate()

    def end(self) -> list[str]:
        """Wait for the program to end well, and return what was said."""
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, errors.decode()
        assert not errors, errors.decode()
        return self.lines


def requests_of(web: DemoWeb) -> Counter[str]:
    """Return how often each page was asked for, by the web's log."""
    return Counter(url_of(record) for record in page_requests(web.log()))
