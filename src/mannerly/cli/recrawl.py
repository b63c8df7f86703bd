"""`mannerly recrawl`: ask for the pages of a crawl again, and tell what has changed.

The options are those of `resume`: a recrawl is a run of the same crawl. One that was interrupted is
resumed by the same command, or by `mannerly resume`. With the URL of a server the command is one
worker of the recrawl, and others may join. A page whose record is on another machine is asked for
without validators, and compared when both records are read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from mannerly.crawler.options.values import OptionError

from .command_line import GivenOptions, OptionsOfCrawl
from .crawl import KEPT, run_plan
from .figures import many
from .resume import stored_plan
from .stored import Location, opened
from .terminal import failing_clearly, note, safe_term

if TYPE_CHECKING:
    from .crawl import RunPlan

_ORDER = ("new", "changed", "removed", "same")


OPTIONS = OptionsOfCrawl(
    left_out=("fresh", "redis_url", "enable_redis", "shards", *KEPT),  # a crawl keeps them
    helps={
        "data_dir": "With a server's URL in place of DIR: the data directory of this worker.",
        "crawl": "With a server's URL in place of DIR: the name of the crawl.",
    },
)


def recrawl(location: Location, options: Annotated[GivenOptions, OPTIONS]) -> None:
    """Ask for the pages of a crawl again; fetch only what has changed.

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
