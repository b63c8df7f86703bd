"""Judge a crawl whose workers were killed by the log of its servers, and by who owned which shard.

A worker that is killed takes with it what it had not committed. The times of that are promised: a
page is committed within PAGE_S of its last byte, a Retry-After or Crawl-delay within PAUSE_S of its
arrival. So

    in flight at a kill   requests of the dead worker that were not answered, or in its last PAGE_S
    untold                a Retry-After or robots.txt that was answered in its last PAUSE_S: no
                          other worker can know of it, and it is counted apart

and everything else that was fetched twice, came too early or is missing is a broken promise.
This module opens no connection; it shares no code with the crawler but the shard of a host.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.demo.log import GAP_TOLERANCE, ROBOTS_PATH, by_host, inside_retry_after

from ._owners import owner_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mannerly.demo import Site
    from mannerly.demo.log import Record

    from ._owners import Claim, Kill

PAGE_S, PAUSE_S = 1.0, 0.5
SEEN_S = 0.5  # later at most, a claim of before a kill is known


class Judged(NamedTuple):
    """What the servers saw."""

    twice: list[Record]  # the first answers of pages that were answered again later
    in_flight: int  # requests of all killed workers at their end
    unexplained: list[Record]  # of `twice`: none of those in flight
    retry_afters: int
    inside: list[Record]  # requests inside a Retry-After
    untold: int
    smallest_gap_s: float  # of hosts without a Crawl-delay
    smallest_delay_s: float  # of hosts with one
    close: list[tuple[Record, Record]]  # closer to each other than the gap in force


def judge(
    log: Sequence[Record],
    sites: Mapping[str, Site],
    claims: Mapping[int, list[Claim]],
    kills: Sequence[Kill],
    gap_s: float,
) -> Judged:
    """Judge the log of a crawl with this delay."""
    sharding = Sharding(len(claims))
    deaths: dict[str, list[float]] = defaultdict(list)  # of the owners of each host
    for host in sites:
        own = claims[sharding.shard_of(host)]
        deaths[host] = [kill.t for kill in kills if owner_at(own, kill.t + SEEN_S) == kill.member]
    twice, unexplained = _repeated(log, deaths)
    untold = {
        record for record in log if _teaches(record, sites) and _died(record, deaths, PAUSE_S)
    }
    gaps: dict[bool, float] = {True: inf, False: inf}
    close, inside = [], []
    for host, records in by_host(log).items():
        told = [each._replace(silent_until=None) if each in untold else each for each in records]
        inside += inside_retry_after(told)
        asked_s = sites[host].asked_delay_s
        for first, after in pairwise(records):
            is_unknown = asked_s and any(each.host == host and each.t <= first.t for each in untold)
            least_s = gap_s if is_unknown else max(gap_s, asked_s)
            gaps[bool(asked_s)] = min(gaps[bool(asked_s)], after.t - first.t)
            if after.t - first.t < least_s * (1 - GAP_TOLERANCE) - 0.02:
                close.append((first, after))
    return Judged(
        twice,
        sum(_died(record, deaths, PAGE_S) for record in log),
        unexplained,
        sum(record.silent_until is not None for record in log),
        inside,
        len(untold),
        gaps[False],
        gaps[True],
        close,
    )


def _repeated(
    log: Sequence[Record], deaths: Mapping[str, list[float]]
) -> tuple[list[Record], list[Record]]:
    """Return the answers of pages that were answered again, and those of them without a reason."""
    last: dict[tuple[str, str], Record] = {}
    twice = []
    for record in log:
        if record.status == 200 and record.path != ROBOTS_PATH:
            if before := last.get((record.host, record.path)):
                twice.append(before)
            last[record.host, record.path] = record
    return twice, [record for record in twice if not _died(record, deaths, PAGE_S)]


def _teaches(record: Record, sites: Mapping[str, Site]) -> bool:
    """Return whether an answer says how long to wait."""
    is_rules = record.path == ROBOTS_PATH and sites[record.host].asked_delay_s
    return record.silent_until is not None or bool(is_rules)


def _died(record: Record, deaths: Mapping[str, list[float]], last_s: float) -> bool:
    """Return whether the owner of a host was killed before an answer, or so soon after it."""
    answered = inf if record.answered_at is None else record.answered_at
    return any(record.t <= t <= answered + last_s for t in deaths[record.host])
