"""Open the shards of a worker: claim the store, open the segments, offer the seeds.

A shard can be opened at any time of a run. It gets the seeds that belong to it, since an earlier
owner may have died before they were committed, and every control record that was read so far.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.control import is_for_shards
from mannerly.crawler.events import StoreMended
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.plugins import plugins_for
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.base import ShardOptions, StoreError, StoreInUse
from mannerly.database.ages import boot_id

from .beginning import first_candidates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.control import Control
    from mannerly.crawler.events import Events, Watched
    from mannerly.crawler.model import Candidate, Now
    from mannerly.crawler.page.extract import Extracting
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.interfaces import Consumer, PageReader, Renderer
    from mannerly.crawler.shard.plugin import Plugin, Plugins
    from mannerly.crawler.store.base import CrawlStore, ShardStore
    from mannerly.hosts.leases import Leases

CLAIM_S = 2.0  # the workers of a run that was killed may need a moment to end


class ShardParts(NamedTuple):
    """Everything that the shards of a worker share."""

    rules: LinkRules
    events: Events
    reader: PageReader
    consumer: Consumer | None
    extract: Extracting | None
    watched: Watched
    leases: Leases | None  # None: no other crawl can want these hosts
    renderer: Renderer | None = None  # shows pages in browsers


class ShardOpener:
    """Opens and closes shards of one crawl."""

    def __init__(
        self, store: CrawlStore, settings: CrawlSettings, common: ShardParts, *, is_resumed: bool
    ) -> None:
        self._store = store
        self._settings = settings
        self._common = common
        self._is_resumed = is_resumed
        shards = store.manifest.shards
        self._sharding = Sharding(shards)
        self._options = ShardOptions(
            max(1, settings.frontier_limit // shards), settings.durable, settings.check_limit
        )
        self._first: dict[int, list[Candidate]] = {}  # seeds and what is asked with them, by shard
        for each in first_candidates(settings, store.manifest):
            self._first.setdefault(self._sharding.shard_of(each.host), []).append(each)

    def claim(self, number: int, patience_s: float = CLAIM_S) -> ShardStore:
        """Become a shard's owner; wait a moment for an earlier owner to end.

        Raises:
            StoreInUse: it has another owner.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self._store.claim(number, self._options)
            except StoreInUse:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.02)

    def make(self, number: int, store: ShardStore, now: Now) -> Shard:
        """Return the shard of a store that is claimed."""
        common = self._common
        shard = Shard(
            number,
            store,
            self._sharding,
            self._settings,
            common.rules,
            is_resumed=self._is_resumed,
            now=now,
            events=common.events,
            reader=common.reader,
            consumer=common.consumer,
            plugins=self._plugins(number, store, now),
            boot=boot_id(),
            watched=common.watched,
            leases=common.leases,
            renderer=common.renderer,
        )
        shard.offer(self._first.get(number, []))
        return shard

    def say_mended(self, shards: Iterable[Shard]) -> None:
        """Tell what was wrong in the stores of shards, or in the memory of hosts."""
        leases = self._common.leases
        mended = [] if leases is None else leases.take_mended()
        for words in chain(mended, *(shard.store.take_mended() for shard in shards)):
            self._common.events.emit(StoreMended(words))

    def _plugins(self, number: int, store: ShardStore, now: Now) -> Plugins:
        common, settings = self._common, self._settings
        archive = self._archive(number, store, now) if settings.keep_bodies else None
        emit, extract = common.events.emit, common.extract
        folder = self._store.segment_folder
        return plugins_for(
            *(settings, common.rules, store, emit), archive=archive, extract=extract, folder=folder
        )

    def _archive(self, number: int, store: ShardStore, now: Now) -> Plugin:
        folder = self._store.segment_folder
        if folder is None:
            raise StoreError(f"{self._store.location} cannot keep bodies: use a data directory")
        from mannerly.crawler.plugins.archive import Archive, facts_of  # 4 ms, rarely needed

        facts = facts_of(self._settings, self._store.manifest, now.wall)
        stem = store.segment_stem or f"shard-{number}"
        return Archive.beside(store, stem, folder, facts)


def catch_up(shard: Shard, orders: Iterable[tuple[int, Control]], now: Now) -> None:
    """Tell a shard that was opened during a run what was ordered before."""
    for number, order in orders:
        if is_for_shards(order):
            shard.control(number, order, now)
