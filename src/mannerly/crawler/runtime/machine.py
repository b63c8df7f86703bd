"""Open files and memory of this machine: what it allows, what is given back, what it lacks.

The limit of open files (`ulimit -n`) in force is raised as far as the system lets us. What remains
after the files of the store is for connections; a third of those may be kept alive, or be looking
up a name.

The C library of Linux keeps freed blocks of up to 32 MB for itself once a block of that size was
freed: a crawl that has met large bodies would keep a third more than it uses. With fixed limits
every body above 128 KB is a mapping of its own, which goes away with the body.
"""

from __future__ import annotations

import sys
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import LocalError

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

OWN = 24  # sockets of the loop, standard streams, a helper that is being started
OF_A_SHARD = 10  # files of its store
ENOUGH = 8192  # open files; more would be of no use

# Numbers of mallopt(3), and what they are set to: bytes from which a block is mapped, and bytes at
# the end of the heap that are kept.
MALLOC = {-3: 128 * 1024, -1: 256 * 1024}

FULL_PATIENCE_S = 300.0  # with a full disk or a lack; then the crawl ends, and can be resumed
STARVED_AGAIN_S = 30.0  # without a lack: the next one is another
STARVED_PAUSE_S = 1.0  # without new requests, after one for which memory or descriptors lacked

LACKS = {
    LocalError.NO_DESCRIPTORS: "out of file descriptors: raise ulimit -n, or lower --concurrency",
    LocalError.NO_MEMORY: (
        "out of memory: raise ulimit -v, or lower --concurrency and --memory-limit"
    ),
}


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


def return_freed_memory() -> None:
    """Have the C library of this process give freed memory back to the system at once."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for name, value in MALLOC.items():
            mallopt(name, value)


class Shortage:
    """A lack of memory or of descriptors, as requests meet it: the next ones wait for a moment."""

    def __init__(self) -> None:
        self.since: Instant | None = None  # None: requests succeed
        self.resume_at: Instant = -inf  # no request is started before
        self._words: str | None = None

    def met(self, lack: LocalError, now: Instant) -> None:
        """Note that a request has lacked something.

        Raises:
            OSError: no request has succeeded for FULL_PATIENCE_S.
        """
        if self.since is None or now - self.resume_at > STARVED_AGAIN_S:
            self.since = now
        if now - self.since >= FULL_PATIENCE_S:
            raise OSError(f"{LACKS[lack]} (waited {FULL_PATIENCE_S:g} s)")
        self._words = LACKS[lack]
        self.resume_at = now + STARVED_PAUSE_S

    def words(self, now: Instant) -> str | None:
        """Return what is lacking, while no request is started for that reason."""
        return self._words if now < self.resume_at else None
