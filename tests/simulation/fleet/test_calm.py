"""Fleets whose members look only if they find something: as sound, and repeated by their seed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from virtual.fleet.calm import GRID_S, on_grid
from virtual.fleet.keyspace import Keyspace
from virtual.fleet.plan import Plan
from virtual.fleet.world import simulate_fleet

WAVES = Plan(
    members=6,
    hosts=30,
    pages=6,
    shards=12,
    faults=12,
    busy_s=3000.0,
    duration_s=86_400.0,
    crawl_delays_s=(200.0, 400.0, 600.0),
    others=0,
    host_fan_out=30,
    is_calm=True,
)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_fleet_whose_requests_come_in_waves_keeps_its_promises(seed: int) -> None:
    """Half of the faults come while requests are under way."""
    outcome = simulate_fleet(WAVES, seed=seed)

    assert outcome.is_sound, outcome
    assert outcome.records == WAVES.hosts * WAVES.pages
    assert outcome.virtual_s > 600.0 * WAVES.pages


def test_faults_during_a_wave_cost_pages_that_are_fetched_again() -> None:
    """Else they would not have met any."""
    outcomes = [simulate_fleet(WAVES, seed=seed) for seed in range(1, 5)]

    assert sum(outcome.excused + outcome.refused_writes for outcome in outcomes) > 0


@pytest.mark.processes
def test_a_seed_repeats_a_run_in_another_process() -> None:
    """Hashes of texts differ between processes, and tokens of claims are random."""
    program = (
        "from tests.simulation.fleet.test_calm import WAVES\n"
        "from virtual.fleet.world import simulate_fleet\n"
        "print(simulate_fleet(WAVES, seed=3).fingerprint)"
    )

    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert int(found) == simulate_fleet(WAVES, seed=3).fingerprint


def test_a_fleet_without_faults_asks_the_server_seldom() -> None:
    """Idle time is nearly free: no look, no renewal."""
    outcome = simulate_fleet(replace(WAVES, faults=0), seed=1)

    assert outcome.is_sound, outcome
    assert outcome.calls < 10 * outcome.requests + 100 * WAVES.members


@pytest.mark.parametrize(("at", "expected"), [(0.0, 0.0), (0.01, GRID_S), (GRID_S, GRID_S)])
def test_a_turn_is_never_too_early(at: float, expected: float) -> None:
    """It is at the next instant of the grid."""
    assert on_grid(at) == expected


def test_a_renewal_is_not_taken_back_and_shortens_no_lease() -> None:
    """It is written late, and was on disk before."""
    model = Keyspace()
    for name, clock in (("early", 100), ("late", 9000)):
        model.run("HSET", name, "token", "t", "beat", "boot:7", "clock", clock)
    model.run("HSET", "cards", "w1", "50 boot:7 {}")
    model.keep()

    shards = [value for name in ("early", "late") for value in (name, "boot:900", 1500)]
    model.prolong(
        {"now": 1000, "members": ["w1", "boot:900"], "shards": shards, "heartbeats": "cards"}
    )
    model.rewind()

    assert model.run("HMGET", "early", "beat", "clock") == [b"boot:900", b"1500"]
    assert model.run("HMGET", "late", "beat", "clock") == [b"boot:7", b"9000"]
    assert model.run("HGET", "cards", "w1") == b"1000 boot:900 {}"
