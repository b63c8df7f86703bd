"""`mannerly wipe`: remove a crawl, and nothing that mannerly did not write."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .stored import Location, require_crawl
from .terminal import fail, failing_clearly, note


def wipe(
    location: Location,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove a crawl and all its records."""
    from mannerly.crawler.store import wipe as remove

    with failing_clearly():
        require_crawl(location)
    if not yes:
        if not sys.stdin.isatty():
            fail(f"wiping {location} cannot be undone: add --yes")
        if not typer.confirm(f"Remove the crawl in {location} for good?", err=True):
            raise typer.Exit(1)
    with failing_clearly():
        remove(location)
    note(f"Removed {location}")
