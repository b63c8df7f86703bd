"""Route found URLs: into this shard's queue, to the shard that owns the host, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.web.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.model import Candidate
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.store.base import Batch


class Routes:
    """The routes of one shard. `recent` holds what was passed on lately."""

    def __init__(self, shard: int, sharding: Sharding, rules: LinkRules) -> None:
        self._shard = shard
        self._sharding = sharding
        self._rules = rules
        self.recent = Recent()

    def owns(self, host: str) -> bool:
        """Return whether a host belongs to this shard."""
        return self._sharding.shard_of(host) == self._shard

    @property
    def leads_elsewhere(self) -> bool:
        """Return whether there are other shards."""
        return self._sharding.shards > 1

    def links(self, candidates: Iterable[Candidate], batch: Batch) -> None:
        """Pass on links, without those that were passed on lately."""
        self.all(self.unmet(candidates), batch)

    def unmet(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return links without those that were passed on lately, and note them."""
        is_new = self.recent.add
        return [candidate for candidate in candidates if is_new(candidate.url)]

    def all(self, candidates: Iterable[Candidate], batch: Batch) -> None:
        """Pass on everything. A seed keeps the tracking parameters that links lose, so it is not
        noted as passed on.
        """
        shard_of = self._sharding.shard_of
        for candidate in candidates:
            owner = shard_of(candidate.host)
            if owner == self._shard:
                batch.found.append(candidate)
            else:
                batch.outgoing.append((owner, candidate))

    def wanted(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out what is excluded: seeds and sitemaps need not be in scope, but that binds."""
        excludes = self._rules.scope.excludes
        return [each for each in candidates if not excludes(each.url)]
