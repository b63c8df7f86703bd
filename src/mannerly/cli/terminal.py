"""Print to the terminal safely, and end a command with an error.

No text can be trusted, whether it was crawled or comes from a local file: a title, a file name or a
key of a configuration file may have escape sequences that repaint the screen, or marks that reverse
the line. So everything is printed by `show`, `note`, `fail` or `print_json`, which escape invisible
characters; `safe_term` also cuts long text. There is no markup: brackets have no meaning.

    exit 2   the user can correct it: usage, configuration, a file
    exit 4   the data directory is in use or damaged, or the crawl is not in its server any more
    exit 5   the server cannot be reached
"""

from __future__ import annotations

import errno
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

INCOMPLETE, USAGE, STATE = 1, 2, 4
_LONGEST = 400  # characters of one crawled text: about five lines of a terminal


def safe_term(text: str, *, limit: int = _LONGEST) -> str:
    """Return crawled text with invisible characters escaped, cut after `limit` characters."""
    return _visible(text if len(text) <= limit else text[: limit - 1] + "…")


def plain(text: str) -> str:
    """Return lines of text with every other invisible character escaped."""
    return text if text.isprintable() else "\n".join(map(_visible, text.split("\n")))


def json_escaped(text: str) -> str:
    """Return JSON or a TOML value with invisible characters escaped as JSON escapes them."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _json_escape(character) for character in text
    )


def tell(text: str) -> None:
    """Write to stderr at once. A closed stderr is ignored: the crawl goes on."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def note(text: str) -> None:
    """Print a line for the user to stderr: stdout is for data."""
    tell(f"{plain(text)}\n")


def show(text: str) -> None:
    """Print lines of data to stdout."""
    click.echo(plain(text))


def fail(why: str, code: int = USAGE) -> NoReturn:
    """Print an error and exit with a code."""
    note(f"mannerly: {why}")
    raise click.exceptions.Exit(code)


@contextmanager
def failing_clearly() -> Iterator[None]:
    """Turn errors of the user or the disk into one sentence and an exit code."""
    from mannerly.crawler.store.base import StoreError, StoreFull

    try:
        yield
    except StoreFull as error:  # the state is sound: there is only no room for more
        fail(f"{error}, and run the same command again")
    except StoreError as error:
        fail(str(error), error.exit_code)
    except ValueError as error:  # SettingsError, ConfigError, SeedError, ExportError
        fail(str(error))
    except MemoryError:
        fail("out of memory: lower --memory-limit or --concurrency, and run the same command again")
    except OSError as error:
        if (
            error.errno == errno.EPIPE
        ):  # the output is closed (`| head`): click ends without a message
            raise
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def print_json(value: object) -> None:
    """Print one JSON document to stdout. Infinite numbers, which JSON lacks, become null."""
    import msgspec

    click.echo(json_escaped(msgspec.json.encode(value).decode()))


def table(head: list[str], rows: list[list[str]], *, left: int = 1) -> str:
    """Return a table; the first `left` columns are aligned left, the others right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in line
    )


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
