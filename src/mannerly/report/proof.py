"""The proof of politeness: what each host asked for, and what was done.

The crawler checks each of its requests when it leaves, apart from the code that schedules them: the
gap to the request before against the gap in force at that moment, and the end of a Retry-After.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.host.audit import TOLERANCE
from mannerly.crawler.model import TRAFFIC_S
from mannerly.crawler.web.words import many

from .table import (
    BadgeTone,
    Cell,
    Column,
    CsvFile,
    Phone,
    ReportTable,
    Row,
    Section,
    clock,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.model import HostRecord

    from .facts import CrawlFacts

_FIELDS = (
    "host", "requests", "gap_in_force_s", "smallest_gap_s", "early_requests", "retry_after_asked",
    "retry_after_kept", "refused", "limit_found_per_s", "limit_used",
)  # fmt: skip
_COLUMNS = (
    Column("Host", width="wide"),
    Column("Requests", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("Gap in force then", Cell.GAP, unit="s"),
    Column("Smallest gap", Cell.GAP, unit="s"),
    Column("Retry-After kept", Cell.TALLY, phone=Phone.HIDDEN),
    Column("Refused", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("Limit found", Cell.RATE, unit="/s", phone=Phone.HIDDEN),
    Column("Limit used", Cell.PART, phone=Phone.HIDDEN),
)
_DOTS = 1000  # hosts with a dot of their own in the chart; more are a histogram
_POINTS = 240  # of the chart of requests
_INTERVALS = 6  # that a statement about the use of a limit needs


class Totals(NamedTuple):
    """The sums over all hosts."""

    requests: int
    refused: int
    early: int  # requests that were sent too early
    retry_afters: int
    retry_afters_broken: int

    @property
    def is_kept(self) -> bool:
        """Return whether no request was early."""
        return not self.early and not self.retry_afters_broken

    @property
    def refused_share(self) -> float:
        """Return the share of refused requests, in per cent."""
        return 100.0 * self.refused / self.requests if self.requests else 0.0


def totals(facts: CrawlFacts) -> Totals:
    """Return the sums over all hosts."""
    hosts = [view.record for view in facts.hosts]
    return Totals(
        requests=sum(host.requests for host in hosts),
        refused=sum(host.refused for host in hosts),
        early=sum(host.early for host in hosts),
        retry_afters=sum(host.retry_afters for host in hosts),
        retry_afters_broken=sum(host.retry_afters_broken for host in hosts),
    )


def sentence(requests: int, early: int, *, is_polite: bool = True) -> str:
    """Return the proof in one sentence: also that of the live page."""
    if not is_polite:
        return "Politeness was switched off for this crawl: no gap was kept."
    if not requests:
        return "No request was sent yet."
    if early:
        return (
            f"{many(early, 'request')} of {requests:,} left too early: please report this as a bug."
        )
    kept = f"All {many(requests, 'request')} kept each host’s gap."
    return f"{kept} None was sent inside a Retry-After."


def section(facts: CrawlFacts) -> Section:
    """Return the proof, host by host."""
    total = totals(facts)
    contacted = [view.record for view in facts.hosts if view.record.requests]
    contacted.sort(key=lambda host: (-host.requests, host.host))
    limits = {view.host: view.limit for view in facts.hosts if view.limit}
    used = _limits_used(facts, limits)
    rows = [
        Row(
            (
                host.host,
                host.requests,
                host.required_gap_s or None,
                host.smallest_gap_s or None,
                _waits(host),
                host.refused,
                limits.get(host.host),
                used.get(host.host),
            )
        )
        for host in contacted
    ]
    values = [_values(host, limits.get(host.host), used.get(host.host)) for host in contacted]
    is_polite = facts.settings.politeness.enabled
    is_kept = total.is_kept and is_polite
    said = sentence(
        total.requests, max(total.early, total.retry_afters_broken), is_polite=is_polite
    )
    word = "kept" if is_kept else "broken" if is_polite else "off"
    return Section(
        "proof",
        "Politeness proof",
        word,
        empty=said,
        table=ReportTable(_COLUMNS, rows, "hosts", sort=1),
        csv=CsvFile("proof.csv", _FIELDS, lambda: values),
        extra={
            "badge": (word.capitalize(), BadgeTone.GOOD if is_kept else BadgeTone.BAD),
            "sentence": said,
            "closest": _closest(contacted),
            "traffic": _traffic(facts),
            "dots": _dots(contacted),
        },
    )


def _values(host: HostRecord, limit: float | None, used: float | None) -> tuple[object, ...]:
    return (
        host.host,
        host.requests,
        round(host.required_gap_s, 6) or None,
        round(host.smallest_gap_s, 6) or None,
        host.early,
        host.retry_afters,
        host.retry_afters - host.retry_afters_broken,
        host.refused,
        None if limit is None else round(limit, 3),
        None if used is None else round(used / 100, 4),
    )


def _waits(host: HostRecord) -> str | None:
    asked = host.retry_afters
    return f"{asked - host.retry_afters_broken:,} of {asked:,}" if asked else None


def _closest(hosts: list[HostRecord]) -> str:
    """Return the request that came closest to its gap, in words."""
    timed = [host for host in hosts if host.smallest_gap_s and host.required_gap_s]
    if not timed:
        return ""
    host = min(timed, key=lambda each: each.smallest_gap_s / each.required_gap_s)
    at = f" at {clock(host.smallest_gap_at)} UTC" if host.smallest_gap_at else ""
    return (
        f"Closest call: {host.smallest_gap_s:.3f} s against {host.required_gap_s:.3f} s in force, "
        f"on {host.host}{at}."
    )


def _dots(hosts: list[HostRecord]) -> dict[str, object] | None:
    """Return smallest gap ÷ gap in force of every host, for a chart; None for one or two hosts."""
    ratios = [
        round(host.smallest_gap_s / host.required_gap_s, 3)
        for host in hosts
        if host.smallest_gap_s and host.required_gap_s
    ]
    if len(ratios) < 3:
        return None
    if len(ratios) <= _DOTS:
        return {"ratios": ratios}
    bins = [0] * 40  # from 0.9 to 1.3, in hundredths
    for ratio in ratios:
        bins[min(39, max(0, int((ratio - 0.9) * 100)))] += 1
    return {"bins": bins, "early": sum(ratio < TOLERANCE for ratio in ratios)}


def _traffic(facts: CrawlFacts) -> dict[str, object] | None:
    """Return requests and refusals over time, in at most 240 steps; None without two moments."""
    if len(facts.traffic) < 2:
        return None
    first, last = facts.traffic[0].start, facts.traffic[-1].start
    intervals = int((last - first) / TRAFFIC_S) + 1
    each = -(-intervals // _POINTS)
    step_s = TRAFFIC_S * each
    count = -(-intervals // each)
    requests, refused = [0] * count, [0] * count
    for interval in facts.traffic:
        place = int((interval.start - first) / step_s)
        requests[place] += interval.requests
        refused[place] += interval.refused
    return {"start": first, "step_s": step_s, "requests": requests, "refused": refused}


def _limits_used(facts: CrawlFacts, limits: Mapping[str, float]) -> dict[str, float]:
    """Return the pace in the second half of a host's pages against its limit, in per cent.

    The first half was spent on finding the limit.
    """
    moments: dict[str, list[float]] = {host: [] for host in limits}
    for page in facts.pages.values():
        if page.host in moments:
            moments[page.host].append(page.fetched_at)
    used = {}
    for host, instants in moments.items():
        instants.sort()
        late = instants[len(instants) // 2 :]
        width_s = max(10.0, 20.0 / limits[host])
        if len(late) < 2 or late[-1] - late[0] < _INTERVALS * width_s:
            continue
        counts = [0] * int((late[-1] - late[0]) / width_s)
        for moment in late:
            place = int((moment - late[0]) / width_s)
            if place < len(counts):
                counts[place] += 1
        used[host] = 100.0 * median(counts) / width_s / limits[host]
    return used
