"""The location of a crawl: open a stored one, or choose the directory of a new one.

A location without a crawl is a usage error (exit 2); a crawl that cannot be read is damaged (exit
4). All of this works while the crawl runs.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from mannerly.crawler.web.words import many

from .command_line import Argument
from .terminal import fail, note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mannerly.crawler.options.values import Value
    from mannerly.crawler.stored import StoredCrawl

    from .seeds import SeedSource

Location = Annotated[
    str,
    Argument("DIR", "Data directory of the crawl, or the URL of a server.", is_crawl=True),
]
"""The argument that names a crawl: a directory, or SCHEME:REST for another store."""


@contextmanager
def opened(location: str | Path) -> Iterator[StoredCrawl]:
    """Open a crawl to show it or to steer it; exit with code 2 if there is none.

    Raises:
        StoreError: it is damaged, or of another version.
    """
    from mannerly.crawler.store.base import StoreMissing
    from mannerly.crawler.stored import open_crawl

    try:
        crawl = open_crawl(location)
    except StoreMissing as error:
        _fail_missing(error, location)
    with crawl:
        yield crawl


def require_crawl(location: str | Path) -> None:
    """Exit with code 2 if there is no crawl at a location."""
    from mannerly.crawler.store import exists

    if not exists(location):
        _fail_missing(f"there is no crawl in {location}", location)


def when(crawl: StoredCrawl) -> str:
    """Return a note for an order to a crawl that does not run: when it takes effect."""
    return "" if crawl.store.is_running() else " (takes effect when the crawl is resumed)"


def has_all_records(crawl: StoredCrawl) -> bool:
    """Return whether the records of all pages can be read; if not, say what to do."""
    from mannerly.crawler.store.base import retry_missing_command

    missing = crawl.lost_records()
    if missing:
        note(
            f"mannerly: {many(missing, 'record')} of pages are missing: give the data directory of "
            "every worker, or that of --segments (--data-dir). If a disk is lost, they are fetched "
            f"again by `{retry_missing_command(crawl.location)}`"
        )
    return not missing


def _fail_missing(why: object, location: str | Path) -> NoReturn:
    from mannerly.crawler.store import crawl_of_member, is_in_server

    member = None if is_in_server(location) else crawl_of_member(location)
    if member is not None:
        server, name = member
        fail(
            f"{location} is the data directory of a worker, and its crawl is in a server: give "
            f"{server} --crawl {shlex.quote(name)}"
        )
    if is_in_server(location):
        server = str(location).partition("#")[0]
        fail(f"{why}: `mannerly status {server}` lists the crawls there")
    fail(f"{why}: give the data directory of a crawl")


def default_location(sources: list[SeedSource]) -> str:
    """Return the name of a crawl's directory, in characters that every file system accepts.

    `crawl-` and the host of the seeds; of several hosts the first, and how many more; or the name
    of the one file that the seeds were read from.
    """
    from mannerly.crawler.web.urls import host_key_of

    from .seeds import STANDARD_INPUT

    file = sources[0].file
    if len(sources) == 1 and file is not None and file != STANDARD_INPUT:
        stem = Path(file).name.split(".")[0]
        return "crawl-" + (re.sub(r"[^\w-]+", "-", stem).strip("-") or "seeds")
    hosts = list(dict.fromkeys(host_key_of(url) for source in sources for url in source.urls))
    more = f"-and-{len(hosts) - 1}-more" if len(hosts) > 1 else ""
    return "crawl-" + hosts[0].replace(":", "-").strip("[]") + more


@contextmanager
def named_or_temporary(
    urls: list[str] | None, given: Mapping[str, Value], command: str
) -> Iterator[tuple[str, bool]]:
    """Yield a directory and whether it stays: that of --data-dir, or one removed at the end."""
    if named := given.get("data_dir"):
        yield str(named), True
        return
    if not urls:
        fail(f"nothing to {command}: give a URL or a file of URLs")
    with tempfile.TemporaryDirectory(prefix=f"mannerly-{command}-") as made:
        yield str(Path(made) / "crawl"), False
