"""The store in memory keeps the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.store import wipe
from mannerly.crawler.store.contract import StoreContract

if TYPE_CHECKING:
    from collections.abc import Iterator


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def location(self) -> Iterator[str]:
        yield "memory:contract"
        self.teardown_method()
        wipe("memory:contract")
