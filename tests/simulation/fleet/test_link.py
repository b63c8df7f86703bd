"""Links of a fleet in virtual time: slow calls, broken exchanges, failovers and replicas."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from virtual.fetcher import VirtualClock
from virtual.fleet.aside import Aside
from virtual.fleet.link import ModelLink
from virtual.fleet.members import LOCATION
from virtual.fleet.server import ModelServer

from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.fleet_times import REPLICA_LAG_S
from mannerly.database.address import parse
from mannerly.database.ages import Ages
from mannerly.database.client import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable


class Bench:
    """One server, one link and what is to happen."""

    def __init__(self, seed: str = "") -> None:
        self.clock = VirtualClock()
        self.server = ModelServer(self.clock)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.link = ModelLink(
            self.server,
            parse(LOCATION),
            mono=lambda: self.clock.now,
            wall=lambda: self.clock.now,
            ages=Ages("boot"),
            at=lambda at, act: heappush(self._events, (at, next(self._order), act)),
            seed=seed,
        )

    def value(self, key: str = "key") -> bytes | None:
        (found,) = self.server.answers([("GET", key)])
        return found

    def call(self, act: Callable[[], Any]) -> float:
        """Have the link do something that may take time; return how long it took."""
        self.link.aside = aside = Aside(act)
        began, until = self.clock.now, aside.go()
        while until is not None:
            self.happen(until)
            until = aside.go()
        return self.clock.now - began

    def happen(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.clock.now, _, act = heappop(self._events)
            act()
        self.clock.now = until


def test_a_slow_call_takes_time_and_has_its_effect_in_it() -> None:
    """At its beginning, at its end or between."""
    for seed in range(20):
        bench = Bench(str(seed))
        bench.link.be_slow(TIMEOUT_S, until=1.0)

        took_s = bench.call(lambda link=bench.link: link.change("SET", "key", "1"))

        assert bench.value() == b"1"
        assert 0.0 < took_s <= TIMEOUT_S


def test_a_call_that_takes_longer_than_the_timeout_fails_and_has_its_effect_all_the_same() -> None:
    """Perhaps later than that: its member does not know."""
    known = set()
    for seed in range(20):
        bench = Bench(str(seed))
        bench.link.be_slow(1000.0, until=1.0)
        errors: list[StoreAway] = []

        def act(bench: Bench = bench, errors: list[StoreAway] = errors) -> None:
            try:
                bench.link.change("SET", "key", "1")
            except StoreAway as error:
                errors.append(error)

        bench.call(act)
        if errors:
            assert bench.clock.now == TIMEOUT_S
            known.add(bench.value())
        bench.happen(1000.0)
        assert bench.value() == b"1"

    assert known == {None, b"1"}


def test_an_exchange_that_breaks_has_its_effect_up_to_any_of_its_commands() -> None:
    """To none, some or all of them; its answers are lost."""
    effects = set()
    for seed in range(30):
        bench = Bench(str(seed))
        bench.link.be_breaking(1.0, until=1.0)
        with pytest.raises(StoreAway):
            bench.link.ask_all([("SET", "first", "1"), ("SET", "second", "1")])
        effects.add((bench.value("first"), bench.value("second")))

    assert effects == {(None, None), (b"1", None), (b"1", b"1")}


def test_a_replica_reads_and_does_not_write() -> None:
    """A write means that the store is away; afterwards the link finds the server."""
    bench = Bench()
    bench.link.change("SET", "key", "1")
    bench.link.reach_replica(until=5.0)

    assert bench.link.ask("GET", "key") == b"1"
    with pytest.raises(StoreAway, match="replica"):
        bench.link.change("SET", "key", "2")
    replica = bench.link.run
    bench.clock.now = 5.0
    bench.link.change("SET", "key", "2")
    assert (bench.value(), bench.link.run != replica) == (b"2", True)


def test_a_failover_takes_back_the_last_seconds() -> None:
    """What is older is there, and the server is another run."""
    bench = Bench()
    for second in range(1, 9):
        bench.clock.now = float(second)
        bench.link.change("SET", "key", second)
    before = bench.server.run_id

    bench.server.fail_over(3.5)

    assert bench.value() == b"4"
    assert bench.server.run_id != before


def test_a_failover_takes_back_what_was_made_removed_and_shortened() -> None:
    """Lists and hashes, over several saves."""
    bench = Bench()
    bench.link.ask_all([("RPUSH", "list", "a", "b", "c"), ("HSET", "hash", "a", "1")])
    for second in range(1, int(REPLICA_LAG_S)):
        bench.clock.now = float(second)
        bench.link.ask_all([("LPOP", "list"), ("HSET", "hash", "a", second), ("SADD", "new", "a")])
        bench.link.ask_all([("RPUSH", "list", second), ("HSET", "hash", second, "1")])

    bench.server.fail_over(bench.clock.now - 0.5)

    assert bench.link.ask("LRANGE", "list", 0, -1) == [b"a", b"b", b"c"]
    assert bench.link.ask("HGETALL", "hash") == [b"a", b"1"]
    assert bench.link.ask("EXISTS", "new") == 0
