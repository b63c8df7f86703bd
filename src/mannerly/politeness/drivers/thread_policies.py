"""One policy for each site, for threads: see `policies`."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Literal

from ..errors import PolitenessError
from ..keys import origin_key
from ..model import ErrorKind
from .policies import MOST_HOPS, PoliciesBase, next_hop, to_keep
from .slots import error_kind
from .threads import ThreadedPoliteness

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .policies import FetchedRobots, Policy
    from .slots import Slot


class ThreadedPolicies(PoliciesBase["Future[Policy | None]"]):
    """The policies of all sites, for all threads of a process.

    Args:
        fetch: called with the URL of a robots.txt; returns (status, body) or (status, body,
            headers). A redirect that it returns with its headers is followed.
        politeness: the pace of all hosts; by default a new one with default settings.
        agent, unreachable, max_origins: see `PoliciesBase`.
    """

    def __init__(
        self,
        fetch: Callable[[str], FetchedRobots],
        *,
        agent: str,
        politeness: ThreadedPoliteness | None = None,
        unreachable: Literal["disallow", "allow"] = "disallow",
        max_origins: int = 10_000,
    ) -> None:
        super().__init__(agent=agent, unreachable=unreachable, max_origins=max_origins)
        self.politeness = politeness or ThreadedPoliteness()
        self._fetch = fetch
        self._lock = threading.Lock()  # held for a moment, never while something is fetched

    def allowed(self, url: str) -> bool:
        """Return whether a URL may be fetched; fetches the origin's robots.txt if it has to."""
        return self.policy(url).allowed(url)

    def slot(self, url: str, *, deadline_s: float | None = None) -> AbstractContextManager[Slot]:
        """Wait for the next slot of the URL's host, when its Crawl-delay is known."""
        self.policy(url)
        return self.politeness.slot(url, deadline_s=deadline_s)

    def policy(self, url: str) -> Policy:
        """Return the policy of a URL's origin; fetches its robots.txt if it has to."""
        origin = origin_key(url)
        while True:
            known = self._policies.get(origin)
            if known is not None and self.politeness.now() < known.expires_at:
                return self._use(known)
            mine: Future[Policy | None] = Future()
            flight = self._flights.setdefault(origin, mine)  # atomic: one of all callers wins
            if flight is mine:
                return self._fly(origin, mine)
            if known is not None:
                return known
            found = flight.result()
            if found is not None:  # else the caller that fetched it was interrupted
                return found

    def _use(self, policy: Policy) -> Policy:
        with self._lock:
            return super()._use(policy)

    def _fly(self, origin: str, flight: Future[Policy | None]) -> Policy:
        policy: Policy | None = None
        try:
            policy = self._fetched(origin)
            return policy
        finally:
            self._flights.pop(origin, None)
            flight.set_result(policy)

    def _fetched(self, origin: str) -> Policy:
        paced, sharing = self.politeness, self.politeness.sharing
        place = self._shares(origin, paced)
        kept = None if place is None else place.kept_robots(origin)
        if kept is not None:
            return self._learn_kept(origin, kept, paced)
        answer = self._ask(origin)
        policy = self._learn(origin, answer, paced)
        found = to_keep(answer, policy)
        if sharing is not None and found is not None:
            sharing.keep_robots(origin, found[0], policy.expires_at - paced.now())
        return policy

    def _ask(self, origin: str) -> FetchedRobots | None:
        url = f"{origin}/robots.txt"
        answer = self._ask_once(url)
        for _ in range(MOST_HOPS):
            target = None if answer is None else next_hop(url, answer)
            if target is None:
                break
            url, answer = target, self._ask_once(target)
        return answer

    def _ask_once(self, url: str) -> FetchedRobots | None:
        try:
            with self.politeness.slot(url, wait_when_open=True) as slot:
                try:
                    answer = self._fetch(url)
                except Exception as error:  # noqa: BLE001 - whatever the client raises: no answer
                    slot.report(error=error_kind(error) or ErrorKind.CONNECT)
                    return None
                slot.report(status=answer[0], headers=answer[2] if len(answer) > 2 else {})
                return answer
        except PolitenessError:  # the host is retired or paused: no answer
            return None
