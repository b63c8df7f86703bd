"""May this URL be fetched, and if nobody knows, who finds out? One robots.txt an origin.

    unknown ──rule: First(errand)──► fetching ──fetched──► known until it expires ──► unknown
                                        │ 3xx                 ▲
                                        └──► hop (≤ 5) ───────┘

What an answer means is `robots_answer`'s. Redirects are followed here, up to five; the rules are
for the origin that was asked about.

**Unreachable is not forbidden.** A URL that a rule forbids is dropped. Where the file cannot be had
nothing may be fetched, unless there is an earlier copy; but the URLs wait (`Unknown`), because the
next attempt may succeed and no URL is to be lost. They wait for `patience_s`, and are then given up
(`GivenUp`), or one dead host would keep a crawl from ever being finished. After 30 days without an
answer there are no rules. `unreachable="allow"` is document 003's fallback: no copy, no rules.
`ignore=True` knows no robots.txt at all.

**With the frontier.** `rule` is the judge that `Frontier.take` wants. For an unknown origin it
answers `First(errand)`: the frontier spends the host's slot on robots.txt and holds its pages. The
engine calls `begin` when it sends that, `fetched` with the answer, and then:

    Hop        frontier.errand(hop.errand): the next slot is the other host's to give
    Learned    store the record, politeness.robots(host, crawl_delay_s), frontier.wake(host)

or, if the request came to nothing on our side, `abandon`, and again frontier.wake(host).

Parsed rules are kept for the origins used last; the others come back through `load`, from the
stored body, and `on_loaded` then says what the file asks for before any page of the host is sent.
A short file is parsed once for all origins that have the very same one: most hosts of a hosting
platform do.
Nothing here reads a clock or a socket. Instants are monotonic; records carry wall time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from mannerly.crawler.model import GO, Drop, First, Later, RobotsRequest
from mannerly.crawler.web.urls import canonical, host_key_of
from mannerly.politeness.model import NO_HEADERS
from mannerly.politeness.robots import Robots

from .answer import MAX_AGE_S, Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.model import Entry, Judgement, RobotsRecord
    from mannerly.politeness.model import Instant

MAX_HOPS = 5  # RFC 9309 §2.3.1.2
GIVE_UP_AFTER_S = 30 * 24 * 3600.0  # RFC 9309 §2.3.1.4
DEFAULT_MEMORY_BYTES = 64 * 1024 * 1024

_UNREADABLE = "its robots.txt makes our parser fail"
_PATH = "/robots.txt"
_FORBIDDEN = Drop("robots")
_BASE_WEIGHT = 2048  # what even an empty file costs: an origin, a parser's object, a verdict
_SHARED_BYTES = 4096  # longer files are written for one site
_SHARED = 1024  # a few megabytes of rules


class Allowed(NamedTuple):
    """No rule forbids it."""


@dataclass(frozen=True, slots=True)
class Disallowed:
    """A rule forbids it; `mannerly explain` tells which."""


class Unknown(NamedTuple):
    """The rules are not known. They may be asked for at `due`; None: they have been."""

    due: Instant | None


class GivenUp(NamedTuple):
    """The rules could not be had for so long, or so surely cannot, that nobody waits for them."""

    reason: str


UNREACHABLE = "robots_unreachable"
RobotsVerdict: TypeAlias = Allowed | Disallowed | Unknown | GivenUp
ALLOWED, DISALLOWED = Allowed(), Disallowed()


class Hop(NamedTuple):
    """The answer lies elsewhere: another request, with a slot of its own host."""

    errand: RobotsRequest


class Learned(NamedTuple):
    """An origin's rules are known, or known to be out of reach.

    `crawl_delay_s` is the larger wish of the host's two origins (http and https share a pace).
    `sitemaps` are those that the copy before did not list: unchecked text from a stranger.
    """

    origin: str
    host: str
    record: RobotsRecord
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]


class _Known:
    """What is known of an origin: its rules, or None while nothing may be fetched."""

    __slots__ = ("crawl_delay_s", "expires", "given_up", "rules", "weight")

    def __init__(
        self, rules: Robots | None, crawl_delay_s: float | None, expires: Instant, weight: int
    ) -> None:
        self.rules = rules
        self.crawl_delay_s = crawl_delay_s
        self.expires = expires
        self.given_up: str | None = None  # why the pages of an origin without rules do not wait
        self.weight = weight  # in bytes of robots.txt, which the parsed rules grow with


class RobotsCache:
    """The robots.txt of every origin, as far as they are needed.

    Args:
        agent: our User-Agent, or its token.
        load: an origin's latest record, one that is not committed yet included.
        on_loaded: told when rules came back from `load`; it must not call the frontier.
        unreachable: what an unreachable robots.txt without a copy means.
        ignore: allow everything, fetch nothing.
        patience_s: how long the pages of an unreachable robots.txt without a copy wait for it.
        memory_bytes: how much robots.txt is kept parsed.
        parse: reads a body.
    """

    def __init__(
        self,
        agent: str,
        *,
        load: Callable[[str], RobotsRecord | None],
        on_loaded: Callable[[Learned, Instant], None],
        unreachable: Literal["disallow", "allow"] = "disallow",
        ignore: bool = False,
        patience_s: float = inf,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        parse: Callable[[bytes], Robots] = Robots.parse,
    ) -> None:
        self._agent = agent
        self._load = load
        self._on_loaded = on_loaded
        self._allow_unreachable = unreachable == "allow"
        self._ignore = ignore
        self._patience_s = patience_s
        self._memory_bytes = memory_bytes
        self._parse = parse
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._weight = 0
        self._shared: dict[bytes, _Asked] = {}  # what short files ask for, by their text
        self._fetching: dict[str, RobotsRequest] = {}

    def __repr__(self) -> str:
        return f"<RobotsCache {len(self._known)} known, {len(self._fetching)} being fetched>"

    def __len__(self) -> int:
        """Origins whose rules are in memory."""
        return len(self._known)

    @property
    def fetching(self) -> frozenset[str]:
        """Origins whose robots.txt is being fetched, a hop that waits for its slot included."""
        return frozenset(self._fetching)

    # ------------------------------------------------------------------ questions

    def rule(self, entry: Entry, now: Instant, wall: float) -> Judgement:
        """The frontier's judge: fetch it, drop it, robots.txt first, or later."""
        url = entry.url
        origin = url[: url.index("/", 8)]
        verdict = self.verdict(origin, url, now, wall)
        if verdict is ALLOWED:
            return GO
        if not isinstance(verdict, Unknown):
            return Drop(verdict.reason) if isinstance(verdict, GivenUp) else _FORBIDDEN
        if verdict.due is None or verdict.due > now:
            return Later(verdict.due)
        return First(RobotsRequest(origin + _PATH, entry.host, origin))

    def verdict(self, origin: str, url: str, now: Instant, wall: float) -> RobotsVerdict:
        """May `url` of this origin be fetched? `wall` is the wall clock's time at `now`."""
        if self._ignore:
            return ALLOWED
        if origin in self._fetching:
            return Unknown(None)
        known = self._known.get(origin)
        if known is None:
            known = self._recall(origin, now, wall)
            if known is None:
                return Unknown(now)
        else:
            self._known.move_to_end(origin)
        if now >= known.expires:
            return Unknown(now)
        if known.given_up is not None:
            return GivenUp(known.given_up)
        if known.rules is None:
            return Unknown(known.expires)
        return self._consult(known.rules, url[len(origin) :])

    # ------------------------------------------------------------------ answers

    def begin(self, errand: RobotsRequest) -> None:
        """The request is being sent. There is never a second one for the same origin."""
        pending = self._fetching.setdefault(errand.origin, errand)
        if pending != errand:
            raise RuntimeError(f"{errand.origin}: its robots.txt is being fetched already")

    def abandon(self, errand: RobotsRequest) -> None:
        """The request was given up and says nothing about the origin: it is unknown again."""
        self._fetching.pop(errand.origin, None)

    def fetched(
        self,
        errand: RobotsRequest,
        *,
        status: int | None,
        body: bytes = b"",
        headers: Mapping[str, str] = NO_HEADERS,
        refusal: str | None = None,
        now: Instant,
        wall: float,
    ) -> Hop | list[Learned]:
        """What came of an errand; no status means no answer. Header names are lower case.

        A `refusal` says that we may not ask there at all, so there is nothing to wait for.
        Usually one origin is learned. Two are, if a redirect ended at another origin's
        robots.txt that was unknown: nobody has to ask for it again.
        """
        url, host, origin, hops, _ = errand
        self._fetching.pop(origin, None)
        if status is not None and 300 <= status < 400:
            hop = self._follow(errand, headers.get("location"))
            if hop is not None:
                return hop
        answer = Answer.of(status, body, headers)
        own_host = host_key_of(origin + "/") if hops else host
        learned = [self._learn(origin, own_host, answer, now, wall)]
        if refusal is not None and self._known[origin].rules is None:
            self._known[origin].given_up = refusal
        also = url[: url.index("/", 8)]
        if hops and url == also + _PATH and self._is_news(also, now, wall):
            learned.append(self._learn(also, host, answer, now, wall)._replace(sitemaps=()))
        return learned

    # ------------------------------------------------------------------ learning

    def _follow(self, errand: RobotsRequest, location: str | None) -> Hop | None:
        target = canonical(location, errand.url) if location else None
        if target is None or errand.hops >= MAX_HOPS:
            return None
        hop = RobotsRequest(target, host_key_of(target), errand.origin, errand.hops + 1)
        self._fetching[errand.origin] = hop
        return Hop(hop)

    def _is_news(self, origin: str, now: Instant, wall: float) -> bool:
        return self.verdict(origin, origin + "/", now, wall) == Unknown(now)

    def _learn(self, origin: str, host: str, answer: Answer, now: Instant, wall: float) -> Learned:
        record = answer.record(origin, wall, self._load)
        known = self._adopt(record, now, wall)
        sitemaps: tuple[str, ...] = ()
        if known.rules is not None and known.rules.sitemaps and not record.failing_since:
            previous = self._load(origin)
            before = previous.body if previous is not None else None
            listed = self._read(before).rules.sitemaps if before else ()
            sitemaps = tuple(url for url in known.rules.sitemaps if url not in listed)
        return self._learned(record, host, known, sitemaps)

    def _recall(self, origin: str, now: Instant, wall: float) -> _Known | None:
        record = self._load(origin)
        if record is None:
            return None
        known = self._adopt(record, now, wall)
        self._on_loaded(self._learned(record, host_key_of(origin + "/"), known, ()), now)
        return known

    def _learned(
        self, record: RobotsRecord, host: str, known: _Known, sitemaps: tuple[str, ...]
    ) -> Learned:
        origin, delay_s = record.origin, known.crawl_delay_s
        sibling = self._known.get(_other_scheme(origin))
        if sibling is not None and sibling.crawl_delay_s is not None:
            delay_s = max(delay_s or 0.0, sibling.crawl_delay_s)
        return Learned(origin, host, record, delay_s, sitemaps)

    def _adopt(self, record: RobotsRecord, now: Instant, wall: float) -> _Known:
        """Keep a record's meaning in memory, and let go of what was used longest ago."""
        body = record.body
        rules: Robots | None
        if body is None:
            rules, delay_s = self._blanket(record, wall), None
        else:
            rules, delay_s = self._read(body)
        # A wall clock that was wrong when the record was written must not make it immortal.
        left_s = record.expires_at - wall
        if left_s > MAX_AGE_S:
            left_s = MAX_AGE_S
        weight = _BASE_WEIGHT + (0 if body is None else len(body))
        known = _Known(rules, delay_s, now + left_s, weight)
        if rules is None and wall - record.failing_since >= self._patience_s:
            known.given_up = UNREACHABLE
        origin = record.origin
        replaced = self._known.pop(origin, None)
        if replaced is not None:
            self._weight -= replaced.weight
        self._known[origin] = known
        self._weight += weight
        while self._weight > self._memory_bytes and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._weight -= oldest.weight
        return known

    def _blanket(self, record: RobotsRecord, wall: float) -> Robots | None:
        """What holds for an origin without a file."""
        if not record.failing_since:
            return _allow_all(f"robots.txt answered {record.status}")
        if self._allow_unreachable:
            return _allow_all("robots.txt cannot be reached, and that is let pass")
        if wall - record.failing_since >= GIVE_UP_AFTER_S:
            return _allow_all("robots.txt could not be reached for 30 days")
        return None

    # ------------------------------------------------------------------ a parser that may fail

    def _read(self, body: bytes) -> _Asked:
        asked = self._shared.get(body)
        if asked is None:
            asked = self._parsed(body)
            if len(body) <= _SHARED_BYTES:
                if len(self._shared) >= _SHARED:
                    self._shared.clear()
                self._shared[body] = asked
        return asked

    def _parsed(self, body: bytes) -> _Asked:
        try:
            rules = self._parse(body)
        except Exception:  # noqa: BLE001 - a stranger's file must not stop the other origins
            return _Asked(Robots.disallow_all(_UNREADABLE), None)
        try:
            return _Asked(rules, rules.crawl_delay_s(self._agent))
        except Exception:  # noqa: BLE001 - as above
            return _Asked(rules, None)

    def _consult(self, rules: Robots, path: str) -> RobotsVerdict:
        try:
            return ALLOWED if rules.allowed(path, self._agent) else DISALLOWED
        except Exception:  # noqa: BLE001 - as above
            return DISALLOWED


class _Asked(NamedTuple):
    """What a robots.txt asks of us."""

    rules: Robots
    crawl_delay_s: float | None


_allow_all = cache(Robots.allow_all)  # one for every status there is


def _other_scheme(origin: str) -> str:
    return "http" + origin[5:] if origin.startswith("https") else "https" + origin[4:]
