"""Server specs: `bucket:5:10+retry-after` names a model, its numbers, and additions.

| spec | the server |
|---|---|
| `bucket:RATE:BURST` | token bucket, RATE requests/s, BURST at once |
| `fixed:N:W` | N requests in each window of W seconds, at a random phase |
| `sliding:N:W` | N requests in any W seconds |
| `concurrency:N:LATENCY` | N requests at once, each takes LATENCY seconds; 503 to any more |
| `knee:K:SERVICE` | K workers with one queue, SERVICE seconds a request; never refuses |
| `steps:R@0,R@T,…:BURST` | token bucket whose rate becomes R at second T |
| `ban:RATE:BURST:SECONDS` | token bucket that refuses everything for SECONDS after a refusal |
| `extending-ban:RATE:BURST:SECONDS` | the same, and a request during the ban starts it again |
| `MODULE:NAME` | your own: an importable class or function without arguments |

| addition | effect |
|---|---|
| `+retry-after` | refusals carry Retry-After in seconds |
| `+retry-after-date` | refusals carry Retry-After as a date, and Date |
| `+headers` | bucket, fixed and sliding announce RateLimit and RateLimit-Policy |
| `+noise=SHARE` | this share of the requests (0 to 1) gets a random 503 |
| `+pauses=SHARE:FROM-TO` | this share gets 429 or 503 and a Retry-After of FROM to TO seconds |
| `+outage=FROM-TO` | from second FROM to TO every answer is a 503 |
| `+unreachable=FROM-TO` | from second FROM to TO no connection is possible |
| `+hang=FROM-TO` | from second FROM to TO no request is answered |

This module parses specs; the models are in `servers` and `outages`.
"""

from __future__ import annotations

from importlib import import_module
from math import inf, nan
from typing import TYPE_CHECKING, cast

from .outages import Noise, Outage, OutageKind, Pauses
from .servers import (
    BanningBucket,
    ConcurrencyCap,
    FixedWindow,
    LatencyKnee,
    RetryAfter,
    SlidingLog,
    TokenBucket,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .servers import Server


def grammar() -> str:
    """Return the two tables above as text, for an error message or `--help`."""
    rows = [line for line in (__doc__ or "").splitlines() if line.startswith("| `")]
    cells = [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]
    return "\n".join(f"  {spec:<34} {meaning}" for spec, meaning in cells)


class SpecError(ValueError):
    """A server spec that cannot be parsed; `part` is the wrong part of `spec`."""

    def __init__(self, spec: str, part: str, why: str) -> None:
        self.spec = spec
        self.part = part
        super().__init__(f"server spec {spec!r}: {part!r} {why}; valid specs:\n{grammar()}")


def parse_server(spec: str) -> Server:
    """Build the server that `spec` names.

    Raises:
        SpecError: the message names the part that cannot be parsed, and all valid forms.
    """
    head, *additions = spec.strip().split("+")
    name, *arguments = head.split(":")
    make = _MODELS.get(name)
    parts = _Parts(spec, arguments, additions)
    if make:
        server = make(parts)
    elif len(arguments) == 1:
        server = _import_server(parts, name, arguments[0])
    else:
        raise SpecError(spec, name, "is not a known model")
    parts.expect_all_read()
    for addition in parts.additions:
        server = _wrapped(parts, server, addition)
    return server


def names_module(spec: str) -> bool:
    """Return whether a spec is of the form MODULE:NAME, which imports a module."""
    return spec.strip().split("+")[0].partition(":")[0] not in _MODELS


class _Parts:
    """The parts of one spec, read from left to right; every error names the wrong part."""

    def __init__(self, spec: str, arguments: list[str], additions: list[str]) -> None:
        self.spec = spec
        self.arguments = arguments
        self.additions = additions

    def take(self, name: str) -> str:
        if not self.arguments:
            raise SpecError(self.spec, name, "is missing")
        return self.arguments.pop(0)

    def number(self, name: str, *, above: float = 0.0) -> float:
        return self.as_number(self.take(name), name, above=above)

    def count(self, name: str) -> int:
        text = self.take(name)
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise SpecError(self.spec, text, f"is not a whole number above 0 for {name}")
        return int(text)

    def as_number(self, text: str, name: str, *, above: float = 0.0) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not above < value < inf:
            raise SpecError(self.spec, text, f"is not a number above {above:g} for {name}")
        return value

    def schedule(self) -> list[tuple[float, float]]:
        text = self.take("R@0,R@T,…")
        steps = []
        for step in text.split(","):
            rate, at, since = step.partition("@")
            if not at:
                raise SpecError(self.spec, step, "is not a step of the form RATE@SECOND")
            since_s = self.as_number(since, "SECOND", above=-1.0)
            steps.append((since_s, self.as_number(rate, "RATE")))
        if steps[0][0] != 0:
            raise SpecError(self.spec, text, "does not start at second 0")
        return steps

    def span(self, addition: str, text: str) -> tuple[float, float]:
        start, dash, end = text.partition("-")
        if not dash:
            raise SpecError(self.spec, addition, "needs a span of the form FROM-TO")
        start_s = self.as_number(start, "FROM", above=-1.0)
        return start_s, self.as_number(end, "TO", above=start_s)

    def share(self, addition: str, text: str) -> float:
        share = self.as_number(text, "SHARE")
        if share > 1:
            raise SpecError(self.spec, addition, "is a share above 1")
        return share

    def flag(self, name: str) -> bool:
        """Remove the addition `+name`; return whether it was there."""
        if name not in self.additions:
            return False
        self.additions.remove(name)
        return True

    def retry_after(self) -> RetryAfter:
        if self.flag("retry-after"):
            return RetryAfter.SECONDS
        return RetryAfter.DATE if self.flag("retry-after-date") else RetryAfter.ABSENT

    def expect_all_read(self) -> None:
        if self.arguments:
            raise SpecError(self.spec, self.arguments[0], "is one number too many")


def _bucket(parts: _Parts) -> Server:
    return TokenBucket(
        parts.number("RATE"),
        parts.count("BURST"),
        retry_after=parts.retry_after(),
        announces=parts.flag("headers"),
    )


def _steps(parts: _Parts) -> Server:
    return TokenBucket(
        parts.schedule(),
        parts.count("BURST"),
        retry_after=parts.retry_after(),
        announces=parts.flag("headers"),
    )


def _fixed(parts: _Parts) -> Server:
    return FixedWindow(
        parts.count("N"),
        parts.number("W"),
        retry_after=parts.retry_after(),
        announces=parts.flag("headers"),
    )


def _sliding(parts: _Parts) -> Server:
    return SlidingLog(
        parts.count("N"),
        parts.number("W"),
        retry_after=parts.retry_after(),
        announces=parts.flag("headers"),
    )


def _concurrency(parts: _Parts) -> Server:
    return ConcurrencyCap(
        parts.count("N"), parts.number("LATENCY"), retry_after=parts.retry_after()
    )


def _ban(parts: _Parts, *, extends: bool = False) -> Server:
    return BanningBucket(
        parts.number("RATE"),
        parts.count("BURST"),
        parts.number("SECONDS"),
        extends=extends,
        retry_after=parts.retry_after(),
    )


_MODELS: dict[str, Callable[[_Parts], Server]] = {
    "bucket": _bucket,
    "fixed": _fixed,
    "sliding": _sliding,
    "concurrency": _concurrency,
    "knee": lambda parts: LatencyKnee(parts.count("K"), parts.number("SERVICE")),
    "steps": _steps,
    "ban": _ban,
    "extending-ban": lambda parts: _ban(parts, extends=True),
}

_FAILURES = {
    "outage": OutageKind.ERROR,
    "unreachable": OutageKind.UNREACHABLE,
    "hang": OutageKind.HANG,
}


def _wrapped(parts: _Parts, server: Server, addition: str) -> Server:
    name, _, value = addition.partition("=")
    if name == "noise":
        return Noise(server, parts.share(addition, value))
    if name == "pauses":
        share, _, span = value.partition(":")
        return Pauses(server, parts.share(addition, share), *parts.span(addition, span))
    if name in _FAILURES:
        return Outage(server, *parts.span(addition, value), _FAILURES[name])
    raise SpecError(parts.spec, addition, "cannot be added to this server")


def _import_server(parts: _Parts, module: str, name: str) -> Server:
    parts.take("NAME")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SpecError(
            parts.spec, f"{module}:{name}", f"is neither a known model nor importable ({error})"
        ) from error
    server = make() if callable(make) else make
    if not callable(getattr(server, "request", None)):
        raise SpecError(parts.spec, f"{module}:{name}", "has no method request(now, in_flight)")
    return cast("Server", server)
