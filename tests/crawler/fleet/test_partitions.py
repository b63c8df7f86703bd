"""Workers that are cut off from the server or stopped: never two senders to a host."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fleet.chaos_proxy import ChaosProxy, Way
from tests.crawler.fleet.fleet_world import Fleet
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.waiting import eventually

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

LEASE_S = 15.0
HOSTS, DELAY_S, SHARDS = 10, 0.9, 32


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(HOSTS, pages=40, neighbours=2)) as web:
        yield web


def check(fleet: Fleet, *, pages: int = 40, delay_s: float = DELAY_S) -> None:
    """Everything was recorded once, and no host saw two requests closer than its delay."""
    code, urls = fleet.exported(*fleet.workers)
    assert code == 0
    assert len(urls) == len(set(urls)) == HOSTS * pages
    fleet.require_gaps(delay_s)


@pytest.mark.parametrize(
    "ways",
    [
        (Way.CUT, Way.DEAF),
        *(pytest.param((way,), marks=pytest.mark.long) for way in Way if way is not Way.OPEN),
    ],
    ids=lambda ways: "+".join(way.value for way in ways),
)
def test_a_worker_that_is_cut_off_falls_silent(
    ways: tuple[Way, ...], web: DemoWeb, tmp_path: Path
) -> None:
    """Another one takes its hosts over; it goes on when the way is open again. Two at once, too."""
    with ExitStack() as stack:
        server = stack.enter_context(LocalServer())
        proxies = [stack.enter_context(ChaosProxy(server.port)) for _ in ways]
        fleet = Fleet(server.url, web, tmp_path, "--delay", str(DELAY_S))
        stack.callback(fleet.close)
        workers = [*(fleet.join(url=proxy.url) for proxy in proxies), fleet.join()]
        fair = SHARDS // len(workers)
        eventually(lambda: len(fleet.shares()) == len(workers) and min(fleet.shares()) >= fair)
        for proxy, way in zip(proxies, ways, strict=True):
            proxy.way = way
        time.sleep(LEASE_S + 6.0)
        if Way.SLOW not in ways:
            eventually(lambda: fleet.shares() == [SHARDS])
        for proxy in proxies:
            proxy.heal()

        assert [worker.end() for worker in workers] == [0] * len(workers), workers[0].said
        check(fleet)


@pytest.mark.long
def test_a_worker_that_is_stopped_for_long_sends_nothing_when_it_wakes(
    web: DemoWeb, tmp_path: Path
) -> None:
    """Its shards have other owners by then: what it had not committed is refused."""
    with LocalServer() as server:
        fleet = Fleet(server.url, web, tmp_path, "--delay", str(DELAY_S))
        try:
            sleeper, other = fleet.join(), fleet.join()
            eventually(lambda: fleet.shares() == [16, 16])
            sleeper.signal(signal.SIGSTOP)
            time.sleep(3 * LEASE_S)
            sleeper.signal(signal.SIGCONT)

            assert [sleeper.end(), other.end()] == [0, 0], sleeper.said + other.said
            check(fleet)
        finally:
            fleet.close()


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_server_that_is_killed_and_restarted_loses_nothing(
    kills: int, web: DemoWeb, tmp_path: Path
) -> None:
    """With an append-only file; workers wait, and go on when it is back."""
    delay_s = 0.4 * (kills + 1) / 2
    with LocalServer("--appendonly", "yes", "--appendfsync", "everysec") as server:
        fleet = Fleet(server.url, web, tmp_path, "--delay", str(delay_s))
        try:
            workers = [fleet.join(), fleet.join()]
            eventually(lambda: fleet.shares() == [16, 16])
            for _ in range(kills):
                server.kill()
                time.sleep(3.0)
                server.start()
                time.sleep(2.0)

            assert [worker.end() for worker in workers] == [0, 0], workers[0].said
            check(fleet, delay_s=delay_s)
        finally:
            fleet.close()


def test_a_server_that_is_gone_for_good_ends_the_workers(web: DemoWeb, tmp_path: Path) -> None:
    """After their patience, with exit code 5; nothing is sent after the margin of the lease."""
    with LocalServer() as server:
        fleet = Fleet(server.url, web, tmp_path, "--delay", str(DELAY_S))
        try:
            worker = fleet.join("--store-patience", "16")
            fleet.until_requests(20)
            server.kill()
            killed_at = time.monotonic()

            assert worker.end() == 5, worker.said
            assert "Run the same command again to continue" in worker.said
            assert max(each.t for each in fleet.log()) < killed_at + LEASE_S - 3.0 + 0.5
        finally:
            fleet.close()


@pytest.mark.long
def test_a_full_server_pauses_the_crawl(web: DemoWeb, tmp_path: Path) -> None:
    """With the reason in the status; it goes on when there is room."""
    with LocalServer("--maxmemory-policy", "noeviction") as server:
        fleet = Fleet(server.url, web, tmp_path, "--delay", "0.2")
        try:
            worker = fleet.join()
            fleet.until_requests(20)
            with server.client() as client:
                client.config_set("maxmemory", "1mb")
                eventually(lambda: "memory" in str(fleet.status()["workers"]))
                before = len(fleet.log())
                time.sleep(2.0)
                assert len(fleet.log()) <= before + HOSTS
                client.config_set("maxmemory", "0")

            assert worker.end() == 0, worker.said
            code, urls = fleet.exported(worker)
            assert (code, len(urls), len(set(urls))) == (0, HOSTS * 40, HOSTS * 40)
        finally:
            fleet.close()
