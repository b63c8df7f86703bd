"""Decide by robots.txt whether a URL may be fetched. Each origin's file is fetched when needed.

    unknown ──request──► being fetched ──answered──► known until it expires ──► unknown
                              │ 3xx                    ▲
                              └──► another hop (≤ 5) ──┘

    judge      GO, Drop, Later, or Unknown where the rules are not in memory
    load       rules come back from the store
    request    the rules are nowhere: the request that asks for them
    answered   what an answer means: the next hop, or the rules of an origin (`Learned`)
    give_up    a request that cannot be sent: its origin's pages must not wait for it

There are no callbacks: the caller (`shard`) sends the requests, stores the records, tells the
politeness core the delay, and wakes the hosts. What a single answer means is in `answer`.

**Unreachable is not forbidden.** A URL that a rule forbids is dropped. If the file cannot be
fetched and there is no earlier copy, nothing may be fetched; but the URLs wait (`Later`), because
the next attempt may succeed and no URL is to be lost. They wait for `patience_s` and are then
dropped, or one unreachable host would keep a crawl from ever being finished. After 30 days without
an answer there are no rules. With `unreachable="allow"`, no file and no copy mean no rules. With
`ignore=True` there is no robots.txt at all.

Parsed rules are kept for the origins used last, up to about `memory_bytes`. A short file is
parsed once for all origins that have the very same one: most hosts of a hosting platform do.
Nothing here reads a clock or a socket. Instants are monotonic; records carry wall time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from mannerly.crawler.model import (
    GO,
    PASSING,
    Drop,
    Later,
    LocalError,
    RobotsRequest,
    Unknown,
)
from mannerly.crawler.web.urls import canonical, host_key_of
from mannerly.politeness.robots import Robots
from mannerly.politeness.robots.keeping import MAX_AGE_S

from .answer import RobotsAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.model import Entry, Fetched, Judgement, Now, RobotsRecord
    from mannerly.politeness.model import Instant

MAX_HOPS = 5  # RFC 9309 §2.3.1.2
GIVE_UP_AFTER_S = 30 * 24 * 3600.0  # RFC 9309 §2.3.1.4
DEFAULT_MEMORY_BYTES = 128 * 1024 * 1024  # some 8,000 ordinary files
UNREACHABLE = "robots_unreachable"

_UNREADABLE = "its robots.txt makes our parser fail"
_PATH = "/robots.txt"
_FORBIDDEN = Drop("robots")
_BASE_WEIGHT = 2048  # what even an empty file costs: an origin, a parser's object, a verdict
# Parsed rules take ten times the memory of an ordinary file, and thirty times that of the worst.
_GROWTH, _LARGE_GROWTH = 10, 30
_ORDINARY_BYTES = 32 * 1024
_SHARED_BYTES = 4096  # longer files are written for one site
_SHARED = 1024  # a few megabytes of rules


class Learned(NamedTuple):
    """An origin's rules are known, or known to be out of reach.

    `crawl_delay_s` is what Crawl-delay and Request-rate ask for; the larger one of the host's two
    origins (http and https share a pace).
    `sitemaps` are those that the copy before did not list: unchecked text from the server.
    """

    origin: str
    host: str
    record: RobotsRecord
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...] = ()


class _Parsed(NamedTuple):
    """The part of a robots.txt that is valid for this crawler; no rules: fetch nothing."""

    rules: Robots | None
    crawl_delay_s: float | None = None


@dataclass(slots=True)
class _Known:
    """The rules of an origin."""

    parsed: _Parsed
    expires: Instant
    weight: int  # bytes of memory, about
    drop: Drop | None = None  # why the pages of an origin without rules do not wait


class RobotsGate:
    """The robots.txt of every origin, as far as they are needed.

    Args:
        agent: our User-Agent, or its token.
        unreachable: what an unreachable robots.txt without a copy means.
        ignore: allow everything, fetch nothing.
        patience_s: how long the pages of an unreachable robots.txt without a copy wait for it.
        memory_bytes: how much memory parsed rules may take, about.
        parse: reads a body.
    """

    def __init__(
        self,
        agent: str,
        *,
        unreachable: Literal["disallow", "allow"] = "disallow",
        ignore: bool = False,
        patience_s: float = inf,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        parse: Callable[[bytes], Robots] = Robots.parse,
    ) -> None:
        self._agent = agent
        self._allow_unreachable = unreachable == "allow"
        self._ignore = ignore
        self._patience_s = patience_s
        self._memory_bytes = memory_bytes
        self._parse = parse
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._weight = 0
        self._shared: dict[bytes, _Parsed] = {}  # what short files say, by their text
        self._fetching: set[str] = set()

    def __repr__(self) -> str:
        return f"<RobotsGate {len(self._known)} known, {len(self._fetching)} being fetched>"

    def __len__(self) -> int:
        """Return how many origins' rules are in memory."""
        return len(self._known)

    def __contains__(self, origin: str) -> bool:
        """Return whether an origin's rules are in memory, even if they have expired."""
        return origin in self._known

    @property
    def fetching(self) -> frozenset[str]:
        """Origins whose robots.txt was asked for and has not come yet."""
        return frozenset(self._fetching)

    # ------------------------------------------------------------------ questions

    def judge(self, entry: Entry, now: Instant) -> Judgement:
        """Return whether an entry may be fetched, as far as its robots.txt is concerned."""
        if self._ignore:
            return GO
        url = entry.url
        origin = url[: url.index("/", 8)]
        if origin in self._fetching:
            return _WAIT_FOR_RULES
        known = self._known.get(origin)
        if known is None or now >= known.expires:
            return Unknown(origin)
        self._known.move_to_end(origin)
        if known.drop is not None:
            return known.drop
        rules = known.parsed.rules
        if rules is None:
            return Later(known.expires, needs_rules=True)
        return GO if self._allows(rules, url[len(origin) :]) else _FORBIDDEN

    def needs(self, origin: str, now: Instant) -> bool:
        """Return whether the rules of this origin would have to be loaded or fetched."""
        if self._ignore or origin in self._fetching:
            return False
        known = self._known.get(origin)
        return known is None or now >= known.expires

    # ------------------------------------------------------------------ rules come in

    def load(self, record: RobotsRecord, now: Now) -> Learned:
        """Take rules back into memory that were fetched earlier; they may have expired since."""
        return self._adopt(record, now)

    def request(self, origin: str) -> RobotsRequest:
        """Return the request that asks for an origin's robots.txt. There is never a second one."""
        if origin in self._fetching:
            raise RuntimeError(f"{origin}: its robots.txt is being fetched already")
        self._fetching.add(origin)
        return request_for(origin)

    def withdrawn(self, request: RobotsRequest) -> None:
        """A request was taken back before it was sent: its origin is unknown again."""
        self._fetching.discard(request.origin)

    def answered(
        self,
        request: RobotsRequest,
        answer: Fetched,
        stored: Mapping[str, RobotsRecord | None],
        now: Now,
    ) -> RobotsRequest | list[Learned]:
        """Return the request to send next, or what was learned.

        `stored` has the latest record of each of the request's `origins`. Usually one origin is
        learned. Two are, if a redirect ended at another origin's robots.txt that was unknown: it
        need not be asked for again. None is, if the request failed on our side for the moment: the
        origin is unknown again.
        """
        error = answer.error
        if error in PASSING:
            self._fetching.discard(request.origin)
            return []
        status = answer.status
        # A host that not even robots.txt may be asked of gives no page either. But a redirect to
        # such a host is a redirect to nowhere.
        refusal = error.value if isinstance(error, LocalError) else None
        if refusal is not None and request.hops:
            status, refusal = 404, None
        if status is not None and 300 <= status < 400:
            hop = _next_hop(request, answer.headers.get("location"))
            if hop is not None:
                return hop
        found = RobotsAnswer.of(status, answer.body, answer.headers)
        return self._settle(request, found, refusal, stored, now)

    def give_up(
        self, request: RobotsRequest, stored: Mapping[str, RobotsRecord | None], now: Now
    ) -> list[Learned]:
        """Learn that a request will not be sent: its origin has no rules, and will get none."""
        return self._settle(request, RobotsAnswer.of(None, b"", {}), UNREACHABLE, stored, now)

    def has_rules(self, origin: str) -> bool:
        """Return whether pages of an origin can be judged, by its file or without one."""
        known = self._known.get(origin)
        return known is not None and known.parsed.rules is not None

    def unreachable_until(self, host: str) -> Instant | None:
        """Return when a host's robots.txt is asked for again on which all its pages wait.

        None: there is none to wait for.
        """
        known = [self._known.get(f"{scheme}://{host}") for scheme in ("https", "http")]
        found = [each for each in known if each is not None]
        if not found or any(each.drop is not None or each.parsed.rules for each in found):
            return None
        return min(each.expires for each in found)

    def expire(self, origin: str, now: Instant) -> None:
        """Have an origin's rules asked for again now, if they could not be fetched."""
        known = self._known.get(origin)
        if known is not None and known.parsed.rules is None:
            known.expires = min(known.expires, now)

    def forget(self, origin: str) -> None:
        """Drop an origin's rules from memory: the next judgement asks for them."""
        known = self._known.pop(origin, None)
        if known is not None:
            self._weight -= known.weight

    # ------------------------------------------------------------------ learning

    def _settle(
        self,
        request: RobotsRequest,
        found: RobotsAnswer,
        refusal: str | None,
        stored: Mapping[str, RobotsRecord | None],
        now: Now,
    ) -> list[Learned]:
        origin, *others = request.origins
        self._fetching.discard(origin)
        learned = [self._learn(origin, found, stored.get(origin), now)]
        if refusal is not None and self._known[origin].parsed.rules is None:
            self._known[origin].drop = Drop(refusal)
        for other in others:
            if self._is_news(other, stored.get(other), now):
                news = self._learn(other, found, stored.get(other), now)
                learned.append(news._replace(sitemaps=()))
        return learned

    def _is_news(self, origin: str, stored: RobotsRecord | None, now: Now) -> bool:
        if origin in self._fetching:
            return False
        known = self._known.get(origin)
        if known is not None:
            return now.mono >= known.expires
        return stored is None or now.wall >= stored.expires_at

    def _learn(
        self, origin: str, found: RobotsAnswer, previous: RobotsRecord | None, now: Now
    ) -> Learned:
        record = found.record(origin, now.wall, previous)
        learned = self._adopt(record, now)
        rules = self._known[origin].parsed.rules
        if rules is None or not rules.sitemaps or record.failing_since:
            return learned
        before = self._read(previous.body).rules if previous and previous.body else None
        listed = frozenset(before.sitemaps if before is not None else ())
        return learned._replace(sitemaps=tuple(url for url in rules.sitemaps if url not in listed))

    def _adopt(self, record: RobotsRecord, now: Now) -> Learned:
        """Keep a record's meaning in memory, and drop what was used longest ago."""
        origin, body = record.origin, record.body
        parsed = self._blanket(record, now.wall) if body is None else self._read(body)
        # A wall clock that was wrong when the record was written must not make it immortal.
        left_s = min(MAX_AGE_S, record.expires_at - now.wall)
        known = _Known(parsed, now.mono + left_s, _weight(body or b""))
        if parsed.rules is None and now.wall - record.failing_since >= self._patience_s:
            known.drop = Drop(UNREACHABLE)
        self.forget(origin)
        self._known[origin] = known
        self._weight += known.weight
        while self._weight > self._memory_bytes and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        delay_s = parsed.crawl_delay_s
        sibling = self._known.get(_other_scheme(origin))
        if sibling is not None and sibling.parsed.crawl_delay_s is not None:
            delay_s = max(delay_s or 0.0, sibling.parsed.crawl_delay_s)
        return Learned(origin, host_key_of(origin + "/"), record, delay_s)

    def _blanket(self, record: RobotsRecord, wall: float) -> _Parsed:
        """The rules of an origin without a file."""
        if not record.failing_since:
            return _allow_all(f"robots.txt answered {record.status}")
        if self._allow_unreachable:
            return _allow_all("robots.txt cannot be reached, and that is let pass")
        if wall - record.failing_since >= GIVE_UP_AFTER_S:
            return _allow_all("robots.txt could not be reached for 30 days")
        return _NOTHING

    # ------------------------------------------------------------------ a parser that may fail

    def _read(self, body: bytes) -> _Parsed:
        parsed = self._shared.get(body)
        if parsed is None:
            try:
                rules = self._parse(body)
                parsed = _Parsed(rules, _delay_s(rules, self._agent))
            except Exception:  # noqa: BLE001 - one bad file must not stop the other origins
                parsed = _Parsed(Robots.disallow_all(_UNREADABLE))
            if len(body) <= _SHARED_BYTES:
                if len(self._shared) >= _SHARED:
                    self._shared.clear()
                self._shared[body] = parsed
        return parsed

    def _allows(self, rules: Robots, path: str) -> bool:
        try:
            return rules.allowed(path, self._agent)
        except Exception:  # noqa: BLE001 - as above
            return False


def _delay_s(rules: Robots, agent: str) -> float | None:
    """Return the longer one of Crawl-delay and Request-rate; None if there is neither.

    A Request-rate for some hours of the day is kept all day.
    """
    delay_s, rate = rules.crawl_delay_s(agent), rules.request_rate(agent)
    return delay_s if rate is None else max(delay_s or 0.0, rate.interval_s)


_WAIT_FOR_RULES = Later(None)
_NOTHING = _Parsed(None)


@cache  # one for every status there is
def _allow_all(because: str) -> _Parsed:
    return _Parsed(Robots.allow_all(because))


def request_for(origin: str) -> RobotsRequest:
    """Return the first request for an origin's robots.txt, before any redirect."""
    return RobotsRequest(origin + _PATH, host_key_of(origin + "/"), origin)


def _next_hop(request: RobotsRequest, location: str | None) -> RobotsRequest | None:
    target = canonical(location, request.url) if location else None
    if target is None or request.hops >= MAX_HOPS:
        return None
    return RobotsRequest(target, host_key_of(target), request.origin, request.hops + 1)


def _weight(body: bytes) -> int:
    size = len(body)
    return _BASE_WEIGHT + size * (_GROWTH if size <= _ORDINARY_BYTES else _LARGE_GROWTH)


def _other_scheme(origin: str) -> str:
    return "http" + origin[5:] if origin.startswith("https") else "https" + origin[4:]
