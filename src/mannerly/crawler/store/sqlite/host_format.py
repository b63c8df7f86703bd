"""Make the file of a memory of hosts, and say what is wrong with one that cannot be used."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreBusy, StoreError, StoreFull

from .database import Database
from .files import DIRECTORY_MODE
from .schema import HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.store.host_memory import LeaseTimes


def create(path: Path, times: LeaseTimes) -> None:
    """Make an empty file. Of several processes that do this at once, one wins."""
    path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for number in count():
        new = path.with_name(f"{path.name}.{os.getpid()}-{number}.new")
        with suppress(FileExistsError):
            with closing(Database.create(new, HOSTS)) as file, file.transaction():
                file.execute("INSERT INTO times VALUES (?, ?, ?, ?, ?, ?)", times)
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
            f"cannot use the memory of hosts {path} ({why}): move it away to begin a new one, name "
            "another with --memory FILE, or go on without one with --memory none"
        ) from error
