"""Two crawls in one server want the same hosts: together they send no more than one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.fleet.fleet_world import Fleet
from tests.crawler.store.valkey_server import LocalServer

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

HOSTS, PAGES, DELAY_S, WORKERS = 5, 30, 0.5, 3


@pytest.mark.long
def test_two_crawls_of_one_server_keep_one_gap_for_each_host(tmp_path: Path) -> None:
    """Three workers each on the same five hosts; the log of the hosts is the judge."""
    sites = plain_sites(HOSTS, pages=PAGES, neighbours=2)
    with DemoWeb(sites) as web, LocalServer() as server:
        fleets = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            options = ("--delay", str(DELAY_S), "--memory", server.url)
            fleets.append(Fleet(server.url, web, folder, *options))
        try:
            workers = [fleet.join() for _ in range(WORKERS) for fleet in fleets]
            codes = [worker.end(240.0) for worker in workers]

            assert codes == [0] * len(workers), workers[0].said
            for fleet in fleets:
                code, urls = fleet.exported(*fleet.workers)
                assert (code, len(urls), len(set(urls))) == (0, HOSTS * PAGES, HOSTS * PAGES)
            fleets[0].require_gaps(DELAY_S)
        finally:
            for fleet in fleets:
                fleet.close()
