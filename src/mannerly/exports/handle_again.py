"""Run the handlers that have failed once more, over the kept answers of a crawl.

What they make now joins the crawl, page by page in one commit each: items, requests, and the page
without its error. Nothing is asked for. A kept answer that cannot be read is forgotten, and the
error stays, so that the page is fetched again with those that have no kept answer. The crawl must
not run: this owns it meanwhile.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.inspection.hosts import host_key
from mannerly.crawler.page.extract import items_of
from mannerly.crawler.store import open_crawl as open_store
from mannerly.crawler.store.base import Batch, ShardOptions

from .handle import failed_pages, run_handlers

if TYPE_CHECKING:
    from mannerly.crawler.page.extract import Extracting
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.crawler.stored import StoredCrawl


def handle_again(
    crawl: StoredCrawl,
    settings: CrawlSettings,
    extract: Extracting,
    processes: int,
    host: str | None = None,
) -> tuple[int, int]:
    """Return on how many pages handlers ran, of one host or of all, and how many failed again.

    Raises:
        StoreInUse: the crawl is running.
        StoreError: it cannot be written.
    """
    shards: dict[int, ShardStore] = {}
    done = failed = 0
    with ExitStack() as opened:
        store = open_store(crawl.location)
        opened.callback(store.close)
        store.hold()
        view = opened.enter_context(crawl.view())
        sharding = Sharding(len(view.readers))
        options = ShardOptions(
            max(1, settings.frontier_limit // len(view.readers)), settings.durable
        )
        name = None if host is None else host_key(host)
        wanted = (page for page in failed_pages(view) if name in (None, page.record.host))
        for page, result in run_handlers(view, extract, wanted, processes):
            found = None if result is None else items_of(result, page.record)
            batch = Batch(handled_again={page.seq: None if found is None else found.items})
            for each in () if found is None else found.requests:
                owner = sharding.shard_of(each.host)
                if owner == page.shard:
                    batch.found.append(each)
                else:
                    batch.outgoing.append((owner, each))
            if page.shard not in shards:
                shards[page.shard] = opened.enter_context(store.claim(page.shard, options))
            shards[page.shard].commit(batch)
            done += found is not None
            failed += found is not None and found.items.error is not None
    return done, failed
