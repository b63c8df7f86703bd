"""The health check of a container: `python -m mannerly.service.health [PORT]`.

It exits with 0 if the service or the live page of this container is ready (`/readyz`), with 1 and
the reason if it is not. A container that serves nothing, such as a crawl without a page, is well as
long as it runs: its end is its exit code. Without PORT it is found in the commands that run here.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DEFAULT_PORT = 7465
TIMEOUT_S = 5.0


def served_port(commands: Iterable[list[str]], environment: Mapping[str, str]) -> int | None:
    """Return the port on which one of these commands serves; None if none of them does."""
    for words in commands:
        options = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
        options |= {name: value for name, value in pairwise(words) if value}
        if "serve" in words:
            place = options.get("--listen") or environment.get("MANNERLY_LISTEN", "")
        elif "--dashboard" in options:
            place = options["--dashboard"]
        else:
            continue
        port = place.rpartition(":")[2]
        return int(port) if port.isdecimal() else DEFAULT_PORT
    return None


def problem_of(port: int) -> str | None:
    """Return why what serves on a port of this machine is not ready; None: it is."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=TIMEOUT_S):
            return None
    except HTTPError as error:
        with error, suppress(ValueError):
            return str(json.loads(error.read())["detail"])
        return str(error)
    except OSError as error:
        return f"no answer on port {port}: {error}"


def _commands() -> Iterator[list[str]]:
    """Yield the words of every command that runs here, but for this one."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            words = file.read_bytes().decode(errors="replace").split("\0")
            if "mannerly.service.health" not in words:
                yield words


def main(arguments: list[str]) -> int:
    """Check, and return the exit code."""
    port = int(arguments[0]) if arguments else served_port(_commands(), os.environ)
    problem = None if port is None else problem_of(port)
    if problem is not None:
        sys.stderr.write(f"{problem}\n")
    return int(problem is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
