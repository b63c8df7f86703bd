"""A redirect is a link that keeps its depth: every hop goes through the frontier like any URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import Candidate
from mannerly.crawler.web.seeds import has_moved
from mannerly.crawler.web.urls import canonical, host_key_of

from .record import Harvest, page_record

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, Fetched

    from .rules import LinkRules

REDIRECTS = frozenset({301, 302, 303, 307, 308})


def redirect_target(entry: Entry, answer: Fetched, rules: LinkRules) -> str | None:
    """Return the canonical URL in the Location header; None if there is none."""
    location = answer.headers.get("location")
    return canonical(location, entry.url, rules.urls) if location else None


def dead_end(entry: Entry, target: str | None, rules: LinkRules) -> str | None:
    """Return the error of a redirect that cannot be followed; None if it can."""
    if target is None:
        return "bad_redirect"
    if entry.hops >= rules.max_redirects:
        return "too_many_redirects"
    return "redirect_loop" if target == entry.url else None


def harvest_redirect(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a redirect, and its target as a candidate if it may be followed.

    A seed that redirects within its site widens the scope: it has moved.
    """
    target = redirect_target(entry, answer, rules)
    record = page_record(entry, answer, wall, redirect_to=target)
    error = dead_end(entry, target, rules)
    if target is None or error is not None:
        return Harvest(record._replace(error=error), [], {})
    if entry.depth == 0 and has_moved(entry.url, target):
        rules.seed_moved(target)
    reason = rules.scope.judge(target, entry.depth)
    if reason is not None:
        return Harvest(record, [], {reason.value: 1})
    hop = Candidate(
        target, host_key_of(target), entry.depth, entry.priority, entry.url, entry.hops + 1
    )
    return Harvest(record, [hop], {})
