"""The closing words of a crawl: what was done, what was not and why, and how to go on.

A pure function of the result. The politeness verdict is the crawl's own: requests that started
closer to the one before than the gap in force allowed. It must be none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .endings import resume_command
from .figures import many, rate, size, span
from .terminal import safe_term

if TYPE_CHECKING:
    from collections import Counter

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.crawler.stats import HostTally, Stats

_HEADLINES = {
    "finished": "Finished",
    "max_urls": "Stopped at --max-urls",
    "duration": "Stopped at --duration",
    "stopped": "Stopped",
    "terminated": "Terminated",
    "no_seed": "No seed could be fetched",
}
_REASONS = 6  # of each kind; the rest is one number
_SLOW_S = 1.0  # a mean answer time below this is not worth a line


def summary(result: CrawlResult, location: str | None = None, *, hosts: int = 3) -> str:
    """A few lines; `hosts` is how many of the slowest and the most refusing are named.

    Without a `location` nothing is said about going on: the crawl is not kept.
    """
    stats = result.stats
    lines = [
        _headline(result),
        _row("fetched", _fetched(stats)),
        _row("failed", _reasons(stats.failed)),
        _row("skipped", _reasons(stats.skipped)),
        _row("retries", f"{stats.retries:,}" if stats.retries else ""),
        _row("slowest", _slowest(stats, hosts)),
        _row("refused by", _most_refused(stats, hosts)),
        _row("politeness", _verdict(stats)),
        *_left(result, location),
    ]
    return "\n".join(line for line in lines if line)


def _headline(result: CrawlResult) -> str:
    said = _HEADLINES[result.ending.value]
    pages = result.stats.fetched
    per_second = pages / result.seconds if result.seconds > 0 else 0.0
    return f"{said}: {many(pages, 'page')} in {span(result.seconds)}, {rate(per_second)}"


def _row(name: str, text: str) -> str:
    return f"  {name:<12}{text}" if text else ""


def _fetched(stats: Stats) -> str:
    statuses = ", ".join(
        f"{count:,} × {status}"
        for status, count in sorted(stats.statuses.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{statuses}; {size(stats.bytes)}" if statuses else ""


def _reasons(counts: Counter[str]) -> str:
    happened = [item for item in counts.items() if item[1]]
    ranked = sorted(happened, key=lambda item: (-item[1], item[0]))
    said = [f"{count:,} {safe_term(reason)}" for reason, count in ranked[:_REASONS]]
    if len(ranked) > _REASONS:
        said.append(f"{sum(count for _, count in ranked[_REASONS:]):,} for other reasons")
    return ", ".join(said)


def _slowest(stats: Stats, hosts: int) -> str:
    def mean_s(tally: HostTally) -> float:
        return tally.latency_s / tally.fetched if tally.fetched else 0.0

    ranked = sorted(stats.tallies.items(), key=lambda item: (-mean_s(item[1]), item[0]))
    return ", ".join(
        f"{safe_term(host, limit=80)} ({span(mean_s(tally))} an answer)"
        for host, tally in ranked[:hosts]
        if mean_s(tally) >= _SLOW_S
    )


def _most_refused(stats: Stats, hosts: int) -> str:
    ranked = sorted(stats.tallies.items(), key=lambda item: (-item[1].refused, item[0]))
    return ", ".join(
        f"{safe_term(host, limit=80)} ({many(tally.refused, 'time')})"
        for host, tally in ranked[:hosts]
        if tally.refused
    )


def _verdict(stats: Stats) -> str:
    early = (
        f"{many(stats.too_early, 'request')} started too early: please report this"
        if stats.too_early
        else "no request was early"
    )
    asked = stats.fetched + stats.robots + stats.throttles
    if not stats.throttles or not asked:
        return early
    return f"{early}; {stats.throttles:,} of {asked:,} refused ({stats.throttles / asked:.1%})"


def _left(result: CrawlResult, location: str | None) -> list[str]:
    if not result.pending and result.ending.value not in ("stopped", "terminated"):
        return []
    left = many(result.pending, "URL") + " in the queue" if result.pending else ""
    how = f"Go on with: {resume_command(location)}" if location is not None else ""
    return [_row("left", left), how]
