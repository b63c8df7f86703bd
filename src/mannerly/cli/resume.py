"""`mannerly resume`: resume a crawl with the seeds and the settings that it began with.

Configuration files are not read: the crawl's stored settings take their place, so that the result
does not depend on the working directory. The command line and the environment still win.
"""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - the command line reads the annotations
from typing import TYPE_CHECKING, Annotated

from mannerly.crawler.options.values import OptionError

from .command_line import (
    Argument,
    GivenOptions,
    OptionsOfCrawl,
)
from .config import resolve
from .crawl import KEPT, prepare, run_plan
from .stored import require_crawl
from .terminal import failing_clearly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.options.values import Value

    from .crawl import RunPlan


def resume(
    directory: Annotated[
        Path,
        Argument("DIR", "Data directory of the crawl."),
    ],
    options: Annotated[GivenOptions, OptionsOfCrawl(left_out=("data_dir", "fresh", *KEPT))],
) -> None:
    """Resume the crawl in a directory.

    The data directory of a worker joins its crawl again (mannerly help fleet).
    """
    with failing_clearly():
        run_plan(stored_plan(str(directory), options))


def stored_plan(location: str, given: Mapping[str, Value], verb: str = "Resuming") -> RunPlan:
    """Return the plan of a run that resumes a crawl; `given` are the options of this run.

    `verb` says what the run does with the crawl.

    `location` is a data directory, that of a worker, or the URL of a server: then `given` has the
    name of the crawl and the data directory of this worker.
    """
    from mannerly.crawler.store import crawl_of_member, in_server, is_in_server

    kept: dict[str, Value] = {"data_dir": location, "fresh": False}
    if is_in_server(location):
        if "crawl" not in given:
            raise OptionError(f"{location} may have several crawls: give the name (--crawl)")
        require_crawl(in_server(location, str(given["crawl"])))
        kept = {"redis_url": location, "fresh": False}
    elif "data_dir" in given:
        raise OptionError("--data-dir is for a crawl in a server: give redis://HOST:PORT/DB")
    elif (member := crawl_of_member(location)) is None:
        require_crawl(location)
    else:
        kept["redis_url"], kept["crawl"] = member
    configuration = resolve({**given, **kept}, environment=os.environ, directory=None)
    return prepare([], configuration, verb=verb)
