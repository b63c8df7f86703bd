"""`mannerly resume`: resume a crawl with the seeds and the settings that it began with.

Configuration files are not read: the crawl's stored settings take their place, so that the result
does not depend on the working directory. The command line and the environment still win.
"""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .config import resolve
from .crawl import KEPT, prepare, run_plan, with_options
from .stored import require_crawl
from .terminal import failing_clearly

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value


def resume(directory: Path, **options: Value | None) -> None:
    """Resume the crawl in a directory."""
    given = {name: value for name, value in options.items() if value is not None}
    with failing_clearly():
        require_crawl(directory)
        configuration = resolve(
            {**given, "data_dir": str(directory), "fresh": False},
            environment=os.environ,
            directory=None,
        )
        run_plan(prepare([], configuration))


with_options(
    resume,
    inspect.Parameter(
        "directory",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[
            Path,
            typer.Argument(metavar="DIR", help="Data directory of the crawl.", show_default=False),
        ],
    ),
    without=("data_dir", "fresh", *KEPT),
)
