"""How many requests may be under way: few while we are slow ourselves, all while we are not."""

from __future__ import annotations

import pytest

from mannerly.crawler.runtime.governor import FEWEST, FIRST, Governor

MOST = 512


def grown(most: int = MOST) -> Governor:
    """One that has had nothing but short turns."""
    governor = Governor(most)
    for _ in range(100):
        governor.turned(0.001)
    return governor


def test_a_crawl_begins_with_few_and_soon_has_all() -> None:
    """Twelve quick turns make 128 into 512, and it stays there."""
    governor = Governor(MOST)
    totals = [governor.total]
    while totals[-1] < MOST:
        governor.turned(0.001)
        totals.append(governor.total)

    assert totals[0] == FIRST
    assert totals == sorted(totals)
    assert len(totals) == 13
    assert grown().total == MOST


@pytest.mark.parametrize("most", [1, 5, 40])
def test_the_operator_has_the_last_word(most: int) -> None:
    """Few are few from the start, and neither kind of slowness makes more of them."""
    governor = Governor(most)
    for _ in range(50):
        governor.turned(0.3)

    assert Governor(most).total == most
    assert grown(most).total == most
    assert governor.total == min(most, FEWEST)


def test_long_turns_leave_a_core_of_requests() -> None:
    """Something goes on, however long they are; one that is neither long nor short says nothing."""
    governor = grown()
    governor.turned(0.2)
    after_one = governor.total
    governor.turned(0.07)
    after_two = governor.total
    for _ in range(100):
        governor.turned(0.2)

    assert after_one == after_two == 460
    assert governor.total == FEWEST


def test_slow_commits_count_once_a_second() -> None:
    """A commit that began before the last change knows nothing of it."""
    governor = grown()
    totals = []
    for now in (10.0, 10.5, 11.0):
        governor.committed(0.6, now)
        totals.append(governor.total)

    assert totals == [358, 358, 250]


def test_quick_commits_give_back_what_slow_ones_took() -> None:
    """By a twentieth a second, up to all."""
    governor = grown()
    for second in range(30):
        governor.committed(0.6, float(second))
    fewest = governor.total
    governor.committed(0.3, 30.0)
    neither = governor.total
    for second in range(200):
        governor.committed(0.01, 31.0 + second)

    assert fewest == neither == 1
    assert governor.total == MOST


def test_short_turns_do_not_hide_slow_commits() -> None:
    """The slower of the two decides."""
    governor = grown()
    governor.committed(0.6, 1.0)
    for _ in range(100):
        governor.turned(0.001)

    assert governor.total == 358


def test_a_member_that_outruns_an_owner_slows_to_a_quarter() -> None:
    """By three tenths, once a second, however often it is told; quick commits bring it back."""
    governor = grown()
    totals = []
    for now in (10.0, 10.5, 11.0, 12.0, 13.0, 14.0, 15.0):
        governor.outran(now)
        governor.committed(0.01, now)
        totals.append(governor.total)
    for second in range(60):
        governor.committed(0.01, 16.0 + second)

    assert totals == [358, 358, 250, 175, 128, 128, 128]
    assert governor.total == MOST


def test_a_member_that_is_slow_already_is_not_sped_up_by_outrunning() -> None:
    """A quarter is the least that this reason leaves; others may have left less."""
    governor = grown()
    for second in range(30):
        governor.committed(0.6, float(second))
    governor.outran(40.0)

    assert governor.total == 1
