"""A host that is suspended for another crawl: no request starts, everything else goes on."""

from __future__ import annotations

from math import inf

from mannerly.politeness import Politeness, Response, Settings
from mannerly.politeness.model import Grant, Reason, Refuse, Wait
from mannerly.politeness.retry import Retry

HOST = "a.example"


def suspended(**settings: object) -> Politeness:
    core = Politeness(Settings(**settings))  # type: ignore[arg-type]
    core.suspend(HOST, now=0.0)
    return core


def test_no_request_starts_until_the_host_is_resumed() -> None:
    core = suspended()

    assert core.reserve(HOST, now=100.0) == Wait(101.0, Reason.SHARED)
    assert core.ready_at(HOST, now=100.0) == inf
    core.resume(HOST)
    assert isinstance(core.reserve(HOST, now=100.0), Grant)


def test_a_request_that_is_connecting_does_not_leave() -> None:
    """When it has ended, nothing is in flight, and the host can be handed over."""
    core = Politeness(Settings())
    decision = core.reserve(HOST, now=0.0)
    assert isinstance(decision, Grant)
    core.suspend(HOST, now=0.0)

    assert not core.may_leave(decision.permit, now=0.1)
    core.cancel(decision.permit, now=0.1)
    assert core.host(HOST).in_flight == 0  # type: ignore[union-attr]


def test_what_an_answer_asks_for_meanwhile_holds_afterwards() -> None:
    """And a retry is not given up because the host is suspended."""
    core = Politeness(Settings())
    decision = core.reserve(HOST, now=0.0)
    assert isinstance(decision, Grant)
    core.sent(decision.permit, now=0.0)
    core.suspend(HOST, now=0.0)
    answer = Response(429, 0.1, {"retry-after": "30"}, None, 0, 0.0)
    outcome = core.report(decision.permit, answer, now=0.1)
    retry = core.retry(decision.permit, answer, outcome, attempt=1, now=0.1)

    assert isinstance(retry, Retry)
    assert 30.0 < core.not_before(HOST) < inf
    core.resume(HOST)
    waits = core.reserve(HOST, now=20.0)
    assert isinstance(waits, Wait)
    assert waits.reason is Reason.RETRY_AFTER


def test_the_gap_counts_from_the_last_request_of_the_other() -> None:
    core = suspended(delay_s=2.0)
    core.contacted(HOST, now=10.0)
    core.resume(HOST)

    decision = core.reserve(HOST, now=11.0)

    assert isinstance(decision, Wait)
    assert decision.until == 12.0


def test_a_pause_of_the_operator_is_what_is_told() -> None:
    """To resume it does not take the host away from the other crawl."""
    core = suspended()
    core.pause(HOST, now=0.0)

    assert core.reserve(HOST, now=1.0) == Refuse(None, Reason.PAUSED)
    core.revive(HOST, now=2.0)
    assert core.reserve(HOST, now=2.0) == Wait(3.0, Reason.SHARED)


def test_a_lent_host_is_neither_evicted_nor_given_up() -> None:
    core = suspended(max_hosts=1, give_up_after_s=1.0)
    core.reserve("b.example", now=1e6)

    assert HOST in core
    assert not core.waits_too_long(HOST, now=2e6)
