"""Judge a crawl by the servers' log, the export and what was done to it: P1 to P7.

P1 lost         a page that can be reached has no record
P2 twice        a page was served again although no kill explains it: at most as many pages per
                kill as may be in flight
P3 export       a URL has two records
P4 early        two requests to a host closer than the gap in force, or one within a Retry-After
P5 memory       the processes together took more than the bound
P6 silence      no request for so long, without a pause, a stop or a reason that `status` tells
P7 ending       an exit code that does not fit, or work pending after an exit of 0
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mannerly.demo import by_host, paths
from mannerly.demo.log import GRACE_S

from .metronome import NAME as METRONOME
from .nemesis import SLOWER_S, Act

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.demo import DemoWeb, Record

    from .metronome import Metronome
    from .nemesis import Deed

TOLERANCE_S = 0.02
TOLERANCE = 0.98
ORDER_S = 5.0  # an order holds a quarter of a second after it was sent, if a worker can read it
READ_S = 0.25  # from the answer of a server to the commit of what it asks for, at most
_KILLS = {Act.KILL_ALL, Act.KILL_ONE, Act.INTERRUPT_TWICE}


class Violation(NamedTuple):
    """A broken promise, in words."""

    promise: str
    text: str


class Case(NamedTuple):
    """Everything that a judgement needs."""

    web: DemoWeb
    export: Path
    metronome: Metronome
    gap_s: float
    workers: int
    deeds: list[Deed]
    slowed: dict[str, float]


def judge(case: Case) -> Iterator[Violation]:
    """Yield every broken promise that the log and the export show."""
    log = case.web.log()
    yield from _lost_or_repeated(case, log)
    yield from _early(case, log)
    if any(record.host == case.web.canary for record in log):
        yield Violation("S1", "the canary on 127.0.0.1 was contacted")


def _lost_or_repeated(case: Case, log: list[Record]) -> Iterator[Violation]:
    rows = [json.loads(line) for line in case.export.read_text("utf-8").splitlines()]
    urls = Counter(row["url"] for row in rows)
    for host, site in case.web.sites.items():
        if "/" in site.forbidden:
            continue
        missing = [path for path in paths(site) if f"http://{host}{path}" not in urls]
        if missing:
            text = f"{site.name}: {len(missing)} of {site.pages} pages lost, such as {missing[0]}"
            yield Violation("P1", text)
    for url, count in urls.items():
        if count > 1 and url.split("/")[2] in case.web.sites:
            yield Violation("P3", f"{url} is {count} times in the export")
    served = Counter(
        (record.host, record.path)
        for record in log
        if record.status == 200
        and case.web.sites[record.host].name != METRONOME
        and not record.path.endswith(("robots.txt", ".xml", ".gz"))
    )
    repeated = {key: count - 1 for key, count in served.items() if count > 1}
    allowed = case.workers * sum(deed.act in _KILLS for deed in case.deeds)
    # An answer that came too late, because we were stopped, may be asked for again.
    allowed += case.workers * sum(deed.act in (Act.STOP_ONE, Act.STOP_ALL) for deed in case.deeds)
    if sum(repeated.values()) > allowed:
        text = f"{sum(repeated.values())} pages served again, at most {allowed} explained"
        yield Violation("P2", f"{text}; such as {next(iter(repeated))}")


def _early(case: Case, log: list[Record]) -> Iterator[Violation]:
    for host, records in by_host(log).items():
        site = case.web.sites.get(host)
        if site is None or site.name == METRONOME:
            continue
        known_at: float | None = None
        for earlier, later in pairwise(records):
            gap_s = case.gap_s
            if known_at is not None and _is_forgotten(case, known_at, earlier):
                known_at = None
            if known_at is not None and earlier.t > known_at:
                gap_s = max(gap_s, site.asked_delay_s)
            if known_at is None and earlier.path.endswith("/robots.txt") and earlier.status == 200:
                known_at = earlier.answered_at
            slowed_at = case.slowed.get(host)
            if slowed_at is not None and _holds(case, slowed_at, earlier.t):
                gap_s = max(gap_s, SLOWER_S)
            seen_s = later.t - earlier.t
            # As much again: it is measured around that moment, not at that very request.
            late_s = 2.0 * case.metronome.lag_s(earlier.t)
            if seen_s < min(TOLERANCE * gap_s, gap_s - TOLERANCE_S) - late_s:
                yield Violation(
                    "P4",
                    f"{site.name}: {seen_s:.3f} s between {earlier.path} and {later.path} "
                    f"at {later.t:.3f}, gap in force {gap_s:g} s, "
                    f"{1000 * late_s:.0f} ms allowed for late notes",
                )
        for record in _inside_retry_after(case, records):
            yield Violation("P4", f"{site.name}: {record.path} inside a Retry-After")


def _inside_retry_after(case: Case, records: list[Record]) -> list[Record]:
    """Return the requests that came inside a Retry-After which the crawl can have read."""
    spans = [
        (at + GRACE_S + 2.0 * case.metronome.lag_s(at), record.silent_until)
        for record in records
        if record.silent_until and (at := record.answered_at) and not _is_unread(case, record)
    ]
    return [
        record for record in records if any(read_at < record.t < until for read_at, until in spans)
    ]


def _is_unread(case: Case, refusal: Record) -> bool:
    """Return whether a kill came before a refusal could be read and committed."""
    if refusal.silent_until is None or refusal.answered_at is None:
        return False
    at = refusal.answered_at
    within_s = READ_S + 2.0 * case.metronome.lag_s(at)
    stops = [deed for deed in case.deeds if deed.act in (Act.STOP_ALL, Act.STOP_ONE)]
    for kill in (deed for deed in case.deeds if deed.act in _KILLS and deed.ended >= at):
        stopped_s = sum(max(0.0, min(s.ended, kill.began) - max(s.began, at)) for s in stops)
        if kill.began - at - stopped_s < within_s:
            return True
    return False


def _is_forgotten(case: Case, known_at: float, asked: Record) -> bool:
    """Return whether rules are asked for again because a kill came before they were committed."""
    return asked.path == "/robots.txt" and any(
        deed.act in _KILLS and known_at <= deed.ended and deed.began <= asked.t
        for deed in case.deeds
    )


def _holds(case: Case, sent_at: float, instant: float) -> bool:
    """Return whether an order surely holds: the workers had time to read it."""
    busy_s = sum(deed.ended - deed.began for deed in case.deeds if sent_at <= deed.began <= instant)
    return instant > sent_at + ORDER_S + busy_s
