"""What an answer says about our pace: by status and kind of error, never by text.

    2xx, 304                                        OK
    429; 403 and 5xx that carry a Retry-After       THROTTLE
    other 5xx, timeout, connect, DNS, TLS, reset    OVERLOAD
    other 3xx and 4xx, protocol errors, too large   NEUTRAL

A 403 without Retry-After is the odd one (decision 2): soon after a success it usually is a
block that means our pace, so it counts as a throttle; but some sites simply have forbidden
pages. `Host` keeps the count that tells the two apart.
"""

from __future__ import annotations

from .model import ErrorKind, Outcome, Response

SUCCESS = 200
FORBIDDEN = 403
TOO_MANY = 429

# Trouble on the way to or inside the server. The others are ours or the page's own.
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


# A table beats four comparisons on the hot path. Odd numbers (999 is in use) are looked up too.
_OUTCOMES = tuple(_by_status(status) for status in range(1000))


def classify(response: Response, *, has_retry_after: bool) -> Outcome:
    """The outcome of an answer; raises ValueError where it has neither status nor known error."""
    status = response.status
    if status is None:
        return _by_error(response.error)
    if not 0 <= status < 1000:
        raise ValueError(f"an HTTP status is a number below 1000, not {status!r}")
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
