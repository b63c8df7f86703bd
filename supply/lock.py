"""The lock files: every distribution that an installation may take, by version and SHA-256.

    locks/run.txt    what mannerly needs to run
    locks/serve.txt  the same versions, and the extras `serve` and `redis`, for the container image
    locks/dev.txt    the same versions, the extras, and what tests, checks and the build need
    locks/audit.txt  pip-audit, which has an environment of its own
    locks/replay.txt pywb, likewise: it needs a redis from 2017

They hold for every platform and every Python from 3.11 on, name no index, and are in pip's own
format: `pip install --require-hashes -r locks/dev.txt`. `uv` makes them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "locks"
BUILD = "hatchling\neditables\n"  # the build backend, so that CI's build needs no download
AUDITOR = "pip-audit>=2.9\n"
REPLAYER = "pywb>=2.9\nsetuptools<81\n"

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: *; *([^\\]+?))? *\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    """One line of a lock file."""

    name: str
    version: str
    marker: str  # empty: everywhere
    hashes: tuple[str, ...]  # SHA-256 of each file of this version, for any platform


def read_lock(path: Path) -> list[Pin]:
    """Return the pins of a lock file.

    Raises:
        ValueError: a line is neither a pin, a hash nor a comment, or a pin has no hash.
    """
    pins: list[Pin] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := _PIN.match(line):
            pins.append(Pin(found[1], found[2], found[3] or "", ()))
        elif hashes := _HASH.findall(line):
            pins[-1] = pins[-1]._replace(hashes=(*pins[-1].hashes, *hashes))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ValueError(f"{path.name}:{number}: neither a pin nor a hash: {line}")
    for pin in pins:
        if not pin.hashes:
            raise ValueError(f"{path.name}: {pin.name} has no hash")
    return pins


def make_locks(uv: str, *, upgrade: bool) -> None:
    """Write the lock files with `uv`: the versions that are there stay, unless `upgrade`."""
    LOCKS.mkdir(exist_ok=True)
    words = [uv, "pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
    words += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header"]
    words += ["--no-annotate", *(["--upgrade"] if upgrade else [])]
    names = ("run", "serve", "dev", "audit", "replay")
    run, serve, dev, audit, replay = (LOCKS / f"{name}.txt" for name in names)
    _compile([*words, "pyproject.toml", "-o", str(run)])
    same = ["-c", str(run)]
    extras = ("--extra", "serve", "--extra", "redis")
    _compile([*words, *extras, *same, "pyproject.toml", "-o", str(serve)])
    everything = ["--all-extras", "--group", "dev"]  # the tests use every extra
    _compile([*words, *everything, *same, "pyproject.toml", "-", "-o", str(dev)], BUILD)
    _compile([*words, "-", "-o", str(audit)], AUDITOR)
    _compile([*words, "-", "-o", str(replay)], REPLAYER)


def _compile(words: list[str], text: str = "") -> None:
    subprocess.run(words, cwd=ROOT, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
