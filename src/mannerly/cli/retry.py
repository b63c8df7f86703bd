"""`mannerly retry`: try URLs again that failed or were given up.

A running crawl does so within a second. A stopped one is resumed, with the settings that it began
with, as `mannerly resume` does.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from .stored import Location, opened
from .terminal import failing_clearly, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value


def retry(
    location: Location,
    *,
    failed: Annotated[
        bool, typer.Option("--failed", help="Pages with an error instead of a status.")
    ] = False,
    given_up: Annotated[
        bool,
        typer.Option("--given-up", help="URLs whose host or robots.txt could not be reached."),
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Only those of one host.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Try failed and given-up URLs again.

    Without --failed or --given-up, both. A crawl that is not running is resumed.
    """
    from .config import resolve
    from .crawl import prepare, run_plan

    with failing_clearly():
        with opened(location) as crawl:
            total = crawl.status().total
            crawl.retry(failed=failed, given_up=given_up, host=host)
            is_running = crawl.store.is_running()
        if not quiet:
            note(_said(total, failed=failed, given_up=given_up, host=host))
        if is_running:
            return
        given: dict[str, Value] = {"data_dir": location, "fresh": False, "quiet": quiet}
        given |= {"json": True} if json else {}
        run_plan(prepare([], resolve(given, environment=os.environ, directory=None)))


def retry_command(location: str) -> str:
    """Return the command that tries everything again that failed or was given up."""
    return f"mannerly retry {shlex.quote(location)}"


def _said(total: dict[str, int], *, failed: bool, given_up: bool, host: str | None) -> str:
    both = failed == given_up
    if host is not None:
        kinds = "failed and given-up" if both else "failed" if failed else "given-up"
        return f"Trying the {kinds} URLs of {safe_term(host)} again"
    counts = [f"{total['failed']:,} failed"] if failed or both else []
    counts += [f"{total['given_up']:,} given-up"] if given_up or both else []
    return f"Trying {' and '.join(counts)} URLs again"
