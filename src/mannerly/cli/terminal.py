"""What may reach a terminal, and how a command fails.

Whatever was crawled was written by a stranger: a title may hold escape sequences that repaint the
screen, a host name marks that turn the line around. `safe_term` is the one door for such text.
Nothing here is given to a markup language, so brackets are only brackets.

    exit 2   the user can mend it: usage, configuration, a file
    exit 4   the crawl's state is locked or damaged
"""

from __future__ import annotations

import errno
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

USAGE, STATE = 2, 4
_LONGEST = 400  # of crawled text in one place: about five lines of a terminal


def safe_term(text: str, *, limit: int = _LONGEST) -> str:
    """Crawled text with everything invisible spelled out, and not endless."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in cut
    )


def tell(text: str) -> None:
    """Write to stderr at once. That nobody reads it any more is no reason to stop crawling."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def note(text: str) -> None:
    """A line for the person at the terminal: stderr, so that stdout stays data."""
    tell(f"{text}\n")


def fail(why: str, code: int = USAGE) -> NoReturn:
    """One sentence for the user, and an exit code."""
    note(f"mannerly: {why}")
    raise typer.Exit(code)


@contextmanager
def failing_clearly() -> Iterator[None]:
    """Turn what a user or a disk can do wrong into one sentence and its exit code."""
    from mannerly.crawler.store.base import StoreError

    try:
        yield
    except StoreError as error:
        fail(str(error), STATE)
    except ValueError as error:  # SettingsError, ConfigError, SeedError, ExportError
        fail(str(error))
    except OSError as error:
        if error.errno == errno.EPIPE:  # `| head`: typer ends in silence
            raise
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def print_json(value: object) -> None:
    """One JSON document on stdout. Infinite numbers, which JSON lacks, become null."""
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())


def table(head: list[str], rows: list[list[str]], *, left: int = 1) -> str:
    """Columns under their names; the first `left` of them are words, the others numbers."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
