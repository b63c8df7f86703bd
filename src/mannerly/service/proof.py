"""The politeness proof: of each host the smallest gap, and the gap that was in force at the time.

The figures are those of the audit (`crawler.host.audit`), which shares nothing with the code that
sets the pace.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Any

from mannerly.report.proof import sentence

if TYPE_CHECKING:
    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import HostRecord

MOST_HOSTS = 1000  # that are shown, the closest first
FIRST, STEP, STEPS = 0.95, 0.005, 50  # of the histogram


def proof(crawl: View) -> dict[str, Any]:
    """Return a sentence, and the hosts whose smallest gap was closest to the one in force."""
    requests = early = hosts = 0
    measured: list[HostRecord] = []
    for reader in crawl.readers:
        for record in reader.hosts():
            hosts += 1
            requests += _requests(record)
            early += record.early
            if record.required_gap_s > 0:
                measured.append(record)
    closest = heapq.nsmallest(MOST_HOSTS, measured, key=_ratio)
    return {
        "requests": requests,
        "measured_hosts": len(measured),
        "histogram": _histogram(measured) if len(measured) >= MOST_HOSTS else [],
        "early": early,
        "all_hosts": hosts,
        "sentence": sentence(requests, early),
        "hosts": [
            {
                "host": record.host,
                "requests": _requests(record),
                "smallest_gap_s": record.smallest_gap_s,
                "required_gap_s": record.required_gap_s,
                "refused": record.refused,
                "early": record.early,
                "at": record.smallest_gap_at,
                "retry_afters": record.retry_afters,
                "retry_afters_kept": max(0, record.retry_afters - record.retry_afters_broken),
            }
            for record in closest
        ],
    }


def _requests(record: HostRecord) -> int:
    return record.requests or record.fetched + record.refused + record.failed


def _ratio(record: HostRecord) -> float:
    return record.smallest_gap_s / record.required_gap_s


def _histogram(records: list[HostRecord]) -> list[tuple[float, int]]:
    """Return how many hosts have which ratio: steps of 0.005 from 0.95 to 1.2, the rest at it."""
    counts = Counter(min(STEPS, max(0, int((_ratio(each) - FIRST) / STEP))) for each in records)
    return [(round(FIRST + STEP * number, 3), counts[number]) for number in range(STEPS + 1)]
