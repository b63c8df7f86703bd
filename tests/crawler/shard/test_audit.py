"""The crawler's own check of its spacing, which does not ask the politeness core."""

from __future__ import annotations

from mannerly.crawler.events import RequestSent
from mannerly.crawler.shard.audit import SpacingAudit
from mannerly.politeness import Grant, Permit, Politeness, Settings

FLOOR_S = 0.5


def permit(host: str, politeness: Politeness) -> Permit:
    decision = politeness.reserve(host, now=0.0)
    assert isinstance(decision, Grant)
    return decision.permit


def test_a_request_closer_than_the_operators_minimum_is_early() -> None:
    """The first one has no gap; two per cent are allowed, as promised."""
    audit = SpacingAudit(FLOOR_S)
    given = permit("a.example", Politeness(Settings(strategy="fixed", delay_s=2.0)))

    sent = [audit.sent("a.example", given, instant) for instant in (10.0, 10.5, 10.99, 11.47)]

    assert sent[0] == RequestSent("a.example", None, 2.0, is_early=False)
    assert [round(each.gap_s or 0.0, 6) for each in sent[1:]] == [0.5, 0.49, 0.48]
    assert [each.is_early for each in sent] == [False, False, False, True]
    assert {each.delay_s for each in sent} == {2.0}


def test_hosts_of_one_budget_are_checked_together() -> None:
    """The gap counts between hosts that share a budget, and not between others."""
    settings = Settings(enabled=False, group_by="site")
    politeness, audit = Politeness(settings), SpacingAudit(FLOOR_S)
    hosts = ("www.a.example", "blog.a.example", "www.b.example")

    sent = [audit.sent(host, permit(host, politeness), 1.0) for host in hosts]

    assert [(each.host, each.gap_s) for each in sent] == [
        ("www.a.example", None),
        ("blog.a.example", 0.0),
        ("www.b.example", None),
    ]


def test_a_forgotten_budget_begins_anew() -> None:
    """The politeness core forgets only what is idle, so any gap is over."""
    audit = SpacingAudit(FLOOR_S)
    given = permit("a.example", Politeness(Settings(strategy="fixed", delay_s=1.0)))
    audit.sent("a.example", given, 1.0)

    audit.forget("a.example")
    audit.forget("never.met")

    assert audit.sent("a.example", given, 1.1).gap_s is None
