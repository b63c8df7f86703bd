"""The frontier's memory is bounded by its limits, whatever is queued."""

from __future__ import annotations

from tests.crawler.frontier.frontier_world import World

HOSTS = [f"host-{number}" for number in range(40)]


def test_what_arrives_beyond_the_memory_limit_stays_on_disk() -> None:
    """Forty hosts with six URLs each, and room for twenty: no more are in memory."""
    world = World(memory_limit=20, per_host_window=6)

    for host in HOSTS:
        world.offer(host, 5, 5, 5, 5, 5, 5)
    snapshot = world.frontier.snapshot(0.0)

    assert snapshot.queued == 240
    assert snapshot.in_memory <= 20 + 6


def test_windows_are_refilled_within_the_memory_limit() -> None:
    """What is read at once for hosts whose turn has come is the room that is left, and one each."""
    world = World(memory_limit=20, per_host_window=6)
    for host in HOSTS:
        world.store.offer(host, 5, 5, 5, 5, 5, 5)
    world.frontier.load([(host, 6) for host in HOSTS], now=0.0)

    refills = world.frontier.take(0.0).refills

    assert {refill.host for refill in refills} == set(HOSTS)
    assert sum(refill.limit for refill in refills) <= 20 + len(HOSTS)
