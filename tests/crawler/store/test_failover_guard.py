"""A server with replicas that writes without them is named at the start, with what to type."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.sentinel_world import AT_ONCE
from tests.crawler.store.valkey_server import LocalServer, new_location
from tests.harness.waiting import eventually

from mannerly.crawler.store import examine_server, failover_risk

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def primary() -> Iterator[LocalServer]:
    """Start a server with a replica."""
    with (
        LocalServer(*AT_ONCE) as primary,
        LocalServer("--replicaof", f"127.0.0.1 {primary.port}") as replica,
        replica.client() as client,
    ):
        eventually(lambda: client.info("replication")["master_link_status"] == "up")
        yield primary


def test_a_primary_that_may_go_on_beside_its_successor_is_named(primary: LocalServer) -> None:
    """With its setting, and the command that changes it: typed, it is enough."""
    location = new_location(primary.url)
    risk = failover_risk(location)
    assert risk is not None
    assert "min-replicas-to-write 0" in risk

    _, _, command = risk.partition("redis-cli ")
    words = shlex.split(command)
    with primary.client() as client:
        assert words[:4] == ["-h", "127.0.0.1", "-p", str(primary.port)]
        client.execute_command(*words[4:])

    assert failover_risk(location) is None


def test_a_server_without_replicas_needs_no_guard() -> None:
    """It has no successor."""
    with LocalServer() as server:
        assert failover_risk(new_location(server.url)) is None


def test_the_doctor_says_the_same(primary: LocalServer) -> None:
    """Before a crawl begins."""
    before = {fact.name: fact.lack for fact in examine_server(primary.url)}
    with primary.client() as client:
        client.config_set("min-replicas-to-write", 1)
    after = {fact.name: fact.lack for fact in examine_server(primary.url)}

    assert "min-replicas-to-write 1" in before["role"]
    assert after["role"] == ""
