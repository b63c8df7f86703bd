"""A crawl in a real server keeps every promise of the contract."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import redis
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.store import SCHEMES
from mannerly.crawler.store.contract import FleetContract, StoreContract
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.leases import ValkeyFleet

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.store.base import Manifest

LEASE_S = 0.3


class KeptCrawl(ValkeyCrawl):
    """A crawl whose records are all in one folder, whoever writes them."""

    folder: Path

    @classmethod
    def create(cls, location: str, manifest: Manifest) -> ValkeyCrawl:
        crawl = super().create(location, manifest)
        crawl.keep_in(cls.folder)
        return crawl

    @classmethod
    def open(cls, location: str) -> ValkeyCrawl:
        crawl = super().open(location)
        crawl.keep_in(cls.folder)
        return crawl


class TestValkeyStore(StoreContract):
    @pytest.fixture
    def location(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
        KeptCrawl.folder = tmp_path
        monkeypatch.setitem(SCHEMES, "redis", f"{__name__}:KeptCrawl")
        return new_location()


class TestValkeyFleet(FleetContract):
    @pytest.fixture
    def location(self, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(ValkeyFleet, "lease_s", LEASE_S)
        return new_location()

    def let_leases_end(self) -> None:
        time.sleep(LEASE_S + 0.1)

    def lose_everything(self, location: str) -> None:
        url, _, name = location.partition("#")
        with redis.Redis.from_url(url) as client:
            client.delete(*client.keys(f"mannerly:{{{name}*"))
