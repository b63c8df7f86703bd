"""--max-urls among several processes, one of which may die at the worst instant."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.runtime.budget import LocalBudget, SharedBudget

if TYPE_CHECKING:
    from multiprocessing.synchronize import Lock

SPAWN = multiprocessing.get_context("spawn")
FORK = multiprocessing.get_context("fork")


class KnownLock:
    """A context whose lock the test has, too."""

    def __init__(self) -> None:
        self.lock = SPAWN.Lock()
        self.Array = SPAWN.Array

    def Lock(self) -> Lock:  # noqa: N802 - the name is the context's
        return self.lock


def test_what_was_not_used_goes_back() -> None:
    """Ten pages, eight lent and three used: seven are left."""
    budget = LocalBudget(10)

    lent = budget.take(8)
    budget.settle(3)

    assert lent == 8
    assert budget.take(100) == 7


def test_a_loan_is_not_spent() -> None:
    """Whoever looks while pages are on loan must not take that for the end."""
    budget = SharedBudget(SPAWN, 10, 2)

    budget.share(0).take(10)
    while_lent = budget.is_spent
    budget.share(0).settle(10)

    assert not while_lent
    assert budget.is_spent


def test_a_page_that_has_to_be_asked_again_is_given_back() -> None:
    """A budget that was spent is not, if a page turns out not to be fetched yet."""
    budget = SharedBudget(SPAWN, 1, 1)
    share = budget.share(0)

    share.take(1)
    share.settle(1)
    share.give_back(1)

    assert not budget.is_spent
    assert share.take(5) == 1


@pytest.mark.parametrize("pages", [None, 5])
def test_processes_share_one_number(pages: int | None) -> None:
    """Together they never get more than there is; without a limit each gets what it wants."""
    budget = SharedBudget(SPAWN, pages, 2)

    lent = [budget.share(0).take(4), budget.share(1).take(4)]

    assert lent == ([4, 4] if pages is None else [4, 1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_dies_with_the_lock_and_a_loan_is_buried() -> None:
    """The others go on; what it had on loan is gone, so that no page is counted twice."""
    context = KnownLock()
    budget = SharedBudget(context, 10, 2)  # type: ignore[arg-type]

    def die() -> None:
        budget.share(0).take(4)
        context.lock.acquire()
        os._exit(9)

    victim = FORK.Process(target=die)
    victim.start()
    victim.join()
    before = budget.is_spent
    budget.bury(0)

    assert not before
    assert budget.share(1).take(100) == 6
    budget.share(1).settle(6)
    assert budget.is_spent
