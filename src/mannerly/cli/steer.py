"""`mannerly pause|unpause|stop|add|set`: steer a crawl from anywhere.

Each appends a control record to the crawl's store: a running crawl acts on it within a second, a
stopped one when it is resumed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .figures import many
from .stored import Location, opened, when
from .terminal import fail, failing_clearly, note, safe_term


def pause(location: Location) -> None:
    """Start no request until `unpause`; those under way come to their end."""
    with failing_clearly(), opened(location) as crawl:
        crawl.pause()
        note(f"Paused {crawl.location}{when(crawl)}: go on with `mannerly unpause`")


def unpause(location: Location) -> None:
    """Go on with a crawl that was paused."""
    with failing_clearly(), opened(location) as crawl:
        crawl.unpause()
        note(f"Unpaused {crawl.location}{when(crawl)}")


def stop(location: Location) -> None:
    """End a running crawl; it can be resumed."""
    with failing_clearly(), opened(location) as crawl:
        if not crawl.store.is_running():
            fail(f"the crawl in {crawl.location} is not running")
        crawl.stop()
        note(f"Stopping {crawl.location}: resume it with `mannerly resume`")


def add(
    location: Location,
    urls: Annotated[
        list[str], typer.Argument(metavar="URL|FILE|-", help="URLs, or files with one URL a line.")
    ],
) -> None:
    """Add seeds to a crawl."""
    from .seeds import read_seeds

    with failing_clearly(), opened(location) as crawl:
        seeds = read_seeds(urls)
        crawl.add(seeds)
        note(f"Added {many(len(seeds), 'seed')} to {crawl.location}{when(crawl)}")


def change(
    location: Location,
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE",
            help="max_rate, max_urls, duration, workers, exclude; none: no limit.",
        ),
    ],
) -> None:
    """Change options of a crawl while it runs, such as max_rate=2."""
    with failing_clearly(), opened(location) as crawl:
        options = dict(_assigned(text) for text in assignments)
        crawl.set(**options)  # type: ignore[arg-type]  # checked there, name by name
        note(f"Set {safe_term(', '.join(assignments))}{when(crawl)}")


def _assigned(text: str) -> tuple[str, object]:
    from mannerly.crawler.options.table import OPTIONS
    from mannerly.crawler.options.values import from_text

    key, equals, value = text.partition("=")
    name = key.strip().replace("-", "_")
    if not equals:
        fail(f"{safe_term(text)} is not KEY=VALUE: write it like max_rate=2")
    if value.strip().lower() == "none":
        return name, None
    option = OPTIONS.get(name)
    return name, value if option is None else from_text(option, value.strip())
