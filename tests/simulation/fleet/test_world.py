"""Fleets in virtual time keep every promise, and planted errors are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from virtual.fleet.members import DAY_S
from virtual.fleet.plan import Fault
from virtual.fleet.planted import CHAIN, PLANTED, SMALL, WIPED, Planted
from virtual.fleet.world import World, simulate_fleet

from mannerly.crawler.store.fleet_times import LEASE_S

if TYPE_CHECKING:
    from pathlib import Path

    from virtual.fleet.plan import Plan

CALM = replace(SMALL, faults=0)


def test_a_fleet_without_faults_fetches_every_page_once() -> None:
    """Nothing is lost, recorded twice or fetched twice."""
    outcome = simulate_fleet(CALM, seed=1)

    assert outcome.is_sound, outcome
    assert outcome.excused == 0
    assert outcome.records == CALM.hosts * CALM.pages


@pytest.mark.parametrize("plan", [SMALL, CHAIN], ids=["small", "chain"])
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_fleet_keeps_its_promises_whatever_happens(plan: Plan, seed: int) -> None:
    """Members die, stop, are cut off and join; the server restarts, forgets and goes away."""
    outcome = simulate_fleet(plan, seed=seed)

    assert outcome.is_sound, outcome


@pytest.mark.parametrize("faults", [0, 8])
def test_a_crawl_that_is_wiped_is_not_made_again(faults: int) -> None:
    """Its members end, whatever they were about to write."""
    outcome = simulate_fleet(replace(WIPED, faults=faults), seed=1)

    assert outcome.is_sound, outcome


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_fleet_whose_members_look_only_if_they_find_something_keeps_its_promises(
    seed: int,
) -> None:
    """Whatever happens, for hours of virtual time, with a small part of the calls."""
    plan = replace(SMALL, is_calm=True, crawl_delays_s=(0.0, 5.0, 900.0), duration_s=DAY_S)

    outcome = simulate_fleet(plan, seed=seed)

    assert outcome.is_sound, outcome
    assert outcome.calls < outcome.virtual_s * plan.members


@pytest.mark.parametrize("is_restarted", [False, True])
def test_members_keep_their_shards_through_an_outage(is_restarted: bool, tmp_path: Path) -> None:
    """All leases have ended, and the members that are back first leave them to their owners."""
    world = World(replace(CALM, members=8, shards=24), seed=1, folder=tmp_path)

    def go_away() -> None:
        world.server.is_up = False

    def come_back() -> None:
        if is_restarted:
            world.server.restart(loses_last_second=False)
        world.server.is_up = True

    world.at(30.0, go_away)
    world.at(30.0 + 2 * LEASE_S, come_back)
    outcome = world.run()

    assert outcome.is_sound, outcome
    assert [member.store.fleet.takeovers for member in world.members] == [0] * 8


def test_a_refusal_that_waits_in_a_socket_while_its_shard_is_lost_is_heeded() -> None:
    """Its member waits for a slow server meanwhile, and claims the shard again later."""
    slow = next(each for each in PLANTED if Fault.SLOW in each.kinds)
    kinds = (Fault.SLOW,)
    plan = replace(
        slow.plan, hosts=48, faults=8, delay_s=2.0, crawl_delays_s=(0.0, 5.0), kinds=kinds
    )

    outcome = simulate_fleet(plan, seed=3)

    assert outcome.is_sound, outcome


@pytest.mark.parametrize("is_calm", [False, True])
def test_a_seed_repeats_a_run(is_calm: bool) -> None:
    """The same requests at the same instants."""
    plan = replace(SMALL, is_calm=is_calm)
    first, second = (simulate_fleet(plan, seed=3) for _ in range(2))

    assert first == second


@pytest.mark.long
def test_a_crawl_ends_although_more_links_were_handed_over_than_the_server_counted() -> None:
    """The number of links on their way is never below zero: a shard would not rest."""
    outcome = simulate_fleet(SMALL, seed=79)

    assert outcome.is_sound


@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_clock_of_the_server_may_be_set_and_drift(seed: int) -> None:
    """By a minute or an hour, ahead and back, and by 5 %: no wait is cut, takeovers come."""
    kinds = (Fault.CLOCK, Fault.DRIFT, Fault.KILL, Fault.JOIN, Fault.FAILOVER)

    outcome = simulate_fleet(replace(SMALL, kinds=kinds), seed=seed)

    assert outcome.is_sound, outcome


def test_the_judge_notices_a_takeover_that_does_not_come() -> None:
    """The shards of a dead member have no other owner after a minute."""
    planted = next(each for each in PLANTED if each.name.startswith("no takeover"))

    outcome = planted.run(planted.seed)

    assert outcome.broken["takeover"]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_error_is_found(planted: Planted) -> None:
    """Within twenty seeds."""
    assert planted.found_by(20) is not None


def test_an_error_that_cannot_be_planted_is_refused() -> None:
    """A script that was rewritten must not make a planted error pass for found or missed."""
    with pytest.raises(ValueError, match="no script contains"):
        simulate_fleet(CALM, seed=1, edits=[("this text is in no script", "")])
