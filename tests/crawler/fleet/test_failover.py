"""The server of a crawl changes places with its replica, or is a replica: nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.fleet.fleet_world import Fleet, run
from tests.crawler.store.sentinel_world import AT_ONCE, SentinelWorld
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.waiting import eventually

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

HOSTS, PAGES, DELAY_S = 10, 12, 0.5


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(HOSTS, pages=PAGES, neighbours=2)) as web:
        yield web


def test_workers_go_on_after_a_failover(web: DemoWeb, tmp_path: Path) -> None:
    """Sentinels promote the replica; each page is recorded once, and hosts keep their delay."""
    with SentinelWorld() as world:
        fleet = Fleet(world.url, web, tmp_path, "--delay", str(DELAY_S))
        try:
            workers = [fleet.join(), fleet.join()]
            fleet.until_requests(HOSTS * 3)
            world.fail_over()

            assert [worker.end() for worker in workers] == [0, 0], workers[0].said
            assert "CONFIG SET min-replicas-to-write 1" in workers[0].said
            code, urls = fleet.exported(*workers)
            assert (code, len(urls), len(set(urls))) == (0, HOSTS * PAGES, HOSTS * PAGES)
            fleet.require_gaps(DELAY_S)
            assert fleet.status()["state"] == "finished"
            looked_at = run("doctor", world.url)
            assert f"the primary is 127.0.0.1:{world.replica.port}" in looked_at.stdout
        finally:
            fleet.close()


@pytest.mark.long
def test_a_failover_that_does_not_come_ends_the_workers(web: DemoWeb, tmp_path: Path) -> None:
    """With exit code 5 after their patience, and the reason; never as finished."""
    with SentinelWorld(1) as world:
        fleet = Fleet(world.url, web, tmp_path, "--delay", str(DELAY_S))
        try:
            worker = fleet.join("--store-patience", "4")
            fleet.until_requests(HOSTS * 2)
            world.replica.kill()
            world.primary.kill()

            assert worker.end() == 5, worker.said
            assert "goes on" in worker.said
            assert "inished" not in worker.said
        finally:
            fleet.close()


def test_a_replica_in_place_of_the_primary_is_named(web: DemoWeb, tmp_path: Path) -> None:
    """Also to a worker that was running when it became one: exit code 5, nothing lost."""
    with LocalServer(*AT_ONCE) as server, LocalServer() as other:
        fleet = Fleet(server.url, web, tmp_path, "--delay", "0.3")
        try:
            worker = fleet.join("--store-patience", "3")
            fleet.until_requests(HOSTS)
            with server.client() as client, other.client() as primary:
                primary.replicaof("127.0.0.1", str(server.port))
                eventually(lambda: primary.info("replication")["master_link_status"] == "up")
                primary.replicaof("NO", "ONE")
                client.replicaof("127.0.0.1", str(other.port))

            assert worker.end() == 5, worker.said
            assert f"use the address of its primary (127.0.0.1:{other.port})" in worker.said
            assert "inished" not in worker.said

            started = run(
                *("crawl", *fleet.seeds, "--redis-url", server.url, "--crawl", fleet.name),
                *("--data-dir", str(tmp_path / "late"), "--store-patience", "1"),
                *fleet.options,
            )
            assert started.returncode == 5, started.stderr
            assert f"127.0.0.1:{other.port}" in started.stderr
            fleet.url = other.url
            promoted = fleet.status()
            assert promoted["total"]["queued"] > 0
            assert promoted["state"] != "finished"
        finally:
            fleet.close()
