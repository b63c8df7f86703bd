"""Parse Retry-After and all variants of RateLimit headers into plain numbers.

`Retry-After` says how long to wait; `RateLimit` and its many predecessors say how fast to go on.
The remaining quota is spread evenly over the remaining time, with 5 % kept in reserve:

    rate = 0.95 · (remaining − in flight) / time to reset      else 0.95 · quota / window

The draft would allow to use the quota at once and then wait, but such bursts slow down other users.

Headers are untrusted input. Nothing here raises, the work is bounded by `MAX_FIELD_CHARS`, and a
field with a syntax error is ignored as a whole (the draft requires it). This module knows no host,
clock or status code. Dates in headers are compared with the response's own `Date`, so a wrong local
clock does not matter. It is long because servers use many variants of these headers.
"""

from __future__ import annotations

import math
import re
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .bounds import LONGEST_WAIT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_N = TypeVar("_N", int, float)

# RateLimit headers can stop a host for at most a day, so that a mistake (milliseconds for seconds)
# cannot stop it forever. RFC 9309 §2.4 lets a robots.txt be cached as long. A Retry-After is kept
# in full up to `LONGEST_WAIT_S`: it says when to come back.
MAX_WAIT_S = 86_400.0

# Without a reserve, one miscounted request would exceed the quota.
HEADROOM = 0.95

# Share of the limit below which the remaining quota is low, if neither window nor reset is known.
LOW_SHARE = 0.1

# Validity of a quota without reset and window. Usually the next response renews it earlier.
UNDATED_VALID_S = 60.0

# The longest example in the drafts has 90 characters and 3 members.
MAX_FIELD_CHARS = 4096
MAX_MEMBERS = 32

# A larger reset is a Unix time, not a number of seconds: 1e9 is the year 2001, or 31 years.
_EPOCH_S = 1e9
_EPOCH_MS = 1e12

# The quota units of draft 10. Quotas in other units are ignored.
_UNITS = frozenset({"requests", "content-bytes", "concurrent-requests"})

_TRIPLES = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")  # newest first: the first one is used
_NAMES = (
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    *(prefix + part for prefix in _TRIPLES for part in ("Limit", "Remaining", "Reset")),
)
_PREFIXES = tuple(prefix.lower() for prefix in _TRIPLES)
_READ = frozenset(name.lower() for name in _NAMES) | {"date", "age"}

# Every spelling used in practice: as specified, lower (HTTP/2), Title (Go), Capital, UPPER. One
# call of `RELEVANT.isdisjoint(headers)` lets the core skip responses without such headers.
RELEVANT = frozenset(
    spelling
    for name in _NAMES
    for spelling in (name, name.lower(), name.title(), name.capitalize(), name.upper())
)

# The patterns are strings; `re` compiles and caches them when they are first used. Compiling all of
# them would take 5 ms of every import, and most servers send none of these fields.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_HTTP_DATES = (  # RFC 9110 §5.6.7: IMF-fixdate, then the two obsolete forms
    rf"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",
    rf"{_LONG_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
    rf"{_DAY} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
)

# Patterns, because `int()` and `float()` also accept "1_000", full-width digits, "inf" and " 7".
_SECONDS = r"[0-9]+(?:\.[0-9]+)?"
_AGED = r"[ \t]*0*[1-9][0-9]*[ \t]*"
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"

# The part of RFC 8941 that these fields use: string, byte sequence, boolean, number, token. No two
# adjacent repetitions can match the same character, so matching takes linear time.
_VALUE = (
    r'"(?:[ !#-\[\]-~]|\\["\\])*"|:[A-Za-z0-9+/=]*:|\?[01]|-?[0-9]+(?:\.[0-9]+)?'
    r"|[A-Za-z*][!#$%&'*+\-.^_`|~:/0-9A-Za-z]*"
)
_PARAMETER = rf" *; *([a-z*][a-z0-9_.*\-]*)(?:=({_VALUE}))?"
_MEMBER = (
    rf"[ \t]*(?P<head>{_VALUE})(?:=(?P<value>{_VALUE}))?"
    rf"(?P<parameters>(?:{_PARAMETER})*)[ \t]*(?P<comma>,|\Z)"
)


class RateLimits(NamedTuple):
    """The limits that the RateLimit headers of one response set, all policies combined.

    `rate` (requests/s) is never zero: an exhausted quota sets `blocked_s` instead. `low_remaining`
    means that little quota is left but no time is given: the caller should halve its rate.
    """

    rate: float | None = None
    blocked_s: float | None = None
    concurrency: int | None = None
    bytes_per_s: float | None = None
    valid_s: float = UNDATED_VALID_S
    low_remaining: bool = False


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that this module reads, with lower-case names.

    A program may give a number or bytes where a text belongs: it is read as that text.
    """
    return {low: _text(value) for name, value in headers.items() if (low := name.lower()) in _READ}


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)  # str(text) is text


def retry_after_s(value: str, *, date: str | None, received_at: float | None) -> float | None:
    """Return the wait that a Retry-After value asks for, in seconds; None if it is not valid.

    A longer one than `LONGEST_WAIT_S` counts as that long. Zero, a past date and invalid text
    count as absent, so that the caller's own backoff applies. Not legal but clear:
    "1.5" is rounded up to 2, and of a header that was sent twice ("60, 120") the longest wait is
    taken, because ignoring either could mean to return too early.
    """
    text = value.strip(" \t")
    if (until := _http_date(text)) is not None:
        since = _sent_at(date, received_at)
        wait_s = 0.0 if since is None else until - since
    else:
        parts = [part.strip(" \t") for part in text.split(",")]
        if not all(re.fullmatch(_SECONDS, part) for part in parts):
            return None
        wait_s = float(math.ceil(min(max(map(float, parts)), LONGEST_WAIT_S)))
    return min(wait_s, LONGEST_WAIT_S) if wait_s > 0 else None


def rate_limits(
    headers: Mapping[str, str], *, in_flight: int, received_at: float | None = None
) -> RateLimits | None:
    """Return the limits set by RateLimit headers, or None if there are no usable ones.

    `headers` has lower-case names (see `lowered`). `in_flight` is the number of other requests in
    flight, which the server may not have counted yet. A response from a cache (Age > 0) is
    ignored: its quota is outdated. A valid Retry-After takes precedence over all reset times.
    """
    if re.fullmatch(_AGED, headers.get("age", "")):
        return None
    quotas = _quotas(headers, received_at)
    if not quotas:
        return None
    date, retry_after = headers.get("date"), headers.get("retry-after", "")
    if retry_after_s(retry_after, date=date, received_at=received_at) is not None:
        quotas = [quota._replace(reset_s=None) for quota in quotas]
    return reduce(_stricter, (_limits(quota, in_flight) for quota in quotas))


class _Quota(NamedTuple):
    """One policy and its state. Policies before draft 08 have no name: the limit is the name."""

    name: str
    limit: float | None = None
    window_s: float | None = None
    remaining: float | None = None
    reset_s: float | None = None
    unit: str = "requests"


class _Member(NamedTuple):
    """A member of a structured list (`head;key=value`) or dictionary (`head=value`)."""

    head: str
    value: str | None
    parameters: dict[str, str]


def _limits(quota: _Quota, in_flight: int) -> RateLimits:
    valid_s = min(quota.reset_s or quota.window_s or UNDATED_VALID_S, MAX_WAIT_S)
    if quota.unit == "concurrent-requests":
        return RateLimits(concurrency=max(1, int(quota.limit or 1)), valid_s=valid_s)
    if quota.remaining == 0 and quota.reset_s is not None:
        return RateLimits(blocked_s=valid_s, valid_s=valid_s)
    if quota.unit == "content-bytes":
        return RateLimits(bytes_per_s=_spread(quota, 0), valid_s=valid_s)
    rate = _spread(quota, in_flight)
    return RateLimits(rate=rate, valid_s=valid_s, low_remaining=rate is None and _is_low(quota))


def _spread(quota: _Quota, spoken_for: int) -> float | None:
    """Return the rate that uses the quota evenly until its reset; None if no time is known.

    At least one unit is assumed to be left, because callers divide by the rate; a gap of one whole
    reset time already ends after the reset.
    """
    if quota.remaining is not None and quota.reset_s is not None:
        rate = max(1.0, quota.remaining - spoken_for) / quota.reset_s
    elif quota.limit is not None and quota.window_s is not None:
        rate = quota.limit / quota.window_s
    else:
        return None
    return max(HEADROOM * rate, 1 / MAX_WAIT_S)


def _is_low(quota: _Quota) -> bool:
    if quota.remaining is None:
        return False
    return quota.remaining == 0 or quota.remaining < LOW_SHARE * (quota.limit or 0)


def _stricter(one: RateLimits, other: RateLimits) -> RateLimits:
    """Return limits that satisfy both. The longer validity is used: the next response renews it."""
    return RateLimits(
        rate=min(_known(one.rate, other.rate), default=None),
        blocked_s=max(_known(one.blocked_s, other.blocked_s), default=None),
        concurrency=min(_known(one.concurrency, other.concurrency), default=None),
        bytes_per_s=min(_known(one.bytes_per_s, other.bytes_per_s), default=None),
        valid_s=max(one.valid_s, other.valid_s),
        low_remaining=one.low_remaining or other.low_remaining,
    )


def _known(*values: _N | None) -> list[_N]:
    return [value for value in values if value is not None]


def _quotas(headers: Mapping[str, str], received_at: float | None) -> list[_Quota]:
    """Return the quotas of the first variant that is present and valid, joined with policies."""
    policies = _parse_or_empty(_policies, headers.get("ratelimit-policy", ""))
    states = _parse_or_empty(_states, headers.get("ratelimit", ""))
    for prefix in _PREFIXES:
        if states:
            break
        states, stated = _triple(headers, prefix, received_at)
        policies += stated
    joined = []
    for state in states:
        policy = next((p for p in policies if p.name == state.name), None)
        if policy is not None:
            policies.remove(policy)
            state = policy._replace(remaining=state.remaining, reset_s=state.reset_s)
        joined.append(state)
    return [quota for quota in joined + policies if _is_usable(quota)]


def _is_usable(quota: _Quota) -> bool:
    return quota.unit in _UNITS and (
        quota.remaining is not None
        or quota.window_s is not None
        or quota.unit == "concurrent-requests"
    )


def _parse_or_empty(parse: Callable[[str], list[_Quota]], field: str) -> list[_Quota]:
    """Parse a field; return no quotas if it is missing, empty or has a syntax error."""
    try:
        return parse(field)
    except ValueError:
        return []


def _policies(field: str) -> list[_Quota]:
    """Parse `"name";q=100;w=60;qu="requests"`, or without a name, up to draft 07, `100;w=60`."""
    return [_policy(member) for member in _members(field)]


def _policy(member: _Member) -> _Quota:
    parameters = member.parameters
    return _Quota(
        name=member.head.strip('"'),
        limit=_positive(parameters.get("q", member.head)),
        window_s=_positive(parameters["w"]) if "w" in parameters else None,
        unit=parameters.get("qu", "requests").strip('"'),
    )


def _states(field: str) -> list[_Quota]:
    """Parse `"name";r=50;t=30` (since draft 08) or `limit=100, remaining=50, reset=30` (07)."""
    members = _members(field)
    if members[0].value is None:
        return [_state(m.head, m.parameters.get("r"), m.parameters.get("t")) for m in members]
    values = {member.head: member.value for member in members}
    limit, remaining, reset = (values.get(x) for x in ("limit", "remaining", "reset"))
    return [_state(limit, remaining, reset, limit=limit)]


def _triple(
    headers: Mapping[str, str], prefix: str, received_at: float | None
) -> tuple[list[_Quota], list[_Quota]]:
    """Parse the fields Limit, Remaining and Reset into a state and policies.

    They hold one number each; Limit may also list policies: `100, 10;w=1, 100;w=60`.
    """
    limit, remaining, reset = (headers.get(prefix + x) for x in ("limit", "remaining", "reset"))
    try:
        limits = [] if limit is None else _members(limit)
        policies = [_policy(member) for member in limits if "w" in member.parameters]
        if remaining is None:
            return [], policies
        first = limits[0].head if limits else None
        since = _sent_at(headers.get("date"), received_at)
        state = _state(first, _single(remaining), _single(reset), limit=first, since=since)
    except ValueError:
        return [], []
    return [state], policies


def _state(
    name: str | None,
    remaining: str | None,
    reset: str | None,
    *,
    limit: str | None = None,
    since: float | None = None,
) -> _Quota:
    return _Quota(
        name=(name or "").strip('"'),
        limit=None if limit is None else _positive(limit),
        remaining=_number(remaining or ""),
        reset_s=None if reset is None else _reset_s(_number(reset), since),
    )


def _reset_s(reset: float, since: float | None) -> float | None:
    """Return the seconds until a reset; None if that is not known.

    X-RateLimit-Reset was never specified: the size of the number tells whether it is in seconds, a
    Unix time in seconds or one in milliseconds. Senders round to whole seconds, so less than one
    counts as one. A Unix time in the past, or without a `Date` to compare it with, is ignored.
    """
    if reset < _EPOCH_S:
        return max(reset, 1.0)
    if since is None:
        return None
    left_s = (reset / 1000 if reset >= _EPOCH_MS else reset) - since
    return max(left_s, 1.0) if left_s >= 0 else None


def _single(field: str | None) -> str | None:
    if field is None or re.fullmatch(_NUMBER, field):
        return field
    (member,) = _members(field)  # more than one member raises ValueError, as invalid fields do
    return member.head


def _number(text: str) -> float:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError("not a number")
    return float(text)


def _positive(text: str) -> float:
    """Parse a limit. Some servers send 0 for "no limit": such a field is ignored."""
    number = _number(text)
    if number <= 0:
        raise ValueError("a limit of 0")
    return number


def _members(field: str) -> list[_Member]:
    """Return the members of a structured list or dictionary; ValueError if it is neither."""
    if len(field) > MAX_FIELD_CHARS:
        raise ValueError("too long")
    member = re.compile(_MEMBER)
    members: list[_Member] = []
    at = 0
    while len(members) < MAX_MEMBERS:
        match = member.match(field, at)
        if match is None:
            raise ValueError("not a structured field")
        parameters = dict(re.findall(_PARAMETER, match["parameters"]))
        members.append(_Member(match["head"], match["value"], parameters))
        if not match["comma"]:
            return members
        at = match.end()
    raise ValueError("too many members")


def _sent_at(date: str | None, received_at: float | None) -> float | None:
    """Return when the response was sent: its `Date` if valid, else `received_at`."""
    sent_at = None if date is None else _http_date(date.strip(" \t"))
    return received_at if sent_at is None else sent_at


def _http_date(text: str) -> float | None:
    """Return an HTTP date in seconds since 1970, or None. The day of the week is not checked."""
    match = next((m for form in _HTTP_DATES if (m := re.fullmatch(form, text))), None)
    if match is None:
        return None
    from datetime import UTC, datetime

    year = int(match["year"])
    if len(match["year"]) == 2:
        # RFC 9110: more than 50 years in the future means the last century. A fixed limit is used,
        # because this module has no clock.
        year += 2000 if year < 70 else 1900
    try:
        instant = datetime(
            year,
            _MONTHS.index(match["month"]) + 1,
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            59 if match["second"] == "60" else int(match["second"]),  # a leap second is legal
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return instant.timestamp()
