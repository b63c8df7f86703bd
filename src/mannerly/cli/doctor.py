"""`mannerly doctor`: say whether a crawl's state is sound, and repair what can be repaired."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from .stored import Location, require_crawl
from .terminal import STATE, failing_clearly, note, safe_term


def doctor(
    location: Location,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Mend counters, move unreadable rows aside, rebuild damaged files.",
        ),
    ] = False,
) -> None:
    """Check whether the state of a crawl is sound; exit 4 if it is not.

    Everything is read, so it takes as long as an export.
    """
    from mannerly.crawler import store

    with failing_clearly():
        require_crawl(location)
        if repair:
            for done in store.repair(location):
                note(safe_term(done))
        found = store.examine(location)
    for problem in found:
        typer.echo(safe_term(problem))
    if found:
        hint = (
            ""
            if repair
            else f"; mannerly doctor --repair {quote(location)} mends what can be mended"
        )
        note(f"{location} is damaged{hint}")
        raise typer.Exit(STATE)
    note(f"{location} is sound")
