"""The parts that all adapters share: how a request waits, what its errors mean, what follows.

A client has a list of pairs: a class of its exceptions, and the kind of error that it means for the
host; None if it says nothing about the host (a full connection pool, a proxy that is away). The
first class that fits decides, so subclasses come first. An exception without a kind counts as a
request that was sent: the spacing holds, and nothing is learned.

**Bodies.** A refusal can look like a page: 403, or a challenge with status 200 or 503 that every
URL gets. So the bodies of errors and short pages are read before an answer is reported, up to
`LOOKED_BYTES`; the client then gets them as if they had just come.

**Retries.** With `retries=N` a request is repeated up to N times, if and when the politeness core
says so: never before the host's Retry-After is over. GET, HEAD and OPTIONS are repeated after any
passing failure; other methods only after a refusal that says that nothing was done (429, or 503
with Retry-After); nothing whose body cannot be sent again. The caller gets the last answer, or the
last error. If there is no slot for a repeat (the breaker, `deadline_s`), it is the one before.

**Robots.txt.** With `robots="obey"` the rules of a site are asked for in a slot of their own before
its first page (`politeness.drivers.policies`), for the User-Agent of the request. A URL that they
forbid raises `RobotsDisallowed`, which is an error of the client's own family as well.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.model import NEVER, Reason
from mannerly.politeness.retry import Retry
from mannerly.politeness.robots.keeping import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence

    from mannerly.politeness.drivers.policies import Policy
    from mannerly.politeness.drivers.slots import Slot
    from mannerly.politeness.model import ErrorKind, Instant, Response

    Kinds = Sequence[tuple[type[BaseException], ErrorKind | None]]


P = TypeVar("P")
A = TypeVar("A")

ROBOTS_TIMEOUT_S = 10.0
ROBOTS_PATH = "/robots.txt"
ANY_AGENT = "*"  # of a request without User-Agent
LOOKED_BYTES = 64 * 1024  # challenge and error pages are shorter
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED = 429
_UNAVAILABLE = 503
_ERRORS = 400


class SlotOptions(TypedDict, total=False):
    """The options of an adapter that say how a request waits for its slot.

    - `deadline_s`: the longest wait in seconds, then `TimeoutError`; default None: no limit
    - `wait_when_open`: also wait while the host's breaker is open or a long Retry-After is pending;
      default False: raise `CircuitOpen` or `HostUnavailable`
    """

    deadline_s: float | None
    wait_when_open: bool


class Attempts(Generic[A]):
    """The attempts of one request: whether another one follows, and what the caller gets."""

    def __init__(self, retries: int, method: str, *, is_repeatable: bool) -> None:
        self.answer: A | None = None
        self.due: Instant | None = None  # of the next attempt; None: there is none
        self._left = retries if is_repeatable else 0
        self._is_safe = method.upper() in _SAFE
        self._attempt = self._refusals = 1
        self._error: Exception | None = None

    def answered(self, slot: Slot, answer: A) -> None:
        """An attempt was answered, and reported."""
        self.answer, self._error = answer, None
        self.due = self._next(slot)

    def failed(self, slot: Slot | None, error: Exception) -> None:
        """An attempt failed, or got no slot; raises the error that the caller gets, if any."""
        self.due = None
        if slot is None:
            if self._error is not None:
                raise self._error
            if self.answer is None:
                raise error
            return
        if isinstance(error, HostUnavailable) and error.reason is Reason.SHARED:
            self.due = NEVER  # nothing was sent: it waits for another slot
            return
        self.answer, self._error = None, error
        self.due = self._next(slot)
        if self.due is None:
            raise error

    def _next(self, slot: Slot) -> Instant | None:
        if self._left <= 0 or slot.reported is None or not self._may_repeat(slot.reported[0]):
            return None
        decision = slot.retry(self._attempt, self._refusals)
        if not isinstance(decision, Retry):
            return None
        self._left -= 1
        self._attempt = decision.attempt
        self._refusals += not decision.costs_attempt
        return decision.due

    def _may_repeat(self, response: Response) -> bool:
        asks_to_wait = any(name.lower() == "retry-after" for name in response.headers)
        was_refused = response.status == _REFUSED or (
            response.status == _UNAVAILABLE and asks_to_wait
        )
        return self._is_safe or was_refused


def checked(retries: int, robots: str | None) -> int:
    """Return the number of retries.

    Raises:
        ValueError: it is negative, or `robots` is neither "obey" nor None.
    """
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, not {retries!r}")
    if robots not in (None, "obey"):
        raise ValueError(f'robots is {robots!r}; allowed: "obey" or None')
    return retries


def refusal(policy: Policy, url: str, agent: str) -> str | None:
    """Return why a URL may not be asked for; None: it may."""
    if policy.robots.allowed(url, agent):
        return None
    return f"{url}: robots.txt says {policy.robots.explain(url, agent)}"


def one_of(politeness: P | None, memory: object) -> P | None:
    """Return the politeness that was given.

    Raises:
        ValueError: a memory was given, too: it has one already, or none on purpose.
    """
    if politeness is not None and memory is not None:
        raise ValueError("give politeness= or memory=, not both: the memory is the politeness's")
    return politeness


def is_looked_at(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether the body of an answer may be a refusal; `headers` of any case."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > LOOKED_BYTES:
        return False
    return status >= _ERRORS or headers.get("content-type", "").lower().startswith("text/html")


def first(stream: Iterable[bytes]) -> bytes:
    """Return the beginning of a body, as much as counts of a robots.txt."""
    body = b""
    for chunk in stream:
        body += chunk
        if len(body) >= MAX_BODY_BYTES:
            break
    return body


async def first_async(stream: AsyncIterable[bytes]) -> bytes:
    """Do the same for asyncio."""
    body = b""
    async for chunk in stream:
        body += chunk
        if len(body) >= MAX_BODY_BYTES:
            break
    return body


def digest_of(body: bytes) -> int | None:
    """Return a number that is equal for equal bodies, within this process; None for no body."""
    return hash(body) if body else None


@contextmanager
def sending(slot: Slot, kinds: Kinds) -> Iterator[None]:
    """Say that the request of a slot leaves now, and report the error that it ends with."""
    slot.sent()
    try:
        yield
    except Exception as error:
        kind = next((kind for fits, kind in kinds if isinstance(error, fits)), None)
        if kind is not None:
            slot.report(error=kind)
        raise
