"""Say how long an answer to a request for robots.txt holds, and when to ask again (RFC 9309 §2).

2xx, 3xx, 4xx but 429   for 24 hours, or for its max-age where that is shorter, but five minutes
                        at least
429, 5xx, no answer     the file is unreachable: asked again after 1, 2, 4 … 60 minutes. The wait
                        is a minute plus the time it has been failing for, so nothing else has
                        to be remembered to go on doubling.
"""

from __future__ import annotations

import re

MAX_BODY_BYTES = 500 * 1024  # RFC 9309 §2.5
MAX_AGE_S = 24 * 3600.0  # RFC 9309 §2.4
MIN_AGE_S = 300.0
FIRST_RETRY_S = 60.0
LAST_RETRY_S = 3600.0

# Nine digits are thirty years; more would only serve to cost time.
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_NO_CACHE = re.compile(r"(?:^|[\s,])no-(?:cache|store)(?:$|[\s,=])", re.IGNORECASE)
_TOO_MANY_REQUESTS = 429


def is_reachable(status: int | None) -> bool:
    """Return whether a status tells what a site's robots.txt is; None: there was no answer."""
    return status is not None and 200 <= status < 500 and status != _TOO_MANY_REQUESTS


def lifetime_s(cache_control: str | None) -> float:
    """Return how long an answer holds, from its Cache-Control header."""
    if cache_control is None:
        return MAX_AGE_S
    if _NO_CACHE.search(cache_control):
        return MIN_AGE_S
    found = _MAX_AGE.search(cache_control)
    return min(MAX_AGE_S, max(MIN_AGE_S, float(found[1]))) if found else MAX_AGE_S


def retry_wait_s(failing_s: float) -> float:
    """Return when to ask again for a file that could not be had for `failing_s` seconds."""
    return min(LAST_RETRY_S, max(0.0, failing_s) + FIRST_RETRY_S)
