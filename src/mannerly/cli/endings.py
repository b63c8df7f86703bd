"""Report the end of a crawl: an exit code for the shell, a value for programs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult

_SEEDS = 100  # named in JSON
_CODES = {"no_seed": 3, "stopped": 130, "terminated": 143}


def exit_code(result: CrawlResult) -> int:
    """Return the exit code: 0 if the crawl is finished or has reached a limit."""
    if result.ending.value == "finished" and result.pending:
        return 1
    return _CODES.get(result.ending.value, 0)


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
        "ending": result.ending.value,
        "data_dir": location,
        "seconds": round(result.seconds, 3),
        "pending": result.pending,
        "seed_problems": [
            {"url": url, "cause": code} for url, _, code in result.seed_problems[:_SEEDS]
        ],
        **stats,
    }
