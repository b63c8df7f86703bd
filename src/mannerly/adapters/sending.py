"""The part that all adapters share: how a request waits for its slot, and what its errors mean.

A client has a list of pairs: a class of its exceptions, and the kind of error that it means for the
host; None if it says nothing about the host (a full connection pool, a proxy that is away). The
first class that fits decides, so subclasses come first. An exception without a kind counts as a
request that was sent: the spacing holds, and nothing is learned.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mannerly.politeness.drivers.slots import Slot
    from mannerly.politeness.model import ErrorKind

    Kinds = Sequence[tuple[type[BaseException], ErrorKind | None]]


P = TypeVar("P")


class SlotOptions(TypedDict, total=False):
    """The options of an adapter that say how a request waits for its slot.

    - `deadline_s`: the longest wait in seconds, then `TimeoutError`; default None: no limit
    - `wait_when_open`: also wait while the host's breaker is open or a long Retry-After is pending;
      default False: raise `CircuitOpen` or `HostUnavailable`
    """

    deadline_s: float | None
    wait_when_open: bool


def one_of(politeness: P | None, memory: object) -> P | None:
    """Return the politeness that was given.

    Raises:
        ValueError: a memory was given, too: it has one already, or none on purpose.
    """
    if politeness is not None and memory is not None:
        raise ValueError("give politeness= or memory=, not both: the memory is the politeness's")
    return politeness


@contextmanager
def sending(slot: Slot, kinds: Kinds) -> Iterator[None]:
    """Say that the request of a slot leaves now, and report the error that it ends with."""
    slot.sent()
    try:
        yield
    except Exception as error:
        kind = next((kind for fits, kind in kinds if isinstance(error, fits)), None)
        if kind is not None:
            slot.report(error=kind)
        raise
