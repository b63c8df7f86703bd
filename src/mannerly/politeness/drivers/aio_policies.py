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
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

from ..errors import PolitenessError
from ..keys import origin_key
from ..model import ErrorKind
from .aio import AsyncPoliteness
from .policies import MOST_HOPS, PoliciesBase, next_hop, to_keep
from .slots import error_kind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from .policies import FetchedRobots, Policy
    from .slots import Slot


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
        fetch: Callable[[str], Awaitable[FetchedRobots]],
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
    async def slot(self, url: str, *, deadline_s: float | None = None) -> AsyncIterator[Slot]:
        """Wait for the next slot of the URL's host, when its Crawl-delay is known."""
        await self.policy(url)
        async with self.politeness.slot(url, deadline_s=deadline_s) as slot:
            yield slot

    async def policy(self, url: str) -> Policy:
        """Return the policy of a URL's origin; fetches its robots.txt if it has to."""
        origin = origin_key(url)
        known = self._policies.get(origin)
        if known is not None and self.politeness.now() < known.expires_at:
            return self._use(known)
        flight = self._flights.get(origin)
        if flight is not None and known is not None:
            return known
        if flight is None:
            flight = asyncio.create_task(self._fly(origin), name=f"robots.txt of {origin}")
            self._flights[origin] = flight
            flight.add_done_callback(lambda _: self._flights.pop(origin, None))
        return await asyncio.shield(flight)

    async def _fly(self, origin: str) -> Policy:
        paced, sharing = self.politeness, self.politeness.sharing
        place = self._shares(origin, paced)
        kept = None if place is None else await asyncio.to_thread(place.kept_robots, origin)
        if kept is not None:
            return self._learn_kept(origin, kept, paced)
        answer = await self._ask(origin)
        policy = self._learn(origin, answer, paced)
        found = to_keep(answer, policy)
        if sharing is not None and found is not None:
            left_s = policy.expires_at - paced.now()
            await asyncio.to_thread(sharing.keep_robots, origin, found[0], left_s)
        return policy

    async def _ask(self, origin: str) -> FetchedRobots | None:
        url = f"{origin}/robots.txt"
        answer = await self._ask_once(url)
        for _ in range(MOST_HOPS):
            target = None if answer is None else next_hop(url, answer)
            if target is None:
                break
            url, answer = target, await self._ask_once(target)
        return answer

    async def _ask_once(self, url: str) -> FetchedRobots | None:
        try:
            async with self.politeness.slot(url, wait_when_open=True) as slot:
                try:
                    answer = await self._fetch(url)
                except Exception as error:  # noqa: BLE001 - whatever the client raises: no answer
                    slot.report(error=error_kind(error) or ErrorKind.CONNECT)
                    return None
                slot.report(status=answer[0], headers=answer[2] if len(answer) > 2 else {})
                return answer
        except PolitenessError:  # the host is retired or paused: no answer
            return None
