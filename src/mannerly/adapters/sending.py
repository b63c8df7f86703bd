"""The parts that all adapters share: how a request waits, and what its answer or error means.

A client has a list of pairs: a class of its exceptions, and the kind of error that it means for the
host; None if it says nothing about the host (a full connection pool, a proxy that is away). The
first class that fits decides, so subclasses come first. An exception without a kind counts as a
request that was sent: the spacing holds, and nothing is learned.

**Bodies.** A refusal can look like a page: 403, or a challenge with status 200 or 503 that every
URL gets. So the bodies of errors and short pages are read before an answer is reported, up to
`LOOKED_BYTES`; the client then gets them as if they had just come. If the body of an error breaks
off, its status and its headers (a Retry-After) are reported all the same, and the client gets the
answer: its body raises what happened when it is read.

**Robots.txt.** With `robots="obey"` the rules of a site are asked for in a slot of their own before
its first page (`politeness.drivers.policies`), for the User-Agent of the request. A URL that they
forbid raises `RobotsDisallowed`, which is an error of the client's own family as well.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict, TypeVar

from mannerly.politeness.model import NO_HEADERS
from mannerly.politeness.robots.keeping import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Hashable, Iterable, Iterator, Mapping, Sequence

    from mannerly.politeness.drivers.policies import Policy
    from mannerly.politeness.drivers.slots import Slot
    from mannerly.politeness.model import ErrorKind

    Kinds = Sequence[tuple[type[BaseException], ErrorKind | None]]


P = TypeVar("P")

ROBOTS_TIMEOUT_S = 10.0
ROBOTS_PATH = "/robots.txt"
ANY_AGENT = "*"  # of a request without User-Agent
LOOKED_BYTES = 64 * 1024  # challenge and error pages are shorter
_REDIRECTS = 300
_ERRORS = 400


class SlotOptions(TypedDict, total=False):
    """The options of an adapter that say how a request waits for its slot.

    - `deadline_s`: the longest wait in seconds, then `TimeoutError`; default None: no limit
    - `wait_when_open`: also wait while the host's breaker is open or a long Retry-After is pending;
      default False: raise `CircuitOpen` or `HostUnavailable`
    """

    deadline_s: float | None
    wait_when_open: bool


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


def first(stream: Iterable[bytes], status: int) -> bytes:
    """Return the beginning of a body, as much as counts of a robots.txt.

    If it breaks off, that is an error of a file only: other answers are known by their status.
    """
    body = b""
    try:
        for chunk in stream:
            body += chunk
            if len(body) >= MAX_BODY_BYTES:
                break
    except Exception:
        if status < _REDIRECTS:
            raise
    return body


async def first_async(stream: AsyncIterable[bytes], status: int) -> bytes:
    """Do the same for asyncio."""
    body = b""
    try:
        async for chunk in stream:
            body += chunk
            if len(body) >= MAX_BODY_BYTES:
                break
    except Exception:
        if status < _REDIRECTS:
            raise
    return body


def digest_of(body: bytes | None) -> int | None:
    """Return a number that is equal for equal bodies, within this process; None for no body."""
    return hash(body) if body else None


class Sending:
    """A request that leaves: what is known of its answer when it is reported."""

    def __init__(self, slot: Slot) -> None:
        self.digest: Hashable = None  # of its body, if that is known
        self.nbytes = 0
        self._slot = slot
        self._status: int | None = None  # None: the answer has not begun
        self._headers: Mapping[str, str] = NO_HEADERS

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The answer begins."""
        self._slot.answered()
        self._status, self._headers = status, headers

    def ended(self) -> None:
        """Report the answer."""
        if self._status is not None:
            self._slot.report(
                status=self._status,
                headers=self._headers,
                nbytes=self.nbytes,
                body_digest=self.digest,
            )

    def failed(self, kind: ErrorKind | None) -> bool:
        """Report an error; return whether it is one of the body of an error page alone."""
        is_body = self._status is not None and self._status >= _ERRORS
        if is_body:
            self.ended()
        elif kind is not None:
            self._slot.report(error=kind, headers=self._headers)
        return is_body


@contextmanager
def sending(slot: Slot, kinds: Kinds) -> Iterator[Sending]:
    """Say that the request of a slot leaves now, and report how the block ends.

    An error in the body of an error page is not raised here: the reader of that body gets it.
    """
    slot.sent()
    sent = Sending(slot)
    try:
        yield sent
    except Exception as error:
        if not sent.failed(next((kind for fits, kind in kinds if isinstance(error, fits)), None)):
            raise
    except BaseException:  # cancelled while the body was looked at
        sent.ended()
        raise
    else:
        sent.ended()
