"""The store in memory keeps the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.store_contract import OpenStores, StoreContract

from mannerly.crawler.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.store.base import ShardStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_stores(self) -> OpenStores:
        def opened(shards: int = 1, *, frontier_limit: int = 1000) -> Sequence[ShardStore]:
            return MemoryStore.group(shards, frontier_limit=frontier_limit)

        return opened
