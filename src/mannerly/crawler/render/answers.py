"""Answers that pages were given before: a style or a script is fetched once in a run.

    style, script, image, font, media    for all pages, unless the answer says no-store
    anything else (fetch, XHR, frames)   as long as the answer says that it is fresh

An answer to a cross-origin request that names its origin is for that origin only. So many bytes are
kept; what was not used for the longest time goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .values import SubAnswer, SubRequest

STATIC = frozenset({"stylesheet", "script", "image", "font", "media", "texttrack", "manifest"})
STATUSES = frozenset({200, 203, 301, 308, 404, 410})
BYTES = 64 * 1024 * 1024
LARGEST = 8  # one answer may take an eighth of the memory
_OWN = 1024  # bytes that an answer takes beside its body


class _Kept(NamedTuple):
    answer: SubAnswer
    until: float
    origin: str | None  # the only one that it is for; None: for all


class Answers:
    """The answers of one process."""

    def __init__(self, most_bytes: int = BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, request: SubRequest, now: float) -> SubAnswer | None:
        """Return the answer to a request, if it is known."""
        if request.method != "GET":
            return None
        kept = self._kept.get(request.url)
        if kept is None or now >= kept.until:
            return None
        if kept.origin is not None and kept.origin != _header(request.headers, "origin"):
            return None
        self._kept.move_to_end(request.url)
        return kept.answer

    def keep(self, request: SubRequest, answer: SubAnswer, now: float) -> None:
        """Keep an answer, if later pages may be given it."""
        if request.method != "GET" or answer.status not in STATUSES or _has_own(request):
            return
        fresh_s = _fresh_s(answer.headers.get("cache-control", ""))
        if fresh_s is None:
            return
        lasts_s = inf if request.kind in STATIC else fresh_s
        size = len(answer.body) + _OWN
        if lasts_s <= 0.0 or size > self._most // LARGEST:
            return
        allowed = answer.headers.get("access-control-allow-origin", "*")
        self._drop(request.url)
        self._kept[request.url] = _Kept(answer, now + lasts_s, None if allowed == "*" else allowed)
        self._bytes += size
        while self._bytes > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, url: str) -> None:
        kept = self._kept.pop(url, None)
        if kept is not None:
            self._bytes -= len(kept.answer.body) + _OWN


def _has_own(request: SubRequest) -> bool:
    """Return whether a request has headers that its answer may depend on."""
    usual = ("accept", "accept-language", "referer", "origin")
    return any(name.lower() not in usual for name, _ in request.headers)


def _header(headers: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((text for key, text in headers if key.lower() == name), None)


def _fresh_s(cache_control: str) -> float | None:
    """Return for how long an answer is fresh, in seconds; None: it must not be kept."""
    fresh_s = 0.0
    for word in cache_control.lower().split(","):
        name, _, value = word.strip().partition("=")
        if name == "no-store":
            return None
        if name == "max-age" and value.isascii() and value.isdigit():
            fresh_s = float(value[:9])
    return fresh_s
