"""The promises of a memory of hosts. To run the suite on yours, subclass it in a test module:

    class TestMyMemory(HostMemoryContract):
        def open_memory(self):
            return MyMemory(…, times=self.times)

`open_memory` opens one and the same memory again and again within a test. Time is virtual; a memory
with a clock of its own overrides `wait`, and may set shorter `times`.

This module is long because a suite is one class, and each promise has a test of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from mannerly.politeness.model import Now
from mannerly.politeness.pace import Lesson

from .base import (
    Granted,
    Holder,
    HolderLost,
    HostBudget,
    InUse,
    LeaseTimes,
)

if TYPE_CHECKING:
    from .base import Claimed, HostMemory

HOST = "a.example"
GAP_S = 0.5
LESSON = Lesson(delay_s=0.25, floor_s=0.2, allowance=4.0, concurrency=3, is_proven=True)


class HostMemoryContract:
    """The suite."""

    times: ClassVar[LeaseTimes] = LeaseTimes()
    tolerance_s: ClassVar[float] = 0.001  # of a memory with a clock of its own
    has_time_of_callers: ClassVar[bool] = True  # False: it has a clock of its own

    def open_memory(self) -> HostMemory:
        """Open the memory of this test."""
        raise NotImplementedError

    def setup_method(self) -> None:
        """Begin a test (called by pytest)."""
        self._now = Now(1000.0, 1_750_000_000.0)
        self._opened: list[HostMemory] = []

    def teardown_method(self) -> None:
        """Close what the test has opened (called by pytest)."""
        for memory in self._opened:
            memory.close()

    @property
    def now(self) -> Now:
        """The present moment."""
        return self._now

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now = Now(self._now.mono + seconds, self._now.wall + seconds)

    def memory(self) -> HostMemory:
        """Open the memory as another process does."""
        memory = self.open_memory()
        self._opened.append(memory)
        return memory

    def joined(self, crawl: str, worker: str = "1") -> Sender:
        """Join as a process of a crawl."""
        memory = self.memory()
        holder = Holder(f"{crawl}-{worker}-id", crawl, f"crawl-{crawl}", worker)
        memory.join(holder, self.now)
        return Sender(self, memory, holder)

    # ------------------------------------------------------------------ leases

    def test_a_free_host_is_granted(self) -> None:
        """Also again to its holder; nothing is known of it."""
        one = self.joined("x")

        assert one.claim() == Granted(None)
        assert one.claim() == Granted(None)
        assert one.memory.in_use([HOST, "b.example"], self.now) == {HOST: one.holder}

    def test_many_hosts_are_claimed_at_once(self) -> None:
        """Each has an answer of its own."""
        one, two = self.joined("x"), self.joined("y")
        one.claim("b.example")

        answers = two.memory.claim(
            two.holder.id, {HOST: GAP_S, "b.example": GAP_S, "c.example": 2.0}, self.now
        )

        assert answers == {
            HOST: Granted(None),
            "b.example": InUse(one.holder, 1),
            "c.example": Granted(None),
        }

    def test_a_host_of_another_crawl_is_in_use_until_it_is_released(self) -> None:
        """The claimer is told by whom; the holder is told that it is wanted."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        before = one.wanted()
        refused = two.claim()

        assert before == {}
        assert refused == InUse(one.holder, 1)
        assert one.wanted() == {HOST: 1}

        one.release()

        assert isinstance(two.claim(), Granted)
        assert two.wanted() == {}
        assert one.claim() == InUse(two.holder, 1)

    def test_processes_of_one_crawl_do_not_exclude_each_other(self) -> None:
        """A host has one owner in a crawl; the next process of it goes on where one died."""
        one, two = self.joined("x", "1"), self.joined("x", "2")
        one.claim()

        answer = two.claim()

        assert isinstance(answer, Granted)
        assert answer.budget is not None
        assert answer.budget.next_in_s == pytest.approx(GAP_S, abs=self.tolerance_s)
        assert two.memory.in_use([HOST], self.now) == {HOST: two.holder}

    def test_hosts_are_given_in_the_order_of_wishes(self) -> None:
        """A later claimer waits for the earlier one, also the former holder."""
        one, two, three = self.joined("x"), self.joined("y"), self.joined("z")
        one.claim()
        two.claim()
        three.claim()
        waiting = one.wanted()
        one.release()

        assert waiting == {HOST: 2}
        assert three.claim() == InUse(two.holder, 2)
        assert one.claim() == InUse(two.holder, 3)
        assert isinstance(two.claim(), Granted)
        assert two.wanted() == {HOST: 2}

    def test_who_does_not_take_its_turn_in_time_loses_it(self) -> None:
        """A released host is not kept free for a crawl that does not want it any more."""
        one, two, three = self.joined("x"), self.joined("y"), self.joined("z")
        one.claim()
        two.claim()
        three.claim()
        one.release()
        self.wait(self.times.grace_s * 1.1)

        assert isinstance(three.claim(), Granted)

    def test_a_wish_can_be_withdrawn(self) -> None:
        """It does not count from then on."""
        one, two, three = self.joined("x"), self.joined("y"), self.joined("z")
        one.claim()
        two.claim()
        three.claim()
        two.memory.withdraw(two.holder.id, [HOST, "other.example"], self.now)
        waiting = one.wanted()
        one.release()

        assert waiting == {HOST: 1}
        assert isinstance(three.claim(), Granted)

    # ------------------------------------------------------------------ life and death

    def test_one_sign_of_life_keeps_all_leases(self) -> None:
        """As long as they come in time."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        one.claim("b.example")
        for _ in range(3):
            self.wait(self.times.lease_s * 0.6)
            one.renew()
            two.renew()

        assert two.claim() == InUse(one.holder, 1)
        assert two.claim("b.example") == InUse(one.holder, 1)

    def test_the_hosts_of_a_dead_holder_are_taken_over(self) -> None:
        """Not before its lease has ended; its last request may have left just now: one gap."""
        one, two = self.joined("x"), self.joined("y")
        one.claim(gap_s=7.0)
        self.wait(self.times.lease_s * 0.5)
        two.renew()
        early = two.claim()
        self.wait(self.times.lease_s * 0.6)
        late = two.claim()

        assert early == InUse(one.holder, 1)
        assert isinstance(late, Granted)
        assert late.budget is not None
        assert late.budget.next_in_s == pytest.approx(7.0, abs=self.tolerance_s)

    def test_a_dead_holder_is_told_so(self) -> None:
        """It has lost everything, and joins under another id."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        self.wait(self.times.lease_s * 1.1)

        with pytest.raises(HolderLost):
            one.renew()
        with pytest.raises(HolderLost):
            one.claim()
        with pytest.raises(HolderLost):
            two.claim()
        again = self.joined("x", "2")
        assert isinstance(again.claim(), Granted)

    def test_wishes_of_the_dead_do_not_count(self) -> None:
        """Their hosts are not handed over to them, and others do not wait for them."""
        one, two, three = self.joined("x"), self.joined("y"), self.joined("z")
        one.claim()
        two.claim()
        three.claim()
        self.wait(self.times.lease_s * 0.6)
        one.renew()
        three.renew()
        self.wait(self.times.lease_s * 0.6)
        waiting = one.wanted()
        one.release()

        assert waiting == {HOST: 1}
        assert isinstance(three.claim(), Granted)

    def test_who_leaves_gives_everything_back(self) -> None:
        """At once, with what is known of them; its wishes are gone, too."""
        one, two, three = self.joined("x"), self.joined("y"), self.joined("z")
        one.claim()
        one.claim("b.example")
        two.claim()
        three.claim("c.example")
        one.claim("c.example")
        one.memory.leave(one.holder.id, [HostBudget(HOST, gap_s=2.0, next_in_s=1.5)], self.now)

        granted = two.claim()

        assert isinstance(granted, Granted)
        assert granted.budget is not None
        assert granted.budget.next_in_s == pytest.approx(1.5, abs=self.tolerance_s)
        assert two.claim("b.example") == Granted(None)
        assert three.wanted() == {}
        with pytest.raises(HolderLost):
            one.renew()

    # ------------------------------------------------------------------ holders that are alone

    def test_who_joins_later_finds_every_lease(self) -> None:
        """The holder was alone when it claimed; two that join at once see the same."""
        one = self.joined("x")
        one.claim()
        one.claim("b.example", 7.0)
        two, three = self.joined("y"), self.joined("z")

        assert two.claim() == InUse(one.holder, 1)
        assert three.claim("b.example") == InUse(one.holder, 1)
        assert one.wanted() == {HOST: 1, "b.example": 1}
        assert two.memory.in_use([HOST], self.now, besides="x") == {}
        assert two.memory.in_use([HOST], self.now, besides="y") == {HOST: one.holder}

    def test_who_comes_after_the_death_of_a_lone_holder_waits_as_long_as_any_other(self) -> None:
        """The gap in force counts from the takeover; a pause that was written stays."""
        one = self.joined("x")
        one.claim("a.example", 7.0)
        one.claim("b.example")
        one.claim("c.example")
        long_gap = HostBudget("b.example", crawl_delay_s=30.0, gap_s=30.0, next_in_s=30.0)
        pause = HostBudget("c.example", gap_s=GAP_S, next_in_s=600.0)
        one.memory.write(one.holder.id, [long_gap, pause], self.now)
        self.wait(self.times.lease_s * 1.1)
        two = self.joined("y")

        answers = two.memory.claim(
            two.holder.id, dict.fromkeys(("a.example", "b.example", "c.example"), GAP_S), self.now
        )

        waits = [
            each.budget.next_in_s
            for each in answers.values()
            if isinstance(each, Granted) and each.budget is not None
        ]
        left_s = 600.0 - self.times.lease_s * 1.1
        assert waits == pytest.approx([7.0, 30.0, left_s], abs=self.tolerance_s)
        with pytest.raises(HolderLost):
            one.renew()

    def test_a_lone_holder_that_was_stopped_claims_nothing_of_the_next_one(self) -> None:
        """It read its clock in time; meanwhile another was alone, and has a host."""
        one = self.joined("x")
        before = self.now
        self.wait(self.times.lease_s * 1.1)
        two = self.joined("y")
        two.claim()

        with pytest.raises(HolderLost):
            one.claim()
        if self.has_time_of_callers:
            answer = one.memory.claim(one.holder.id, {HOST: GAP_S}, before)[HOST]
            assert answer == InUse(two.holder, 1)

    def test_a_lone_holder_knows_what_it_has_written(self) -> None:
        """A claim that is repeated has the budget, and so has a look without a claim."""
        one = self.joined("x")
        one.claim()
        one.memory.write(one.holder.id, [HostBudget(HOST, LESSON, gap_s=2.0)], self.now)
        looked = self.memory().budgets([HOST, "b.example"], self.now)
        answer = one.claim()

        assert set(looked) == {HOST}
        assert isinstance(answer, Granted)
        assert answer.budget is not None
        for budget in (looked[HOST], answer.budget):
            assert (budget.lesson, budget.gap_s, budget.learned_by) == (LESSON, 2.0, "crawl-x")

    def test_a_lone_holder_is_told_of_a_wait_that_another_process_has_written(self) -> None:
        """A late answer of a process that has ended; the holder has read the memory before."""
        one = self.joined("x")
        for host in ("b.example", "c.example", "d.example"):
            one.claim(host)
        late = self.memory()
        late.write("ended", [HostBudget(HOST, next_in_s=30.0)], self.now)
        answer = one.claim()

        assert isinstance(answer, Granted)
        assert answer.budget is not None
        assert answer.budget.next_in_s == pytest.approx(30.0, abs=self.tolerance_s)

    # ------------------------------------------------------------------ callers that were stopped

    def test_a_claimer_that_was_stopped_takes_no_host_from_a_living_holder(self) -> None:
        """The holder has given a sign of life since the claimer read its clock."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        before = self.now
        self.wait(self.times.lease_s * 0.2)
        one.renew()
        memory = self.memory()
        memory.join(Holder("z-id", "z", "crawl-z", "1"), before)

        assert two.memory.claim(two.holder.id, {HOST: GAP_S}, before)[HOST] == InUse(one.holder, 1)
        assert memory.claim("z-id", {HOST: GAP_S}, before)[HOST] == InUse(one.holder, 2)
        one.renew()

    def test_a_wait_does_not_end_earlier_for_a_caller_that_was_stopped(self) -> None:
        """It was written after that caller read its clock; what the caller writes prolongs it."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        two.claim()
        before = self.now
        self.wait(self.times.lease_s * 0.02)
        one.release(HostBudget(HOST, gap_s=60.0, next_in_s=60.0))
        granted = two.memory.claim(two.holder.id, {HOST: GAP_S}, before)[HOST]
        two.memory.write(two.holder.id, [HostBudget(HOST, gap_s=60.0)], before)

        assert isinstance(granted, Granted)
        assert granted.budget is not None
        assert granted.budget.next_in_s >= 60.0 - self.tolerance_s
        left_s = two.memory.budgets([HOST], self.now)[HOST].next_in_s
        assert left_s == pytest.approx(60.0, abs=self.tolerance_s)

    def test_whose_host_was_taken_over_is_dead_for_good(self) -> None:
        """It read its clock in time, was stopped, and gives its sign of life after the takeover."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        self.wait(self.times.lease_s * 0.6)
        two.renew()
        before = self.now
        self.wait(self.times.lease_s * 0.6)

        assert isinstance(two.claim(), Granted)
        with pytest.raises(HolderLost):
            one.memory.renew(one.holder.id, [], before)
        with pytest.raises(HolderLost):
            one.memory.claim(one.holder.id, {HOST: GAP_S}, before)

    # ------------------------------------------------------------------ budgets

    def test_a_budget_goes_with_the_host(self) -> None:
        """Lesson, gap, next instant, breaker: all of it, and waits are shorter by what passed."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        two.claim()
        one.release(
            HostBudget(
                HOST,
                LESSON,
                crawl_delay_s=3.0,
                gap_s=3.0,
                sent_s_ago=1.0,
                next_in_s=60.0,
                failing_s=30.0,
                failures_in_a_row=2,
                breaker_opens=1,
                breaker_in_s=40.0,
            )
        )
        self.wait(1.0)
        granted = two.claim()

        assert isinstance(granted, Granted)
        budget = granted.budget
        assert budget is not None
        near = self.tolerance_s
        assert budget[:4] == (HOST, LESSON, 3.0, 3.0)
        assert budget.sent_s_ago == pytest.approx(2.0, abs=near)
        assert budget.next_in_s == pytest.approx(59.0, abs=near)
        assert budget.breaker_in_s == pytest.approx(39.0, abs=near)
        assert budget.learned_s_ago == pytest.approx(1.0, abs=1.0 + self.tolerance_s)
        assert budget.learned_by == one.holder.name
        assert (budget.failing_s, budget.failures_in_a_row, budget.breaker_opens) == (30.0, 2, 1)

    def test_a_pause_outlives_its_holder(self) -> None:
        """A Retry-After that was written is kept when another crawl takes over."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        one.memory.write(one.holder.id, [HostBudget(HOST, next_in_s=600.0)], self.now)
        self.wait(self.times.lease_s * 0.6)
        two.renew()
        self.wait(self.times.lease_s * 0.6)
        granted = two.claim()

        assert isinstance(granted, Granted)
        assert granted.budget is not None
        left_s = 600.0 - self.times.lease_s * 1.2
        assert granted.budget.next_in_s == pytest.approx(left_s, abs=self.tolerance_s)

    def test_a_sign_of_life_writes_pauses_too(self) -> None:
        """So no lease is prolonged without them."""
        one = self.joined("x")
        one.claim()
        one.memory.renew(one.holder.id, [HostBudget(HOST, next_in_s=60.0)], self.now)

        known = one.memory.budgets([HOST, "b.example"], self.now)

        assert set(known) == {HOST}
        assert known[HOST].next_in_s == pytest.approx(60.0, abs=self.tolerance_s)

    def test_a_wait_is_never_shortened_by_what_is_written(self) -> None:
        """The holder's word counts for everything else."""
        one = self.joined("x")
        one.claim()
        one.memory.write(one.holder.id, [HostBudget(HOST, gap_s=1.0, next_in_s=60.0)], self.now)
        one.memory.write(one.holder.id, [HostBudget(HOST, gap_s=0.2, next_in_s=0.2)], self.now)

        (budget,) = one.memory.budgets([HOST], self.now).values()

        assert budget.gap_s == 0.2
        assert budget.next_in_s == pytest.approx(60.0, abs=self.tolerance_s)

    def test_who_does_not_hold_a_host_can_only_prolong_its_wait(self) -> None:
        """A late answer with a Retry-After counts; what it teaches otherwise does not."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        one.memory.write(one.holder.id, [HostBudget(HOST, LESSON, gap_s=0.25)], self.now)
        other = Lesson(delay_s=0.001)
        late = HostBudget(HOST, other, gap_s=0.001, next_in_s=30.0)
        two.memory.write(two.holder.id, [late], self.now)
        two.memory.release(two.holder.id, [late], self.now)

        (budget,) = one.memory.budgets([HOST], self.now).values()

        assert (budget.lesson, budget.gap_s) == (LESSON, 0.25)
        assert budget.next_in_s == pytest.approx(30.0, abs=self.tolerance_s)
        assert two.claim() == InUse(one.holder, 1)

    def test_a_lesson_keeps_its_age_until_another_is_learned(self) -> None:
        """A crawl that used it and learned nothing does not make it younger, nor its own."""
        one, two = self.joined("x"), self.joined("y")
        one.claim()
        one.release(HostBudget(HOST, LESSON, learned_s_ago=500.0))
        two.claim()
        two.release(HostBudget(HOST, None, gap_s=1.0))
        (budget,) = one.memory.budgets([HOST], self.now).values()

        assert budget.lesson == LESSON
        assert budget.learned_s_ago == pytest.approx(500.0, abs=1.0 + self.tolerance_s)
        assert budget.learned_by == one.holder.name

    def test_a_lesson_is_forgotten_without_the_waits(self) -> None:
        """Everything that was asked for stays."""
        one = self.joined("x")
        one.claim()
        one.memory.write(
            one.holder.id,
            [HostBudget(HOST, LESSON, crawl_delay_s=5.0, gap_s=5.0, next_in_s=60.0)],
            self.now,
        )
        known = one.memory.forget(HOST, self.now)
        (budget,) = one.memory.budgets([HOST], self.now).values()

        assert known
        assert (budget.lesson, budget.crawl_delay_s) == (None, 0.0)
        assert budget.next_in_s == pytest.approx(60.0, abs=self.tolerance_s)
        assert not one.memory.forget("b.example", self.now)


class Sender:
    """A process that has joined."""

    def __init__(self, suite: HostMemoryContract, memory: HostMemory, holder: Holder) -> None:
        self.memory, self.holder = memory, holder
        self._suite = suite

    def claim(self, host: str = HOST, gap_s: float = GAP_S) -> Claimed:
        """Ask for one host."""
        return self.memory.claim(self.holder.id, {host: gap_s}, self._suite.now)[host]

    def release(self, budget: HostBudget | None = None) -> None:
        """Give one host back."""
        self.memory.release(self.holder.id, [budget or HostBudget(HOST)], self._suite.now)

    def wanted(self) -> dict[str, int]:
        """Ask which hosts others wait for."""
        return self.memory.wanted(self.holder.id, self._suite.now)

    def renew(self) -> None:
        """Give a sign of life."""
        self.memory.renew(self.holder.id, [], self._suite.now)
