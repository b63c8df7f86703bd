"""The attempts of one request, each in a slot of its own, until one is the last.

With `retries=N` a request is repeated up to N times, if and when the politeness core
says so: never before the host's Retry-After is over. GET, HEAD and OPTIONS are repeated after any
passing failure; other methods only after a refusal that says that nothing was done (429, or 503
with Retry-After); nothing whose body cannot be sent again. The caller gets the last answer, or the
last error. If there is no slot for a repeat (the breaker, `deadline_s`), it is the one before.

A slot may be lost before the bytes leave, because its host is shared and another process may have
taken it over: the request then waits for the next one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.model import NEVER, Reason
from mannerly.politeness.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mannerly.politeness.drivers.aio import AsyncPoliteness
    from mannerly.politeness.drivers.slots import Slot
    from mannerly.politeness.drivers.threads import ThreadedPoliteness
    from mannerly.politeness.model import Instant, Response

    from .sending import SlotOptions

A = TypeVar("A")

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED = 429
_UNAVAILABLE = 503


class Attempts(Generic[A]):
    """The attempts of one request: whether another one follows, and what the caller gets."""

    def __init__(self, retries: int, method: str, *, is_repeatable: bool) -> None:
        self.answer: A | None = None
        self.due: Instant | None = None  # of the next attempt; None: there is none
        self._left = retries if is_repeatable else 0
        self._is_safe = method.upper() in _SAFE
        self._attempt = self._refusals = 1
        self._error: Exception | None = None

    def answered(self, slot: Slot, answer: A) -> None:
        """An attempt was answered, and reported."""
        self.answer, self._error = answer, None
        self.due = self._next(slot)

    def failed(self, slot: Slot | None, error: Exception) -> None:
        """An attempt failed, or got no slot; raises the error that the caller gets, if any."""
        self.due = None
        if slot is None:
            if self._error is not None:
                raise self._error
            if self.answer is None:
                raise error
            return
        if isinstance(error, HostUnavailable) and error.reason is Reason.SHARED:
            self.due = NEVER  # nothing was sent: it waits for another slot
            return
        self.answer, self._error = None, error
        self.due = self._next(slot)
        if self.due is None:
            raise error

    def end(self) -> None:
        """No attempt follows: there is no time left."""
        self._left = 0

    def _next(self, slot: Slot) -> Instant | None:
        if self._left <= 0 or slot.reported is None or not self._may_repeat(slot.reported[0]):
            return None
        decision = slot.retry(self._attempt, self._refusals)
        if not isinstance(decision, Retry):
            return None
        self._left -= 1
        self._attempt = decision.attempt
        self._refusals += not decision.costs_attempt
        return decision.due

    def _may_repeat(self, response: Response) -> bool:
        asks_to_wait = any(name.lower() == "retry-after" for name in response.headers)
        was_refused = response.status == _REFUSED or (
            response.status == _UNAVAILABLE and asks_to_wait
        )
        return self._is_safe or was_refused

    def last(self) -> A:
        """Return the answer that the caller gets."""
        assert self.answer is not None
        return self.answer


def attempted(
    attempts: Attempts[A],
    politeness: ThreadedPoliteness,
    url: str,
    waiting: SlotOptions,
    ask: Callable[[Slot], A],
    keep: Callable[[A], object],
) -> A:
    """Send a request until an attempt is the last one, and return its answer.

    Args:
        attempts: says whether another one follows.
        politeness: gives each attempt its slot.
        url: of the request.
        waiting: how an attempt waits for its slot.
        ask: sends the request, and reports its answer.
        keep: reads the rest of an answer that a later one may replace, and frees its connection.
    """
    while True:
        slot = None
        try:
            with politeness.slot(url, **waiting) as slot:
                answer = ask(slot)
            attempts.answered(slot, answer)
        except Exception as error:  # noqa: BLE001 - raised again, unless something follows
            attempts.failed(slot, error)
        else:
            if attempts.due is not None:
                with suppress(Exception):  # the reader of that body gets the error
                    keep(answer)
        if attempts.due is None:
            return attempts.last()
        politeness.sleep_until(attempts.due)


async def attempted_async(
    attempts: Attempts[A],
    politeness: AsyncPoliteness,
    url: str,
    waiting: SlotOptions,
    ask: Callable[[Slot], Awaitable[A]],
    keep: Callable[[A], Awaitable[object]],
) -> A:
    """Do the same for asyncio."""
    while True:
        slot = None
        try:
            async with politeness.slot(url, **waiting) as slot:
                answer = await ask(slot)
            attempts.answered(slot, answer)
        except Exception as error:  # noqa: BLE001 - raised again, unless something follows
            attempts.failed(slot, error)
        else:
            if attempts.due is not None:
                with suppress(Exception):
                    await keep(answer)
        if attempts.due is None:
            return attempts.last()
        await politeness.sleep_until(attempts.due)
