"""When the work of several processes is done: every process says so, in enough rounds."""

from __future__ import annotations

import pytest

from mannerly.crawler.runtime.agreement import Agreement, WorkProgress
from mannerly.crawler.runtime.ending import Ending

IDLE = WorkProgress(is_idle=True)
BUSY = WorkProgress(in_flight=1)
UNREACHABLE = WorkProgress(has_only_unreachable=True)
SPENT = WorkProgress(is_spent=True)


def test_one_process_that_is_idle_has_finished() -> None:
    assert Agreement(rounds=1).ask([IDLE]) is Ending.FINISHED


@pytest.mark.parametrize("other", [BUSY, WorkProgress()])
def test_work_of_one_process_is_work_of_all(other: WorkProgress) -> None:
    agreement = Agreement(rounds=1)

    assert agreement.ask([IDLE, other]) is None
    assert not agreement.gives_up


def test_processes_that_send_links_are_asked_twice() -> None:
    agreement = Agreement(rounds=2)

    assert agreement.ask([IDLE, IDLE]) is None
    assert agreement.ask([IDLE, IDLE]) is Ending.FINISHED


def test_a_link_that_was_received_between_two_rounds_begins_them_again() -> None:
    """It may have led to another link, which is on its way."""
    agreement = Agreement(rounds=2)
    later = IDLE._replace(received=1)

    endings = [agreement.ask([IDLE, each]) for each in (IDLE, later, later)]

    assert endings == [None, None, Ending.FINISHED]


def test_work_between_two_rounds_begins_them_again() -> None:
    agreement = Agreement(rounds=2)

    endings = [agreement.ask([IDLE, each]) for each in (IDLE, BUSY, IDLE, IDLE)]

    assert endings == [None, None, None, Ending.FINISHED]


def test_a_process_that_is_replaced_begins_them_again() -> None:
    agreement = Agreement(rounds=2)
    agreement.ask([IDLE, IDLE])
    agreement.begin_again()

    assert agreement.ask([IDLE, IDLE]) is None
    assert agreement.ask([IDLE, IDLE]) is Ending.FINISHED


def test_unreachable_hosts_are_given_up_when_no_process_has_other_work() -> None:
    agreement = Agreement(rounds=2)

    said = []
    for other in (BUSY, IDLE, IDLE):
        assert agreement.ask([UNREACHABLE, other]) is None
        said.append(agreement.gives_up)

    assert said == [False, False, True]


def test_a_limit_of_pages_ends_the_run_when_the_last_request_has() -> None:
    """It is known to one that grants pages, or to all processes."""
    granting, taking = Agreement(rounds=2), Agreement(rounds=1)

    ends = [granting.ask([each], is_spent=True) for each in (BUSY, BUSY, WorkProgress())]

    assert ends == [None, None, Ending.MAX_URLS]
    assert taking.ask([SPENT, WorkProgress()]) is None
    assert taking.ask([SPENT, SPENT._replace(in_flight=1)]) is None
    assert taking.ask([SPENT, SPENT]) is Ending.MAX_URLS
