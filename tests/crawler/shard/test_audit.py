"""The crawler's own check of its spacing, which does not ask the politeness core's schedule.

Requests are declared as sent here at instants that the core would never choose: the audit has to
notice each of them.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.events import RequestSent
from mannerly.crawler.host.audit import Spacing, SpacingAudit, SpacingRule, announced_wait_s
from mannerly.crawler.host.hosts import Hosts
from mannerly.crawler.model import HostRecord
from mannerly.politeness import Grant, Permit, Politeness, Response, Settings, events
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.model import NEVER
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "a.example"
WALL = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT
FIXED = Settings(strategy="fixed", delay_s=0.5, max_rate="unlimited")


def audit_of(settings: Settings) -> SpacingAudit:
    return SpacingAudit(SpacingRule(settings))


def permit(host: str, politeness: Politeness) -> Permit:
    decision = politeness.reserve(host, now=0.0)
    assert isinstance(decision, Grant)
    return decision.permit


def early(audit: SpacingAudit, given: Permit, *instants: float) -> list[bool]:
    return [audit.sent(HOST, given, instant).is_early for instant in instants]


def test_a_request_closer_than_the_operators_minimum_is_early() -> None:
    """The first one has no gap; two per cent are allowed, as promised."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))

    sent = [audit.sent(HOST, given, instant) for instant in (10.0, 10.5, 10.99, 11.47)]

    assert sent[0] == RequestSent(HOST, None, 0.5, is_early=False)
    assert [round(each.gap_s or 0.0, 6) for each in sent[1:]] == [0.5, 0.49, 0.48]
    assert [each.is_early for each in sent] == [False, False, False, True]
    assert {each.delay_s for each in sent} == {0.5}


def crawl_delay(audit: SpacingAudit, _politeness: Politeness, _given: Permit) -> None:
    audit.robots(7.0)


def learned_pace(_audit: SpacingAudit, politeness: Politeness, _given: Permit) -> None:
    lesson = Lesson(delay_s=7.0, is_proven=True)
    politeness.recall(Remembered(host=HOST, lesson=lesson, updated_at=WALL), now=0.0, wall=WALL)


def quota(_audit: SpacingAudit, politeness: Politeness, given: Permit) -> None:
    headers = {"ratelimit-policy": "5;w=60"}
    politeness.report(given, Response(200, 0.1, headers), now=0.1)


@pytest.mark.parametrize("asks", [crawl_delay, learned_pace, quota])
def test_a_request_closer_than_any_gap_in_force_is_early(
    asks: Callable[[SpacingAudit, Politeness, Permit], None],
) -> None:
    """What robots.txt, the strategy or the server says is compared with, each by itself."""
    settings = Settings(strategy="learned", start_delay_s=0.2, seed=1)
    audit, politeness = audit_of(settings), Politeness(settings)
    given = permit(HOST, politeness)
    before = early(audit, given, 0.0, 0.2)

    asks(audit, politeness, given)
    after = audit.sent(HOST, given, 6.0)

    assert before == [False, False]
    assert after.delay_s > 6.0
    assert after.is_early
    assert not audit.sent(HOST, given, 6.0 + 1.3 * after.delay_s).is_early


def test_a_maximum_rate_is_a_gap() -> None:
    """Four requests a second are a quarter of a second apart."""
    settings = Settings(strategy="fixed", start_delay_s=0.01, min_delay_s=0.0, max_rate=4.0)
    audit, given = audit_of(settings), permit(HOST, Politeness(settings))

    assert early(audit, given, 0.0, 0.25, 0.45) == [False, False, True]


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "172800"}, 172_800.0),
        ({"retry-after": "9" * 5000}, inf),
        ({"retry-after": "10, 30"}, 30.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}, 30.0),
        (
            {
                "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT",
                "date": "Sun, 06 Nov 1994 08:50:00 GMT",
            },
            7.0,
        ),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT", "date": "yesterday"}, 30.0),
        *(({"retry-after": text}, 0.0) for text in ("", "0", "-5", "1_000", "９", "inf", "soon")),
        ({"retry-after": "Sun, 36 Nov 1994 08:50:07 GMT"}, 0.0),
        ({}, 0.0),
    ],
)
def test_a_request_inside_a_retry_after_is_early(headers: dict[str, str], wait_s: float) -> None:
    """It is read by the audit's own parser, and to the second."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    audit.refused(headers, 100.0, WALL)
    instants = [100.0 + share * min(wait_s, 1e6) for share in (0.5, 0.9, 1.0)]

    assert announced_wait_s(headers, WALL) == wait_s
    if 0.0 < wait_s < inf:
        assert early(audit, given, *instants) == [True, True, False]
    else:
        assert early(audit, given, 101.0) == [wait_s == inf]


def test_a_request_to_an_open_breaker_is_early() -> None:
    """It says itself until when it is open; a probe after that is not early."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    audit.heard(events.Opened(HOST, 0.0, 60.0, 1))

    while_open = early(audit, given, 59.0)
    audit.heard(events.HalfOpened(HOST, 61.0))

    assert while_open == [True]
    assert early(audit, given, 61.0) == [False]


def test_a_host_that_the_operator_revived_may_be_contacted() -> None:
    """An unreadable Retry-After lasts for ever, but for the operator's word."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    audit.blocked(inf)
    before = early(audit, given, 1.0)

    audit.heard(events.Revived(HOST, 2.0))

    assert (before, early(audit, given, 3.0)) == ([True], [False])


def test_forgotten_rules_do_not_hold_any_more() -> None:
    """`host forget` and a robots.txt without a Crawl-delay end one."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    audit.robots(10.0)
    audit.sent(HOST, given, 0.0)
    audit.unlearned()
    after_forget = early(audit, given, 1.0)
    audit.robots(10.0)
    audit.robots(None)

    assert (after_forget, early(audit, given, 2.0)) == ([False], [False])


def test_a_capped_crawl_delay_is_compared_as_capped() -> None:
    """The operator chose to go faster than an absurd robots.txt asks for."""
    settings = Settings(
        strategy="fixed", delay_s=0.5, max_crawl_delay_s=5.0, long_crawl_delay="cap"
    )
    audit, given = audit_of(settings), permit(HOST, Politeness(settings))
    audit.robots(1e9)

    assert early(audit, given, 0.0, 5.0, 9.0) == [False, False, True]


def test_the_smallest_gap_is_kept_with_the_gap_in_force() -> None:
    """So are the early ones and the waits that were asked for, from run to run."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    nothing = audit.noted
    early(audit, given, 0.0, 0.6, 1.5, 1.6)
    audit.refused({"retry-after": "3"}, 1.6, 0.0)
    early(audit, given, 2.6)
    noted = audit.noted

    later = audit_of(FIXED)
    later.recall(
        HostRecord(
            HOST,
            smallest_gap_s=noted.smallest_gap_s,
            required_gap_s=noted.required_gap_s,
            early=noted.early,
            retry_afters=noted.retry_afters,
            retry_afters_broken=noted.retry_afters_broken,
        ),
    )
    early(later, given, 0.0, 0.9)

    assert nothing == Spacing()
    assert noted == Spacing(pytest.approx(0.1), 0.5, 1.6, 2, 1, 1)
    assert later.noted == noted._replace(smallest_at=NEVER)


def test_hosts_of_one_budget_are_checked_together() -> None:
    """The gap counts between hosts that share a budget, and not between others."""
    settings = Settings(enabled=False, group_by="site")
    politeness = Politeness(settings)
    hosts = Hosts(settings, politeness.key)
    names = ("www.a.example", "blog.a.example", "www.b.example")

    sent = [
        hosts.budget(hosts.key(name)).sent(name, permit(name, politeness), 1.0) for name in names
    ]

    assert [(each.host, each.gap_s, each.is_early) for each in sent] == [
        ("www.a.example", None, False),
        ("blog.a.example", 0.0, False),
        ("www.b.example", None, False),
    ]


def test_the_longest_crawl_delay_of_a_group_holds() -> None:
    """A second host without one does not end the first one's."""
    settings = Settings(strategy="fixed", delay_s=0.5, group_by="site")
    audit, given = audit_of(settings), permit("www.a.example", Politeness(settings))
    audit.robots(5.0, is_grouped=True)
    audit.robots(None, is_grouped=True)

    sent = [audit.sent("www.a.example", given, instant) for instant in (0.0, 4.0)]

    assert [each.is_early for each in sent] == [False, True]


def test_a_forgotten_budget_begins_anew() -> None:
    """The politeness core forgets only what is idle, so any gap is over."""
    audit, given = audit_of(FIXED), permit(HOST, Politeness(FIXED))
    audit.sent(HOST, given, 1.0)

    audit.forget()

    assert audit.sent(HOST, given, 1.1).gap_s is None


def test_bursts_that_the_operator_allowed_are_not_early() -> None:
    """A bucket of five may be emptied at once where there is no minimum delay."""
    settings = Settings(strategy="aimd", min_delay_s=0.0, aimd_burst=5, max_rate="unlimited")
    audit, given = audit_of(settings), permit(HOST, Politeness(settings))

    assert early(audit, given, 0.0, 0.0, 0.0) == [False] * 3
