"""The politeness proof: of each host the smallest gap, and the gap that was in force at the time.

The figures are those of the audit (`crawler.shard.audit`), which shares nothing with the code that
sets the pace.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import HostRecord

MOST_HOSTS = 1000  # that are shown, the closest first


def proof(crawl: View) -> dict[str, Any]:
    """Return a sentence, and the hosts whose smallest gap was closest to the one in force."""
    requests = early = hosts = 0
    measured: list[HostRecord] = []
    for reader in crawl.readers:
        for record in reader.hosts():
            hosts += 1
            requests += record.fetched + record.refused + record.failed
            early += record.early
            if record.required_gap_s > 0:
                measured.append(record)
    closest = heapq.nsmallest(MOST_HOSTS, measured, key=_ratio)
    return {
        "requests": requests,
        "early": early,
        "all_hosts": hosts,
        "sentence": sentence(requests, early),
        "hosts": [
            {
                "host": record.host,
                "requests": record.fetched + record.refused + record.failed,
                "smallest_gap_s": record.smallest_gap_s,
                "required_gap_s": record.required_gap_s,
                "refused": record.refused,
                "early": record.early,
            }
            for record in closest
        ],
    }


def sentence(requests: int, early: int) -> str:
    """Return whether every request kept its host's gap, in words."""
    if early:
        return f"{early:,} of {requests:,} requests were sent too early."
    return f"All {requests:,} requests kept each host's gap. None was sent inside a Retry-After."


def _ratio(record: HostRecord) -> float:
    return record.smallest_gap_s / record.required_gap_s
