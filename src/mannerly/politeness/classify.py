"""Classify responses by status and kind of error, never by text.

    2xx, 304                                        OK
    429; 403 and 5xx that carry a Retry-After       THROTTLE
    other 5xx, timeout, connect, DNS, TLS, reset    OVERLOAD
    other 3xx and 4xx, protocol errors, too large   NEUTRAL

A 403 without Retry-After, soon after a success, is ambiguous (docs/adr/0005): the requests come too
fast, or the page is forbidden. `doubts` finds out which.
"""

from __future__ import annotations

from .model import ErrorKind, Outcome, Response

SUCCESS = 200
FORBIDDEN = 403
TOO_MANY = 429

# Faults of the server or the network. The other kinds concern one page or the client.
_OVERLOAD_KINDS = frozenset(
    {ErrorKind.TIMEOUT, ErrorKind.CONNECT, ErrorKind.DNS, ErrorKind.TLS, ErrorKind.RESET}
)


def _by_status(status: int) -> Outcome:
    if 200 <= status < 300 or status == 304:
        return Outcome.OK
    if status == TOO_MANY:
        return Outcome.THROTTLE
    if status >= 500:
        return Outcome.OVERLOAD
    return Outcome.NEUTRAL


# A table is faster than four comparisons. It covers non-standard statuses (999 is in use), too.
_OUTCOMES = tuple(_by_status(status) for status in range(1000))


def classify(response: Response, *, has_retry_after: bool) -> Outcome:
    """Return the outcome of a response.

    Raises:
        TypeError: the status is not a number.
        ValueError: it has neither a valid status nor a known error kind.
    """
    status = response.status
    if status is None:
        return _by_error(response.error)
    if not isinstance(status, int):
        raise TypeError(f"HTTP status must be a whole number such as 200, not {status!r}")
    if not 0 <= status < 1000:
        raise ValueError(f"HTTP status must be 0 to 999, not {status!r}")
    if has_retry_after and (status == FORBIDDEN or status >= 500):
        return Outcome.THROTTLE
    return _OUTCOMES[status]


def _by_error(error: ErrorKind | str | None) -> Outcome:
    if error is None:
        raise ValueError("a response needs a status or an error kind")
    try:
        kind = ErrorKind(error)
    except ValueError:
        known = ", ".join(ErrorKind)
        raise ValueError(f"unknown error kind {error!r}; known: {known}") from None
    return Outcome.OVERLOAD if kind in _OVERLOAD_KINDS else Outcome.NEUTRAL
