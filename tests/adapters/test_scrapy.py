"""Scrapy with the add-on, as a process of its own, on a real server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.http import TextResponse

from mannerly.adapters.scrapy import PoliteHttp
from mannerly.hosts import open_host_memory
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.keys import host_key
from mannerly.politeness.model import Now, Reason

if TYPE_CHECKING:
    from tests.adapters.loopback_site import Site

    from mannerly.politeness.model import Permit

pytestmark = pytest.mark.processes

SPIDER = Path(__file__).parent / "polite_spider.py"
HALF_A_SECOND = {"strategy": "fixed", "delay_s": 0.5}


def run_spider(settings: dict[str, Any], *urls: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SPIDER, json.dumps(settings), *urls],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_spider_keeps_the_gap_for_pages_hops_retries_and_robots(site: Site) -> None:
    """Every request of Scrapy waits for its slot, and a Retry-After holds for all of them."""
    urls = [site.url(path) for path in ("/moved/1", "/busy/2", "/page/3")]

    done = run_spider({"MANNERLY_SETTINGS": HALF_A_SECOND, "ROBOTSTXT_OBEY": True}, *urls)

    stats = json.loads(done.stdout)
    assert stats["item_scraped_count"] == 3, done.stderr
    assert sorted(site.paths) == sorted(
        ["/robots.txt", "/moved/1", "/page/1", "/busy/2", "/busy/2", "/page/3"]
    )
    assert min(site.gaps_s) >= 0.25
    refused_at = site.paths.index("/busy/2")
    assert site.gaps_s[refused_at] >= 0.75


def test_spider_keeps_what_it_learned_in_a_file(site: Site, tmp_path: Path) -> None:
    """MANNERLY_MEMORY names a file that knows the host afterwards."""
    file = tmp_path / "hosts.sqlite"

    done = run_spider({"MANNERLY_MEMORY": str(file), "RETRY_TIMES": 1}, site.url("/broken/1"))

    assert done.returncode == 0, done.stderr
    key = host_key(site.url("/"))
    with closing(open_host_memory(file)) as memory:
        assert key in memory.budgets([key], Now(time.monotonic(), time.time()))


def test_wrong_setting_ends_the_spider_with_its_name(site: Site) -> None:
    """A value that is not allowed is an error at the start, and nothing is sent."""
    done = run_spider({"MANNERLY_SETTINGS": {"delay_s": -1}}, site.url("/page/1"))

    assert "delay_s" in done.stderr
    assert site.log == []


def test_host_that_is_down_is_a_failure_that_scrapy_knows(site: Site) -> None:
    """Errors come out as Scrapy's own, so that its retries work; each takes a slot."""
    done = run_spider({"MANNERLY_SETTINGS": HALF_A_SECOND, "RETRY_TIMES": 1}, site.url("/broken/1"))

    stats = json.loads(done.stdout)
    assert stats["retry/count"] == 1, done.stderr
    assert site.paths == ["/broken/1", "/broken/1"]
    assert min(site.gaps_s) >= 0.25


async def test_request_that_lost_its_host_before_it_left_waits_for_another_slot() -> None:
    """Its page is not lost: only a host that was given up is ignored."""

    class Taken(AsyncPoliteness):
        was_taken = False

        def sent(self, permit: Permit) -> float:
            if not self.was_taken:
                self.was_taken = True
                raise HostUnavailable(permit.host.key, None, Reason.SHARED)
            return super().sent(permit)

    class Handler:
        async def download_request(self, request: Request) -> TextResponse:
            return TextResponse(request.url, body=b"a page")

    politeness = Taken()
    handler = PoliteHttp(Handler(), politeness)

    answer = await handler.download_request(Request("http://a.example/"))

    assert answer.body == b"a page"
    assert politeness.snapshot().requests == 1
