"""Report the end of a crawl: an exit code for the shell, a value for programs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult

_SEEDS = 100  # named in JSON
CODES = {"crashed": 1, "error_rate": 1, "no_seed": 3, "stopped": 130, "terminated": 143}


def exit_code(result: CrawlResult) -> int:
    """Return the exit code: 0 if the crawl is finished or has reached a limit."""
    code = CODES.get(result.ending.value, 0)
    return 1 if code == 0 and is_incomplete(result) else code


def is_incomplete(result: CrawlResult) -> bool:
    """Return whether something is missing that no limit explains.

    URLs were given up, now or earlier, or are left; the links of a page are missing, since it
    crashed its reader or memory lacked for it, now or earlier; or every seed leads to another host
    or to a login page.
    """
    from mannerly.crawler.model import UNFINISHED

    is_at_end = result.ending.value == "finished"
    left = result.pending > 0 or result.given_up > 0 or bool(result.astray)
    stats = result.stats
    unread = result.unread + stats.crashed + sum(stats.failures[each] for each in UNFINISHED)
    return (is_at_end and left) or unread > 0


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


def resume_command(location: str, data_dir: str = "") -> str:
    """Return the command that resumes a crawl; in a server, one that joins it as a worker.

    `data_dir` is the data directory of the worker, if it is known.
    """
    from mannerly.crawler.store import is_in_server, name_of

    if not is_in_server(location):
        return f"mannerly resume {shlex.quote(location)}"
    server, name = shlex.quote(location.partition("#")[0]), shlex.quote(name_of(location))
    return f"mannerly crawl --redis-url {server} --crawl {name}{_in_directory(data_dir)}"


def next_command(location: str, data_dir: str = "") -> str:
    """Return what most people do next with a finished crawl: a report."""
    return f"mannerly report {shlex.quote(location)}{_in_directory(data_dir)} -o report.html"


def _in_directory(data_dir: str) -> str:
    return f" --data-dir {shlex.quote(data_dir)}" if data_dir else ""


def described(result: CrawlResult, location: str | None) -> dict[str, object]:
    """Return the result for --json. Hosts are left out: see `mannerly hosts --json`."""
    import msgspec

    # `dataclasses.asdict` would count the pairs of a Counter instead of copying it.
    stats = msgspec.to_builtins(result.stats, str_keys=True)
    for group in ("now", "requests", "loop"):  # in JSON all of them are fields of the result
        stats |= stats.pop(group)
    extracted = stats.pop("extracted")
    stats["items"] = extracted["items"]
    stats["extract_errors"], stats["extract_error"] = extracted["errors"], extracted["first_error"]
    stats["without_handler"] = extracted["lacking"]
    passing = ("tallies", "host_views", "latencies", "blocked", "commits", "warmth", "latest_url")
    for name in passing:
        del stats[name]
    stats["latency_ms"] = {
        f"p{share}": round(1000 * result.stats.latencies.within(share / 100), 1)
        for share in (50, 95)
    }
    return {
        "tightest_gap": _tightest(result),
        "ending": result.ending.value,
        "data_dir": location,
        "seconds": round(result.seconds, 3),
        "pending": result.pending,
        "given_up": result.given_up,
        "unread": result.unread,
        "seed_problems": [
            {"url": url, "cause": code} for url, _, code in result.seed_problems[:_SEEDS]
        ],
        "seeds_lead_to": [each._asdict() for each in result.astray[:_SEEDS]],
        "given_up_hosts": [each._asdict() for each in result.given_up_hosts],
        **stats,
    }
