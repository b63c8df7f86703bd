"""How members divide the shards among them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.runtime.balance import PORTION, Moves, moves, quota

names = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=9, unique=True)


@given(names, st.integers(1, 300))
def test_quotas_add_up_to_all_shards(members: list[str], shards: int) -> None:
    """And differ by one at most."""
    quotas = [quota(member, members, shards) for member in members]

    assert sum(quotas) == shards
    assert max(quotas) - min(quotas) <= 1


@given(names, st.integers(1, 60), st.randoms(use_true_random=False))
def test_members_come_to_rest_with_their_parts(members: list[str], shards: int, random) -> None:  # type: ignore[no-untyped-def]
    """From any division of the shards a few rounds of moves are enough; then none moves."""
    owner = {shard: random.choice([*members, None]) for shard in range(shards)}
    for _ in range(20):
        for member in members:
            owned = [shard for shard, who in owner.items() if who == member]
            free = [shard for shard, who in owner.items() if who is None]
            claim, release, _ = moves(member, members, owned=owned, unclaimed=free, shards=shards)
            owner |= dict.fromkeys(claim, member) | dict.fromkeys(release)

    for member in members:
        owned = [shard for shard, who in owner.items() if who == member]
        assert len(owned) == quota(member, members, shards)
        assert moves(member, members, owned=owned, unclaimed=[], shards=shards) == Moves([], [])


def test_shards_are_released_in_portions() -> None:
    """The next ones follow when these have another owner: hosts wait for a moment only."""
    owned = range(64)
    first = moves("a", ["b", "c", "d"], owned=owned, unclaimed=[], shards=64).release
    left = [shard for shard in owned if shard not in first]
    drained, rest = first[:5], first[5:]

    meanwhile = moves("a", ["b", "c", "d"], owned=left, unclaimed=drained, shards=64, leaving=rest)
    later = moves("a", ["b", "c", "d"], owned=left, unclaimed=drained[:1], shards=64)

    assert len(first) == PORTION
    assert meanwhile.release == []
    assert len(later.release) == PORTION - 1


def test_many_shards_are_released_in_larger_portions() -> None:
    """A new member has its share within seconds, however many shards there are."""
    owned, rounds = list(range(4096)), 0
    while released := moves("a", ["b"], owned=owned, unclaimed=[], shards=4096).release:
        owned = [shard for shard in owned if shard not in released]
        rounds += 1

    assert len(owned) == 2048
    assert rounds < 40


def test_members_that_claim_at_once_try_different_shards_first() -> None:
    """Of the shards that are free each claims the share of one of the others."""
    free = range(9)
    claimed = [moves(name, "abcd", owned=[], unclaimed=free, shards=64).claim for name in "bcd"]

    assert [len(each) for each in claimed] == [3, 3, 3]
    assert len({shard for each in claimed for shard in each}) > 3


def test_a_shard_whose_claims_fail_is_passed_over_for_another() -> None:
    """After a restart of the server each shard waits for a lease from its first claim on."""
    first = moves("a", ["b"], owned=[], unclaimed=range(8), shards=8).claim
    second = moves("a", ["b"], owned=[], unclaimed=range(8), shards=8, refused=first).claim

    assert sorted(first + second) == list(range(8))


def test_a_shard_that_waits_for_an_owner_comes_first() -> None:
    """Others are released all the time, and one that comes last in the order of all would wait."""
    usual = [moves(name, "abc", owned=[], unclaimed=range(8), shards=24).claim for name in "abc"]
    last = next(shard for shard in range(8) if not any(shard in each[:1] for each in usual))

    waiting = [
        moves(name, "abc", owned=[], unclaimed=range(8), shards=24, waiting=[last]).claim[0]
        for name in "abc"
    ]

    assert waiting == [last] * 3


def test_nothing_is_released_while_shards_are_overdue() -> None:
    """Members that should have claimed them do not: more of them would wait, too."""
    planned = moves("a", ["b"], owned=range(6), unclaimed=[6, 7], shards=8, overdue=[6, 7])

    assert planned == Moves([], [], (planned.beyond[0],))


def test_a_member_that_sees_no_heartbeat_counts_itself() -> None:
    """Its own heartbeat may not be there yet."""
    assert len(moves("a", [], owned=[], unclaimed=range(8), shards=8).claim) == 8
    assert len(moves("a", ["b"], owned=[], unclaimed=range(8), shards=8).claim) == 4


def test_a_shard_that_is_overdue_is_claimed_beyond_the_quota() -> None:
    """The member that should have it may be dead: each of the others takes a part of them."""
    planned = moves("a", ["b"], owned=[0, 1, 2, 3], unclaimed=[4, 5, 6], shards=8, overdue=[5, 6])

    assert len(planned.beyond) == 1
    assert planned.beyond[0] in (5, 6)
    assert (planned.claim, planned.release) == ([], [])


def test_an_overdue_shard_within_the_quota_is_an_ordinary_one() -> None:
    """It is released as soon as another member joins."""
    planned = moves("a", [], owned=[], unclaimed=[0, 1, 2], shards=3, overdue=[0, 1, 2])

    assert sorted(planned.claim) == [0, 1, 2]
    assert planned.beyond == ()


def test_a_shard_that_was_overdue_is_kept() -> None:
    """It would go to and fro otherwise while a dead member is counted."""
    owned = [0, 1, 2, 3, 4]

    assert moves("a", ["b"], owned=owned, unclaimed=[], shards=8, kept=[4]) == Moves([], [])
    assert len(moves("a", ["b"], owned=owned, unclaimed=[], shards=8).release) == 1
