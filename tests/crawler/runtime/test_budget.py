"""--max-urls among several processes, one of which may die at the worst instant."""

from __future__ import annotations

from collections import deque

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mannerly.crawler.runtime.budget import CHUNK, PageBudget, SharedBudget

WORKERS = 3


def spend(budget: PageBudget, wanted: int) -> int:
    """Start as many pages as allowed."""
    granted = budget.take(wanted)
    budget.settle(granted)
    return granted


class Crew:
    """A supervisor's budget, its workers' parts, and the messages on their way between them."""

    def __init__(self, limit: int | None, workers: int = WORKERS) -> None:
        self.shared = SharedBudget(limit, workers)
        self.parts: list[PageBudget] = []
        self.up: list[deque[tuple[str, int]]] = [deque() for _ in range(workers)]
        self.down: list[deque[tuple[str, int]]] = [deque() for _ in range(workers)]
        self.parts = [self._part(number) for number in range(workers)]

    def _part(self, number: int) -> PageBudget:
        return PageBudget(0, ask=lambda: self.up[number].append(("ask", 0)))

    def hear_one(self, number: int) -> None:
        """Let one message of a worker arrive."""
        word, pages = self.up[number].popleft()
        if word == "ask":
            self.shared.asked(number)
        elif word == "returned":
            self.shared.returned(number, pages)
        else:
            self.shared.reported(number, pages)
        self.grant()

    def grant(self) -> None:
        for number, pages in self.shared.grants():
            self.down[number].append(("grant", pages))

    def tick(self) -> None:
        for number in self.shared.recalls():
            self.down[number].append(("recall", 0))

    def deliver_one(self, number: int) -> None:
        """Let one message to a worker arrive."""
        word, pages = self.down[number].popleft()
        part = self.parts[number]
        if word == "grant":
            part.granted(pages)
        else:
            self.up[number].append(("returned", part.recalled()))

    def report(self, number: int) -> None:
        self.up[number].append(("used", self.parts[number].used))

    def die(self, number: int) -> None:
        self.up[number].clear()
        self.down[number].clear()
        self.parts[number] = self._part(number)
        self.shared.died(number)
        self.grant()

    def settle_down(self) -> None:
        """Let every message arrive, and their answers."""
        while any(self.up) or any(self.down):
            for number in range(len(self.parts)):
                while self.up[number]:
                    self.hear_one(number)
                while self.down[number]:
                    self.deliver_one(number)

    def round(self) -> None:
        """One tick of everything, as when nothing else happens."""
        for number in range(len(self.parts)):
            self.report(number)
        self.settle_down()
        self.tick()
        self.settle_down()


class BudgetMachine(RuleBasedStateMachine):
    """Messages arrive in any order, workers start pages, fail, and die."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 150
        self.highest = self.limit  # since the limit fell last, or what was started by then
        self.crew = Crew(self.limit)
        self.started = 0  # pages started less those given back, by all that ever lived
        self.by_worker = [0] * WORKERS  # pages that could be given back
        self.taking = [0] * WORKERS

    workers = st.integers(0, WORKERS - 1)

    @rule(worker=workers, wanted=st.integers(0, 200), share=st.floats(0.0, 1.0))
    def start(self, worker: int, wanted: int, share: float) -> None:
        part = self.crew.parts[worker]
        granted = part.take(wanted)
        assert granted <= wanted
        if granted:
            used = round(granted * share)
            part.settle(used)
            self.started += used
            self.by_worker[worker] += used

    @rule(worker=workers)
    def ask_again(self, worker: int) -> None:
        if self.by_worker[worker]:
            self.by_worker[worker] -= 1
            self.started -= 1
            self.crew.parts[worker].give_back(1)

    @rule(worker=workers)
    def arrive_up(self, worker: int) -> None:
        if self.crew.up[worker]:
            self.crew.hear_one(worker)

    @rule(worker=workers)
    def arrive_down(self, worker: int) -> None:
        if self.crew.down[worker]:
            self.crew.deliver_one(worker)

    @rule(worker=workers)
    def report(self, worker: int) -> None:
        self.crew.report(worker)

    @rule()
    def tick(self) -> None:
        self.crew.tick()

    @rule(worker=workers)
    def die(self, worker: int) -> None:
        self.by_worker[worker] = 0
        self.crew.die(worker)

    @precondition(lambda self: self.limit < 1000)
    @rule(more=st.integers(1, 200))
    def raise_limit(self, more: int) -> None:
        self.limit += more
        self.highest = max(self.highest, self.limit)
        self.crew.shared.set_limit(self.limit)
        self.crew.grant()

    @rule(worker=workers)
    def one_worker_gets_the_rest(self, worker: int) -> None:
        """A worker that wants pages gets all that are not lost, wherever they are held."""
        for _ in range(200):
            got = spend(self.crew.parts[worker], 100)
            self.started += got
            self.by_worker[worker] += got
            self.crew.round()
            if self.crew.shared.is_spent:
                break
        assert self.crew.shared.is_spent
        assert spend(self.crew.parts[worker], 1) == 0

    @invariant()
    def never_more_than_the_limit(self) -> None:
        assert self.started <= self.highest


BudgetMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_budget_machine = BudgetMachine.TestCase


def test_what_was_not_used_goes_back() -> None:
    """Ten pages, eight taken and three used: seven are left."""
    budget = PageBudget(10)

    lent = budget.take(8)
    budget.settle(3)

    assert lent == 8
    assert budget.take(100) == 7


def test_a_loan_is_not_spent() -> None:
    """Pages that were taken and may come back are no reason to end."""
    budget = PageBudget(10)

    budget.take(10)
    while_lent = budget.is_spent
    budget.settle(10)

    assert not while_lent
    assert budget.is_spent


def test_a_page_that_has_to_be_asked_again_is_given_back() -> None:
    """A budget that was spent is not, if a page turns out not to be fetched yet."""
    crew = Crew(1, workers=1)
    crew.parts[0].take(1)
    crew.settle_down()

    first = spend(crew.parts[0], 1)
    crew.round()
    was_spent = crew.shared.is_spent
    crew.parts[0].give_back(1)
    crew.round()

    assert (first, was_spent) == (1, True)
    assert not crew.shared.is_spent
    assert spend(crew.parts[0], 5) == 1


@pytest.mark.parametrize("limit", [None, 500])
def test_a_chunk_is_small_with_a_limit_and_large_without(limit: int | None) -> None:
    """A worker that dies costs the run little; without a limit none has to ask again."""
    crew = Crew(limit, workers=2)

    crew.parts[0].take(10_000)
    crew.settle_down()
    got = crew.parts[0].take(10_000)

    assert got == (10_000 if limit is None else CHUNK)


def test_the_last_pages_go_to_those_that_can_use_them() -> None:
    """One worker holds all pages and waits for its hosts; the other gets them."""
    crew = Crew(8, workers=2)
    for _ in range(8):
        crew.shared.asked(0)
        crew.grant()
        crew.settle_down()

    fetched = 0
    for _ in range(20):
        fetched += spend(crew.parts[1], 8)
        crew.round()

    assert fetched == 8
    assert crew.shared.is_spent


def test_what_a_dead_worker_held_is_not_fetched_by_another() -> None:
    """It may have been fetched after the last report."""
    crew = Crew(40, workers=2)
    crew.parts[0].take(1)
    crew.settle_down()
    held = crew.parts[0].take(100)

    crew.die(0)
    fetched = 0
    for _ in range(40):
        fetched += spend(crew.parts[1], 40)
        crew.round()

    assert held == 10
    assert fetched == 30
    assert crew.shared.is_spent


@pytest.mark.parametrize("limit", [None, 1000])
def test_a_limit_that_falls_is_kept_from_then_on(limit: int | None) -> None:
    """Unused pages are recalled, also those that were granted when there was no limit."""
    crew = Crew(limit, workers=2)
    local = PageBudget(limit)
    fetched = 0
    for worker in (0, 1, 0, 1):
        fetched += spend(crew.parts[worker], 5)
        crew.round()
    spend(local, 10)

    crew.shared.set_limit(12)
    local.set_limit(12)
    crew.round()
    for _ in range(10):
        fetched += sum(spend(part, 5) for part in crew.parts)
        crew.round()

    assert fetched == 12
    assert crew.shared.is_spent
    assert spend(local, 10) == 2
    assert local.is_spent


def test_a_limit_below_what_was_fetched_ends_the_run() -> None:
    """No page is taken back, and none is started."""
    crew = Crew(100, workers=1)
    spend(crew.parts[0], 50)
    crew.settle_down()
    fetched = spend(crew.parts[0], 50)

    crew.shared.set_limit(10)
    crew.round()

    assert fetched > 10
    assert crew.shared.is_spent
    assert spend(crew.parts[0], 50) == 0


def test_a_budget_that_is_granted_pages_is_spent_when_it_is_refused() -> None:
    """It asks once; a new limit, of which it need not know the number, makes it ask again."""
    asked: list[int] = []
    budget = PageBudget(0, ask=lambda: asked.append(1))

    waiting = budget.take(5), budget.is_spent
    budget.granted(0)
    refused = budget.take(5), budget.is_spent, len(asked)
    budget.set_limit(10)
    budget.granted(3)

    assert waiting == (0, False)
    assert refused == (0, True, 1)
    assert len(asked) == 2
    assert (budget.take(5), budget.is_spent) == (3, False)
