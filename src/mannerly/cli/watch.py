"""`mannerly watch`: show a crawl of another process as a live table (`watching`)."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

from mannerly.crawler.options.option import declaration
from mannerly.crawler.web.words import many

from .endings import resume_command
from .stored import Location, opened
from .terminal import fail, failing_clearly, note


def watch(
    location: Location,
    *,
    interval: Annotated[
        float, declaration("Seconds between two updates, at least.", low=0.2, metavar="S")
    ] = 1.0,
) -> None:
    """Show a running crawl live: what it does, and its hosts."""
    from .screen import is_foreground
    from .watching import Watch, whole_screen

    if not sys.stdout.isatty() or not is_foreground(sys.stdout.fileno()):
        fail("watch needs a terminal; without one: mannerly status DIR --json, mannerly hosts DIR")
    with failing_clearly(), opened(location) as crawl:
        if not crawl.store.is_running():
            fail(f"the crawl in {crawl.location} is not running: {_how_to_go_on(crawl.location)}")
        with whole_screen() as keys:
            seen = Watch(crawl, interval, keys).run()
    if seen.status.state in ("running", "waiting", "paused"):
        note(f"The crawl goes on. To stop it: mannerly stop {shlex.quote(crawl.location)}")
    else:
        pages = many(seen.status.total["fetched"] + seen.status.total["failed"], "page")
        note(f"The crawl has ended ({seen.status.state}) with {pages}: {_how_to_go_on(location)}")


def _how_to_go_on(location: str) -> str:
    return f"to resume it: {resume_command(location)}"
