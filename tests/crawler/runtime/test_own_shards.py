"""The shards of one engine come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from mannerly.crawler.runtime.own_shards import OwnShards
from mannerly.crawler.shard.shard import Shard


def test_a_shard_that_leaves_has_no_room_for_requests() -> None:
    """Else the loop would not wait while one of its hosts is due, until it has left."""
    both = [SimpleNamespace(number=number, holds_answers=False) for number in (3, 5)]
    shards = OwnShards([cast(Shard, each) for each in both])

    shards.release(3)

    assert shards.has_room == {3: False, 5: True}
    assert shards.leaving == {3}
