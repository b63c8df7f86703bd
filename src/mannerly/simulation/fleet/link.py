"""The connection of one member to the modelled server, in place of the store's client for sockets.

A link can be cut in three ways. `Cut.THERE`: nothing arrives at the server. `Cut.BACK`: commands
arrive and run, and their answers are lost. `Cut.BOTH`. A call on a cut link fails as one on a real
network does, after the timeout: the member does nothing for so long (`busy_until`).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import TIMEOUT_S, ValkeyServer

from .keyspace import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mannerly.crawler.store.valkey.address import Address
    from mannerly.crawler.store.valkey.client import Command

    from .server import ModelServer


class Cut(Enum):
    """The direction in which nothing arrives."""

    NONE = "none"
    THERE = "there"
    BACK = "back"
    BOTH = "both"


class ModelLink(ValkeyServer):
    """`ValkeyServer` of the store's client, on a modelled server."""

    def __init__(
        self,
        server: ModelServer,
        address: Address,
        *,
        mono: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        super().__init__(address, mono=mono, wall=wall)
        self.cut = Cut.NONE
        self.busy_until = 0.0
        self._model = server
        self._seen_run = 0

    def _exchange(
        self,
        commands: Iterable[Command],
        options: Mapping[str, str] | None = None,  # noqa: ARG002 - of the client library
    ) -> list[Any]:
        model = self._model
        if not model.is_up or self.cut in (Cut.THERE, Cut.BOTH):
            raise self._timed_out()
        if self._seen_run != model.run:
            self._seen_run = model.run
            self.run = model.run_id
        answers = model.answers(list(commands))
        if self.cut is Cut.BACK:
            raise self._timed_out()
        return [_as_client(each) if isinstance(each, ServerError) else each for each in answers]

    def _timed_out(self) -> StoreAway:
        self.busy_until = self.mono() + TIMEOUT_S
        return StoreAway(f"{self.address.server} cannot be reached: timed out")


def _as_client(error: ServerError) -> Exception:
    """Return the error that the client library would return."""
    import redis

    return redis.ResponseError(str(error))
