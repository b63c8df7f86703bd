"""A connection that fails on purpose: before a command is sent, or after it was carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Iterable


class FailingServer(ValkeyServer):
    """Armed with a number, it fails that exchange, counted from then on.

    Even numbers: nothing is sent. Odd ones: it is carried out, and the answer is lost.
    """

    fails_in: int | None = None
    failures = 0

    def arm(self, number: int | None) -> None:
        self.fails_in = number

    def _exchange(self, commands: Iterable[Any], options: Any = None) -> list[Any]:
        if self.fails_in is None:
            return super()._exchange(commands, options)
        number, self.fails_in = divmod(self.fails_in, 2)[0], self.fails_in - 2
        is_lost = self.fails_in % 2 == 1
        if number > 0:
            return super()._exchange(commands, options)
        self.fails_in = None
        self.failures += 1
        if is_lost:
            super()._exchange(commands, options)
        raise StoreAway("the connection was cut")
