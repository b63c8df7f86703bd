"""Write the summary of a crawl: what was fetched, what was not and why, and how to resume.

The number of pages is that of the records in an export and of `mannerly status`: pages with a
response and pages that failed. The line about politeness is from the crawl's own audit, which
compares every request with all that was in force when it left (`shard.audit`): the operator's
delay, robots.txt, the learned pace, Retry-After, the breaker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.model import GIVEN_UP

from .endings import resume_command
from .figures import many, rate, size, span
from .retry import retry_command
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.crawler.stats import HostTally, Stats

_HEADLINES = {
    "finished": "Finished",
    "max_urls": "Stopped at --max-urls",
    "duration": "Stopped at --duration",
    "stopped": "Stopped",
    "terminated": "Terminated",
    "no_seed": "No seed could be fetched",
    "crashed": "Ended because a worker process died too often",
}
_SEEDS = 10  # that could not be fetched; the rest is one number
_REASONS = 6  # of each kind; the rest is one number
_EARLY_HOSTS = 3  # named where a request was sent too early
_PATTERNS = 3
_SLOW_S = 1.0  # hosts with a shorter mean response time are not named


def summary(
    result: CrawlResult,
    location: str | None = None,
    *,
    hosts: int = 3,
    is_resumed: bool = False,
) -> str:
    """Return a summary of a few lines.

    Args:
        result: of the run.
        location: of the crawl; without it the summary does not say how to resume.
        hosts: how many of the slowest and the most refusing hosts are named.
        is_resumed: earlier runs of the crawl have fetched pages, too.
    """
    stats = result.stats
    skipped = {reason: count for reason, count in stats.skipped.items() if reason not in GIVEN_UP}
    given_up = {reason: count for reason, count in stats.skipped.items() if reason in GIVEN_UP}
    lines = [
        _headline(result, is_resumed=is_resumed),
        *_seeds(result),
        _row("trouble", safe_term(stats.trouble or "") if result.ending.value == "crashed" else ""),
        _row("fetched", _fetched(stats)),
        _row("failed", _reasons(stats.failed, error_words)),
        _row("not read", _not_read(stats)),
        _row("skipped", _reasons(skipped, skip_words)),
        _row("given up", _reasons(given_up, skip_words)),
        _row("retries", f"{stats.retries:,}" if stats.retries else ""),
        _row("slowest", _slowest(stats, hosts)),
        _row("refused by", _most_refused(stats, hosts)),
        _row("politeness", _politeness(stats)),
        _row("mended", safe_term("; ".join(stats.mended))),
        *_left(result, location),
        _again(result, location),
    ]
    return "\n".join(line for line in lines if line)


def _headline(result: CrawlResult, *, is_resumed: bool) -> str:
    said = _HEADLINES[result.ending.value]
    pages = result.stats.pages
    per_second = pages / result.seconds if result.seconds > 0 else 0.0
    counted = many(pages, "more page" if is_resumed else "page")
    return f"{said}: {counted} in {span(result.seconds)}, {rate(per_second)}"


def _seeds(result: CrawlResult) -> list[str]:
    """Return one line for each seed that could not be fetched, with the cause."""
    problems = result.seed_problems
    lines = [
        f"  {safe_term(problem.url, limit=200)}: {safe_term(problem.cause)}"
        for problem in problems[:_SEEDS]
    ]
    if len(problems) > _SEEDS:
        lines.append(f"  and {many(len(problems) - _SEEDS, 'more seed')}")
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<12}{text}" if text else ""


def _fetched(stats: Stats) -> str:
    statuses = ", ".join(
        f"{count:,} with status {status}"
        for status, count in sorted(stats.statuses.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{statuses}; {size(stats.bytes)}" if statuses else ""


def _reasons(counts: Mapping[str, int], words: Callable[[str, int], str]) -> str:
    happened = [item for item in counts.items() if item[1]]
    ranked = sorted(happened, key=lambda item: (-item[1], item[0]))
    said = [f"{count:,} {safe_term(words(reason, count))}" for reason, count in ranked[:_REASONS]]
    if len(ranked) > _REASONS:
        said.append(f"{sum(count for _, count in ranked[_REASONS:]):,} for other reasons")
    return ", ".join(said)


def _not_read(stats: Stats) -> str:
    if not stats.crashed:
        return ""
    return f"{many(stats.crashed, 'page')} that crashed the parser twice: their links are missing"


def _slowest(stats: Stats, hosts: int) -> str:
    def mean_s(tally: HostTally) -> float:
        return tally.latency_s / tally.fetched if tally.fetched else 0.0

    ranked = sorted(stats.tallies.items(), key=lambda item: (-mean_s(item[1]), item[0]))
    return ", ".join(
        f"{safe_term(host, limit=80)} ({span(mean_s(tally))} per response)"
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


def _politeness(stats: Stats) -> str:
    said = []
    if stats.too_early:
        early = many(stats.too_early, "request")
        hosts = [safe_term(host, limit=80) for host, tally in stats.tallies.items() if tally.early]
        named = f" ({', '.join(hosts[:_EARLY_HOSTS])})" if hosts else ""
        said.append(
            f"VIOLATED: {early} sent before the host's minimum delay was over{named}: "
            "please report this"
        )
    elif stats.audited == 1:
        said.append("1 request kept its host's minimum delay")
    elif stats.audited:
        said.append(f"all {stats.audited:,} requests kept each host's minimum delay")
    answers = stats.fetched + stats.robots + stats.throttles
    if stats.throttles:
        share = stats.throttles / answers
        said.append(f"{stats.throttles:,} of {answers:,} responses were refusals ({share:.1%})")
    return "; ".join(said)


def _left(result: CrawlResult, location: str | None) -> list[str]:
    if not result.pending and result.ending.value not in ("stopped", "terminated", "crashed"):
        return []
    left = many(result.pending, "URL") + " in the queue" if result.pending else ""
    how = f"To resume: {resume_command(location)}" if location is not None else ""
    return [_row("left", left), _row("held back", _held_back(result.stats)), how]


def _again(result: CrawlResult, location: str | None) -> str:
    if not result.given_up or location is None:
        return ""
    urls = many(result.given_up, "given-up URL")
    return f"To try {urls} again: {retry_command(location)}"


def _held_back(stats: Stats) -> str:
    """Return how many of the URLs that are left come last, and their patterns."""
    ranked = sorted((+stats.held_back).items(), key=lambda item: (-item[1], item[0]))
    if not ranked:
        return ""
    named = [f"{safe_term(pattern, limit=80)} ({urls:,})" for pattern, urls in ranked[:_PATTERNS]]
    if len(ranked) > _PATTERNS:
        named.append("…")
    count = sum(urls for _, urls in ranked)
    return f"{count:,} of these, whose pages lead to more of the same: {', '.join(named)}"
