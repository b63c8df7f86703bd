"""Programs that work on one crawl through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.crawler.store.valkey_server import shared_url

import mannerly
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes


def test_a_program_creates_and_another_one_joins(tmp_path: Path) -> None:
    """The second one goes on where the first one left the crawl; no page is delivered twice."""
    name = f"test-{uuid4().hex[:8]}"
    with DemoWeb(plain_sites(2, pages=6)) as web:
        seeds = [f"http://{host}/" for host in web.hosts]

        def pages(folder: str) -> list[str]:
            found = []
            for page in mannerly.crawl(
                seeds,
                redis_url=shared_url(),
                name=name,
                data_dir=tmp_path / folder,
                delay=0.05,
                strategy="fixed",
                seeding_strategy="none",
            ):
                found.append(page.url)
                if folder == "first" and len(found) == 4:
                    break
            return found

        first, second = pages("first"), pages("second")

    assert len(first) == 4
    assert len({*first[:3], *second}) == 12
    assert not set(first[:3]) & set(second)
