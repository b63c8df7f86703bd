"""The values that the packages of the crawler exchange. Nothing here does anything.

    Candidate      a URL that was found: in scope, canonical, not yet known to be new
    Entry          a URL in the frontier, waiting for its turn
    RobotsRequest  a request for a robots.txt: like an entry, but never stored
    InFlight       one request, from the grant of its slot to the commit of its result
    Request        what the fetcher is asked for
    Fetched        what came back
    RawExchange    both as they were on the wire
    PageRecord     the exported record of a fetched URL, field for field
    Link           one link of a page, with its kind and its text
    Skipped        a URL that will not be fetched, with the reason
    HostRecord     what is kept of a host between runs
    RobotsRecord   a robots.txt as it was fetched
    ArchivePlace   the record of an answer in the archive
    PageItems      the items that were extracted from a page

`Now` carries both scales of time: monotonic seconds for everything that happens inside a process,
wall time (seconds since 1970) for everything that is stored, because a monotonic instant means
nothing to the next process.

It is long because the fields of every value are explained here, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from xxhash import xxh3_128_hexdigest

from mannerly.politeness.model import Now as Now  # noqa: PLC0414 - a value of the crawler, too

from .kinds import KINDS, Kind
from .payload import Payload  # noqa: TC001 - decoders of candidates read it

if TYPE_CHECKING:
    from mannerly.politeness.model import ErrorKind, Instant

DEFAULT_MAX_BYTES = 10 * 1024 * 1024


# ---------------------------------------------------------------------- URLs on their way


class Candidate(NamedTuple):
    """A URL found on a page, in a sitemap or among the seeds."""

    url: str
    host: str  # the politeness key: host[:port], lower case
    depth: int  # links from a seed
    priority: int  # smaller goes first: see web.priority
    parent: str | None  # where it was found first; None for a seed
    hops: int = 0  # redirects followed to get here; for a sitemap, how deep it is nested
    kind: Kind = Kind.PAGE
    payload: Payload | None = None  # if its kind carries one


class Entry(NamedTuple):
    """A URL in the frontier. `seq` orders arrivals and names the row in the store."""

    seq: int
    url: str
    host: str
    depth: int
    priority: int
    parent: str | None
    hops: int
    kind: Kind = Kind.PAGE
    attempts: int = 0  # tries that counted, in this run (throttles do not count)


class RobotsRequest(NamedTuple):
    """A request for the robots.txt of `origin`; after a redirect, `host` is another origin's.

    It takes a slot like any other request. It is not stored: after a crash it is asked for again.
    """

    url: str
    host: str  # the politeness key of `url`, not of `origin`
    origin: str
    hops: int = 0
    kind: Kind = Kind.ROBOTS

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the origins that an answer is valid for; the second is a redirect's target."""
        there = self.url[: self.url.index("/", 8)]
        is_robots = self.hops > 0 and self.url == there + "/robots.txt"
        return (self.origin, there) if is_robots and there != self.origin else (self.origin,)


class PageRecord(NamedTuple):
    """One fetched URL. `error` is one of our reason codes, never text from a server."""

    url: str  # in its canonical spelling
    status: int | None  # HTTP status of the answer; None if there was none
    depth: int  # links between a seed and the page
    parent: str | None  # URL on which it was found first; None for a seed
    title: str | None  # content of its title element
    content_type: str | None  # media type of the answer, without parameters
    bytes: int  # size of the body, decompressed
    latency_ms: float  # to the first byte of the answer, without connecting
    fetched_at: float  # wall time; ISO 8601 in exports
    attempts: int  # requests that counted; refusals such as 429 do not
    links: int  # links found on the page, whether they were followed or not
    canonical: str | None  # URL that the page names as its canonical one
    redirect_to: str | None  # where the answer redirects to
    error: str | None  # one of our reason codes if it failed
    host: str  # name of the host, with its port if that is not the usual one
    digest: str | None  # of the body, hexadecimal
    cache_status: str | None = None  # what the cache in front of the site says: hit, miss …
    age: int | None = None  # seconds that the answer was in that cache
    total_ms: float = 0.0  # to the last byte, with name lookup, connect and TLS
    noindex: bool = False  # the page or its header asks not to be indexed
    description: str | None = None  # content of its description meta element
    h1: str | None = None  # text of its first h1 element
    lang: str | None = None  # language that its html element declares
    in_sitemap: bool = False  # a sitemap of its site lists it, not one of another domain
    lastmod: str | None = None  # time of its last change, as that sitemap states it
    etag: str | None = None  # the ETag header
    last_modified: str | None = None  # the Last-Modified header
    text_digest: str | None = None  # of the visible text, hexadecimal; see --text-digest
    change: str | None = None  # new, same, changed, unclear, removed; None: not compared yet
    previous_status: int | None = None  # status in the crawl before
    previous_digest: str | None = None  # digest in the crawl before
    previous_fetched_at: float | None = None  # fetched_at of the crawl before
    rendered: bool = False  # a browser has shown it: title, links and text are of its final DOM
    requests: int | None = None  # that the page has made while it was rendered
    render_s: float | None = None  # seconds in the browser, without waiting for its requests
    render_error: str | None = None  # why the DOM may be incomplete, or is that of the answer
    render_refused: int | None = None  # POSTs and WebSockets of the page that were refused


class PageChange(StrEnum):
    """The difference between a page and what the crawl before saw of it."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"  # its visible text, its status or the target of its redirect
    UNCLEAR = "unclear"  # other bytes; of the text before there is no digest
    REMOVED = "removed"  # 404 or 410 now


class Link(NamedTuple):
    """One link of a page, external ones and resources included."""

    source: str
    target: str  # canonical, without its fragment
    kind: str  # a, area, iframe, frame, img, link, script, canonical, hreflang, refresh, redirect
    nofollow: bool
    text: str | None  # of an `a`, at most 100 characters
    fragment: str | None  # what follows the # in the link


class ListedPage(NamedTuple):
    """A page that a sitemap lists, and the time of its last change that the sitemap states."""

    url: str
    lastmod: str | None


GIVEN_UP = frozenset({"host_retired", "robots_unreachable"})
"""Reasons for which URLs are given up: they were wanted, and could not be fetched."""


UNANSWERED = "unanswered"  # the reason of a request that is sent once, was, and has no answer
EXTRACT_FAILED = "extract_failed"  # the error of a page without items, with the cause after ": "
CRASHED = "crashes_parser"  # the error of a page that ended two processes that read it
UNPARSED = "parse_failed"  # the error of a page on which the parser failed
NO_MEMORY = "no_memory"  # the error of a page that could not be received or read for lack of it
NOT_READ = frozenset({CRASHED, UNPARSED, NO_MEMORY})
"""Errors of pages that arrived and were not read: their links are missing."""

UNFINISHED = NOT_READ | {"no_room"}
"""Errors with which a crawl is incomplete: the page may be all right, and its links are missing."""

REFUSALS = frozenset({401, 403, 407, 408, 425, 429})
"""Statuses below 500 that refuse a request: the same URL may give a page at another time."""


class Skipped(NamedTuple):
    """A URL that is known and will not be fetched: skipped on purpose, or given up."""

    url: str
    reason: str
    depth: int
    parent: str | None


def is_failed(record: PageRecord, kind: Kind = Kind.PAGE) -> bool:
    """Return whether a URL with this record failed: asked for again, it may give a page.

    It got no answer, an error of the server or a refusal; or its page was not read; or it is a
    seed, and its answer was no page.
    """
    status, error = record.status, record.error
    if status is None or status >= 500 or (error is not None and error in NOT_READ):
        return True
    if status < 400:  # as nearly all are
        return False
    return status in REFUSALS or (record.parent is None and KINDS[kind].is_page)


def is_given_up(reason: str) -> bool:
    """Return whether a URL with this reason was given up; text after a colon is a detail."""
    return reason.partition(":")[0] in GIVEN_UP


# ---------------------------------------------------------------------- kept of a page


class ArchivePlace(NamedTuple):
    """The record of an answer in the archive: a gzip member of a segment."""

    segment: str  # the name of a file
    offset: int
    length: int  # bytes


class PageItems(NamedTuple):
    """The items that the extract function returned for a page, or the reason of its failure."""

    items: list[bytes]  # JSON objects, one each
    error: str | None = None  # on one line


# ---------------------------------------------------------------------- hosts


class HostRecord(NamedTuple):
    """The state of a host that is kept between runs. Instants are wall time."""

    host: str
    adaptive_delay_s: float = 0.0
    adaptive_delay_floor_s: float = 0.0
    crawl_delay_s: float = 0.0
    allowance: float = 0.0
    block_s: float = 0.0
    concurrency: int = 0
    is_proven: bool = False
    blocked_until: float = 0.0  # a Retry-After further than a minute away
    next_at: float = 0.0  # not to be contacted before, if that was more than a second away
    updated_at: float = 0.0
    fetched: int = 0
    refused: int = 0
    failed: int = 0
    retired: str | None = None  # the reason, if the host was given up
    failing_since: float = 0.0  # first refusal or failure since the last success; 0: none
    failures_in_a_row: int = 0  # pages that failed since the last one that did not
    breaker_failures: int = 0  # consecutive failures, as the breaker counts them
    breaker_opens: int = 0  # consecutive openings of the breaker
    breaker_until: float = 0.0  # no request before; 0: the breaker is closed
    boot: str = ""  # the boot of the machine in which `updated_mono` is a monotonic instant
    updated_mono: float = 0.0  # the same instant as `updated_at`
    smallest_gap_s: float = 0.0  # between two requests, so far; 0: there were no two
    required_gap_s: float = 0.0  # the gap in force at the smallest one
    early: int = 0  # requests that were sent too early; must stay 0
    smallest_gap_at: float = 0.0  # when the gap was smallest; 0: unknown
    requests: int = 0  # that were sent, of every kind
    retry_afters: int = 0  # answers that asked for a wait
    retry_afters_broken: int = 0  # requests that were sent inside such a wait; must stay 0
    doing: bytes = b""  # what it did and waited for at `updated_at`: `host_view.Doing`, packed


TRAFFIC_S = 10  # seconds of one `Traffic`


class Traffic(NamedTuple):
    """The answers of one interval of wall time, over all hosts."""

    interval: int  # since 1970: wall time // TRAFFIC_S
    requests: int
    refused: int

    @property
    def start(self) -> float:
        """Return the wall time at which it begins."""
        return float(self.interval * TRAFFIC_S)


class RobotsRecord(NamedTuple):
    """A robots.txt as it was fetched, by origin. `body` is None where there was none to keep."""

    origin: str
    status: int | None
    body: bytes | None
    fetched_at: float
    expires_at: float
    failing_since: float = 0.0  # when it became unreachable; 0: it is reachable


# ---------------------------------------------------------------------- requests and answers


class LocalError(StrEnum):
    """The reason of a failure on our side. It says nothing about the server."""

    BLOCKED_ADDRESS = "blocked_address"  # the network guard: no packet was sent
    BLOCKED_PORT = "blocked_port"
    BAD_URL = "bad_url"  # not a serialised http(s) URL, or its host is not the expected one
    NO_DESCRIPTORS = "no_descriptors"  # EMFILE, ENFILE: fewer requests at once, then again
    NO_MEMORY = NO_MEMORY  # the same for memory
    NO_ROOM = "no_room"  # to decode a body (--memory-limit): again when there is room
    STALE_CONNECTION = "stale_connection"  # kept alive, closed under us: again, with a new permit
    HELD = "held"  # its host must not be contacted now: again when it may be; nothing was sent
    TRUST = "trust"  # the file of trusted certificates cannot be read


# Local errors after which the same request is tried again, with a new permit; as long as this
# machine lacks something, or the host may not be contacted, without an end.
STARVED = frozenset({LocalError.NO_DESCRIPTORS, LocalError.NO_MEMORY})
PASSING = STARVED | {LocalError.STALE_CONNECTION, LocalError.HELD, LocalError.NO_ROOM}

FetchError: TypeAlias = "ErrorKind | LocalError"


class Cookies(Protocol):
    """The cookies of a session, for a fetcher. An origin is a scheme, a host and a port."""

    def header(self, origin: tuple[str, str, int], path: str, wall: float) -> str:
        """Return the value of the Cookie header for a request; empty if there is none."""

    def take(self, origin: tuple[str, str, int], path: str, lines: list[str], wall: float) -> None:
        """Take the Set-Cookie lines of an answer from a path of an origin."""


@dataclass(slots=True)
class Request:
    """One request. `host` is the URL's host as our parser read it: lower case, no port.

    The fetcher compares it with what it reads itself, so that no two parsers disagree unnoticed.
    `flight` is the caller's: it is handed back with the answer. `is_fresh`: on a new connection,
    because it failed on one that may have been kept alive too long. `payload` is the one of its
    entry, as it is stored: without secrets, which `headers` and `body` have. Treat it as frozen.
    """

    url: str
    host: str
    timeout_s: float
    max_bytes: int = DEFAULT_MAX_BYTES
    headers: tuple[tuple[str, str], ...] = ()
    flight: object = None
    is_head: bool = False
    is_fresh: bool = False
    method: str = "GET"  # of one with a payload; `is_head` counts first
    body: bytes = b""
    payload: Payload | None = None
    cookies: Cookies | None = None  # of its session: sent with it, and kept of its answer


class RawExchange(NamedTuple):
    """A request and its answer as they were on the wire, to be kept."""

    request: bytes  # its head
    head: bytes  # of the answer: status line and headers
    body: bytes  # without chunks, with its Content-Encoding
    address: str = ""  # of the server; empty behind a proxy
    cut: str | None = None  # why the body is not complete: "length", "time" or "disconnect"
    shown: bytes | None = None  # the final DOM, if a browser has shown the page


class Received(NamedTuple):
    """The body of a rendered page as its server sent it, decoded."""

    body: bytes
    content_type: str | None


class Rendering(NamedTuple):
    """The work of a browser on an answer, whose body is the final DOM then."""

    received: Received
    requests: tuple[str, ...] = ()  # URLs that the page has asked for
    seconds: float = 0.0  # of real time, without waiting for its requests
    refused: int = 0  # POSTs and WebSockets that it was refused
    error: str | None = None
    left_for: str | None = None  # a script went to this URL
    picture: bytes | None = None  # PNG
    is_rendered: bool = True  # False: the body is still that of the server


@dataclass(slots=True)
class Fetched:
    """The outcome of one request. Of `status` and `error` exactly one is set.

    `latency_s` is the server's own answer time: from the request's last byte to the answer's
    first, without name lookup, connect and TLS. `total_s` is everything. Header names are lower
    case, repeated ones are joined with ", ", and Set-Cookie is dropped. Treat it as frozen.

    `body` is as it was received until the engine decodes it (`readable`). If answers are kept,
    `exchange` is set.
    """

    request: Request
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    latency_s: float = 0.0
    total_s: float = 0.0
    error: FetchError | None = None
    detail: str | None = None
    is_truncated: bool = False
    exchange: RawExchange | None = None
    rendering: Rendering | None = None
    _digest: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def received(self) -> Received | None:
        """The body as the server sent it, if a browser has made another one of it."""
        return None if self.rendering is None else self.rendering.received

    @property
    def requisites(self) -> tuple[str, ...]:
        """The URLs that the page has asked for itself, in a browser."""
        return () if self.rendering is None else self.rendering.requests

    @property
    def digest(self) -> str | None:
        """The digest of the body as it is now, made once; None if it is empty."""
        if self._digest is None and self.body:
            self._digest = xxh3_128_hexdigest(self.body)
        return self._digest


# ---------------------------------------------------------------------- may it be fetched?


class Ruling(Enum):
    """The judgement that an entry may be fetched."""

    GO = "go"


GO = Ruling.GO  # a module constant is found in 15 ns, Ruling.GO in 95, and this is asked per entry


class Drop(NamedTuple):
    """It will never be fetched; the reason is recorded."""

    reason: str


class Later(NamedTuple):
    """Not before `until`; None: not before the host is woken."""

    until: Instant | None
    is_for_host: bool = False  # the same is true of all entries of the host
    needs_rules: bool = False  # the robots.txt is unreachable


class Unknown(NamedTuple):
    """It cannot be said until the host's record and the origin's robots.txt are in memory."""

    origin: str


Judgement: TypeAlias = Ruling | Drop | Later | Unknown
