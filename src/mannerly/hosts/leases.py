"""The leases of a process: one sign of life for all hosts that it sends to.

    tick    a sign of life when it is due; which hosts do others want; hand over, ask again
    claim   ask for hosts, many at once
    close   give all hosts back

`sure_until` is the instant up to which no other crawl can have taken a host over. It is looked at
last, when the bytes of a request leave, so a process that was stopped for a while sends nothing
when it wakes. The memory is written in a few short transactions a second. While another process
writes, the disk is full or the server is away, nothing is changed and it is tried again soon; if
that lasts, this process falls silent before its leases end. A server that is away is asked only for
the next sign of life until it answers, because each call may wait for seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from mannerly.database.errors import StoreAway, StoreBusy, StoreFull
from mannerly.hosts.base import Holder, HolderLost
from mannerly.politeness.model import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.hosts.base import Claimed, HostBudget, HostMemory
    from mannerly.politeness.model import Instant, Now

LOOK_S = 1.0  # between two looks at what others want
TRY_AGAIN_S = 0.25  # after a sign of life that could not be given
AWAY_AGAIN_S = 1.0  # after one that did not reach the server


class HeldHosts(Protocol):
    """The hosts that a part of the process sends to: a shard of a crawl, or a program."""

    def look(self, wanted: Mapping[str, int], now: Now) -> None:
        """Start no more requests to hosts that others wait for, when their turn is over."""

    def tick(self, now: Now) -> None:
        """Hand over what is ready for it, and ask again for what is away."""

    def unwritten(self, now: Now) -> list[HostBudget]:
        """Return what was learned since the last time."""

    def written(self, budgets: list[HostBudget]) -> None:
        """These have been written."""

    def last_words(self, now: Now, *, all_of_them: bool = False) -> list[HostBudget]:
        """Return what the next holders must know, because this process ends."""

    def lose_all(self, now: Now) -> None:
        """Another process may have taken over every host."""


class Leases:
    """The leases of one process. Its shards join with `add`."""

    def __init__(
        self,
        memory: HostMemory,
        *,
        crawl: str,
        name: str,
        worker: str,
        now: Now,
        clock: Callable[[], Instant],
    ) -> None:
        self._memory = memory
        self._clock = clock
        self.times = memory.times
        self.take_mended = memory.take_mended
        self._names = (crawl, name, worker)
        self._shards: list[HeldHosts] = []
        self._left_over: list[HostBudget] = []  # of removed shards, to be given back
        self._next_beat = self._next_look = NEVER
        self._is_away = False  # the server, as far as is known
        self._join(now)
        self.trouble: str | None = None
        self.is_resting = False  # the crawl is paused: it wants no host

    def add(self, shard: HeldHosts) -> None:
        """Include the hosts of a shard."""
        self._shards.append(shard)

    def remove(self, shard: HeldHosts, now: Now) -> None:
        """Give the hosts of a shard back: this process does not own it any more."""
        self._shards.remove(shard)
        budgets = shard.last_words(now, all_of_them=True)
        if budgets and not self.release(budgets, now):
            self._left_over += budgets

    def tick(self, now: Now) -> None:
        """Do what is due."""
        if now.mono >= self._next_beat:
            self._beat(now)
        if now.mono >= self._next_look:
            self._next_look = now.mono + LOOK_S
            wanted: dict[str, int] = {}
            self._try(lambda memory: wanted.update(memory.wanted(self._holder.id, now)))
            for shard in self._shards:
                shard.look(wanted, now)
        for shard in self._shards:
            shard.tick(now)
        if self._left_over and self.release(self._left_over, now):
            self._left_over = []

    def claim(self, hosts: Mapping[str, float], now: Now) -> tuple[dict[str, Claimed], Instant]:
        """Ask for hosts; those without an answer are to be asked for again.

        Returns the answers, and the instant from which their waits count. That is not `now`: this
        process may have been stopped since, and the former holder may have sent meanwhile.
        """
        answers: dict[str, Claimed] = {}
        try:
            self._try(lambda memory: answers.update(memory.claim(self._holder.id, hosts, now)))
        except HolderLost:
            self._start_again(now)
        return answers, self._clock()

    def write(self, budgets: list[HostBudget], now: Now) -> bool:
        """Write what a takeover must know; return whether it is written."""
        return self._try(lambda memory: memory.write(self._holder.id, budgets, now))

    def release(self, budgets: list[HostBudget], now: Now) -> bool:
        """Hand hosts over; return whether it is done."""
        return self._try(lambda memory: memory.release(self._holder.id, budgets, now))

    def withdraw(self, hosts: list[str], now: Now) -> bool:
        """Do not wait for hosts any more; return whether it is done."""
        return self._try(lambda memory: memory.withdraw(self._holder.id, hosts, now))

    def forget(self, host: str, now: Now) -> None:
        """Forget what was learned of a host, if that is possible now."""
        self._try(lambda memory: memory.forget(host, now))

    def leave(self, now: Now) -> None:
        """Give all hosts back with what was learned of them."""
        last_words = [shard.last_words(now) for shard in self._shards]
        budgets = [budget for some in (self._left_over, *last_words) for budget in some]
        # If that is not possible the leases end by themselves.
        self._try(lambda memory: memory.leave(self._holder.id, budgets, now))

    def close(self, now: Now) -> None:
        """Leave, and close the memory."""
        try:
            self.leave(now)
        finally:
            self._memory.close()

    def abandon(self) -> None:
        """Close the memory; the leases end by themselves."""
        self._memory.close()

    def _try(self, use: Callable[[HostMemory], object]) -> bool:
        """Use the memory unless it is busy, full or away; return whether that is done."""
        if self._is_away:
            return False
        try:
            use(self._memory)
        except (StoreBusy, StoreFull):
            return False
        except StoreAway as error:
            self._went_away(error)
            return False
        return True

    def _went_away(self, error: StoreAway) -> None:
        self._is_away = True
        self._next_beat = self._clock() + AWAY_AGAIN_S
        self.trouble = f"waiting for the memory of hosts: {error}"

    def _beat(self, now: Now) -> None:
        """Give a sign of life, together with everything that was learned since the last one."""
        unwritten = [(shard, shard.unwritten(now)) for shard in self._shards]
        budgets = [budget for _, some in unwritten for budget in some]
        try:
            self._memory.renew(self._holder.id, budgets, now)
        except HolderLost:
            self._start_again(now)
            return
        except StoreAway as error:
            self._went_away(error)
            return
        except (StoreBusy, StoreFull) as error:
            self._next_beat = now.mono + TRY_AGAIN_S
            self.trouble = str(error) if now.mono >= self.sure_until else None
            return
        for shard, some in unwritten:
            shard.written(some)
        self._heard(now)

    def _join(self, now: Now) -> None:
        holder = Holder(uuid4().hex, *self._names)
        self._memory.join(holder, now)
        self._holder = holder
        self._heard(now)

    def _heard(self, now: Now) -> None:
        self.sure_until: Instant = now.mono + self.times.silent_s
        self._next_beat = now.mono + self.times.heartbeat_s
        self.trouble = None
        self._is_away = False

    def _start_again(self, now: Now) -> None:
        """Too late: every host may have another sender by now."""
        for shard in self._shards:
            shard.lose_all(now)
        self.sure_until = NEVER
        self._next_beat = now.mono + TRY_AGAIN_S
        self._is_away = False
        self._try(lambda _: self._join(now))
