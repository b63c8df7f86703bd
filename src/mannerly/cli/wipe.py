"""`mannerly wipe`: delete a crawl, and only files that mannerly wrote."""

from __future__ import annotations

import sys
from typing import Annotated

import click

from mannerly.crawler.options.option import declaration

from .stored import Location, require_crawl
from .terminal import fail, failing_clearly, note, plain


def wipe(
    location: Location,
    *,
    yes: Annotated[
        bool, declaration("Do not ask for confirmation.", short="-y", is_order=True)
    ] = False,
) -> None:
    """Delete a crawl and all its records."""
    from mannerly.crawler.store import wipe as remove

    with failing_clearly():
        require_crawl(location)
    if not yes:
        if not sys.stdin.isatty():
            fail(f"deleting {location} cannot be undone: add --yes to confirm")
        if not click.confirm(
            plain(f"Delete the crawl in {location}? This cannot be undone."), err=True
        ):
            raise click.exceptions.Exit(1)
    with failing_clearly():
        remove(location)
    note(f"Deleted {location}")
