"""A slot for one request: a context manager that is always settled at the end of its block.

A `Slot` is a permit that measures the latency and reports or cancels itself when the block ends:

    the block ended by …                 the core is told
    slot.report(…)                       what was reported
    TimeoutError                         error "timeout"
    a ConnectionError                    error "connect" (refused) or "reset"
    another Exception                    cancelled, but sent: the spacing holds, nothing is learned
    an error of `sent()` itself          cancelled; the slot goes back
    cancellation, KeyboardInterrupt, …   cancelled; the slot goes back unless `sent()` was called
    nothing, and no report               cancelled, but sent; with a RuntimeWarning, because a
                                         refusal that is not reported cannot be obeyed

After an unknown exception the request may have been sent, so it counts as sent: a slot lost
needlessly costs one delay, a slot reused wrongly sends two requests at once.

This module does not know how callers wait for slots.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol, Self

from ..model import NO_HEADERS, ErrorKind, Response

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from types import TracebackType

    from ..model import Instant, Outcome, Permit
    from ..retry import GiveUp, Retry


class SlotDriver(Protocol):
    """The methods of a driver that a slot needs."""

    def now(self) -> Instant: ...

    def sent(self, permit: Permit) -> Instant: ...

    def enter(self, permit: Permit) -> object: ...

    def exit(self, holder: object, permit: Permit) -> None: ...

    def report(self, permit: Permit, response: Response) -> Outcome: ...

    def cancel(self, permit: Permit, *, was_sent: bool) -> None: ...

    def retry(
        self, permit: Permit, response: Response, outcome: Outcome, *, attempt: int, refusals: int
    ) -> Retry | GiveUp: ...


class Slot:
    """The right to send one request now. Use it as a context manager, and call `report`."""

    __slots__ = (
        "_driver",
        "_holder",
        "_latency_s",
        "_permit",
        "_reported",
        "_started_at",
        "_was_sent",
        "url",
        "waited_s",
    )

    def __init__(
        self,
        driver: SlotDriver,
        permit: Permit,
        started_at: Instant,
        waited_s: float,
        url: str | None = None,
    ) -> None:
        self._driver = driver
        self._permit = permit
        self._started_at = started_at
        self._was_sent: bool | None = None  # None: `sent` was not called
        self._latency_s: float | None = None
        self._holder: object = None  # the task or thread in the block
        self._reported: tuple[Response, Outcome] | None = None
        self.url = url  # of the request; None: only its host was named
        self.waited_s = waited_s  # how long the caller waited for this slot

    def __repr__(self) -> str:
        state = "settled" if self._permit.is_settled else "open"
        return f"<Slot {self.host} waited {self.waited_s:.3f} s, {state}>"

    @property
    def host(self) -> str:
        """The key of the host, or of its group with `group_by`."""
        return self._permit.host.key

    def sent(self) -> None:
        """Say that the request leaves now: latency and the delay to the next request count from it.

        Optional; without it, both count from the beginning of the block, and a cancelled block
        counts as a request that was not sent.

        Raises:
            HostUnavailable: the host is shared, and another process may have taken it over: send
                nothing, and wait for another slot.
        """
        self._was_sent = bool(self._was_sent)  # if it is refused: not, and that is certain
        self._started_at = self._driver.sent(self._permit)
        self._was_sent = True

    def answered(self) -> None:
        """Say that the answer begins: the latency ends here, whatever is done before `report`."""
        self._latency_s = self._driver.now() - self._started_at

    @property
    def reported(self) -> tuple[Response, Outcome] | None:
        """The response that was reported, and how it was classified; None: not yet."""
        return self._reported

    def report(
        self,
        response: Response | None = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        nbytes: int = 0,
        error: ErrorKind | str | None = None,
        body_digest: Hashable = None,
    ) -> Outcome:
        """Report the result of the request, as a `Response` or as keyword arguments.

        The latency is measured here, unless the `Response` has one already.

        Raises:
            PermitError: the slot was already reported or cancelled.
            TypeError: neither a response nor a status nor an error was given.
        """
        if response is None:
            if status is None and error is None:
                raise TypeError("report() needs a Response, a status or an error")
            latency_s = self._measured_s()
            response = Response(
                status, latency_s, headers, error, nbytes, url=self.url, body_digest=body_digest
            )
        else:
            latency_s = response.latency_s or self._measured_s()
            response = response._replace(latency_s=latency_s, url=response.url or self.url)
        outcome = self._driver.report(self._permit, response)
        self._reported = (response, outcome)
        return outcome

    def _measured_s(self) -> float:
        now = self._driver.now()
        return now - self._started_at if self._latency_s is None else self._latency_s

    def cancel(self) -> None:
        """Give the slot back; unless `sent()` was called, the next caller may use it at once."""
        self._driver.cancel(self._permit, was_sent=bool(self._was_sent))

    def retry(self, attempt: int = 1, refusals: int = 1) -> Retry | GiveUp:
        """Return whether and when to repeat the request, after `report`. Never sleeps.

        `attempt` and `refusals` count the attempts and the refusals of its URL, this one included.
        """
        if self._reported is None:
            raise TypeError("call report() before retry()")
        return self._driver.retry(self._permit, *self._reported, attempt=attempt, refusals=refusals)

    def __enter__(self) -> Self:
        self._holder = self._driver.enter(self._permit)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._driver.exit(self._holder, self._permit)
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
            was_sent = isinstance(error, Exception) if self._was_sent is None else self._was_sent
            self._driver.cancel(self._permit, was_sent=was_sent)


def page_of(url: str) -> str | None:
    """Return the URL of a page; None if only the host is named."""
    return url if "/" in url else None


def error_kind(error: BaseException) -> ErrorKind | None:
    """Return the kind of error that an exception means for the host; None: unknown."""
    if isinstance(error, TimeoutError):
        return ErrorKind.TIMEOUT
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return ErrorKind.RESET
    if isinstance(error, ConnectionError):
        return ErrorKind.CONNECT
    return None
