"""Answers to checks: does the target of a link exist? It is asked for, recorded, and never parsed.

    CHECK       asked with HEAD: the answer without its body
    CHECK_GET   the same with GET, where a server refuses HEAD

A redirect leads to a check of its target, whatever the scope of the crawl: it belongs to the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import Candidate, Kind
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.urls import host_key_of

from .record import Harvest, page_record
from .redirects import REDIRECTS, dead_end, redirect_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry, Fetched

    from .rules import LinkRules

CHECKS = frozenset({Kind.CHECK, Kind.CHECK_GET})
# Statuses with which servers refuse HEAD; what they say of the page is asked with GET.
HEAD_REFUSED = frozenset({400, 403, 405, 406, 500, 501})
MAX_BYTES = 64 * 1024  # of the answer to a GET: only its status counts
_PRIORITY = 64  # after the seeds of a host


def check_candidates(urls: Iterable[str]) -> list[Candidate]:
    """Return canonical URLs as targets that are to be checked."""
    return [Candidate(url, host_key_of(url), 1, _PRIORITY, None, kind=Kind.CHECK) for url in urls]


def is_refused_head(entry: Entry, answer: Fetched) -> bool:
    """Return whether a check has to be asked again with GET."""
    return entry.kind == Kind.CHECK and answer.status in HEAD_REFUSED


def harvest_check(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a check, and the target of a redirect as the next one."""
    record = page_record(entry, answer, wall)
    if answer.is_truncated:
        record = record._replace(error=None)
    if answer.status not in REDIRECTS:
        return Harvest(record, [], {})
    target = redirect_target(entry, answer, rules)
    record = record._replace(redirect_to=target)
    error = dead_end(entry, target, rules)
    if target is None or error is not None:
        return Harvest(record._replace(error=error), [], {})
    if rules.scope.excludes(target):
        return Harvest(record, [], {SkipReason.EXCLUDED.value: 1})
    (candidate,) = check_candidates([target])
    return Harvest(record, [candidate._replace(parent=entry.url, hops=entry.hops + 1)], {})
