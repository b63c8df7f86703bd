"""Queues of waiting callers, in virtual time and without any driver."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mannerly.politeness import Grant, Politeness, Reason, Refuse, Response, Settings, Wait
from mannerly.politeness.drivers.waiters import Served, Waiter, WaitQueues

HOST = "example.com"
OK = Response(200, 0.01)
ONE_A_SECOND = Settings(strategy="fixed", delay_s=1.0)


class FakeDriver:
    """A driver without waiting: records which callers it woke, and when it serves again."""

    def __init__(self, rules: Settings = ONE_A_SECOND) -> None:
        self.core = Politeness(rules)
        self.queues: WaitQueues[int] = WaitQueues(self.core)
        self.now = 0.0
        self.alarm_at: float | None = None
        self.woken: list[Waiter[int]] = []
        self.arrivals = 0

    def come(
        self, *, deadline: float | None = None, waits_when_open: bool = False
    ) -> Grant | Refuse | Waiter[int]:
        decision = self.queues.ask(HOST, HOST, self.now)
        if isinstance(decision, Grant):
            return decision
        waiter = Waiter(
            HOST, self.arrivals, self.now, deadline=deadline, waits_when_open=waits_when_open
        )
        if isinstance(decision, Refuse) and not waiter.accepts(decision):
            return decision
        self.arrivals += 1
        self.alarm_at = self.queues.join(waiter, HOST, decision, self.now)
        return waiter

    def wait(self, *, deadline: float | None = None, waits_when_open: bool = False) -> Waiter[int]:
        waiter = self.come(deadline=deadline, waits_when_open=waits_when_open)
        assert isinstance(waiter, Waiter)
        return waiter

    def go(self) -> Grant:
        granted = self.come()
        assert isinstance(granted, Grant)
        return granted

    def leave(self, waiter: Waiter[int]) -> None:
        if isinstance(waiter.decision, Grant):
            self.give_back(waiter.decision)
        else:
            self.follow(self.queues.leave(waiter, self.now))

    def report(self, granted: Grant, response: Response = OK) -> None:
        self.core.report(granted.permit, response, now=self.now)
        self.follow(self.queues.serve(HOST, self.now))

    def give_back(self, granted: Grant) -> None:
        self.core.cancel(granted.permit, now=self.now)
        self.follow(self.queues.serve(HOST, self.now))

    def follow(self, served: Served[int]) -> None:
        """Let every woken caller go on at once."""
        self.alarm_at = served.alarm_at
        self.woken += served.woken
        for waiter in served.woken:
            self.follow(self.queues.enter(waiter, self.now))

    def advance(self, to: float = inf) -> None:
        """Ring every alarm up to an instant; each granted caller reports at once."""
        while self.alarm_at is not None and self.alarm_at <= to:
            self.now = max(self.now, self.alarm_at)
            before = len(self.woken)
            self.follow(self.queues.serve(HOST, self.now))
            for waiter in self.woken[before:]:
                if isinstance(waiter.decision, Grant):
                    self.report(waiter.decision)
        self.now = max(self.now, to) if to < inf else self.now

    def waiting(self) -> int:
        host = self.core.host(HOST)
        assert host is not None
        return host.waiters

    def starts(self) -> list[float]:
        return [
            waiter.decision.permit.sent_at
            for waiter in self.woken
            if isinstance(waiter.decision, Grant)
        ]


def crowded(size: int, rules: Settings = ONE_A_SECOND) -> tuple[FakeDriver, list[Waiter[int]]]:
    """A driver whose first slot was just taken, with so many callers waiting for the next ones."""
    driver = FakeDriver(rules)
    driver.report(driver.go())
    return driver, [driver.wait() for _ in range(size)]


def test_five_hundred_waiters_wake_once_each_and_in_order() -> None:
    """Many waiters cost one wake-up per grant, and none overtakes another."""
    driver, crowd = crowded(500)

    driver.advance()

    assert driver.woken == crowd
    assert driver.starts() == [float(second) for second in range(1, 501)]
    assert len(driver.woken) <= 1.05 * len(driver.starts())


def test_cancelled_waiters_take_no_slot_with_them() -> None:
    """With three of ten gone, those who stay go in every single slot, in order."""
    driver, crowd = crowded(500)

    for place, waiter in enumerate(crowd):
        if place % 10 < 3:
            driver.leave(waiter)
    driver.advance()

    assert driver.woken == [waiter for place, waiter in enumerate(crowd) if place % 10 >= 3]
    assert driver.starts() == [float(second) for second in range(1, 351)]


def test_newcomer_on_an_idle_host_pays_nothing_for_those_who_left() -> None:
    """Forty-nine of fifty cancelled: the next caller waits one second, not fifty."""
    driver, crowd = crowded(50)
    for waiter in crowd[:49]:
        driver.leave(waiter)

    driver.advance(to=1.0)
    newcomer = driver.wait()
    driver.advance()

    assert isinstance(newcomer.decision, Grant)
    assert newcomer.decision.permit.sent_at == 2.0


def test_newcomer_does_not_overtake() -> None:
    """While anyone waits, a newcomer is told what the head was told, even if its time has come."""
    driver, (head,) = crowded(1)
    driver.now = 5.0

    newcomer = driver.come()

    assert isinstance(newcomer, Waiter)
    assert newcomer.decision is None
    driver.advance()
    assert driver.woken == [head, newcomer]


def test_granted_and_cancelled_in_one_tick_passes_the_slot_on() -> None:
    """A caller cancelled just when its turn came hands the very same instant to the next."""
    driver, (first, second) = crowded(2)
    driver.now = 1.0
    driver.follow(driver.queues.serve(HOST, 1.0))

    driver.leave(first)

    assert driver.woken == [first, second]
    assert isinstance(second.decision, Grant)
    assert second.decision.permit.sent_at == 1.0


def test_head_follows_a_longer_delay() -> None:
    """The head's time is worked out anew when robots.txt asks for more than it was told."""
    driver, (waiter,) = crowded(1)
    driver.core.robots(HOST, crawl_delay_s=5.0, now=0.5)

    driver.advance()

    assert isinstance(waiter.decision, Grant)
    assert waiter.decision.permit.sent_at == 5.0


def test_report_wakes_the_head_when_only_a_report_can() -> None:
    """With every place taken there is no alarm; the report lets the head go."""
    driver = FakeDriver(Settings(strategy="fixed", delay_s=1.0, max_concurrency=1))
    granted = driver.go()
    waiter = driver.wait()
    driver.advance(to=10.0)
    no_alarm = driver.alarm_at

    driver.report(granted)

    assert no_alarm is None
    assert driver.woken == [waiter]


def test_deadline_ends_the_wait_with_its_reason() -> None:
    """A caller whose patience ends before its turn learns what it was waiting for."""
    driver, (head,) = crowded(1)
    hurried = driver.wait(deadline=0.25)

    driver.advance(to=0.25)

    assert driver.woken == [hurried]
    assert hurried.decision == Wait(1.0, Reason.PACE)
    assert head.decision is None


def test_deadlines_of_those_who_left_do_not_pile_up() -> None:
    """A caller that leaves early leaves no alarm behind."""
    driver, (head,) = crowded(1)
    hurried = driver.wait(deadline=0.25)
    for _ in range(1000):
        driver.leave(driver.wait(deadline=0.5))

    driver.advance(to=0.75)

    assert driver.woken == [hurried]
    assert driver.alarm_at == 1.0
    assert len(driver.queues) == 1
    assert head.decision is None


def broken(rules: Settings, *, waiters: int) -> tuple[FakeDriver, list[Waiter[int]]]:
    """A driver with callers in line, half of them patient, whose host then failed five times."""
    driver = FakeDriver(rules)
    grants = []
    for second in range(5):
        driver.now = float(second)
        grants.append(driver.go())
    crowd = [driver.wait(waits_when_open=place % 2 == 0) for place in range(waiters)]
    for granted in grants:
        driver.report(granted, Response(503, 0.01))
    return driver, crowd


def test_open_breaker_turns_away_only_the_impatient() -> None:
    """An impatient caller behind a patient one is told at once; the patient one stays."""
    driver, (patient, impatient) = broken(ONE_A_SECOND, waiters=2)

    assert driver.woken == [impatient]
    assert isinstance(impatient.decision, Refuse)
    assert impatient.decision.reason is Reason.BREAKER_OPEN
    assert patient.decision is None


def test_patient_waiter_becomes_the_probe() -> None:
    """Whoever waits out an open breaker goes when it half-opens."""
    driver, (patient, _) = broken(ONE_A_SECOND, waiters=2)
    reopens_at = driver.alarm_at

    driver.advance(to=60.0)

    assert isinstance(patient.decision, Grant)
    assert patient.decision.permit.sent_at == reopens_at


def test_late_alarm_does_not_refuse_a_newcomer() -> None:
    """Once the open time is over a newcomer stands in line, although the alarm is late."""
    driver, _ = broken(ONE_A_SECOND, waiters=1)
    driver.now = 60.0

    newcomer = driver.come()

    assert isinstance(newcomer, Waiter)


def test_retirement_sends_even_the_patient_home() -> None:
    """A refusal without an end is not waited for."""
    driver = FakeDriver()
    driver.go()
    waiter = driver.wait(waits_when_open=True)
    driver.core.retire(HOST, "enough", now=0.0)

    driver.follow(driver.queues.serve(HOST, 0.0))

    assert waiter.decision == Refuse(None, Reason.RETIRED)
    assert len(driver.queues) == 0


def test_disbanded_callers_get_no_verdict() -> None:
    """Closing empties every queue and tells the core that no caller waits."""
    driver, crowd = crowded(3)

    gone = driver.queues.clear(0.0)

    assert gone == crowd
    assert [waiter.decision for waiter in gone] == [None, None, None]
    assert driver.waiting() == 0


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.none() | st.floats(0.0, 5.0)),
        st.tuples(st.just("leave"), st.integers(0, 1000)),
        st.tuples(st.just("report"), st.integers(0, 1000)),
        st.tuples(st.just("give_back"), st.integers(0, 1000)),
        st.tuples(st.just("advance"), st.floats(0.0, 3.0)),
    ),
    max_size=80,
)


class Rehearsal(FakeDriver):
    """A driver in which answers take as long as the story says, and every grant is remembered."""

    def __init__(self) -> None:
        super().__init__(Settings(strategy="fixed", delay_s=1.0, max_concurrency=2))
        self.queue: list[Waiter[int]] = []
        self.under_way: list[Grant] = []

    def play(self, action: str, value: float | None) -> None:
        if action == "come":
            came = self.come(deadline=None if value is None else self.now + value)
            if isinstance(came, Grant):
                self.under_way.append(came)
            elif isinstance(came, Waiter):
                self.queue.append(came)
        elif action == "advance":
            assert value is not None
            self.pass_time(self.now + value)
        elif action == "leave" and self.queue:
            self.leave(self.queue.pop(int(value or 0) % len(self.queue)))
        elif action in {"report", "give_back"} and self.under_way:
            granted = self.under_way.pop(int(value or 0) % len(self.under_way))
            (self.report if action == "report" else self.give_back)(granted)
        self.settle()

    def pass_time(self, to: float) -> None:
        while self.alarm_at is not None and self.alarm_at <= to:
            self.now = max(self.now, self.alarm_at)
            self.follow(self.queues.serve(HOST, self.now))
            self.settle()
        self.now = to

    def settle(self) -> None:
        """Remove settled callers from the queue."""
        self.under_way += [
            waiter.decision for waiter in self.queue if isinstance(waiter.decision, Grant)
        ]
        self.queue = [waiter for waiter in self.queue if waiter.decision is None]

    def finish(self) -> None:
        for _ in range(10 * (len(self.queue) + len(self.under_way)) + 10):
            self.play("report", 0)
            self.pass_time(self.now + 1.0)


@settings(max_examples=200, deadline=None)
@given(ACTIONS)
def test_queues_serve_in_order_and_lose_no_caller(
    story: list[tuple[str, float | None]],
) -> None:
    """Whatever callers do, grants follow arrival, all who stay are served, and none is left."""
    driver = Rehearsal()

    for action, value in story:
        driver.play(action, value)
        host = driver.core.host(HOST)
        assert host is None or host.waiters == len(driver.queue) == len(driver.queues)
        assert host is None or host.in_flight <= 2
    driver.finish()

    served = [waiter.signal for waiter in driver.woken if isinstance(waiter.decision, Grant)]
    assert served == sorted(served)
    assert driver.queue == []
    assert len(driver.queues) == 0
    assert driver.alarm_at is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60))
def test_lines_never_break_the_spacing(pauses: list[float]) -> None:
    """However callers arrive, no two starts are closer than the delay."""
    driver = FakeDriver()
    starts = []

    for pause in pauses:
        came = driver.come()
        if isinstance(came, Grant):
            starts.append(driver.now)
            driver.report(came)
        driver.advance(to=driver.now + pause)
    driver.advance()

    starts = sorted(starts + driver.starts())
    assert len(starts) == len(pauses)
    assert all(later - earlier >= 1.0 - 1e-9 for earlier, later in pairwise(starts))


@pytest.mark.parametrize("waiters", [1, 3])
def test_host_with_waiters_is_not_evicted(waiters: int) -> None:
    """A full registry drops idle hosts, never one with waiting callers."""
    rules = Settings(strategy="fixed", delay_s=1.0, max_hosts=1, max_concurrency=1)
    driver = FakeDriver(rules)
    granted = driver.go()
    for _ in range(waiters):
        driver.wait()
    driver.core.report(granted.permit, OK, now=0.5)

    driver.core.reserve("other.example", now=10.0)
    driver.core.reserve("third.example", now=20.0)

    assert HOST in driver.core
    assert driver.waiting() == waiters
