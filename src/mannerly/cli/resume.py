"""`mannerly resume`: resume a crawl with the seeds and the settings that it began with.

Configuration files are not read: the crawl's stored settings take their place, so that the result
does not depend on the working directory. The command line and the environment still win.
"""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from .command_line import CrawlCommand, given_options, takes_options
from .config import resolve
from .crawl import KEPT, prepare, run_plan
from .stored import require_crawl
from .terminal import failing_clearly

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value


@takes_options
def resume(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Data directory of the crawl.", show_default=False),
    ],
    **options: Value | None,
) -> None:
    """Resume the crawl in a directory.

    The data directory of a worker joins its crawl again (mannerly help fleet).
    """
    from mannerly.crawler.store import crawl_of_member

    given = given_options(options)
    with failing_clearly():
        member = crawl_of_member(directory)
        if member is None:
            require_crawl(directory)
        else:
            given["redis_url"], given["crawl"] = member
        configuration = resolve(
            {**given, "data_dir": str(directory), "fresh": False},
            environment=os.environ,
            directory=None,
        )
        run_plan(prepare([], configuration))


class ResumeCommand(CrawlCommand):
    """Leaves out what a resumed crawl keeps."""

    left_out = ("data_dir", "fresh", *KEPT)
