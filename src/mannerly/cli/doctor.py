"""`mannerly doctor|wipe`: check and repair the state of a crawl, or delete a crawl.

Without a directory `doctor` says what this installation can do, and what it lacks. `wipe` deletes
only files that mannerly wrote.
"""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import click

from mannerly.crawler.options.option import declaration

from .command_line import Argument
from .stored import Location, require_crawl
from .terminal import STATE, fail, failing_clearly, note, plain, print_json, safe_term, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Finding(Protocol):
    """One property of an installation or a server; `lack` says what is wrong with it."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def lack(self) -> str: ...

    @property
    def is_problem(self) -> bool: ...

    def _asdict(self) -> dict[str, Any]: ...


def doctor(
    location: Annotated[
        str | None,
        Argument(
            "[DIR]",
            "Data directory of a crawl, or the URL of a Redis or Valkey server "
            "(redis://HOST:PORT); without it, the installation is checked.",
            is_crawl=True,
        ),
    ] = None,
    *,
    repair: Annotated[
        bool,
        declaration(
            "Mend counters, move unreadable rows aside, rebuild damaged files, and forget "
            "kept answers that a power cut has taken.",
            is_order=True,
        ),
    ] = False,
    deep: Annotated[
        bool,
        declaration("Check the digest of every kept answer, too."),
    ] = False,
    json: Annotated[
        bool, declaration("Print what was found about the installation as JSON.")
    ] = False,
) -> None:
    """Check a crawl's state (exit 4 if damaged) or the installation.

    With DIR everything in it is read, which takes as long as an export. Without it, the versions
    and abilities of this installation are printed; exit 1 if a crawl would not be safe with them.
    """
    if location is None:
        if repair:
            fail("--repair needs the data directory of a crawl")
        if deep:
            fail("--deep needs the data directory of a crawl")
        _examine_installation(as_json=json)
        return
    from mannerly.crawler import store

    if "://" in location and "#" not in location:
        _examine_server(location, as_json=json)
        return
    with failing_clearly():
        require_crawl(location)
        if repair:
            for done in store.repair(location):
                note(safe_term(done))
        found = store.examine(location)
        if deep:
            from mannerly.exports.soundness import damaged_records

            found += damaged_records(location)
    for problem in found:
        click.echo(safe_term(problem))
    if found:
        hint = (
            ""
            if repair
            else f"; mannerly doctor --repair {quote(location)} mends what can be mended"
        )
        note(f"{location} is damaged{hint}")
        raise click.exceptions.Exit(STATE)
    note(f"{location} is sound")


def _examine_server(url: str, *, as_json: bool) -> None:
    """Say what is wrong with a server; exit 1 if a crawl would be refused or may lose something."""
    from mannerly.crawler import store

    with failing_clearly():
        found = store.examine_server(url)
    _show(
        found,
        sound="This server is fit for a crawl",
        unfit="This server is not fit for a crawl",
        as_json=as_json,
    )


def _examine_installation(*, as_json: bool) -> None:
    from .installation import findings

    _show(
        findings(),
        sound="This installation is sound. To check a crawl: mannerly doctor DIR",
        unfit="This installation is not fit to crawl",
        as_json=as_json,
    )


def _show(found: Sequence[_Finding], *, sound: str, unfit: str, as_json: bool) -> None:
    """Print findings as a table or as JSON; exit 1 if one of them is a problem."""
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        rows = [[each.name, each.value, each.lack] for each in found]
        show(table(["part", "found", ""], rows, left=3))
    problems = [each for each in found if each.is_problem]
    if problems:
        note(f"{unfit}: " + "; ".join(each.lack for each in problems))
        raise click.exceptions.Exit(1)
    if not as_json:
        note(sound)


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
