"""`mannerly export`: a crawl's records as a file, whether it runs or not."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import Annotated

import typer

from .stored import require_crawl
from .terminal import failing_clearly, note


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    *,
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="By suffix: .jsonl .csv .xml (sitemap); - is stdout (JSON lines); repeatable.",
            show_default=False,
        ),
    ],
    include_skipped: Annotated[
        bool, typer.Option("--include-skipped", help="URLs that were not fetched, too, and why.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Write a crawl's records to files."""
    from mannerly.exports import ExportError, Format, check_target
    from mannerly.exports import export as write

    with failing_clearly():
        require_crawl(directory)
        for target in output:
            if check_target(target) is Format.XML and include_skipped:
                raise ExportError("a sitemap lists pages only: leave out --include-skipped")
        for target in output:
            outcome = write(directory, target, include_skipped=include_skipped)
            for line in [] if quiet else outcome.told():
                note(line)
