"""Judge a crawler's politeness by the servers' access log.

A crawler's own statistics could hide its own errors. So this module shares no code with the crawler
or with the politeness core, not even a parser of robots.txt: it knows a site's forbidden prefixes
from the site's description. All functions are pure and take the records of one host in order of
arrival, unless they say otherwise; `by_host` splits a whole log into such lists.

Figures, for requests that arrive at t₀ ≤ t₁ ≤ …

    smallest gap        = min(tᵢ₊₁ − tᵢ), counting requests of every kind
    settled rate        = requests served in the last 10 s / time from the first to the last of them
    inside Retry-After  = requests after an answer with Retry-After was sent, before its end
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .sites import Site

REFUSALS = frozenset({429, 503})
ROBOTS_PATH = "/robots.txt"
GAP_TOLERANCE = 0.02  # of the gap: requests take unequal time from the client to the server
# Two instants of the log can be this much too close: 16 ms on Windows before Python 3.13, next to
# nothing elsewhere.
CLOCK_STEP_S = time.get_clock_info("monotonic").resolution
# Seconds that a client needs to read a Retry-After: requests already on their way do not count.
GRACE_S = 0.05
WIDE = 120  # columns from which on a table has the descriptions of the hosts
_ABOVE = (
    "A share above 100 % (of the last 10 s) is allowed: such a limit saves up what",
    "was not used before, and a bucket that was full may be emptied at once.",
)
SETTLED_S = 10.0  # the settled rate is taken over this many last seconds


class Record(NamedTuple):
    """One request as the server saw it. Instants are seconds of the machine's monotonic clock.

    t: when the request arrived.
    status: of the answer; 0 if the connection was closed or left open without an answer.
    bytes: length of the body as sent.
    answered_at: when the last byte was sent, or the connection closed instead of an answer; None
        if the request is not answered yet, or the client closed the connection before.
    silent_until: the end of the time without requests that a Retry-After asked for, or None.
    in_flight: the host's unanswered requests at the arrival, including this one.
    """

    t: float
    host: str
    method: str
    path: str
    status: int
    user_agent: str
    connection: int
    bytes: int
    answered_at: float | None
    silent_until: float | None
    in_flight: int


def read_log(path: str | Path) -> list[Record]:
    """Return the records of a log file (JSON lines), in order of arrival."""
    with Path(path).open(encoding="utf-8") as lines:
        return sorted(Record(*json.loads(line)) for line in lines)


def by_host(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Split a log by host; each host's records are in order of arrival."""
    hosts: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.t):
        hosts[record.host].append(record)
    return dict(hosts)


def gaps_s(records: Sequence[Record]) -> list[float]:
    """Return the seconds from each request to the next."""
    return [later.t - earlier.t for earlier, later in pairwise(records)]


def smallest_gap_s(records: Sequence[Record]) -> float:
    """Return the smallest gap between two requests; infinite for fewer than two."""
    return min(gaps_s(records), default=inf)


def rates(records: Sequence[Record], window_s: float = 1.0) -> list[float]:
    """Return requests/s in each window since the first request; the last may be incomplete."""
    if not records:
        return []
    counts = Counter(int((record.t - records[0].t) / window_s) for record in records)
    return [counts[window] / window_s for window in range(max(counts) + 1)]


def served(records: Sequence[Record]) -> list[Record]:
    """Return the requests with an answer but 429 and 503; an error such as 404 counts as served."""
    return [record for record in records if record.status and record.status not in REFUSALS]


def refusals(records: Sequence[Record]) -> list[Record]:
    """Return the requests that were answered with 429 or 503."""
    return [record for record in records if record.status in REFUSALS]


def settled_rate(records: Sequence[Record], last_s: float = SETTLED_S) -> float:
    """Return served requests/s in the `last_s` seconds before the host's last served request.

    0 for fewer than two requests.
    """
    answers = served(records)
    recent = [record.t for record in answers if record.t >= answers[-1].t - last_s]
    if len(recent) < 2:
        return 0.0
    span_s = recent[-1] - recent[0]
    return (len(recent) - 1) / span_s if span_s > 0 else inf


def inside_retry_after(records: Sequence[Record], grace_s: float = GRACE_S) -> list[Record]:
    """Return the requests that arrived before the end of a Retry-After that was sent earlier."""
    spans = sorted(
        (record.answered_at + grace_s, record.silent_until)
        for record in records
        if record.silent_until is not None and record.answered_at is not None
    )
    early, silent_until, begun = [], -inf, 0
    for record in records:
        while begun < len(spans) and spans[begun][0] < record.t:
            silent_until = max(silent_until, spans[begun][1])
            begun += 1
        if record.t < silent_until:
            early.append(record)
    return early


def robots_fetches(records: Sequence[Record]) -> int:
    """Return the number of requests for /robots.txt."""
    return sum(record.path == ROBOTS_PATH for record in records)


def before_robots(records: Sequence[Record]) -> list[Record]:
    """Return the requests that arrived before the first robots.txt was answered."""
    known_at = next((r.answered_at for r in records if _is_robots(r) and r.answered_at), inf)
    return [r for r in records if r.t < known_at and not r.path.endswith(ROBOTS_PATH)]


def disallowed(records: Sequence[Record], prefixes: Iterable[str]) -> list[Record]:
    """Return the requests for a path with a forbidden prefix; robots.txt is always allowed."""
    forbidden = tuple(prefixes)
    return [r for r in records if r.path.startswith(forbidden) and not _is_robots(r)]


def most_in_flight(records: Sequence[Record]) -> int:
    """Return the largest number of unanswered requests at one time."""
    return max((record.in_flight for record in records), default=0)


def repeats(records: Sequence[Record]) -> dict[str, int]:
    """Return the paths that were answered with 200 more than once, with their counts."""
    counts = Counter(record.path for record in records if record.status == 200)
    return {path: count for path, count in counts.items() if count > 1}


def _is_robots(record: Record) -> bool:
    return record.path == ROBOTS_PATH


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """The judgement on one host: its limit, its traffic, and every broken promise in words."""

    name: str
    host: str
    about: str
    true_rate: float  # infinite for a host without a limit
    settled_rate: float
    requests: int
    served: int
    refused: int
    robots: int
    smallest_gap_s: float
    most_in_flight: int
    broken: tuple[str, ...]

    @property
    def is_polite(self) -> bool:
        """Return whether no promise was broken; a refusal (429, 503) is not a broken promise."""
        return not self.broken


def judge(
    site: Site, records: Sequence[Record], *, host: str = "", least_gap_s: float = 0.0
) -> HostVerdict:
    """Judge one host's records.

    Args:
        site: the host's description; its Crawl-delay and forbidden prefixes must be respected.
        records: of this host, in order of arrival.
        host: the netloc to report for a host without any record.
        least_gap_s: minimum gap that the crawler promised; a longer Crawl-delay replaces it.
    """
    return HostVerdict(
        name=site.name,
        host=records[0].host if records else host,
        about=site.about,
        true_rate=site.true_rate,
        settled_rate=settled_rate(records),
        requests=len(records),
        served=len(served(records)),
        refused=len(refusals(records)),
        robots=robots_fetches(records),
        smallest_gap_s=smallest_gap_s(records),
        most_in_flight=most_in_flight(records),
        broken=tuple(_broken(site, records, least_gap_s)),
    )


def _broken(site: Site, records: Sequence[Record], least_gap_s: float) -> Iterable[str]:
    gap_s = max(least_gap_s, site.asked_delay_s)
    least_s = gap_s * (1 - GAP_TOLERANCE) - CLOCK_STEP_S
    close = [gap for gap in gaps_s(records) if gap < least_s]
    if close:
        yield f"{len(close)} gaps below {gap_s:g} s, the smallest {min(close):.3f} s"
    if early := inside_retry_after(records):
        yield f"{len(early)} requests inside a Retry-After, the first {early[0].path}"
    if rude := disallowed(records, site.forbidden):
        yield f"{len(rude)} disallowed requests, the first {rude[0].path}"
    if blind := before_robots(records):
        yield f"{len(blind)} requests before robots.txt, the first {blind[0].path}"


def judge_all(
    sites: Mapping[str, Site], records: Iterable[Record], *, least_gap_s: float = 0.0
) -> list[HostVerdict]:
    """Judge every host of a web, also those without a request; `sites` maps netlocs to sites."""
    hosts = by_host(records)
    return [
        judge(site, hosts.get(host, []), host=host, least_gap_s=least_gap_s)
        for host, site in sites.items()
    ]


def table(verdicts: Sequence[HostVerdict], *, columns: int = WIDE) -> str:
    """Format verdicts as text: one line per host, then one line per broken promise.

    The hosts are described in the last column if there are `WIDE` columns. A share above 100 % is
    explained: a limit that saves up what was not used may be exceeded for a while.
    """
    head = ("Host", "Limit/s", "Settled", "Share", "Requests", "Refused", "Smallest gap", "")
    rows = [head, *(_row(verdict) for verdict in verdicts)]
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:7], widths[1:], strict=True)]
        about = row[7] if columns >= WIDE else ""
        lines.append("  ".join([*cells, about]).rstrip())
    lines += [f"! {v.name}: {what}" for v in verdicts for what in v.broken]
    if any(verdict.settled_rate >= 1.005 * verdict.true_rate for verdict in verdicts):
        lines += ["", *_ABOVE]
    return "\n".join(lines)


def _row(verdict: HostVerdict) -> tuple[str, ...]:
    limited = isfinite(verdict.true_rate)
    gap_s = verdict.smallest_gap_s
    return (
        verdict.name,
        f"{verdict.true_rate:.2f}" if limited else "none",
        f"{verdict.settled_rate:.2f}",
        f"{100 * verdict.settled_rate / verdict.true_rate:.0f} %" if limited else "–",
        str(verdict.requests),
        str(verdict.refused),
        f"{gap_s:.3f} s" if isfinite(gap_s) else "–",
        verdict.about,
    )
