"""Report the end of a crawl: an exit code for the shell, a value for programs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult

_CODES = {"crashed": 1, "no_seed": 3, "stopped": 130, "terminated": 143}


def exit_code(result: CrawlResult) -> int:
    """Return the exit code: 0 if the crawl is finished or has reached a limit.

    A crawl that gave a host up, lost the links of a page that crashed its reader, or has URLs left
    that no limit explains, is not finished.
    """
    code, stats = _CODES.get(result.ending.value, 0), result.stats
    is_incomplete = result.ending.value == "finished" and (
        result.pending > 0 or stats.hosts_given_up > 0
    )
    return 1 if code == 0 and (is_incomplete or stats.crashed) else code


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
        **stats,
    }
