"""Assign hosts to shards by rendezvous hashing: each shard gets a number, the highest wins.

    shard(site) = argmax over i of hash(site, seed = i)

The registrable domain is hashed, not the host, so that all hosts of a site are in one shard and may
share a budget. A shard that is added gets 1/N of the sites, and no other site moves; there is no
ring to balance and nothing to store but N. The hash is XXH3 (64 bit), whose values are fixed
by its specification, so every process and every version agrees.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

from mannerly.crawler.web.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable

# A crawl meets the same hosts again and again; a trap that invents hosts must not use up memory.
_CACHE_SIZE = 65_536


class Sharding:
    """Assigns hosts to `shards` shards, numbered from 0."""

    def __init__(self, shards: int) -> None:
        if shards < 1:
            raise ValueError(f"a crawl has 1 shard or more, not {shards}")
        self.shards = shards
        self.shard_of = _shard_of(shards)

    def __repr__(self) -> str:
        return f"<Sharding over {self.shards}>"

    def share(self, limit: int, shard: int) -> int:
        """Return a shard's part of a limit that holds for all of them: 1 at least."""
        part, rest = divmod(limit, self.shards)
        return max(1, part + (shard < rest))


@cache
def _shard_of(shards: int) -> Callable[[str], int]:
    """Return the function that finds the shard of a host; all crawls of a process share it."""
    if shards == 1:
        return _the_only  # the host's site need not be looked up

    @lru_cache(maxsize=_CACHE_SIZE)
    def shard_of(host: str) -> int:
        """Return the shard that owns a host (a name or a politeness key)."""
        site = site_of(host).encode()
        return max(range(shards), key=lambda shard: xxh3_64_intdigest(site, shard))

    return shard_of


def _the_only(_host: str) -> int:
    return 0
