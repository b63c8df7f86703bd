"""A cluster of three primaries keeps the promises of the contract: a shard is in one slot."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.test_store_valkey import LEASE_S, KeptCrawl
from tests.crawler.store.valkey_server import LocalServer, free_port, new_location

from mannerly.crawler.store import SCHEMES
from mannerly.crawler.store.contract import FleetContract, LinkContract
from mannerly.crawler.store.valkey.leases import ValkeyFleet

if TYPE_CHECKING:
    from pathlib import Path

SLOTS = 16_384


@pytest.fixture(scope="module")
def cluster():
    """Start three primaries, each with a third of the slots."""
    with ExitStack() as stack:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        buses = [free_port() for _ in range(3)]
        servers = [
            stack.enter_context(LocalServer(*options, "--cluster-port", str(bus))) for bus in buses
        ]
        clients = [stack.enter_context(server.client()) for server in servers]
        bounds = [SLOTS * n // 3 for n in range(4)]
        for number, client in enumerate(clients):
            first, last = bounds[number], bounds[number + 1] - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, buses[0])
        deadline = time.monotonic() + 20
        while not all(
            b"cluster_state:ok" in _raw(client) and b"cluster_known_nodes:3" in _raw(client)
            for client in clients
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
