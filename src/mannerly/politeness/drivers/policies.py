"""One policy for each site: the rules of its robots.txt, and its pace.

    policies = ThreadedPolicies(fetch, agent="my-bot/1.0")
    if policies.allowed(url):
        with policies.slot(url) as slot:
            response = client.get(url)
            slot.report(status=response.status_code, headers=response.headers)

The robots.txt of an origin is fetched when it is first asked for, by a function that you give: it
gets the URL and returns status, body and, if it likes, headers; an exception means no answer. The
request takes a slot like any other, and the Crawl-delay that it brings becomes a part of the pace.

A file is fetched once, however many callers ask for it at the same time (single flight). They wait
for it, other callers do not: no lock is held while it is fetched. When it has expired, one caller
fetches it anew, and the others go on with what is known. If it is unreachable, what was known
before holds; without that, nothing is allowed, as RFC 9309 says, or everything
(`unreachable="allow"`).

No fetch waits for a host that is refused (an open breaker, a long Retry-After): all callers are
told so, and each of them raises that or waits for its end, for as long as it has time.

A redirect that the function returns instead of following it is followed here, five hops at most
(RFC 9309 §2.3.1.2), each in a slot of its own. If the pace is shared with other processes
(`memory="user"`), so are the files: what one was told, the others need not ask.

This module has what is common: `ThreadedPolicies` is in `thread_policies`, `AsyncPolicies` in
`aio_policies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urljoin

from ..keys import origin_key
from ..robots import Robots
from ..robots.keeping import MAX_BODY_BYTES, is_reachable, lifetime_s, retry_wait_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..model import Instant
    from .base import DriverBase
    from .sharing import HostSharing

Flight = TypeVar("Flight")

MOST_HOPS = 5
_REDIRECTS = range(300, 400)

FetchedRobots: TypeAlias = "tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]]"
"""What a function returns that fetches a robots.txt: status, body and perhaps headers."""


class Policy(NamedTuple):
    """The rules of one origin, and how long they hold."""

    origin: str
    robots: Robots
    agent: str
    expires_at: Instant
    failing_since: Instant | None = None  # since when the file is unreachable

    def allowed(self, url: str) -> bool:
        """Return whether a URL of this origin may be fetched."""
        return self.robots.allowed(url, self.agent)

    @property
    def crawl_delay_s(self) -> float | None:
        """The delay that robots.txt asks for; None: it asks for none."""
        return self.robots.crawl_delay_s(self.agent)


class PoliciesBase(Generic[Flight]):
    """The policies of all origins that were met, the most recently used last.

    Args:
        agent: your User-Agent, or its name; robots.txt is read for it.
        unreachable: what holds while a robots.txt is unreachable and none is known.
        max_origins: policies that are kept; the least recently used is dropped first.
    """

    def __init__(
        self,
        *,
        agent: str,
        unreachable: Literal["disallow", "allow"] = "disallow",
        max_origins: int = 10_000,
    ) -> None:
        if unreachable not in ("disallow", "allow"):
            raise ValueError(f'unreachable is {unreachable!r}; allowed: "disallow" or "allow"')
        if max_origins < 1:
            raise ValueError(f"max_origins must be at least 1, not {max_origins!r}")
        self.agent = agent
        self._unreachable = unreachable
        self._max_origins = max_origins
        self._policies: dict[str, Policy] = {}
        self._flights: dict[str, Flight] = {}
        self._forgotten: set[str] = set()  # fetched next time, whatever others were told

    def __len__(self) -> int:
        return len(self._policies)

    def known(self, url: str) -> Policy | None:
        """Return the policy of a URL's origin if it is known, however old; never fetches."""
        return self._policies.get(origin_key(url))

    def forget(self, url: str) -> None:
        """Have the robots.txt of a URL's origin fetched again when it is next asked for."""
        origin = origin_key(url)
        self._policies.pop(origin, None)
        self._forgotten.add(origin)

    def _use(self, policy: Policy) -> Policy:
        """Keep a policy as the most recently used."""
        self._policies.pop(policy.origin, None)
        self._policies[policy.origin] = policy
        while len(self._policies) > self._max_origins:
            self._policies.pop(next(iter(self._policies)), None)
        return policy

    def _learn(
        self, origin: str, agent: str, answer: FetchedRobots | None, driver: DriverBase[Any]
    ) -> Policy:
        """Make the policy of an origin from an answer, and tell its pace."""
        now, before = driver.now(), self._policies.get(origin)
        self._forgotten.discard(origin)
        status = None if answer is None else answer[0]
        if answer is None or status is None or not is_reachable(status):
            since = before.failing_since if before is not None else None
            since = now if since is None else since
            robots = Robots.disallow_all() if self._unreachable == "disallow" else None
            if before is not None:
                robots = before.robots
            kept = robots or Robots.allow_all("robots.txt cannot be reached")
            expires = now + retry_wait_s(now - since)
            return self._use(Policy(origin, kept, agent, expires, since))
        headers = {} if len(answer) < 3 else {k.lower(): v for k, v in answer[2].items()}
        body = answer[1][:MAX_BODY_BYTES]
        robots = Robots.parse(body) if status < 300 else Robots.allow_all()
        expires = now + lifetime_s(headers.get("cache-control"))
        return self._put(origin, agent, robots, expires, driver)

    def _shares(self, origin: str, driver: DriverBase[Any]) -> HostSharing | None:
        """Return the place in which to look for an origin's file; None: it has to be fetched."""
        return None if origin in self._forgotten else driver.sharing

    def _learn_kept(
        self, origin: str, agent: str, kept: tuple[bytes | None, float], driver: DriverBase[Any]
    ) -> Policy:
        """Make the policy of an origin from what another process was told."""
        body, expires_in_s = kept
        robots = Robots.allow_all() if body is None else Robots.parse(body)
        return self._put(origin, agent, robots, driver.now() + expires_in_s, driver)

    def _put(
        self,
        origin: str,
        agent: str,
        robots: Robots,
        expires: Instant,
        driver: DriverBase[Any],
    ) -> Policy:
        policy = self._use(Policy(origin, robots, agent, expires))
        driver.robots(origin, policy.crawl_delay_s)
        return policy


def too_late(origin: str, deadline_s: float | None) -> TimeoutError:
    """Return the error of a caller whose deadline has passed."""
    return TimeoutError(f"no robots.txt of {origin} in {deadline_s:g} s")


def to_keep(answer: FetchedRobots | None, policy: Policy) -> tuple[bytes | None] | None:
    """Return what other processes may use: a body, or None for no rules; None: nothing at all."""
    if answer is None or policy.failing_since is not None:
        return None
    return (answer[1][:MAX_BODY_BYTES] if answer[0] < _REDIRECTS.start else None,)


def next_hop(url: str, answer: FetchedRobots) -> str | None:
    """Return where an answer leads that is a redirect; None: it is none, or leads nowhere."""
    if answer[0] not in _REDIRECTS or len(answer) < 3:
        return None
    target = next((value for name, value in answer[2].items() if name.lower() == "location"), "")
    found = urljoin(url, target)
    try:
        origin_key(found)
    except ValueError:
        return None
    return found if target and found.lower().startswith(("http://", "https://")) else None
