"""Scheduling, told as what was sent when: `G1:a/3` is URL 3 of host a at second 1."""

from __future__ import annotations

import pytest
from tests.crawler.frontier.frontier_world import (
    FakePoliteness,
    World,
    is_own_robots,
    rules_unknown,
)

from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.model import GO, Drop, Entry, Later, RobotsRequest
from mannerly.politeness import (
    Grant,
    Politeness,
    Reason,
    Refuse,
    Response,
    Settings,
    Wait,
)


def test_hosts_are_served_side_by_side_and_each_at_its_own_pace() -> None:
    """Every host gets a start a second, whatever the others do."""
    world = World()
    world.offer("a", 5, 5, 5)
    world.offer("b", 5, 5)

    assert world.run() == "G0:a/1 G0:b/4 G1:a/2 G1:b/5 G2:a/3"


def test_slow_host_does_not_delay_fast_ones() -> None:
    """Document 003: a host that asks for five seconds is visited less, the other is not."""
    politeness = FakePoliteness()
    politeness.group("slow").gap_s = 5.0
    world = World(politeness)
    world.offer("slow", 5, 5)
    world.offer("fast", *[5] * 6)

    log = world.run()

    assert log == "G0:slow/1 G0:fast/3 G1:fast/4 G2:fast/5 G3:fast/6 G4:fast/7 G5:slow/2 G5:fast/8"


def test_hundred_hosts_make_a_hundred_requests_a_second() -> None:
    """Document 000: a hundred hosts in parallel, and none above one request a second."""
    world = World()
    for host in range(100):
        world.offer(f"h{host}", *[5] * 10)

    world.run(until=8.5)

    assert len(world.log) == 900
    assert len(set(world.log)) == 900


def test_long_queue_does_not_starve_others() -> None:
    """With one slot for all, hosts take turns, however much one of them has."""
    world = World(FakePoliteness(gap_s=0.0), max_in_flight=1, per_host_window=2)
    world.offer("big", *[5] * 6)
    world.offer("a", 5, 5)
    world.offer("b", 5)

    log = world.run(latency_s=1.0)

    assert log == ("G0:big/1 G1:a/7 G2:b/9 G3:big/2 G4:a/8 G5:big/3 G6:big/4 G7:big/5 G8:big/6")


def test_host_whose_connection_is_idle_goes_first() -> None:
    """Its pages go over it one after another, before other hosts need connections of their own."""
    world = World(FakePoliteness(gap_s=0.0, limit=8), max_in_flight=1)
    world.know("a", "b", "c")
    for name in "abc":
        world.offer(name, 5, 5)

    log = world.run(latency_s=1.0)

    assert log == "G0:a/1 G1:a/2 G2:b/3 G3:b/4 G4:c/5 G5:c/6"


def test_host_with_a_gap_keeps_its_place_in_line() -> None:
    """Its connection is idle because it has to wait: then hosts take turns."""
    world = World(FakePoliteness(gap_s=0.5), max_in_flight=1)
    world.know("a", "b")
    world.offer("a", 5, 5)
    world.offer("b", 5)

    assert world.run(latency_s=1.0) == "G0:a/1 G1:b/3 G2:a/2"


def test_host_with_a_request_under_way_goes_behind() -> None:
    """While other hosts wait, nobody opens a second connection."""
    world = World(FakePoliteness(gap_s=0.0, limit=8), max_in_flight=2)
    world.know("a", "b", "c")
    for name in "abc":
        world.offer(name, 5, 5)

    log = world.run(latency_s=1.0)

    assert log == "G0:a/1 G0:b/3 G1:a/2 G1:b/4 G2:c/5 G2:c/6"


def test_busy_loop_asks_a_host_for_one_request_at_a_time() -> None:
    """Without time for more, its requests take turns on the connection that it has."""
    world = World(FakePoliteness(gap_s=0.0, limit=8))
    world.widening = 0
    world.offer("a", 5, 5, 5)
    world.offer("b", 5, 5)

    assert world.run(latency_s=1.0) == "G0:a/1 G0:b/4 G1:a/2 G1:b/5 G2:a/3"


def test_loop_with_time_opens_connections_one_by_one() -> None:
    """Those that were opened are used from then on, also while the loop is busy again."""
    world = World(FakePoliteness(gap_s=0.0, limit=8))
    world.widening = 1
    world.offer("a", *[5] * 6)
    first = [start.item.seq for start in world.take()]
    world.widening = 0
    for start in list(world.under_way):
        world.finish(start)

    second = [start.item.seq for start in world.take()]

    assert (first, second) == ([1, 2], [3, 4])


def test_host_with_a_gap_is_asked_whenever_its_pace_allows() -> None:
    """Its pace decides: a slow answer must not make it slower, however busy the loop is."""
    world = World(FakePoliteness(gap_s=0.5, limit=8))
    world.widening = 0
    world.offer("a", 5, 5, 5)

    assert world.run(latency_s=4.0) == "G0:a/1 G0.5:a/2 G1:a/3"


def test_dropped_host_leaves_no_connection_behind() -> None:
    """A host that waits for a connection can be dropped, and begins anew."""
    world = World(FakePoliteness(gap_s=0.0, limit=8))
    world.widening = 0
    world.offer("a", 5, 5)
    (start,) = world.take()
    world.frontier.drop_hosts({"a"}, now=world.now)
    world.frontier.check()
    world.store.entries.clear()
    world.finish(start)

    world.offer("a", 5)

    assert [start.item.seq for start in world.take()] == [3]


def test_idle_connection_is_not_a_reason_to_starve_others() -> None:
    """After sixteen requests a host waits in line once, whatever it has."""
    world = World(FakePoliteness(gap_s=0.0), max_in_flight=1)
    world.know("big", "a")
    world.offer("big", *[5] * 40)
    world.offer("a", 5)

    log = world.run(latency_s=1.0).split()

    assert log.index("G16:a/41") == 16


def test_idle_connection_goes_before_the_line_of_robots() -> None:
    """Hosts that wait for their robots.txt have no connection yet."""
    world = World(
        FakePoliteness(gap_s=0.0),
        judge=lambda e, _: GO if e.host == "a" else rules_unknown(e),
        max_in_flight=1,
        max_robots=0,
    )
    world.know("a")
    world.offer("b", 5)
    world.offer("a", 5, 5)
    world.take()
    world.max_robots = 1

    world.now = 1.0
    world.finish(world.under_way[0])
    world.take()

    assert world.log == ["G0:a/2", "G1:a/3"]


def test_hosts_of_one_budget_stand_in_one_line() -> None:
    """Hosts that share a limit of one request take turns, too."""
    world = World(FakePoliteness(gap_s=0.0, is_grouped=True))
    world.offer("a.x", 5, 5, 5)
    world.offer("b.x", 5, 5)
    world.offer("c.x", 5)

    log = world.run(latency_s=1.0)

    assert log == "G0:a.x/1 G1:b.x/4 G2:c.x/6 G3:a.x/2 G4:b.x/5 G5:a.x/3"


def one_served_two_in_line(judge=None) -> World:
    """Three hosts that share one request at a time: a.x has it, b.x and c.x wait for it."""
    world = World(FakePoliteness(gap_s=0.0, is_grouped=True), judge)
    for host in ("a.x", "b.x", "c.x"):
        world.offer(host, 5)
    world.take()
    assert [start.item.host for start in world.under_way] == ["a.x"]
    assert world.frontier.snapshot(0.0).busy == 2
    return world


@pytest.mark.parametrize("ruling", [Later(None), Later(9.0), Drop("forbidden"), None])
def test_host_that_is_called_from_a_line_and_cannot_go_passes_the_call_on(ruling) -> None:
    """Its URLs must wait, are forbidden, or have no rules yet: the next in line goes instead."""
    world = one_served_two_in_line()
    world.judge = lambda e, _: GO if e.host != "b.x" else ruling or rules_unknown(e)

    world.finish(world.under_way[0])
    taken = world.frontier.take(0.0, world.judge)

    assert [start.item.host for start in taken.starts] == ["c.x"]
    world.frontier.check()


def test_host_that_is_called_for_a_robots_and_finds_no_room_passes_the_call_on() -> None:
    """Too many robots.txt are being fetched: the page of the next in line goes."""
    world = one_served_two_in_line()
    world.frontier.request(RobotsRequest("https://b.x/r", "b.x", "https://o", hops=1), now=0.0)
    world.max_robots = 0

    world.finish(world.under_way[0])
    (start,) = world.take()

    assert start.item.host == "c.x"
    assert world.frontier.snapshot(0.0).robots_line == 1
    world.frontier.check()


def test_host_that_is_called_and_has_nothing_left_passes_the_call_on() -> None:
    """Its window is forbidden, and the store has less than was counted."""
    world = World(FakePoliteness(gap_s=0.0, is_grouped=True), per_host_window=1)
    world.offer("a.x", 5)
    world.offer("b.x", 5, 5)
    world.offer("c.x", 5)
    world.take()
    world.store.remove(world.store.queued("b.x", after=(5, 2), limit=1))
    world.judge = lambda e, _: Drop("forbidden") if e.host == "b.x" else GO

    world.finish(world.under_way[0])
    (start,) = world.take()

    assert start.item.host == "c.x"
    assert world.log == ["G0:a.x/1", "D0:b.x/2", "G0:c.x/4"]
    world.frontier.check()


def test_line_of_a_group_that_was_paused_is_not_forgotten() -> None:
    """With nothing under way only the operator can help: all sleep until they are woken."""
    world = one_served_two_in_line()
    world.politeness.group("a.x").is_paused = True

    world.finish(world.under_way[0])
    world.take()
    world.frontier.check()
    asleep = world.frontier.snapshot(0.0).asleep
    world.politeness.group("a.x").is_paused = False
    for host in ("b.x", "c.x"):
        world.wake(host)

    assert asleep == 2
    assert world.run() == "G0:a.x/1 G0:b.x/2 G0:c.x/3"


def test_line_moves_up_when_the_limit_of_the_group_grows() -> None:
    """The first in line is called by an answer, and the next by the first one's grant."""
    world = one_served_two_in_line()
    world.politeness.group("a.x").limit = 3

    world.finish(world.under_way[0])

    assert [start.item.host for start in world.take()] == ["b.x", "c.x"]


def test_large_group_is_not_asked_host_by_host() -> None:
    """When a request comes back one host is called, not every host of the address."""
    politeness = CountingPoliteness(gap_s=0.0, is_grouped=True)
    world = World(politeness)
    for number in range(300):
        world.offer(f"h{number}.x", 5, 5)

    world.run(latency_s=1.0)

    assert len(world.log) == 600
    assert politeness.asked < 2000


class CountingPoliteness(FakePoliteness):
    """Counts how often it was asked."""

    asked = 0

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        self.asked += 1
        return super().reserve(host, now=now)


def test_host_uses_its_whole_limit() -> None:
    """As many requests are under way as the host takes; the next goes when one comes back."""
    world = World(FakePoliteness(gap_s=0.0, limit=2))
    world.offer("a", *[5] * 5)

    assert world.run(latency_s=2.0) == "G0:a/1 G0:a/2 G2:a/3 G2:a/4 G4:a/5"


def test_priority_then_arrival_decides_within_a_host() -> None:
    """A better URL that is found later still goes before what waits."""
    world = World()
    world.offer("a", 7, 5, 7)
    world.take()

    world.offer("a", 6, 9)

    world.finish(world.under_way[0])
    assert world.run() == "G0:a/2 G1:a/4 G2:a/1 G3:a/3 G4:a/5"


def test_window_is_read_piece_by_piece() -> None:
    """Only a window of a long queue is in memory, and each read brings the next."""
    world = World(per_host_window=4)
    world.offer("a", *[5] * 10)

    in_memory = world.frontier.snapshot(0.0).in_memory
    log = world.run()

    assert in_memory == 4
    assert log.split() == [f"G{second}:a/{second + 1}" for second in range(10)]
    assert world.store.reads == 2


def test_better_arrivals_push_the_tail_of_a_window_back_to_disk() -> None:
    """A window never outgrows its limit, and what leaves it comes back in order."""
    world = World(per_host_window=3)
    world.offer("a", 9, 9, 9, 9)

    world.offer("a", 1, 2, 1, 2)

    assert world.frontier.snapshot(0.0).in_memory == 3
    assert [start.partition("/")[2] for start in world.run().split()] == list("57681234")


def test_memory_limit_leaves_one_entry_a_host() -> None:
    """Past the limit on all windows together, hosts are still served, one URL at a time."""
    world = World(memory_limit=5, per_host_window=4)
    for host in "abcdefgh":
        world.offer(host, 5, 5, 5)

    world.run(until=1.5)
    in_memory = world.frontier.snapshot(world.now).in_memory
    world.run()

    assert in_memory <= 5 + 8
    assert len(world.log) == 24
    assert len(world.store) == 0


def test_arrivals_beyond_the_memory_limit_stay_on_disk() -> None:
    """However many hosts have URLs, the windows together hold no more than the limit."""
    world = World(memory_limit=50, per_host_window=10)

    for number in range(40):
        world.offer(f"h{number}", *[5] * 10)

    assert world.frontier.snapshot(0.0).in_memory == 50
    assert world.frontier.queued == 400


def test_reads_keep_within_the_memory_limit() -> None:
    """Hosts of an earlier run are all due at once, and are read one URL each beyond the limit."""
    world = World(memory_limit=50, per_host_window=10)
    for number in range(40):
        world.store.offer(f"h{number}", *[5] * 10)
    world.frontier.load(((f"h{number}", 10) for number in range(40)), now=0.0)

    taken = world.frontier.take(0.0)
    wanted = [refill.limit for refill in taken.refills]
    world.run()

    assert len(wanted) == 40
    assert sum(wanted) <= 50 + 40
    assert min(wanted) == 1
    assert len(world.log) == 400


def test_retry_goes_to_the_front_when_it_is_due() -> None:
    """A retry waits for its instant, lets others pass until then, and goes before them after."""
    world = World()
    world.offer("a", 5, 5, 5, 5)
    (start,) = world.take()
    world.retry(start, due=1.5)

    assert world.run() == "G0:a/1 G1:a/2 G2:a/1 G3:a/3 G4:a/4"


def test_retry_of_a_forgotten_host_brings_it_back() -> None:
    """A host whose only URL waits for its retry costs nothing, and is remembered in time."""
    world = World()
    world.offer("a", 5)
    (start,) = world.take()
    world.retry(start, due=9.0)

    assert world.frontier.snapshot(0.0).active == 0
    assert world.frontier.next_due(0.0) == 9.0
    assert world.run() == "G0:a/1 G9:a/1"


def test_inactive_hosts_enter_in_order_as_others_end() -> None:
    """Hosts beyond the heap's limit are a name and a count until there is a place for them."""
    world = World(heap_limit=2)
    for host in "abcd":
        world.offer(host, 5, 5)

    snapshot = world.frontier.snapshot(0.0)
    log = world.run()

    assert (snapshot.active, snapshot.inactive, snapshot.in_memory, snapshot.queued) == (2, 2, 4, 8)
    assert log == "G0:a/1 G0:b/3 G1:a/2 G1:b/4 G1:c/5 G1:d/7 G2:c/6 G2:d/8"


def test_frontier_goes_on_where_an_earlier_run_stopped() -> None:
    """After a restart the hosts and counts of the store are enough."""
    world = World(heap_limit=2)
    for host in "abc":
        world.store.offer(host, 5, 3)

    world.frontier.load([("a", 2), ("b", 2), ("c", 2)], now=0.0)

    assert world.frontier.queued == 6
    assert world.run() == "G0:a/2 G0:b/4 G1:a/1 G1:b/3 G1:c/6 G2:c/5"


def test_loading_again_finds_what_was_overlooked() -> None:
    """The store may be asked once more before the end; known hosts are not doubled."""
    world = World()
    world.offer("a", 5)
    world.store.offer("b", 5)

    world.frontier.load([("a", 1), ("b", 1)], now=0.0)

    assert world.frontier.queued == 2
    assert world.run() == "G0:a/1 G0:b/2"


def test_wrong_counts_are_put_right_by_reading() -> None:
    """Neither a count that is too high nor one that is too low loses a URL or hangs a host."""
    world = World(per_host_window=2)
    world.store.offer("few", *[5] * 7)

    world.frontier.load([("few", 1), ("none", 3)], now=0.0)
    world.run()

    assert len(world.log) == 7
    assert world.frontier.queued == 0
    assert world.frontier.snapshot(world.now).active == 0


def test_finished_but_uncommitted_urls_are_not_read_again() -> None:
    """What was fetched is still queued in the store until the commit, and must not come twice."""
    world = World(FakePoliteness(gap_s=0.0), per_host_window=2)
    world.offer("a", 9, 9, 9)
    for start in world.take():
        world.finish(start)
    world.offer("a", 1, 1, 1)  # moves the cursor back, before what is finished

    while starts := world.take():
        for start in starts:
            world.finish(start)

    assert [start.partition("/")[2] for start in world.log] == list("145623")


def test_robots_goes_first_and_alone() -> None:
    """Until a host's robots.txt has come none of its pages is sent; then all are."""
    known = set()
    politeness = FakePoliteness(gap_s=0.0, limit=8)
    world = World(politeness, lambda e, _: GO if e.host in known else rules_unknown(e))
    world.offer("a", 5, 5)
    world.take()
    world.take()
    (request,) = world.under_way

    known.add("a")
    world.finish(request)
    world.take()

    assert is_own_robots(request)
    assert world.log == ["R0:a/robots.txt", "G0:a/1", "G0:a/2"]


def test_a_host_without_rules_sleeps_and_is_named_once() -> None:
    """The frontier does not ask for rules itself: it names the origin and waits to be woken."""
    world = World(judge=lambda e, _: rules_unknown(e))
    world.offer("a", 5, 5)

    first = world.frontier.take(0.0, world.judge)
    second = world.frontier.take(0.0, world.judge)
    asleep = world.frontier.snapshot(0.0).asleep
    world.wake("a")
    third = world.frontier.take(3.0)

    assert first.unknown == [("a", "https://a")]
    assert (first.starts, second) == ([], ([], [], [], []))
    assert asleep == 1
    assert [start.item.url for start in third.starts] == ["https://a/1"]


def test_rules_from_the_store_cost_no_request() -> None:
    """Where the rules can be loaded the host is woken, and its pages go in the same turn."""
    known: set[str] = set()
    world = World(
        judge=lambda e, _: GO if e.host in known else rules_unknown(e),
        load=lambda origin: known.add(origin.removeprefix("https://")) is None,
    )
    world.offer("a", 5, 5)

    assert world.run() == "G0:a/1 G1:a/2"


def test_robots_requests_are_capped_and_known_hosts_do_not_wait_for_them() -> None:
    """Document 004: at most so many robots.txt at once; the line is first come, first served."""
    world = World(max_robots=2, judge=lambda e, _: GO if e.host == "z" else rules_unknown(e))
    for host in "abcdz":
        world.offer(host, 5)

    world.take()
    counts = (world.robots_under_way, world.frontier.snapshot(0.0).robots_line)
    under_way, due_while_full = len(world.under_way), world.next_due()
    world.finish(next(start for start in world.under_way if start.item.host == "a"))
    due_with_room = world.next_due()
    world.take()

    assert (*counts, under_way) == (2, 2, 3)
    assert (due_while_full, due_with_room) == (None, 0.0)
    assert world.log[:4] == ["G0:z/5", "R0:a/robots.txt", "R0:b/robots.txt", "R0:c/robots.txt"]


def test_redirected_robots_goes_before_pages_that_wait_for_it() -> None:
    """A redirected robots.txt is fetched from a host whose own pages have to wait."""
    is_known = False
    world = World(judge=lambda entry, _: GO if is_known else Later(None))
    world.offer("a", 5)
    world.take()

    world.frontier.request(RobotsRequest("https://a/moved", "a", "http://b", hops=1), now=0.0)
    (request,) = world.take()
    world.finish(request)
    world.run(until=3.0)
    before_wake = world.next_due()
    is_known = True
    world.wake("a")

    assert not is_own_robots(request)
    assert before_wake is None
    assert world.run() == "R0:a/moved G3:a/1"


def test_redirected_robots_does_not_let_the_pages_go() -> None:
    """Only a host's own robots.txt frees its pages; another one that comes back does not."""
    world = World(FakePoliteness(gap_s=0.0, limit=8), judge=lambda e, _: rules_unknown(e))
    world.offer("a", 5)
    world.frontier.request(RobotsRequest("https://a/moved", "a", "http://b", hops=1), now=0.0)
    elsewhere, own = world.take()

    world.finish(elsewhere)

    assert (is_own_robots(elsewhere), is_own_robots(own)) == (False, True)
    assert world.take() == []


def test_host_that_is_woken_still_waits_for_its_own_robots() -> None:
    """Pages of its other origin, whose rules are known, wait for these rules, too."""
    world = World(
        FakePoliteness(gap_s=0.0, limit=8),
        judge=lambda e, _: rules_unknown(e) if e.seq == 1 else GO,
    )
    world.offer("a", 5, 5)
    (own,) = world.take()

    world.wake("a")
    world.frontier.request(RobotsRequest("https://a/moved", "a", "http://b", hops=1), now=0.0)
    woken = world.take()
    world.judge = lambda entry, now: GO
    world.finish(own)
    world.take()

    assert woken == []
    assert world.log == ["R0:a/robots.txt", "R0:a/moved", "G0:a/1", "G0:a/2"]


def test_robots_that_comes_back_frees_its_host() -> None:
    """Even if the rules lie elsewhere: pages of the other origin need not wait for them."""
    world = World(judge=lambda e, _: rules_unknown(e) if e.seq == 1 else GO)
    world.offer("a", 5, 5)
    (own,) = world.take()
    world.judge = lambda e, _: Later(None) if e.seq == 1 else GO
    world.fetching.clear()
    world.robots_answered = lambda request: None

    world.finish(own)

    assert world.run() == "R0:a/robots.txt G1:a/2"


def test_robots_request_may_be_taken_back_until_it_is_sent() -> None:
    """The answer may come from elsewhere meanwhile; then the host has its pages' turn instead."""
    world = World(judge=lambda e, _: rules_unknown(e), max_robots=1)
    world.offer("a", 5)
    world.offer("b", 5)
    world.take()
    sent, waits = (RobotsRequest(f"https://{h}/robots.txt", h, f"https://{h}") for h in "ab")

    is_back = [world.frontier.unrequest(request) for request in (sent, waits, waits)]
    world.fetching.discard("https://b")
    world.judge = lambda entry, now: GO
    world.finish(world.under_way[0])
    world.frontier.check()

    assert is_back == [False, True, False]
    assert world.run() == "R0:a/robots.txt G0:b/2 G1:a/1"


def test_entry_that_must_wait_is_passed_over() -> None:
    """A URL whose robots.txt is out of reach does not hold up the rest of its host."""
    world = World(judge=lambda e, now: Later(5.0) if e.seq == 1 and now < 5 else GO)
    world.offer("a", 5, 5, 5)

    assert world.run() == "G0:a/2 G1:a/3 G5:a/1"


def test_forbidden_urls_cost_no_slot() -> None:
    """What the judge drops is handed back at once, and the next URL takes the slot."""
    world = World(judge=lambda e, _: Drop("forbidden") if e.seq < 4 else GO)
    world.offer("a", *[5] * 5)

    assert world.run() == "D0:a/1 D0:a/2 D0:a/3 G0:a/4 G1:a/5"


def test_take_looks_at_a_bounded_number_of_entries() -> None:
    """Ten thousand forbidden URLs are worked off in pieces, and other hosts come in between."""
    world = World(
        judge=lambda e, _: Drop("forbidden") if e.host == "a" else GO, per_host_window=10**4
    )
    world.offer("a", *[5] * 10_000)
    world.offer("b", 5)

    taken = world.frontier.take(0.0, world.judge)

    assert [start.item.host for start in taken.starts] == ["b"]
    assert 1000 < len(taken.dropped) < 5000
    assert world.frontier.next_due(0.0) == 0.0


def test_paused_host_sleeps_until_it_is_woken() -> None:
    """A refusal without an end is not asked about again and again."""
    politeness = FakePoliteness()
    world = World(politeness)
    politeness.group("a").is_paused = True
    world.offer("a", 5)
    world.take()

    asleep = world.frontier.snapshot(0.0).asleep
    next_due = world.frontier.next_due(0.0)
    politeness.group("a").is_paused = False
    world.now = 7.0
    world.wake("a")

    assert (asleep, next_due) == (1, None)
    assert world.run() == "G7:a/1"


def test_dropped_host_is_forgotten_wherever_it_was() -> None:
    """What was queued is counted, requests for robots.txt are handed back, and what is in flight
    may still end.
    """
    world = World(per_host_window=2)
    world.offer("a", *[5] * 5)
    (start,) = world.take()
    request = RobotsRequest("https://a/moved", "a", "http://a", hops=1)
    world.frontier.request(request, now=0.0)

    dropped = world.frontier.drop_hosts({"a"}, now=0.0)
    world.finish(start)

    assert dropped == (4, [request])
    assert world.frontier.queued == 0
    assert world.frontier.snapshot(0.0).active == 0
    world.frontier.check()


def test_retry_of_a_dropped_host_may_be_dropped_by_the_shard() -> None:
    """One that waits for its instant, and one that is due: both are still queued in the store."""
    world = World(FakePoliteness(gap_s=0.0, limit=2))
    world.offer("a", 5, 5)
    first, second = world.take()
    world.retry(first, due=0.0)
    world.retry(second, due=9.0)
    world.politeness.group("a").is_paused = True
    world.take()

    dropped = world.frontier.drop_hosts({"a"}, now=0.0)
    withheld = world.frontier.withhold(world.store.queued("a", after=(-1, -1), limit=9))

    assert dropped == (2, [])
    assert withheld == [first.item, second.item]
    world.frontier.check()


def test_retries_are_looked_through_once_for_all_dropped_hosts() -> None:
    """Giving up thousands of hosts at once takes no longer for each of them than giving up one."""

    class Asked(set[str]):
        times = 0

        def __contains__(self, host: object) -> bool:
            Asked.times += 1
            return super().__contains__(host)

    world = World()
    hosts = [f"host-{number}" for number in range(40)]
    for host in hosts:
        world.offer(host, 5)
    starts = world.take()
    for start in starts:
        world.retry(start, due=9.0)

    dropped = world.frontier.drop_hosts(Asked(hosts[1:]), now=0.0)

    assert len(starts) == 40
    assert dropped == (39, [])
    assert Asked.times == 40
    assert world.frontier.queued == 1
    world.frontier.check()


def test_next_due_tells_the_loop_how_long_to_wait() -> None:
    """An instant while time will help, None while only an answer can."""
    world = World(max_in_flight=2)
    empty = world.next_due()
    world.offer("a", 5, 5)
    due_now = world.next_due()
    world.take()
    world.finish(world.under_way[0])
    after_one = world.next_due()
    world.offer("b", 5)
    world.offer("c", 5)
    world.take()

    assert (empty, due_now, after_one) == (None, 0.0, 1.0)
    assert world.next_due() is None  # two under way


def test_limit_of_requests_may_be_lowered_while_running() -> None:
    """The governor's word counts from the next `take` on."""
    world = World(max_in_flight=3)
    for host in "abcdef":
        world.offer(host, 5)
    world.take()

    world.max_in_flight = 1
    world.finish(world.under_way[0])
    world.finish(world.under_way[0])

    assert world.take() == []
    world.finish(world.under_way[0])
    assert len(world.take()) == 1


def test_real_host_waits_out_its_retry_after_and_says_so() -> None:
    """Nothing is sent inside a Retry-After, and the snapshot names what is waited for."""
    world = World(Politeness(Settings(seed=1, strategy="fixed", delay_s=1.0)))
    world.offer("a", 5, 5)
    (start,) = world.take()
    world.finish(start, Response(429, 0.01, {"retry-after": "30"}))
    world.run(until=20.0)

    waiting = world.frontier.snapshot(world.now).waiting
    world.run()

    assert waiting == {Reason.RETRY_AFTER: 1}
    assert 30.0 <= float(world.log[1].partition(":")[0][1:]) <= 31.0


def test_open_breaker_costs_no_url() -> None:
    """A refusal puts the host back until the breaker's rest is over, and every URL is sent."""
    world = World(Politeness(Settings(seed=1, strategy="fixed", delay_s=1.0)))
    world.offer("a", *[5] * 20)
    for _ in range(8):
        for start in world.take():
            world.finish(start, Response(error="timeout", latency_s=20.0))
        world.now += 1.0

    reasons = world.frontier.snapshot(world.now).waiting
    world.run()

    assert reasons == {Reason.BREAKER_OPEN: 1}
    assert len(world.log) == 20


class Unwilling(FakePoliteness):
    """Answers once that only a report can help, although nothing is under way."""

    is_unwilling = True

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        if self.is_unwilling:
            self.is_unwilling = False
            return Wait(None, Reason.IN_FLIGHT)
        return super().reserve(host, now=now)


def test_wait_for_a_report_that_cannot_come_is_ended_by_asking_again() -> None:
    """With nothing of the host under way no `done` will tell: it is asked once a second."""
    world = World(Unwilling(gap_s=0.0))
    world.offer("a", 5)
    world.take()

    assert world.next_due() == 1.0
    assert world.run() == "G1:a/1"


def test_start_must_be_settled_before_it_is_done() -> None:
    """The order report, then done, is what lets the next turn be computed."""
    world = World()
    world.offer("a", 5)
    (start,) = world.take()

    with pytest.raises(AssertionError, match="report or cancel"):
        world.frontier.done(start, now=0.0)


def test_withheld_entries_are_not_handed_out() -> None:
    """What the shard drops itself counts as taken: a refill does not bring it again."""
    world = World(FakePoliteness(gap_s=0.0), per_host_window=1)
    world.offer("a", 5, 5, 5)
    (start,) = world.take()
    queued = world.store.queued("a", after=(-1, -1), limit=9)

    withheld = world.frontier.withhold(queued[:2])
    again = world.frontier.withhold(queued[:2])
    world.out |= {entry.seq for entry in withheld}
    world.finish(start)
    started = world.take()

    assert withheld == queued[1:2]
    assert again == []
    assert [each.item for each in started] == queued[2:]


def test_only_what_was_handed_out_can_be_put_back() -> None:
    """A retry of something that is still queued would be sent twice."""
    frontier = Frontier(FakePoliteness())

    with pytest.raises(AssertionError, match="was taken"):
        frontier.put_back(Entry(1, "https://a/1", "a", 1, 5, None, 0), 0.0)


@pytest.mark.parametrize("name", ["per_host_window", "heap_limit", "memory_limit"])
def test_limits_are_at_least_one(name: str) -> None:
    """Zero never means unlimited."""
    with pytest.raises(ValueError, match="1 or more"):
        Frontier(FakePoliteness(), **{name: 0})


def test_repr_tells_the_sizes() -> None:
    """What an operator sees in a debugger is enough to know the state."""
    world = World(heap_limit=1)
    world.offer("a", 5, 5)
    world.offer("b", 5)
    world.take()

    assert repr(world.frontier) == "<Frontier 1 + 1 hosts, 2 queued>"
