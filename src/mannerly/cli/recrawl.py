"""`mannerly recrawl`: ask for the pages of a crawl again, and tell what has changed.

The options are those of `resume`: a recrawl is a run of the same crawl. One that was interrupted is
resumed by the same command, or by `mannerly resume`.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .config import resolve
from .crawl import KEPT, prepare, run_plan, with_options
from .stored import opened, require_crawl
from .terminal import failing_clearly, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value

_ORDER = ("new", "changed", "removed", "same")


def recrawl(directory: Path, **options: Value | None) -> None:
    """Ask for the pages of a crawl again; fetch only what has changed."""
    given = {name: value for name, value in options.items() if value is not None}
    with failing_clearly():
        require_crawl(directory)
        configuration = resolve(
            {**given, "data_dir": str(directory), "fresh": False},
            environment=os.environ,
            directory=None,
        )
        plan = prepare([], configuration)
        with opened(directory) as crawl:
            crawl.again()
        try:
            run_plan(plan)
        finally:
            if not configuration.value("quiet"):
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


with_options(
    recrawl,
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
