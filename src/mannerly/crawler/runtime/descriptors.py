"""Requests in flight that the limit of open files (`ulimit -n`) allows a process.

The limit in force is raised as far as the system lets us. What remains after the files of the store
is for connections; a third of those may be kept alive, or be looking up a name.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

OWN = 24  # sockets of the loop, standard streams, a helper that is being started
OF_A_SHARD = 10  # files of its store
ENOUGH = 8192  # open files; more would be of no use


class Room(NamedTuple):
    """The most connections and requests in flight of a process with some shards."""

    connections: int
    requests: int


def room(shards: int) -> Room:
    """Return what the limit of open files allows."""
    most = _open_files()
    if most is None:
        return Room(sys.maxsize, sys.maxsize)
    connections = max(2, most - OWN - OF_A_SHARD * shards)
    return Room(connections, max(1, connections * 2 // 3))


def too_few(concurrency: int, processes: int) -> str | None:
    """Return a sentence if fewer requests will be in flight than asked for; None if not."""
    allowed = room(1).requests * processes
    if allowed >= concurrency:
        return None
    return (
        f"only {_open_files()} files may be open at once: at most {allowed} requests in flight "
        f"instead of {concurrency}; raise the limit with `ulimit -n 4096`"
    )


def _open_files() -> int | None:
    """Return how many files this process may open; None: there is no limit to ask for."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # the system allows less than it says
            pass
    return None if soft == resource.RLIM_INFINITY else soft
