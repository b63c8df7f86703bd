"""A filter in front of a shard's index: a URL that is certainly new costs no look-up.

A URL is known here by a keyed 64-bit fingerprint. The key is secret and drawn anew by every process
(63 random bits), so that no site can prepare links that collide.

The filter is a *negative* one. It answers "certainly new" or "perhaps known":

    certainly new   stored without a look-up
    perhaps known   the index decides (an exact check)

A false positive therefore costs one look-up and can lose no URL. A Bloom filter of n items at rate
p takes n·log₂(1/p)·1.44 bits, 12 MB for ten million at 1 %. When one is full a second of twice the
capacity and half the rate is chained behind it, so the rate of the whole stays under 2p however far
a crawl outgrows what was expected.

Nothing is dumped: after a restart the filter is filled again from the index, a slice at a time.
This module knows no URL rules, no scope and no database.
"""

from __future__ import annotations

from itertools import islice
from random import SystemRandom
from struct import unpack
from typing import TYPE_CHECKING

from rbloom import Bloom
from xxhash import xxh3_64_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DEFAULT_EXPECTED = 10_000_000
DEFAULT_FALSE_POSITIVE_RATE = 0.01
_GROWTH = 2


def fingerprints(texts: Sequence[str], seed: int) -> tuple[int, ...]:
    """Return a 64-bit number for each URL. Many at once are twice as fast as one by one."""
    digests = [xxh3_64_digest(text.encode(), seed) for text in texts]
    return unpack(f">{len(digests)}q", b"".join(digests))


class SeenFilter:
    """A set of fingerprints in about ten bits each, which may hold more than was added.

    Invariant: every fingerprint that was ever added is in one filter of the chain.
    """

    __slots__ = ("_chain", "_newest", "_room")

    def __init__(
        self,
        expected: int = DEFAULT_EXPECTED,
        false_positive_rate: float = DEFAULT_FALSE_POSITIVE_RATE,
    ) -> None:
        if expected < 1:
            raise ValueError(f"expected must be 1 or more, not {expected}")
        if not 0.0 < false_positive_rate < 0.5:
            raise ValueError(
                f"false_positive_rate must lie between 0 and 0.5, not {false_positive_rate}"
            )
        self._chain: list[tuple[Bloom, int, float]] = []
        self._extend(expected, false_positive_rate)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} filters={len(self._chain)} "
            f"capacity={self.capacity} bytes={self.approx_bytes}>"
        )

    @property
    def capacity(self) -> int:
        """The number of items that the filters made so far can hold at their rate."""
        return sum(capacity for _, capacity, _ in self._chain)

    @property
    def approx_bytes(self) -> int:
        """The memory of the filters, in bytes."""
        return sum(bloom.size_in_bits for bloom, _, _ in self._chain) // 8

    def maybe_seen(self, fp: int) -> bool:
        """Return False if it was never added; True: it may have been, so ask the index."""
        for bloom, _, _ in self._chain:  # noqa: SIM110 - a generator takes five times as long
            if fp in bloom:
                return True
        return False

    def update(self, fps: Iterable[int]) -> None:
        """Add fingerprints. One that seems to be known is not added: all its bits are set."""
        new = list(set(fps))
        for bloom, _, _ in self._chain:
            new = [fp for fp in new if fp not in bloom]
        while new:
            if self._room == 0:
                _, capacity, rate = self._chain[-1]
                self._extend(capacity * _GROWTH, rate / _GROWTH)
            part = new[: self._room]
            self._newest.update(part)
            self._room -= len(part)
            new = [fp for fp in new[len(part) :] if fp not in self._newest]

    def _extend(self, capacity: int, rate: float) -> None:
        # `hash` of an int is the same in every process, and the fingerprint is already keyed.
        self._newest = Bloom(capacity, rate, hash)
        self._room = capacity
        self._chain.append((self._newest, capacity, rate))


class MaybeKnown:
    """The URLs that an index may know; it cannot know the others.

    An index that has URLs from earlier is read a slice at a time (`catch_up`), so that a resumed
    crawl starts at once; until the end is reached, every URL may be known. The filter is keyed anew
    each time: it is never stored.
    """

    __slots__ = ("_earlier", "_filter", "_seed")

    def __init__(self, earlier: Iterator[str] | None, expected: int = 1_000_000) -> None:
        self._earlier = earlier
        self._filter = SeenFilter(expected)
        self._seed = SystemRandom().getrandbits(63)

    def learn(self, urls: Sequence[str]) -> None:
        """Add URLs that the index has now."""
        self._filter.update(fingerprints(urls, self._seed))

    def among(self, urls: set[str]) -> set[str]:
        """Return the URLs that the index may have."""
        if self._earlier is not None:
            return urls
        texts = list(urls)
        maybe_seen = self._filter.maybe_seen
        prints = fingerprints(texts, self._seed)
        return {text for text, fp in zip(texts, prints, strict=True) if maybe_seen(fp)}

    def catch_up(self, most: int) -> None:
        """Add some more of the URLs that the index had from earlier."""
        if self._earlier is None or most == 0:
            return
        part = list(islice(self._earlier, most))
        self.learn(part)
        if len(part) < most:
            self._earlier = None
