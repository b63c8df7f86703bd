"""Checked links are neither pages nor lists in the totals of a shard."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.kinds import Kind
from mannerly.crawler.store import create_crawl, examine
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract.values import candidate, counts, enter, new_manifest, page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("scheme", ["", "memory:"])
def test_lists_are_counted_without_checked_links(scheme: str, tmp_path: Path) -> None:
    """One sitemap, one page and two checked links: one list."""
    location = f"{scheme}{tmp_path / 'crawl'}"
    with closing(create_crawl(location, new_manifest())) as crawl:
        crawl.hold()
        store = crawl.claim(0, ShardOptions(1000))
        kinds = (Kind.PAGE, Kind.SITEMAP, Kind.CHECK, Kind.CHECK_GET)
        entries = enter(store, *(candidate(f"/{kind}")._replace(kind=kind) for kind in kinds))
        store.commit(Batch(pages=[(entry, page(entry)) for entry in entries]))

        assert store.counts() == counts(fetched=1, lists=1, hosts=1)
    if not scheme:
        assert examine(location) == []
