"""`mannerly export`: write a crawl's records to files, also while it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from .stored import Location, require_crawl
from .terminal import failing_clearly, note


def export(
    location: Location,
    *,
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Format by suffix: .jsonl, .csv or .xml (sitemap); - is stdout (JSON lines); "
            "repeatable.",
            show_default=False,
        ),
    ],
    include_skipped: Annotated[
        bool,
        typer.Option("--include-skipped", help="Add skipped and given-up URLs, with the reason."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Write a crawl's records to files."""
    from mannerly.exports import ExportError, Format, check_target
    from mannerly.exports import export as write

    with failing_clearly():
        require_crawl(location)
        for target in output:
            if check_target(target) is Format.XML and include_skipped:
                raise ExportError("a sitemap lists only pages: leave out --include-skipped")
        for target in output:
            outcome = write(location, target, include_skipped=include_skipped)
            for line in [] if quiet else outcome.described():
                note(line)
