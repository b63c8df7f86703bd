"""The file of a memory of hosts beside its use: made, tidied, and named when it cannot be used."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from mannerly.database.errors import StoreBusy, StoreError, StoreFull
from mannerly.database.files import DIRECTORY_MODE
from mannerly.database.sqlite import Database

from .base import (
    KEPT_S,
    PRIVATE_LESSON_S,
    SHORT_WAIT_S,
    STALE_S,
    is_private,
)
from .rows import HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.database.sqlite import Row
    from mannerly.politeness.model import Now

    from .base import LeaseTimes

MANY_HOSTS = 1_000_000  # beyond it the oldest lessons are removed
FORGOTTEN_S = 3600.0  # after which a dead holder's leases are removed

_OVER = f"iif(boot = ?, mono + next_in_s <= ?, next_in_s <= {SHORT_WAIT_S})"  # the wait of a host
_EXPIRE = f"DELETE FROM hosts WHERE wall < ? AND {_OVER}"  # noqa: S608
_OLD = f"SELECT host FROM hosts WHERE wall < ? AND {_OVER}"  # noqa: S608
_SHRINK = f"""
DELETE FROM hosts WHERE host IN (SELECT host FROM hosts WHERE {_OVER} ORDER BY wall LIMIT ?)
"""  # noqa: S608


def create(path: Path, times: LeaseTimes) -> None:
    """Make an empty file."""

    def make(new: Path) -> None:
        with closing(Database.create(new, HOSTS)) as file, file.transaction():
            file.execute("INSERT INTO times VALUES (?, ?, ?, ?, ?, ?)", times)

    put_in_place(path, make)


def put_in_place(path: Path, make: Callable[[Path], None]) -> None:
    """Make a file beside its place and put it there. Of several processes that do so, one wins."""
    path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for number in count():
        new = path.with_name(f"{path.name}.{os.getpid()}-{number}.new")
        with suppress(FileExistsError):
            make(new)
            break
    try:
        os.link(new, path)  # fails if another process was faster, and that is fine
    except FileExistsError:
        pass
    finally:
        new.unlink()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say of which file an error speaks, and what to do about it."""
    try:
        yield
    except (StoreBusy, StoreFull):
        raise
    except (StoreError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).partition(": ")[0]
        raise StoreError(
            f"cannot use the memory of hosts {path} ({why}): move it away to begin a new one, or "
            "name another (--memory FILE; memory=PATH in a program), or share nothing (--memory "
            "none; no memory= in a program)"
        ) from error


def tidy(file: Database, boot: str, now: Now) -> None:
    """Remove what is useless, inside a transaction."""
    over = (boot, now.mono)
    file.execute(
        "DELETE FROM holders WHERE boot <> ?1 OR typeof(mono) <> 'real' OR mono < ?2 - ?3 "
        "OR mono > ?2 + ?3 OR (?1 = '' AND mono > ?2 + ?4)",
        (boot, now.mono, FORGOTTEN_S, STALE_S),
    )
    if file.row("SELECT 1 FROM holders LIMIT 1") is None:
        file.execute("DELETE FROM leases")
        file.execute("DELETE FROM wishes")
    file.execute("DELETE FROM claimed WHERE holder NOT IN (SELECT number FROM holders)")
    # A wait that is not over stays, whatever the wall clock says.
    file.execute(_EXPIRE, (now.wall - KEPT_S, *over))
    row = file.row("SELECT count(*) FROM hosts")
    beyond = (0 if row is None else int(row[0])) - MANY_HOSTS
    if beyond > 0:
        file.execute(_SHRINK, (*over, beyond + MANY_HOSTS // 10))
    old: list[Row] = file.execute(_OLD, (now.wall - PRIVATE_LESSON_S, *over)).fetchall()
    file.executemany(
        "DELETE FROM hosts WHERE host = ?", [(host,) for (host,) in old if is_private(str(host))]
    )
