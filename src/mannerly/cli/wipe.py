"""`mannerly wipe`: delete a crawl, and only files that mannerly wrote."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .stored import Location, require_crawl
from .terminal import fail, failing_clearly, note, plain


def wipe(
    location: Location,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a crawl and all its records."""
    from mannerly.crawler.store import wipe as remove

    with failing_clearly():
        require_crawl(location)
    if not yes:
        if not sys.stdin.isatty():
            fail(f"deleting {location} cannot be undone: add --yes to confirm")
        if not typer.confirm(
            plain(f"Delete the crawl in {location}? This cannot be undone."), err=True
        ):
            raise typer.Exit(1)
    with failing_clearly():
        remove(location)
    note(f"Deleted {location}")
