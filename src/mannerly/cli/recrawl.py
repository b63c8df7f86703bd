"""`mannerly recrawl`: ask for the pages of a crawl again, and tell what has changed.

The options are those of `resume`: a recrawl is a run of the same crawl. One that was interrupted is
resumed by the same command, or by `mannerly resume`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from .command_line import given_options, takes_options
from .crawl import run_plan
from .resume import stored_plan
from .stored import opened
from .terminal import failing_clearly, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value

_ORDER = ("new", "changed", "removed", "same")


@takes_options
def recrawl(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Data directory of the crawl.", show_default=False),
    ],
    **options: Value | None,
) -> None:
    """Ask for the pages of a crawl again; fetch only what has changed."""
    with failing_clearly():
        plan = stored_plan(str(directory), given_options(options))
        with opened(directory) as crawl:
            crawl.again()
        try:
            run_plan(plan)
        finally:
            if not plan.configuration.value("quiet"):
                note(_changes(directory))


def _changes(directory: Path) -> str:
    """Return how many pages have changed, in words."""
    with opened(directory) as crawl:
        counts = Counter(record.change for record in crawl.pages())
    unknown = counts.pop(None, 0)
    parts = [f"{counts[name]:,} {name}" for name in _ORDER]
    parts += [f"{unknown:,} not checked"] if unknown else []
    shown = safe_term(f"mannerly export {directory} -o changed.jsonl --changed")
    return f"Pages: {', '.join(parts)}. Export the new and changed ones: {shown}"
