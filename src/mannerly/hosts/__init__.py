"""Hosts as processes and machines share them: what is known of each, who may send to it now.

    base        the contract (`HostMemory`), in prose: read that first
    inprocess   the rules, in this process
    file        a SQLite file of the user, for all processes of a machine      journal, rows, table
    server      a Redis or Valkey server, for several machines
    leases      the sign of life of a process that holds hosts      turns: held, handed over
    programs    the same for programs with a client of their own, in a thread
    robots      the robots.txt files of programs, in the same place
    suite       the promises, as tests that every implementation passes

Importing this package loads no database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.database import SERVERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .base import HostMemory, LeaseTimes

__all__ = ["examine_host_memory", "host_memory_location", "open_host_memory"]


def host_memory_location(chosen: str | None, environment: Mapping[str, str]) -> str | None:
    """Return where the memory of hosts is that a crawl uses; None: nowhere.

    Without a choice it is MANNERLY_MEMORY, or a file of the user. A place where nothing can be
    written (a home directory that is read-only) is no reason not to crawl, unless it was chosen.
    """
    chosen = chosen or environment.get("MANNERLY_MEMORY")
    if chosen is not None:
        return None if chosen == "none" else chosen
    import os
    from pathlib import Path

    home = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "~")) / ".local/state"
    path = Path(home).expanduser() / "mannerly" / "hosts.sqlite"
    existing = next(place for place in (path, *path.parents) if place.exists())
    return str(path) if existing == path or os.access(existing, os.W_OK) else None


def open_host_memory(
    location: str | Path, *, boot: str | None = None, times: LeaseTimes | None = None
) -> HostMemory:
    """Open a memory of hosts, and create it if there is none.

    Args:
        location: the path of a file, `memory:NAME` for one in this process, or the URL of a Redis
            or Valkey server.
        boot: the name of the machine's boot, within which monotonic instants compare; by default
            the system is asked for it.
        times: how long leases last. A file keeps those with which it was made.

    Raises:
        StoreError: it is damaged, of another version, or cannot be written.
    """
    if isinstance(location, str) and location.startswith("memory:"):
        from .inprocess import MemoryHosts

        return MemoryHosts(location, times)
    if isinstance(location, str) and location.partition("://")[0] in SERVERS:
        from .server import ValkeyHosts

        return ValkeyHosts(location, times)
    from pathlib import Path

    from mannerly.database.ages import boot_id

    from .file import HostFile

    return HostFile(Path(location), boot=boot_id() if boot is None else boot, times=times)


def examine_host_memory(path: Path) -> list[str]:
    """Return what makes no sense in the file of a memory of hosts; a crawl mends it as it reads it.

    Raises:
        StoreError: it is damaged, of another version, or cannot be read.
    """
    from .table import examine

    return examine(path)
