"""Rendezvous hashing: even, stable, and disturbed as little as possible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.frontier.sharding import Sharding

SITES = [f"site-{number}.com" for number in range(12_000)]


def test_hosts_of_one_site_meet_in_one_shard() -> None:
    """Subdomains and ports make no difference; another registrable domain does."""
    sharding = Sharding(64)

    together = {sharding.shard_of(f"{name}e.co.uk") for name in ("", "www.", "a.b.")}
    together.add(sharding.shard_of("www.e.co.uk:8080"))
    apart = {sharding.shard_of(f"e{number}.co.uk") for number in range(20)}

    assert len(together) == 1
    assert len(apart) > 5


def test_shards_are_even() -> None:
    """Each of eight shards gets an eighth of twelve thousand sites, within ten per cent."""
    counts = Counter(map(Sharding(8).shard_of, SITES))

    assert sorted(counts) == list(range(8))
    assert all(abs(count - 1500) < 150 for count in counts.values())


@pytest.mark.parametrize("shards", [1, 2, 7, 15])
def test_new_shard_takes_its_share_and_nothing_else_moves(shards: int) -> None:
    """Of n + 1 shards the new one gets 1/(n + 1); no site moves between the old ones."""
    before, after = Sharding(shards), Sharding(shards + 1)

    moved = [site for site in SITES if before.shard_of(site) != after.shard_of(site)]

    share = len(moved) / len(SITES)
    assert {after.shard_of(site) for site in moved} == {shards}
    assert abs(share - 1 / (shards + 1)) < 0.02


def test_assignment_never_changes() -> None:
    """These shards are what earlier crawls wrote into their stores."""
    sharding = Sharding(16)

    shards = [sharding.shard_of(host) for host in ("example.com", "example.org", "127.0.0.1")]

    assert shards == [3, 14, 14]


@given(st.text(max_size=30), st.integers(1, 20))
def test_every_host_has_a_shard(host: str, shards: int) -> None:
    """Whatever is asked for, the answer is one of the shards."""
    assert 0 <= Sharding(shards).shard_of(host) < shards


@given(st.integers(1, 1000), st.integers(1, 64))
def test_shares_of_a_limit_add_up_to_it(limit: int, shards: int) -> None:
    """All shards together keep a limit; only where it is smaller than their number each gets 1."""
    sharding = Sharding(shards)

    shares = [sharding.share(limit, shard) for shard in range(shards)]

    assert min(shares) >= 1
    assert sum(shares) == max(limit, shards)


def test_no_shards_are_refused() -> None:
    """A crawl without a shard would lose everything."""
    with pytest.raises(ValueError, match="not 0"):
        Sharding(0)
