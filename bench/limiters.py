"""Rate limiters of other projects behind one interface: how long does acquiring these keys take?

Each is used in memory, in the cheapest way that gives every key a budget of its own and takes
constant memory, and with a rate that it never exhausts:

    aiolimiter       a leaky bucket without keys: a dict of limiters; asked with `await`
    pyrate-limiter   one GCRA bucket a key, found by a factory, which the library leaves to its user
    limits           a fixed window; its background thread sweeps all keys every 10 ms of use
    throttled-py     GCRA; its store of 1,024 keys is made large enough to forget none

All of them read a clock in each call. None has a breaker, a cap on what is in flight, a pace that
follows the answers, or a way to give a reservation back. On the other hand all take weights, and
`limits`, `pyrate-limiter` and `throttled-py` lock, so that threads may share them, and have Redis
behind the same interface.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from aiolimiter import AsyncLimiter
from limits import RateLimitItemPerHour
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from pyrate_limiter import BucketFactory, MonotonicClock, Rate, RateItem, StateBucket
from pyrate_limiter import Limiter as PyrateLimiter
from throttled import MemoryStore, RateLimiterType, Throttled, per_sec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PLENTY = 1_000_000_000
MOST_KEYS = 200_000


class Limiter(Protocol):
    """A limiter that creates the state of a key on first use."""

    def spend(self, keys: Sequence[str]) -> float:
        """Return the seconds for acquiring each key once, in this order."""

    def close(self) -> None:
        """Stop its threads and event loops."""


def spend(acquire: Callable[[str], object], keys: Sequence[str]) -> float:
    start = perf_counter()
    for key in keys:
        acquire(key)
    return perf_counter() - start


class Aiolimiter:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()  # a limiter belongs to one loop
        self._limiters: dict[str, AsyncLimiter] = {}

    def spend(self, keys: Sequence[str]) -> float:
        for key in keys:
            if key not in self._limiters:
                self._limiters[key] = AsyncLimiter(PLENTY, 1.0)
        return self._runner.run(self._acquire(keys))

    async def _acquire(self, keys: Sequence[str]) -> float:
        limiters = self._limiters
        start = perf_counter()
        for key in keys:
            await limiters[key].acquire()
        return perf_counter() - start

    def close(self) -> None:
        self._runner.close()


class _BucketPerKey(BucketFactory):
    """As in pyrate-limiter's manual, but for its leaker: these buckets have nothing to leak."""

    def __init__(self) -> None:
        self._rates = [Rate(PLENTY, 1000)]
        self._now = MonotonicClock().now
        self._buckets: dict[str, StateBucket] = {}

    def wrap_item(self, name: str, weight: int = 1) -> RateItem:
        return RateItem(name, self._now(), weight=weight)

    def get(self, item: RateItem) -> StateBucket:
        bucket = self._buckets.get(item.name)
        if bucket is None:
            bucket = self._buckets[item.name] = StateBucket(self._rates)
        return bucket


class Pyrate:
    def __init__(self) -> None:
        self._limiter = PyrateLimiter(_BucketPerKey())

    def spend(self, keys: Sequence[str]) -> float:
        return spend(self._limiter.try_acquire, keys)

    def close(self) -> None:
        self._limiter.close()


class Limits:
    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._hit = partial(FixedWindowRateLimiter(self._storage).hit, RateLimitItemPerHour(PLENTY))

    def spend(self, keys: Sequence[str]) -> float:
        seconds = spend(self._hit, keys)
        self._storage.timer.join()  # its last sweep must not run on the next one's time
        return seconds

    def close(self) -> None:
        self._storage.timer.cancel()


class ThrottledPy:
    def __init__(self) -> None:
        store = MemoryStore(options={"MAX_SIZE": MOST_KEYS})
        quota = per_sec(PLENTY, burst=PLENTY)
        self._limit = Throttled(using=RateLimiterType.GCRA.value, quota=quota, store=store).limit

    def spend(self, keys: Sequence[str]) -> float:
        return spend(self._limit, keys)

    def close(self) -> None:
        """It has neither thread nor loop."""


PEERS: dict[str, Callable[[], Limiter]] = {
    "aiolimiter": Aiolimiter,
    "pyrate-limiter": Pyrate,
    "limits": Limits,
    "throttled-py": ThrottledPy,
}
