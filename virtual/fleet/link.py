"""The connection of one member to the modelled server, in place of the store's client for sockets.

A link can be cut in three ways. `Cut.THERE`: nothing arrives at the server. `Cut.BACK`: commands
arrive and run, and their answers are lost. `Cut.BOTH`. A call on a cut link fails as one on a real
network does, after the timeout: the member does nothing for so long (`busy_until`).

For a time a link can also be
    slow          a call takes time, and has its effect at an instant of it: at its beginning, at
                  its end or between. If that is longer than the client's timeout, the call fails
                  when that is over, and has its effect all the same, perhaps later than calls that
                  were made after it
    breaking      a connection is lost in the middle of an exchange: the first commands, none or
                  all of them have run, and there is no answer
    to a replica  which answers READONLY to a write (after a failover)
"""

from __future__ import annotations

import random
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.database.client import TIMEOUT_S

from .keyspace import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mannerly.database.address import Address
    from mannerly.database.ages import Ages
    from mannerly.database.client import Command

    from .aside import Aside
    from .server import ModelServer


class Cut(Enum):
    """The direction in which nothing arrives."""

    NONE = "none"
    THERE = "there"
    BACK = "back"
    BOTH = "both"


class ModelLink(ValkeyServer):
    """`ValkeyServer` of the store's client, on a modelled server.

    `at` has something done at an instant. Only calls inside an `aside` can be slow.
    """

    def __init__(
        self,
        server: ModelServer,
        address: Address,
        *,
        mono: Callable[[], float],
        wall: Callable[[], float],
        ages: Ages,
        at: Callable[[float, Callable[[], None]], None],
        seed: str = "",
    ) -> None:
        super().__init__(address, mono=mono, wall=wall, ages=ages)
        self.cut = Cut.NONE
        self.busy_until = 0.0
        self.aside: Aside | None = None  # in which its member waits for an answer
        self._model = server
        self._at = at
        self._rng = random.Random(f"link {seed}")
        self._slow_s = self._slow_until = 0.0
        self._breaking, self._breaking_until = 0.0, 0.0
        self._replica_until = 0.0
        self._seen = ""

    # ------------------------------------------------------------------ faults

    def be_slow(self, slow_s: float, until: float) -> None:
        """Take up to so many seconds for an answer, until an instant."""
        self._slow_s, self._slow_until = slow_s, until

    def be_breaking(self, chance: float, until: float) -> None:
        """Lose the connection in so many of all exchanges, until an instant."""
        self._breaking, self._breaking_until = chance, until

    def reach_replica(self, until: float) -> None:
        """Be connected to a replica, until an instant."""
        self._replica_until = until

    @property
    def is_slow(self) -> bool:
        """Return whether a call can take time now."""
        return self.mono() < self._slow_until

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is wrong with it now."""
        until = max(self._slow_until, self._breaking_until, self._replica_until)
        return self.cut is Cut.NONE and self.mono() >= until

    # ------------------------------------------------------------------ exchanges

    def _exchange(
        self, commands: Iterable[Command], options: Mapping[str, str] | None = None
    ) -> list[Any]:
        self._reach()
        asked = list(commands)
        is_breaking = self.mono() < self._breaking_until and self._rng.random() < self._breaking
        arriving = asked[: self._rng.randint(0, len(asked))] if is_breaking else asked
        if self.is_slow and self.aside is not None:
            answers = self._slowly(arriving)
        else:
            answers = self._answers(arriving)
        if is_breaking:
            raise self._lost()
        if self.cut is Cut.BACK:
            raise self._timed_out()
        found = [_as_client(each) if isinstance(each, ServerError) else each for each in answers]
        return [{"": each} for each in found] if options else found

    def _reach(self) -> None:
        """Be connected.

        Raises:
            StoreAway: that is impossible.
        """
        model = self._model
        if self.cut in (Cut.THERE, Cut.BOTH):
            raise self._timed_out()
        if not model.is_up:
            raise self._lost() if model.is_refusing else self._timed_out()
        seen = model.replica_id if self._is_at_replica else model.run_id
        if self._seen != seen:
            self._seen = self.run = seen

    @property
    def _is_at_replica(self) -> bool:
        return self.mono() < self._replica_until

    def _answers(self, commands: Sequence[Command]) -> list[Any]:
        if not commands:
            return []
        model = self._model
        return (
            model.answers_of_replica(commands) if self._is_at_replica else model.answers(commands)
        )

    def _slowly(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, which takes time."""
        if not commands:
            return []
        took_s = self._slow_s * self._rng.random() ** 2
        effect_s = took_s * self._rng.choice([0.0, self._rng.random(), 1.0])
        found: list[Any] = []
        # They have their effect if their member is stopped or killed meanwhile, too.
        self._at(self.mono() + effect_s, partial(self._arrive, commands, self._seen, found))
        self._wait(min(took_s, TIMEOUT_S))
        if took_s > TIMEOUT_S:
            raise StoreAway(f"{self.address.server} cannot be reached: timed out")
        if not found:
            raise self._lost()
        return found

    def _wait(self, wait_s: float) -> None:
        """Wait for the server; it may be gone afterwards."""
        assert self.aside is not None
        before = self._seen
        self.aside.wait(self.mono() + wait_s)
        self._reach()
        if self._seen != before:
            raise self._lost()

    def _arrive(self, commands: Sequence[Command], seen: str, found: list[Any]) -> None:
        """Run commands, if the server that they were sent to is still there."""
        model = self._model
        if model.is_up and seen == model.run_id:
            found += model.answers(commands)
        elif model.is_up and seen == model.replica_id:
            found += model.answers_of_replica(commands)

    def _timed_out(self) -> StoreAway:
        self.busy_until = self.mono() + TIMEOUT_S
        return StoreAway(f"{self.address.server} cannot be reached: timed out")

    def _lost(self) -> StoreAway:
        return StoreAway(f"{self.address.server} cannot be reached: connection lost")


def _as_client(error: ServerError) -> Exception:
    """Return the error that the client library would return."""
    import redis

    if str(error).startswith("READONLY "):
        return redis.ReadOnlyError(str(error).removeprefix("READONLY "))
    return redis.ResponseError(str(error))
