"""`mannerly resume|recrawl`: go on with a crawl, or ask for its pages again and tell the changes.

Configuration files are not read: the crawl's stored settings take their place, so that the result
does not depend on the working directory. The command line and the environment still win.

A recrawl is a run of the same crawl, with the same options; `mannerly resume` goes on with one that
was interrupted, too. With the URL of a server the command is one worker of the recrawl, and others
may join. A page whose record is on another machine is asked for without validators, and compared
when both records are read.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path  # noqa: TC003 - the command line reads the annotations
from typing import TYPE_CHECKING, Annotated

from mannerly.crawler.options.values import OptionError
from mannerly.crawler.web.words import many

from .command_line import (
    Argument,
    GivenOptions,
    OptionsOfCrawl,
)
from .config import resolve
from .crawl import KEPT, prepare, run_plan
from .stored import Location, opened, require_crawl
from .terminal import failing_clearly, note, safe_term

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


_ORDER = ("new", "changed", "removed", "same")


OPTIONS = OptionsOfCrawl(
    left_out=("fresh", "redis_url", "enable_redis", "shards", *KEPT),  # a crawl keeps them
    helps={
        "data_dir": "With a server's URL in place of DIR: the data directory of this worker.",
        "crawl": "With a server's URL in place of DIR: the name of the crawl.",
    },
)


def recrawl(location: Location, options: Annotated[GivenOptions, OPTIONS]) -> None:
    """Crawl again, and fetch only what has changed.

    Every page is asked for again, with its validators; new, changed and removed pages are counted.
    With the URL of a server, --crawl NAME and --data-dir DIR: as one worker of the crawl.
    """
    with failing_clearly():
        plan = stored_plan(location, options, verb="Checking the pages of")
        with opened(plan.location) as crawl:
            if unnamed := crawl.unnamed_records():
                raise OptionError(_said_unnamed(unnamed))
            if (lost := crawl.lost_records()) and not plan.configuration.value("quiet"):
                note(_said_elsewhere(lost))
            crawl.again()
        try:
            run_plan(plan)
        finally:
            if not plan.configuration.value("quiet"):
                note(_changes(location, plan))


def _said_unnamed(count: int) -> str:
    return (
        f"{many(count, 'record')} of pages are on shared storage, and a recrawl compares every "
        "page with its record: give its directory as --segments, to all workers"
    )


def _said_elsewhere(count: int) -> str:
    return (
        f"{many(count, 'page')} have their record on another machine: the worker that has it asks "
        "whether the page has changed, any other fetches it in full. What has changed is known to "
        "an export with the directories of all workers (--data-dir)"
    )


def _changes(location: str, plan: RunPlan) -> str:
    """Return how many pages have changed, in words."""
    with opened(plan.location) as crawl:
        counts = Counter(record.change for record in crawl.pages())
    unknown = counts.pop(None, 0)
    parts = [f"{counts[name]:,} {name}" for name in _ORDER]
    if unclear := counts["unclear"]:
        parts.append(f"{unclear:,} unclear (other bytes, no digest of the text before)")
    parts += [f"{unknown:,} not checked"] if unknown else []
    where = location
    if plan.member is not None:
        server, _, name = plan.location.partition("#")
        where = f"{server} --crawl {name} --data-dir {plan.member.segments or plan.member.data_dir}"
    shown = safe_term(f"mannerly export {where} -o changed.jsonl --changed")
    return f"Pages: {', '.join(parts)}. Export the new and changed ones: {shown}"
