"""The numbered writes of one claim of a shard (`owner.lua`).

An answer may be lost on its way: then it is not known whether the write was applied. It stays
*pending*, with its number, and goes first the next time, exactly as it was. The server recognises a
number that it has applied, and answers as it did. So each write is applied once, and its answer
always arrives, sooner or later; `settle` tells what came of one that was pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.crawler.store.base import Counts, StoreError, StoreFull
from mannerly.crawler.store.fleet import LeaseLost, StoreAway

from .packing import Poisoned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.database.client import Call, Payload

    from .client import ValkeyServer

_COUNTERS = 14  # of `owner.lua`, and the number of hosts


class Answer(msgspec.Struct, frozen=True):
    """The answer of a numbered write."""

    counts: list[int]
    new: list[int] = []  # places of new candidates
    queued: int = 0  # of these, how many are in the queue; the others wait
    first: int = 0  # the number of the first one
    counted: int = 0  # pages that counted
    repeated: int = 0  # requests with a payload that were known
    lagging: int = 0  # other shards whose owners do not keep up with links to them
    placed: list[int] = []  # places of URLs that came back into the queue
    waiting: int = 0  # of those that came back
    arrivals: int = 0  # URLs that others have ever queued in the shard
    reminders: int = 0  # of hosts, from others (`HeardReminders`)
    unpacked: int = 0  # URLs with a record that are not in a block; 0: not told
    arrived: list[bytes] = []  # URLs that others have queued since the last write


_decode = msgspec.msgpack.Decoder(Answer).decode


class _Pending:
    def __init__(
        self,
        name: str,
        payload: Payload,
        prepare: Callable[[Payload], None],
        others: Sequence[str],
    ) -> None:
        self.name = name
        self.others = others
        self.payload = payload
        self.prepare = prepare


class Writes:
    """Writes to a shard, one after the other."""

    def __init__(self, server: ValkeyServer, key: str, crawl: str, token: str) -> None:
        self.token = token
        self.is_lost = False
        self.refused = 0  # writes that came too late
        self._server = server
        self._key = key
        self._fence = {"id": crawl, "token": token}
        self.number = 0
        self._pending: _Pending | None = None
        self.counters = [0] * _COUNTERS

    @property
    def is_pending(self) -> bool:
        """Return whether a write is under way whose answer was lost."""
        return self._pending is not None

    def begin(
        self,
        name: str,
        payload: Payload,
        prepare: Callable[[Payload], None] = lambda _: None,
        others: Sequence[str] = (),
    ) -> None:
        """Make a write pending, with the next number; nothing may be pending before.

        `prepare` completes the payload before every try, and may fail. `others` are the keys of
        other shards that it changes, too.
        """
        assert self._pending is None, "an earlier write is settled first"
        self.number += 1
        self._pending = _Pending(
            name, {**self._fence, "n": self.number, **payload}, prepare, others
        )

    def settle(self) -> Answer:
        """Try the pending write, and return its answer.

        Raises:
            StoreAway, StoreFull: it is still pending.
            LeaseLost: the shard has another owner.
        """
        (answer,) = self._server.calls([self.call()])
        return self.settled(answer)

    def call(self) -> Call:
        """Return the call of the pending write, to be sent now."""
        pending = self._pending
        assert pending is not None, "there is nothing to settle"
        if self.is_lost:
            raise LeaseLost("the shard has another owner")
        pending.prepare(pending.payload)
        return pending.name, [self._key, *pending.others], pending.payload

    def settled(self, answer: list[bytes] | StoreError) -> Answer:
        """Take the answer to `call`; errors are raised, as by `settle`."""
        try:
            if isinstance(answer, StoreError):
                raise answer
            known = _decoded(answer)
        except (StoreAway, StoreFull):
            raise
        except StoreError as error:
            self.refused += isinstance(error, LeaseLost)
            self.is_lost = True  # whatever it was: what is applied is not known
            raise
        self._pending = None
        self.counters = known.counts
        return known

    def run(self, name: str, payload: Payload) -> Any:
        """Run a script of the owner that has no number: repeating it is harmless."""
        return self._server.call(*self.unnumbered(name, payload))

    def unnumbered(self, name: str, payload: Payload) -> Call:
        """Return the call of such a script."""
        return name, [self._key], {**self._fence, **payload}


def counts_of(counters: list[int]) -> Counts:
    """Return the totals of a shard from its counters."""
    (queued, waiting, fetched, failed, lists, skipped, given_up, requisites) = counters[:8]
    (retries, rechecks, round_number, applied, _seq, hosts) = counters[8:]
    return Counts(
        queued=queued,
        waiting=waiting,
        fetched=fetched,
        failed=failed,
        lists=lists,
        skipped=skipped,
        given_up=given_up,
        outgoing=0,  # a commit puts links into their shards
        hosts=hosts,
        retries=retries,
        rechecks=rechecks,
        round=round_number,
        applied=applied,
        requisites=requisites,
    )


def _decoded(answer: list[bytes]) -> Answer:
    data, *arrived = answer
    try:
        return msgspec.structs.replace(_decode(data), arrived=arrived)
    except msgspec.MsgspecError as error:
        raise Poisoned(f"the answer of a script cannot be read ({error})") from None
