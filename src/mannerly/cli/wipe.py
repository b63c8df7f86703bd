"""`mannerly wipe`: remove a crawl, and nothing that is not ours."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import Annotated

import typer

from .terminal import fail, failing_clearly, note


def wipe(
    directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a crawl's directory."""
    from mannerly.crawler.store.sqlite.directory import wipe as remove

    if not directory.is_dir():
        fail(f"there is no directory {directory}")
    if not yes:
        if not sys.stdin.isatty():
            fail(f"wiping {directory} cannot be undone: add --yes")
        if not typer.confirm(f"Remove the crawl in {directory} for good?", err=True):
            raise typer.Exit(1)
    with failing_clearly():
        remove(directory)
    note(f"Removed {directory}")
