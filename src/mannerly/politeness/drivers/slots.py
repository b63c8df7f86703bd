"""A place for one request: asked for, used, and always given back.

A `Slot` is a permit that measures its own latency and cannot be forgotten: leaving the block
settles it, whatever happened inside.

    the block ended by …                 the core is told
    slot.report(…)                       what was reported; the slot is done with
    TimeoutError                         error "timeout"
    a ConnectionError                    error "connect" (refused) or "reset"
    another Exception                    cancelled, but sent: the spacing holds, nothing is learned
    cancellation, KeyboardInterrupt, …   cancelled; the slot goes back unless `sent()` was called
    nothing, and no report               cancelled, but sent; with a RuntimeWarning, because a
                                         refusal that nobody reports is a refusal nobody obeys

An exception that we do not know may come from a client halfway through a request, so it is taken
for sent: a wasted slot costs one gap, a wrong refund sends two requests at once.

This file knows how a request may end, and neither how slots are waited for nor by whom.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol, Self

from ..model import NO_HEADERS, ErrorKind, Response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ..model import Instant, Outcome, Permit
    from ..retry import GiveUp, Retry


class SlotDriver(Protocol):
    """Where a slot came from, and where it goes back to."""

    def now(self) -> Instant: ...

    def report(self, permit: Permit, response: Response) -> Outcome: ...

    def cancel(self, permit: Permit, *, was_sent: bool) -> None: ...

    def retry(
        self, permit: Permit, response: Response, outcome: Outcome, *, attempt: int
    ) -> Retry | GiveUp: ...


class Slot:
    """The right to send one request now. Use it as a context manager, and report."""

    __slots__ = ("_driver", "_permit", "_reported", "_started_at", "_was_sent", "waited_s")

    def __init__(
        self, driver: SlotDriver, permit: Permit, started_at: Instant, waited_s: float
    ) -> None:
        self._driver = driver
        self._permit = permit
        self._started_at = started_at
        self._was_sent = False
        self._reported: tuple[Response, Outcome] | None = None
        self.waited_s = waited_s  # how long the caller was kept waiting for this slot

    def __repr__(self) -> str:
        state = "settled" if self._permit.is_settled else "open"
        return f"<Slot {self.host} waited {self.waited_s:.3f} s, {state}>"

    @property
    def host(self) -> str:
        """The key of the host, or of the group, that the slot belongs to."""
        return self._permit.host.key

    def sent(self) -> None:
        """The request leaves now: the slot cannot go back any more, and latency counts from here.

        Optional, but without it a cancelled block counts as a request that was never sent.
        """
        self._was_sent = True
        self._started_at = self._driver.now()

    def report(
        self,
        response: Response | None = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        nbytes: int = 0,
        error: ErrorKind | str | None = None,
    ) -> Outcome:
        """Tell what came back, as a `Response` or in parts; the latency is measured here.

        A `Response` that brings its own latency keeps it.

        Raises:
            PermitError: the slot was reported or cancelled before.
            TypeError: neither a response nor a status nor an error was given.
        """
        if response is None:
            if status is None and error is None:
                raise TypeError("report what came back: a Response, a status or an error")
            latency_s = self._driver.now() - self._started_at
            response = Response(status, latency_s, headers, error, nbytes)
        elif not response.latency_s:
            response = response._replace(latency_s=self._driver.now() - self._started_at)
        outcome = self._driver.report(self._permit, response)
        self._reported = (response, outcome)
        return outcome

    def cancel(self) -> None:
        """Give the slot back; unless `sent()` was called, the next caller may have it at once."""
        self._driver.cancel(self._permit, was_sent=self._was_sent)

    def retry(self, attempt: int = 1) -> Retry | GiveUp:
        """Whether and when to ask again, after a report. A value, never a sleep."""
        if self._reported is None:
            raise TypeError("report what came back before asking whether to try again")
        return self._driver.retry(self._permit, *self._reported, attempt=attempt)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._permit.is_settled:
            return
        if error is None:
            self._driver.cancel(self._permit, was_sent=True)
            warnings.warn(f"{self!r} was left without a report", RuntimeWarning, stacklevel=4)
            return
        meaning = error_kind(error)
        if meaning is not None:
            self.report(error=meaning)
        else:
            was_sent = self._was_sent or isinstance(error, Exception)
            self._driver.cancel(self._permit, was_sent=was_sent)


def error_kind(error: BaseException) -> ErrorKind | None:
    """What an exception says about the host; None: nothing that we know of."""
    if isinstance(error, TimeoutError):
        return ErrorKind.TIMEOUT
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return ErrorKind.RESET
    if isinstance(error, ConnectionError):
        return ErrorKind.CONNECT
    return None
