"""Report the end of a crawl: an exit code for the shell, a value for programs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult

_SEEDS = 100  # named in JSON
CODES = {"crashed": 1, "no_seed": 3, "stopped": 130, "terminated": 143}


def exit_code(result: CrawlResult) -> int:
    """Return the exit code: 0 if the crawl is finished or has reached a limit.

    A crawl that gave URLs up, now or earlier, lost the links of a page that crashed its reader, or
    has URLs left that no limit explains, is not finished.
    """
    code, stats = CODES.get(result.ending.value, 0), result.stats
    is_incomplete = result.ending.value == "finished" and (
        result.pending > 0 or result.given_up > 0
    )
    return 1 if code == 0 and (is_incomplete or stats.crashed) else code


def _tightest(result: CrawlResult) -> dict[str, object] | None:
    """Return the host whose smallest gap came closest to the gap in force, if there is one."""
    gaps = [
        (tally.smallest_gap_s / tally.asked_gap_s, host, tally)
        for host, tally in result.stats.tallies.items()
        if tally.asked_gap_s and tally.smallest_gap_s < float("inf")
    ]
    if not gaps:
        return None
    _, host, tally = min(gaps, key=lambda each: each[:2])
    return {
        "host": host,
        "smallest_gap_s": round(tally.smallest_gap_s, 6),
        "required_gap_s": round(tally.asked_gap_s, 6),
    }


def resume_command(location: str) -> str:
    """Return the command that resumes a crawl."""
    return f"mannerly resume {shlex.quote(location)}"


def described(result: CrawlResult, location: str) -> dict[str, object]:
    """Return the result for --json. Hosts are left out: see `mannerly hosts --json`."""
    import msgspec

    # `dataclasses.asdict` would count the pairs of a Counter instead of copying it.
    stats = msgspec.to_builtins(result.stats, str_keys=True)
    del stats["tallies"]
    return {
        "tightest_gap": _tightest(result),
        "ending": result.ending.value,
        "data_dir": location,
        "seconds": round(result.seconds, 3),
        "pending": result.pending,
        "given_up": result.given_up,
        "seed_problems": [
            {"url": url, "cause": code} for url, _, code in result.seed_problems[:_SEEDS]
        ],
        **stats,
    }
