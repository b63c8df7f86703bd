"""Claims of a fleet in virtual time: one that fails half-way does not keep a shard from others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from virtual.fleet.planted import SMALL
from virtual.fleet.world import simulate_fleet

from mannerly.crawler.runtime.opening import ShardOpener
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.shard import ValkeyShard


@pytest.mark.parametrize(("owner", "name"), [(ValkeyShard, "load"), (ShardOpener, "make")])
def test_a_shard_whose_claim_fails_half_way_is_claimed_again(owner: type, name: str) -> None:
    """The server granted it and was away a moment later: its member must not renew it for ever."""
    real = getattr(owner, name)
    calls = 0

    def failing_once(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreAway("away for a moment")
        return real(*arguments, **options)

    with patch.object(owner, name, failing_once):
        outcome = simulate_fleet(replace(SMALL, faults=0), seed=1)

    assert outcome.is_sound
