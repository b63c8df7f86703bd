"""One policy for each site, for asyncio: see `policies`.

    policies = AsyncPolicies(fetch, agent="my-bot/1.0")
    if await policies.allowed(url):
        async with policies.slot(url) as slot:
            ...

A robots.txt is fetched by a task of its own, so that a caller that is cancelled does not take it
away from the others that wait for it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal

from ..errors import HostUnavailable, PolitenessError
from ..keys import origin_key
from ..model import ErrorKind
from .aio import AsyncPoliteness
from .policies import MOST_HOPS, PoliciesBase, next_hop, to_keep, too_late
from .slots import error_kind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ..model import Instant
    from .policies import FetchedRobots, Policy
    from .slots import Slot

    Fetch = Callable[[str], Awaitable[FetchedRobots]]


class AsyncPolicies(PoliciesBase["asyncio.Task[Policy]"]):
    """The policies of all sites, for all tasks of an event loop.

    Args:
        fetch: awaited with the URL of a robots.txt; returns (status, body) or (status, body,
            headers). A redirect that it returns with its headers is followed.
        politeness: the pace of all hosts; by default a new one with default settings.
        agent, unreachable, max_origins: see `PoliciesBase`.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        agent: str,
        politeness: AsyncPoliteness | None = None,
        unreachable: Literal["disallow", "allow"] = "disallow",
        max_origins: int = 10_000,
    ) -> None:
        super().__init__(agent=agent, unreachable=unreachable, max_origins=max_origins)
        self.politeness = politeness or AsyncPoliteness()
        self._fetch = fetch

    async def allowed(self, url: str) -> bool:
        """Return whether a URL may be fetched; fetches the origin's robots.txt if it has to."""
        return (await self.policy(url)).allowed(url)

    @asynccontextmanager
    async def slot(
        self, url: str, *, deadline_s: float | None = None, wait_when_open: bool = False
    ) -> AsyncIterator[Slot]:
        """Wait for the next slot of the URL's host, when its Crawl-delay is known.

        The options are those of `AsyncPoliteness.slot`, and hold for both.
        """
        began = self.politeness.now()
        await self.policy(url, deadline_s=deadline_s, wait_when_open=wait_when_open)
        if deadline_s is not None:
            deadline_s = max(0.0, began + deadline_s - self.politeness.now())
        waiting = self.politeness.slot(url, deadline_s=deadline_s, wait_when_open=wait_when_open)
        async with waiting as slot:
            yield slot

    async def policy(
        self,
        url: str,
        *,
        deadline_s: float | None = None,
        wait_when_open: bool = True,
        agent: str | None = None,
        fetch: Fetch | None = None,
    ) -> Policy:
        """Return the policy of a URL's origin; fetches its robots.txt if it has to.

        Args:
            url: any URL of the origin.
            deadline_s: the longest time to wait for it, in seconds; None: no limit.
            wait_when_open: also wait while the host's breaker is open or a long Retry-After is
                pending, instead of raising. A host that is paused or retired is unreachable then.
            agent: the User-Agent of a file that has to be fetched; default: of this object.
            fetch: fetches it in place of the function of this object.

        Raises:
            CircuitOpen, HostUnavailable: the host cannot be asked (not with `wait_when_open`).
            TimeoutError: `deadline_s` has passed.
        """
        origin, agent = origin_key(url), agent or self.agent
        deadline = inf if deadline_s is None else self.politeness.now() + deadline_s
        while True:
            known = self._policies.get(origin)
            if known is not None and self.politeness.now() < known.expires_at:
                return self._use(known)
            flight = self._flights.get(origin)
            if flight is not None and known is not None:
                return known
            if flight is None:
                flight = self._start(origin, agent, fetch or self._fetch)
            try:
                if not await self._is_done(flight, deadline):
                    raise too_late(origin, deadline_s)
                return flight.result()
            except HostUnavailable as error:
                if not wait_when_open:
                    raise
                if error.until is None:
                    return self._learn(origin, agent, None, self.politeness)
                again_at = error.until
            await self.politeness.sleep_until(min(again_at, deadline))
            if self.politeness.now() >= deadline:
                raise too_late(origin, deadline_s)

    def _start(self, origin: str, agent: str, fetch: Fetch) -> asyncio.Task[Policy]:
        flight = asyncio.create_task(
            self._fly(origin, agent, fetch), name=f"robots.txt of {origin}"
        )
        self._flights[origin] = flight
        flight.add_done_callback(partial(self._landed, origin))
        return flight

    def _landed(self, origin: str, flight: asyncio.Task[Policy]) -> None:
        self._flights.pop(origin, None)
        if not flight.cancelled():
            flight.exception()  # looked at, also if no caller waits any more

    async def _is_done(self, flight: asyncio.Task[Policy], deadline: Instant) -> bool:
        """Wait for a fetch until a deadline; the fetch itself goes on for others."""
        if deadline == inf:
            await asyncio.wait((flight,))
            return True
        over = asyncio.ensure_future(self.politeness.sleep_until(deadline))
        try:
            await asyncio.wait((flight, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        return flight.done()

    async def _fly(self, origin: str, agent: str, fetch: Fetch) -> Policy:
        paced, sharing = self.politeness, self.politeness.sharing
        place = self._shares(origin, paced)
        kept = None if place is None else await asyncio.to_thread(place.kept_robots, origin)
        if kept is not None:
            return self._learn_kept(origin, agent, kept, paced)
        answer = await self._ask(origin, fetch)
        policy = self._learn(origin, agent, answer, paced)
        found = to_keep(answer, policy)
        if sharing is not None and found is not None:
            left_s = policy.expires_at - paced.now()
            await asyncio.to_thread(sharing.keep_robots, origin, found[0], left_s)
        return policy

    async def _ask(self, origin: str, fetch: Fetch) -> FetchedRobots | None:
        url = f"{origin}/robots.txt"
        answer = await self._ask_once(url, fetch)
        for _ in range(MOST_HOPS):
            target = None if answer is None else next_hop(url, answer)
            if target is None:
                break
            url, answer = target, await self._ask_once(target, fetch)
        return answer

    async def _ask_once(self, url: str, fetch: Fetch) -> FetchedRobots | None:
        try:
            async with self.politeness.slot(url) as slot:
                try:
                    answer = await fetch(url)
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
