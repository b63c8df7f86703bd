"""robots.txt, asked for and learned: what `RobotsCache` decides is done here.

    finished    an errand's answer: the next hop goes to its own host, or the rules are learned
    give_up     an errand that nobody can run: its origin's pages must not wait for it

A redirect of robots.txt to a host that was given up leads nowhere, and so does an errand in the
queue of a host that is being given up; both mean the same, that the file cannot be had. Whatever is
learned is told to the politeness core and wakes the host; the caller keeps the record and follows
the sitemaps, for this file knows no batch and no store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import PASSING, LocalError
from mannerly.crawler.web.urls import host_key_of

from .cache import UNREACHABLE, Hop, RobotsCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.frontier.core import Frontier
    from mannerly.crawler.model import Fetched, RobotsRecord, RobotsRequest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant

    from .cache import Learned


class Errands:
    """The errands of one shard. `rules` is the judge of its pages.

    Args:
        load: an origin's latest record, one that is not committed yet included.
        is_given_up: whether a host will not be contacted any more.
    """

    def __init__(
        self,
        settings: CrawlSettings,
        politeness: Politeness,
        frontier: Frontier,
        *,
        load: Callable[[str], RobotsRecord | None],
        is_given_up: Callable[[str], bool],
    ) -> None:
        self._politeness = politeness
        self._frontier = frontier
        self._is_given_up = is_given_up
        self.rules = RobotsCache(
            settings.agent_token,
            load=load,
            on_loaded=self._heed,
            unreachable="allow" if settings.robots_unreachable == "allow" else "disallow",
            ignore=settings.ignore_robots,
            patience_s=settings.robots_patience_s,
        )

    def finished(
        self, errand: RobotsRequest, answer: Fetched, now: Instant, wall: float
    ) -> list[Learned]:
        """What an answer teaches; nothing, if there is to be another."""
        error = answer.error
        if error in PASSING:
            self.rules.abandon(errand)
            self._frontier.wake(host_key_of(errand.origin + "/"), now=now)
            return []
        # Where not even robots.txt may be asked for, no page will be. But a redirect into such a
        # place is a redirect to nowhere.
        refusal = error.value if isinstance(error, LocalError) else None
        result = self.rules.fetched(
            errand,
            status=404 if refusal and errand.hops else answer.status,
            body=answer.body,
            headers=answer.headers,
            refusal=refusal,
            now=now,
            wall=wall,
        )
        if not isinstance(result, Hop):
            return self._learned(result, now)
        if self._is_given_up(result.errand.host):
            return self.give_up(result.errand, now, wall)
        self._frontier.errand(result.errand, now=now)
        return []

    def give_up(self, errand: RobotsRequest, now: Instant, wall: float) -> list[Learned]:
        """Nobody will run it: its origin has no rules, and will not get any."""
        result = self.rules.fetched(errand, status=None, refusal=UNREACHABLE, now=now, wall=wall)
        assert not isinstance(result, Hop), "no answer leads nowhere"
        return self._learned(result, now)

    def _learned(self, result: list[Learned], now: Instant) -> list[Learned]:
        for learned in result:
            self._heed(learned, now)
            self._frontier.wake(learned.host, now=now)
        return result

    def _heed(self, learned: Learned, now: Instant) -> None:
        self._politeness.robots(learned.host, crawl_delay_s=learned.crawl_delay_s, now=now)
