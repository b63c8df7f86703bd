"""Which shards a member may claim, by what it sees of the store and of the other members."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from mannerly.crawler.runtime.balance import FreeShards
from mannerly.crawler.store.fleet import Unclaimed
from mannerly.crawler.store.fleet_times import LEFT_S, OVERDUE_S, RENEW_S, WAITING_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.store.fleet import Fleet

SHARDS = 8


class Seen:
    """A store whose shards are as a test says, and what was asked of it."""

    def __init__(self, found: Unclaimed) -> None:
        self.found = found
        self.asked: list[Sequence[int] | None] = []

    def unclaimed(self, among: Sequence[int] | None = None) -> Unclaimed:
        self.asked.append(among)
        return self.found


class World:
    """A member that owns shard 0, in a store with shards that have no owner."""

    def __init__(
        self,
        *,
        released: Sequence[int] = (),
        lapsed: Sequence[int] = (),
        withheld: Sequence[int] = (),
    ) -> None:
        self.store = Seen(Unclaimed(list(released), list(lapsed), list(withheld)))
        self.free = FreeShards(cast("Fleet", self.store), SHARDS)

    def look(self, now: float, *, shown: set[int], is_settled: bool = False) -> list[int]:
        return self.free.poll(now, owned=[0], shown=shown, is_settled=is_settled)


def test_a_released_shard_is_free_at_once() -> None:
    """The heartbeat of its last owner still shows it."""
    world = World(released=[3, 2])

    assert world.look(0.0, shown={2}) == [2, 3]


def test_an_ended_lease_is_left_to_an_owner_that_is_heard() -> None:
    """For a while: an owner that is heard may still be unable to renew it."""
    world = World(lapsed=[2])

    looks = [world.look(at, shown={2}) for at in (0.0, LEFT_S - 1.0, LEFT_S)]

    assert looks == [[], [], [2]]


def test_an_ended_lease_is_not_forgotten_by_looks_that_ask_for_others() -> None:
    """A member that is settled asks for all shards now and then only."""
    world = World(lapsed=[2])
    world.look(0.0, shown={2}, is_settled=True)
    world.store.found = Unclaimed([], [], [])
    world.look(1.0, shown={2}, is_settled=True)
    world.store.found = Unclaimed([], [2], [])

    looks = [world.look(at, shown={2}, is_settled=True) for at in (LEFT_S - 1.0, LEFT_S)]

    assert looks == [[], [2]]


def test_an_ended_lease_of_a_silent_owner_is_free_at_once() -> None:
    """No heartbeat shows it."""
    world = World(lapsed=[2])

    assert world.look(0.0, shown={1, 3}) == [2]


def test_a_lease_that_was_renewed_meanwhile_is_left_anew() -> None:
    """The time counts from when it ended last."""
    world = World(lapsed=[2])
    world.look(0.0, shown={2})
    world.store.found = Unclaimed([], [], [])
    world.look(1.0, shown={2})
    world.store.found = Unclaimed([], [2], [])

    looks = [world.look(at, shown={2}) for at in (2.0, LEFT_S, LEFT_S + 2.0)]

    assert looks == [[], [], [2]]


def test_own_and_withheld_shards_are_not_free() -> None:
    """A claim of them would fail."""
    world = World(lapsed=[0], withheld=[4])

    assert world.look(0.0, shown=set()) == []


def test_a_settled_member_asks_for_all_shards_now_and_then() -> None:
    """Else only for those in no heartbeat: an owner that is heard may have lost the others."""
    world = World()

    for at in (0.0, 1.0, RENEW_S):
        world.look(at, shown={1, 2, 3, 4, 5}, is_settled=True)

    assert world.store.asked == [None, [6, 7], None]


def test_a_shard_is_overdue_when_it_has_been_free_for_long() -> None:
    """Time in which it was left to its owner does not count."""
    world = World(lapsed=[2], released=[3])
    overdue, waiting = [], []
    for at in (0.0, WAITING_S, OVERDUE_S, LEFT_S, LEFT_S + OVERDUE_S):
        world.look(at, shown={2})
        overdue.append(world.free.overdue(at))
        waiting.append(world.free.waiting(at))

    assert overdue == [set(), set(), {3}, {3}, {2, 3}]
    assert waiting == [set(), {3}, {3}, {3}, {2, 3}]


@pytest.mark.parametrize("shown", [set[int](), {2}])
def test_the_state_of_a_shard_with_an_owner_is_forgotten(shown: set[int]) -> None:
    """It begins anew when it has none again."""
    world = World(released=[2])
    world.look(0.0, shown=shown)
    world.store.found = Unclaimed([], [], [])
    world.look(OVERDUE_S, shown=shown)
    world.store.found = Unclaimed([2], [], [])

    world.look(OVERDUE_S + 1.0, shown=shown)

    assert world.free.overdue(OVERDUE_S + 1.0) == set()
