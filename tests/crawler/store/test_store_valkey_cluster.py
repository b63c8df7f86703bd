"""A cluster of three primaries keeps the promises of the contract: a crawl is in one slot."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import redis
from tests.crawler.store.test_store_valkey import LEASE_S, KeptCrawl
from tests.crawler.store.valkey_server import LocalServer, new_location
from tests.harness.sites import free_port

from mannerly.crawler.model import HostRecord
from mannerly.crawler.store import SCHEMES
from mannerly.crawler.store.base import Batch, Heartbeat, ShardOptions, StoreInUse
from mannerly.crawler.store.contract import FleetContract, LinkContract, candidate, new_manifest
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.leases import ValkeyFleet
from mannerly.database.ages import boot_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.processes

SLOTS = 16_384


@pytest.fixture(scope="module")
def cluster():
    with started(3) as servers:
        yield servers


@contextmanager
def started(primaries: int, *options: str) -> Iterator[list[LocalServer]]:
    """Start some primaries, each with a part of the slots."""
    with ExitStack() as stack:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", *options)
        buses = [free_port() for _ in range(primaries)]
        servers = [
            stack.enter_context(LocalServer(*options, "--cluster-port", str(bus))) for bus in buses
        ]
        clients = [stack.enter_context(server.client()) for server in servers]
        bounds = [SLOTS * n // primaries for n in range(primaries + 1)]
        known = f"cluster_known_nodes:{primaries}".encode()
        for number, client in enumerate(clients):
            first, last = bounds[number], bounds[number + 1] - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, buses[0])
        deadline = time.monotonic() + 20
        while not all(
            b"cluster_state:ok" in _raw(client) and known in _raw(client) for client in clients
        ):
            assert time.monotonic() < deadline, "the cluster does not form"
            time.sleep(0.1)
        yield servers


def _raw(client) -> bytes:
    answer = client.execute_command("CLUSTER", "INFO")
    if isinstance(answer, dict):
        return "\n".join(f"{name}:{value}" for name, value in answer.items()).encode()
    return answer


class TestCluster(LinkContract):
    @pytest.fixture
    def location(self, cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
        KeptCrawl.folder = tmp_path
        monkeypatch.setitem(SCHEMES, "redis", f"{KeptCrawl.__module__}:KeptCrawl")
        return new_location(cluster[0].url)


class TestClusterFleet(FleetContract):
    @pytest.fixture
    def location(self, cluster, monkeypatch: pytest.MonkeyPatch) -> str:
        self.servers = cluster
        monkeypatch.setattr(ValkeyFleet, "lease_s", LEASE_S)
        return new_location(cluster[0].url)

    def let_leases_end(self) -> None:
        time.sleep(LEASE_S + 0.1)

    def lose_everything(self, location: str) -> None:
        for server in self.servers:
            with server.client() as client:
                client.flushall()


OPTIONS = ShardOptions(1000)


def test_all_keys_of_a_crawl_are_in_one_server(cluster, tmp_path: Path) -> None:
    """So one script may touch all its shards. Other crawls are in others."""
    with ExitStack() as stack:
        crawl = ValkeyCrawl.create(new_location(cluster[0].url), new_manifest(8))
        stack.callback(crawl.close)
        crawl.keep_in(tmp_path)
        sender, owner = crawl.claim(0, OPTIONS), crawl.claim(1, OPTIONS)
        sender.commit(Batch(outgoing=[(1, candidate("/x", "b.example"))]))

        assert len(owner.pass_links(10).new) == 1
        assert sum(bool(_keys_of(server, crawl)) for server in cluster) == 1


def test_a_restart_is_seen_whichever_server_is_connected_next() -> None:
    """Another server of the cluster, whose run is known, is connected after the restarted one."""
    with started(2) as servers, ExitStack() as stack:
        crawl = ValkeyCrawl.create(new_location(servers[0].url), new_manifest(1))
        stack.callback(crawl.close)
        first, second = (_key_of(server) for server in servers)
        crawl.server.ask_all([("HLEN", first), ("HLEN", second)])
        before = crawl.server.run

        servers[0].kill()
        servers[0].start()
        _again(lambda: crawl.server.ask("HLEN", first))
        _disconnect(servers[1])
        _again(lambda: crawl.server.ask("HLEN", second))

        restarted, other = (f"127.0.0.1:{server.port}=" for server in servers)
        assert _run_of(restarted, crawl.server.run) != _run_of(restarted, before)
        assert _run_of(other, crawl.server.run) == _run_of(other, before)


def test_a_wait_that_one_server_of_a_cluster_forgot_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another server is connected between the restart and the next renewal."""
    monkeypatch.setattr(ValkeyFleet, "lease_s", LEASE_S)
    with (
        started(2, "--appendonly", "yes", "--appendfsync", "always") as servers,
        ExitStack() as stack,
    ):
        crawl = ValkeyCrawl.create(new_location(servers[0].url), new_manifest(1))
        stack.callback(crawl.close)
        crawl.keep_in(tmp_path)
        if not _keys_of(servers[0], crawl):
            servers.reverse()
        elsewhere = _key_of(servers[1])
        crawl.server.ask("HLEN", elsewhere)
        _disconnect(servers[1])
        _again(lambda: crawl.fleet.renew(_heartbeat(), now=time.monotonic()))
        owner = crawl.claim(0, OPTIONS)
        (log,) = (servers[0].folder / "appendonlydir").glob("*.incr.aof")
        kept = log.stat().st_size
        now = time.time()
        silent = HostRecord("a.example", next_at=now + 3600, updated_at=now, boot=boot_id())
        owner.commit(Batch(hosts=[silent]))
        owner.close()
        servers[0].kill()
        with log.open("r+b") as file:
            file.truncate(kept)
        servers[0].start()
        _again(lambda: crawl.server.ask("HLEN", crawl.keys.shard(0)))
        _disconnect(servers[1])
        _again(lambda: crawl.server.ask("HLEN", elsewhere))

        _again(lambda: crawl.fleet.renew(_heartbeat(), now=time.monotonic()))

        with crawl.read(0) as reader:
            record = reader.host("a.example")
        assert record is not None
        assert record.next_at == pytest.approx(silent.next_at, abs=20)


def _disconnect(server: LocalServer) -> None:
    """End all connections to a server; its clients make new ones."""
    with server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)


def _heartbeat() -> Heartbeat:
    return Heartbeat("w1", "machine", 4711, [], 0, time.time())


def _run_of(node: str, runs: str) -> str:
    (run,) = [each for each in runs.split(" ") if each.startswith(node)]
    return run


def _keys_of(server: LocalServer, crawl: ValkeyCrawl) -> list[bytes]:
    """Return the keys of a crawl that are kept in this server of a cluster."""
    with server.client() as client:
        return client.keys(f"*{crawl.server.address.name}*")


def _key_of(server: LocalServer) -> str:
    """Return a key that this server of a cluster would keep."""
    with server.client() as client:
        for key in map("key-{}".format, range(100)):
            with suppress(redis.ResponseError):  # it would be kept elsewhere
                client.get(key)
                return key
    raise AssertionError("a hundred keys are kept elsewhere")


def _again(act):
    """Do something until the server is there and grants leases."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return act()
        except (StoreAway, StoreInUse):
            assert time.monotonic() < deadline
            time.sleep(0.05)
