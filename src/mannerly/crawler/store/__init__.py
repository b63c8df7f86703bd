"""The durable state of crawls. The contracts are in `base`, in prose; read that first.

    base        CrawlStore (a whole crawl), ShardStore (one shard), and the values that they take
    fleet       the contract of a crawl that several runs share
    contract    the test suite that every implementation passes
    sqlite      a crawl in a directory of SQLite files
    valkey      a crawl in a Redis or Valkey server; records: its page records, in files

A crawl is named by its *location*: a path (a directory of SQLite files), or `SCHEME:REST` for a
store of another kind, such as `redis://HOST:PORT/DB#NAME`. The functions here take
any location:

    crawl = create_crawl("crawl-example", Manifest.new(seeds=[…], settings={}, shards=4, …))
    crawl = open_crawl("crawl-example")

To add a store, write a class with the class methods of `Implementation` whose instances are
`CrawlStore`s, and name it in `SCHEMES`. It is imported when a location with its scheme is used, so
importing this package loads no database.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from mannerly.database import SERVERS

from .base import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .base import CrawlStore, Manifest
    from .valkey.health import ServerFact

__all__ = [
    "OLDEST_SQLITE",
    "SCHEMES",
    "SERVERS",
    "Implementation",
    "check_home",
    "clear_home",
    "crawl_of_member",
    "crawls_in",
    "create_crawl",
    "examine",
    "examine_server",
    "exists",
    "failover_risk",
    "in_server",
    "is_in_server",
    "name_of",
    "open_crawl",
    "read_records_from",
    "repair",
    "sqlite_version",
    "wipe",
    "without_password",
]

OLDEST_SQLITE = (3, 51, 3)  # older ones have known faults

SCHEMES = dict.fromkeys(SERVERS, "mannerly.crawler.store.valkey.crawl:ValkeyCrawl")
"""By scheme: the module and the class of the implementation."""

_DIRECTORY = "mannerly.crawler.store.sqlite.crawl:SqliteCrawl"

_folders: list[Path] = []  # with records of members, for the whole process

# Two characters at least: `C:\crawl` is a path.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):")


class Implementation(Protocol):
    """The class methods of a store's class. `location` is passed with its scheme."""

    def create(self, location: str, manifest: Manifest) -> CrawlStore: ...

    def open(self, location: str) -> CrawlStore: ...

    def exists(self, location: str) -> bool: ...

    def wipe(self, location: str) -> None: ...

    def examine(self, location: str) -> list[str]: ...

    def repair(self, location: str) -> list[str]: ...


def create_crawl(location: str | Path, manifest: Manifest) -> CrawlStore:
    """Create an empty crawl. It is not held: call `hold` to run it.

    Raises:
        StoreError: there is a crawl or something else at this location, or it cannot be written.
    """
    return _implementation(location).create(str(location), manifest)


def is_in_server(location: str | Path) -> bool:
    """Return whether a location is that of a server, or of a crawl in one."""
    return isinstance(location, str) and location.partition("://")[0] in SERVERS


def in_server(url: str, name: str = "") -> str:
    """Return the location of a crawl in a server; without a name, the URL of the server.

    Raises:
        AddressRefused: it is no URL of a server, holds a password, or the name cannot be used.
    """
    from mannerly.database.address import located, parse

    return located(url, name) if name else parse(url, needs_name=False).location.removesuffix("#")


def without_password(url: str) -> str:
    """Return the URL of a server as it may be shown and stored."""
    from mannerly.database.address import without_password as shown

    return shown(url)


def crawl_of_member(path: str | Path) -> tuple[str, str] | None:
    """Return the server and the name of the crawl that a worker's data directory belongs to.

    None: it is no worker's.
    """
    from pathlib import Path

    from mannerly.database.address import parse

    from .valkey.home import MEMBER_FILE, read_member

    member = read_member(Path(path)) if (Path(path) / MEMBER_FILE).is_file() else None
    if member is None:
        return None
    address = parse(member.location)
    return address.server, address.name


def check_home(data_dir: Path, crawl: str | None, location: str) -> None:
    """Check that a worker's data directory is new, or belongs to this crawl (its id, if any).

    Raises:
        CrawlGone: it belongs to a crawl that is not in the server any more.
        StoreError: it belongs to another crawl.
    """
    from .valkey.home import check_home as check

    check(data_dir, crawl, location)


def clear_home(data_dir: Path) -> None:
    """Remove what a worker of a crawl in a server has written to its data directory."""
    from .valkey.home import clear_home as clear

    clear(data_dir)


def crawls_in(url: str) -> list[str]:
    """Return the names of the crawls in a server, in order."""
    from .valkey.listing import names_in

    return names_in(url)


def read_records_from(folders: Iterable[Path]) -> None:
    """Let this process look for the records of crawls in servers in these folders, too.

    A run with several processes has a folder for each, below its data directory.
    """
    _folders.extend(folder for folder in folders if folder not in _folders)


def record_folders() -> tuple[Path, ...]:
    """Return these folders."""
    return tuple(_folders)


def open_crawl(location: str | Path) -> CrawlStore:
    """Open a crawl, to look at it or (after `hold`) to run it.

    Raises:
        StoreMissing: there is no crawl.
        StoreError: it is damaged, incomplete, or of another version.
    """
    crawl = _implementation(location).open(str(location))
    if _folders and is_in_server(location):
        below = [each for folder in _folders for each in sorted(folder.glob("process-*"))]
        crawl.read_from([*_folders, *below])  # type: ignore[attr-defined]  # only these have records elsewhere
    return crawl


def exists(location: str | Path) -> bool:
    """Return whether there is a crawl at this location, usable or not."""
    return _implementation(location).exists(str(location))


def wipe(location: str | Path) -> None:
    """Remove a crawl; nothing happens if there is none.

    Raises:
        StoreError: a process works on it, or something else is stored there too.
    """
    _implementation(location).wipe(str(location))


def examine(location: str | Path) -> list[str]:
    """Return what is wrong with a crawl's state, one sentence each; nothing if it is sound.

    Everything is read, so it takes as long as an export. The crawl may be running.

    Raises:
        StoreMissing: there is no crawl.
        StoreError: it cannot even be opened.
    """
    return _implementation(location).examine(str(location))


def repair(location: str | Path) -> list[str]:
    """Repair what can be repaired of a crawl's state; return what was done, one sentence each.

    Raises:
        StoreInUse: a process works on it.
        StoreError: it cannot be repaired.
    """
    return _implementation(location).repair(str(location))


def name_of(location: str) -> str:
    """Return the name of a crawl as people see it: in a server its own, else its last directory.

    The runs of a job are called run-1, run-2 …, so they have the name of the job, too.
    """
    if is_in_server(location):
        from urllib.parse import unquote

        return unquote(location.partition("#")[2]) or location
    parts = re.split(r"[/\\:]", location.rstrip("/\\"))
    return "/".join(parts[-2:] if parts[-1].startswith("run-") else parts[-1:]) or location


def examine_server(url: str) -> list[ServerFact]:
    """Return the properties of a Redis or Valkey server, with what is wrong with each.

    Raises:
        StoreError: it cannot be reached, or the address is not acceptable.
    """
    from .valkey.health import examine_server as examine

    return examine(url)


def failover_risk(location: str) -> str | None:
    """Return what a failover of the server of a crawl could do, and what to type; None: nothing.

    Raises:
        StoreError: it cannot be asked.
    """
    from .valkey.health import unguarded_failover

    return unguarded_failover(location)


def _implementation(location: str | Path) -> Implementation:
    """Return the implementation for a location. A `Path` is always a directory."""
    name = _DIRECTORY
    if isinstance(location, str) and (match := _SCHEME.match(location)):
        scheme = match[1]
        if scheme in SCHEMES:
            name = SCHEMES[scheme]
        elif location.startswith(f"{scheme}://"):
            known = ", ".join(f"{each}:" for each in SCHEMES)
            raise StoreError(f"no store is known for {scheme}: use a directory, or one of {known}")
    module, _, attribute = name.partition(":")
    return cast("Implementation", getattr(import_module(module), attribute))


def sqlite_version() -> tuple[int, ...]:
    """Return the version of SQLite that crawls in directories use."""
    from mannerly.database.sqlite import library_version

    return library_version()
