"""Write the report of a crawl as it is now, in a process of its own.

A report reads every page of a crawl, which may take as much memory as a crawl: the page's process
stays small, and a report that is not waited for any more is ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import mannerly

from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_AT_ONCE = 2
LONGEST_S = 1800.0


class Reports:
    """The reports that are being written. Two at once; others wait for their turn."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def write(self, location: str, file: Path) -> None:
        """Write the report of a crawl to a file.

        Raises:
            Problem: it cannot be made; the text says why.
        """
        async with self._places:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "mannerly", "report", location),
                *("--output", str(file), "--quiet"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(os.environ),
            )
            try:
                _, said = await asyncio.wait_for(process.communicate(), LONGEST_S)
            except TimeoutError:
                raise Problem(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"the report took more than {LONGEST_S / 60:.0f} minutes",
                ) from None
            finally:
                with suppress(ProcessLookupError):  # it has ended
                    process.kill()
        if process.returncode:
            words = said.decode(errors="replace").strip() or "its process died"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"there is no report: {words[-500:]}")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the process uses this package."""
    source = str(Path(mannerly.__file__).parent.parent)
    paths = [source, *filter(None, [given.get("PYTHONPATH")])]
    return {**given, "PYTHONPATH": os.pathsep.join(paths)}
