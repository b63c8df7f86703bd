"""Workers that share what they know of hosts with other crawls, as they do by default."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fleet.fleet_world import Fleet
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.waiting import eventually

from mannerly.crawler.model import Now
from mannerly.demo import DemoWeb, plain_sites
from mannerly.hosts import open_host_memory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

HOSTS, PAGES, DELAY_S = 6, 8, 0.6


def test_hosts_are_leased_in_the_server_of_the_crawl(tmp_path: Path) -> None:
    """They go with their shards from worker to worker, and each keeps its delay."""
    with LocalServer() as server, DemoWeb(plain_sites(HOSTS, pages=PAGES, neighbours=2)) as web:
        fleet = Fleet(*(server.url, web, tmp_path, "--delay", str(DELAY_S), "--memory", server.url))
        try:
            metrics = tmp_path / "metrics.prom"
            first = fleet.join("--metrics-file", str(metrics))
            fleet.until_requests(HOSTS)
            with closing(open_host_memory(server.url)) as memory:
                now = Now(time.monotonic(), time.time())
                holders = memory.in_use(web.hosts, now)
            fleet.hold()
            leaver = fleet.join()
            eventually(lambda: fleet.shares() == [16, 16])
            fleet.go_on()
            leaver.process.terminate()

            assert [leaver.end(), first.end()] == [143, 0], first.said
            assert {host: holder.name for host, holder in holders.items()} == dict.fromkeys(
                web.hosts, fleet.name
            )
            code, urls = fleet.exported(first, leaver)
            assert (code, len(urls), len(set(urls))) == (0, HOSTS * PAGES, HOSTS * PAGES)
            fleet.require_gaps(DELAY_S)
            values = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines())
            assert float(values["mannerly_store_writes_total"]) > HOSTS
            assert float(values["mannerly_store_memory_bytes"]) > 100_000
            home = ("--data-dir", str(first.home), "--data-dir", str(leaver.home))
            without, with_records = (
                fleet.command("explain", fleet.seeds[0], *words).stdout for words in ((), home)
            )
            assert "state       known: fetched, failed or skipped" in without
            assert "state       fetched: status 200" in with_records
        finally:
            fleet.close()
