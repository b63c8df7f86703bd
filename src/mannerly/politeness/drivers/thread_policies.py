"""One policy for each site, for threads: see `policies`."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Literal

from ..errors import HostUnavailable, PolitenessError
from ..keys import origin_key
from ..model import ErrorKind
from .policies import MOST_HOPS, PoliciesBase, next_hop, to_keep, too_late
from .slots import error_kind
from .threads import ThreadedPoliteness

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..model import Instant
    from .policies import FetchedRobots, Policy
    from .slots import Slot

    Fetch = Callable[[str], FetchedRobots]


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
        fetch: Fetch,
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

    def slot(
        self, url: str, *, deadline_s: float | None = None, wait_when_open: bool = False
    ) -> AbstractContextManager[Slot]:
        """Wait for the next slot of the URL's host, when its Crawl-delay is known.

        The options are those of `ThreadedPoliteness.slot`, and hold for both.
        """
        began = self.politeness.now()
        self.policy(url, deadline_s=deadline_s, wait_when_open=wait_when_open)
        if deadline_s is not None:
            deadline_s = max(0.0, began + deadline_s - self.politeness.now())
        return self.politeness.slot(url, deadline_s=deadline_s, wait_when_open=wait_when_open)

    def policy(
        self,
        url: str,
        *,
        deadline_s: float | None = None,
        wait_when_open: bool = True,
        agent: str | None = None,
        fetch: Fetch | None = None,
    ) -> Policy:
        """Return the policy of a URL's origin; fetches its robots.txt if it has to.

        For the arguments and the errors see `AsyncPolicies.policy`.
        """
        origin, agent = origin_key(url), agent or self.agent
        deadline = inf if deadline_s is None else self.politeness.now() + deadline_s
        while True:
            known = self._policies.get(origin)
            if known is not None and self.politeness.now() < known.expires_at:
                return self._use(known)
            mine: Future[Policy | None] = Future()
            flight = self._flights.setdefault(origin, mine)  # atomic: one of all callers wins
            try:
                if flight is mine:
                    return self._fly(origin, mine, agent, fetch or self._fetch, deadline)
                if known is not None:
                    return known
                found = self._result(flight, deadline)
            except HostUnavailable as error:
                if not wait_when_open:
                    raise
                if error.until is None:
                    return self._learn(origin, agent, None, self.politeness)
                self.politeness.sleep_until(min(error.until, deadline))
            else:
                if found is not None:  # else the caller that fetched it was interrupted
                    return found
            if self.politeness.now() >= deadline:
                raise too_late(origin, deadline_s)

    def _result(self, flight: Future[Policy | None], deadline: Instant) -> Policy | None:
        """Wait for another caller's fetch until a deadline; None: it brought nothing by then."""
        try:
            return flight.result(None if deadline == inf else deadline - self.politeness.now())
        except TimeoutError:
            return None

    def _use(self, policy: Policy) -> Policy:
        with self._lock:
            return super()._use(policy)

    def _fly(
        self,
        origin: str,
        flight: Future[Policy | None],
        agent: str,
        fetch: Fetch,
        deadline: Instant,
    ) -> Policy:
        policy: Policy | None = None
        refused: HostUnavailable | None = None
        try:
            policy = self._fetched(origin, agent, fetch, deadline)
        except HostUnavailable as error:
            refused = error
            raise
        finally:
            self._flights.pop(origin, None)
            if refused is None:
                flight.set_result(policy)
            else:
                flight.set_exception(refused)
        return policy

    def _fetched(self, origin: str, agent: str, fetch: Fetch, deadline: Instant) -> Policy:
        paced, sharing = self.politeness, self.politeness.sharing
        place = self._shares(origin, paced)
        kept = None if place is None else place.kept_robots(origin)
        if kept is not None:
            return self._learn_kept(origin, agent, kept, paced)
        answer = self._ask(origin, fetch, deadline)
        policy = self._learn(origin, agent, answer, paced)
        found = to_keep(answer, policy)
        if sharing is not None and found is not None:
            sharing.keep_robots(origin, found[0], policy.expires_at - paced.now())
        return policy

    def _ask(self, origin: str, fetch: Fetch, deadline: Instant) -> FetchedRobots | None:
        url = f"{origin}/robots.txt"
        answer = self._ask_once(url, fetch, deadline)
        for _ in range(MOST_HOPS):
            target = None if answer is None else next_hop(url, answer)
            if target is None:
                break
            url, answer = target, self._ask_once(target, fetch, deadline)
        return answer

    def _ask_once(self, url: str, fetch: Fetch, deadline: Instant) -> FetchedRobots | None:
        left_s = None if deadline == inf else max(0.0, deadline - self.politeness.now())
        try:
            with self.politeness.slot(url, deadline_s=left_s) as slot:
                try:
                    answer = fetch(url)
                except Exception as error:  # noqa: BLE001 - whatever the client raises: no answer
                    slot.report(error=error_kind(error) or ErrorKind.CONNECT)
                    return None
                slot.answered()
                with suppress(HostUnavailable):  # taken over meanwhile: the answer is there
                    slot.sent()  # when it left is not known, but it was before now
                slot.report(status=answer[0], headers=answer[2] if len(answer) > 2 else {})
                return answer
        except HostUnavailable:
            raise
        except PolitenessError:  # closed, or it would wait for itself: no answer
            return None
