"""Moments of a made-up crawl of 40 hosts, frozen: what the screens of the tests show.

python -m tests.cli.moments      write tests/cli/screens/ anew; look at the difference
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.crawler.views import a_view, a_wait, named

from mannerly.cli.block import block
from mannerly.cli.display import Display
from mannerly.cli.host_table import host_table, legend
from mannerly.cli.summary import Ended, summary
from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.host_view import HostStatus, LimitedBy
from mannerly.crawler.inspection.seeds import GivenUpHost, SeedAstray, SeedProblem
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.stats import (
    HostTally,
    Latencies,
    OldestRequest,
    Present,
    RequestCounts,
    Stats,
    Waits,
)
from mannerly.live.meter import CrawlState, Limits, Live

SCREENS = Path(__file__).parent / "screens"
WIDTHS = (80, 120, 200)
HOURS = 3600.0
DIRECTORY = "crawl-handbook.example.org-and-39-more"

_STATE = HostStatus
HANDBOOK = a_view(
    host="handbook.example.org",
    state=_STATE.ASKED_TO_WAIT,
    queued=18_402,
    delay_s=1 / 2.4,
    next_in_s=41.0,
    limited_by=LimitedBy.LEARNED,
    limit=2.5,
    problem="429",
    times=1,
    retry_after_s=60.0,
    fetched=16_918,
    refused=31,
)
SHOP = a_view(
    host="shop.example.com",
    state=_STATE.BACKING_OFF,
    queued=9_730,
    delay_s=1 / 1.5,
    next_in_s=192.0,
    limited_by=LimitedBy.LEARNED,
    limit=1.6,
    problem="503",
    times=5,
    failing_s=300.0,
    fetched=8_112,
    refused=57,
)
TICKETS = named(SHOP, "tickets.example.org", next_in_s=840.0, problem="429", times=9, queued=2_683)
ARCHIVE = a_view(
    host="archive.statistics-office.example.com",
    state=_STATE.FETCHING,
    queued=41_077,
    delay_s=1 / 8,
    next_in_s=0.0,
    limited_by=LimitedBy.MAX_RATE,
    fetched=58_210,
)
LIBRARY = a_view(
    host="library.example.edu",
    state=_STATE.FETCHING,
    queued=3_612,
    delay_s=2.0,
    next_in_s=1.4,
    limited_by=LimitedBy.ROBOTS,
    fetched=3_988,
)
RECIPES = a_view(
    host="recipes.example.com",
    state=_STATE.PAUSED,
    queued=1_870,
    delay_s=1 / 1.2,
    limited_by=LimitedBy.LEARNED,
    limit=1.3,
    fetched=2_930,
)
MIRROR = a_view(
    host="intranet-mirror.example.com",
    state=_STATE.GIVEN_UP,
    queued=611,
    problem="host name not found",
    fetched=240,
    refused=38,
)
HOSTS = (ARCHIVE, HANDBOOK, SHOP, LIBRARY, RECIPES, MIRROR)


def latencies() -> Latencies:
    """Half within about 0.14 s, 95 % within 0.9 s."""
    made = Latencies()
    for latency_s, count in ((0.142, 90), (0.88, 10)):
        for _ in range(count):
            made.note(latency_s)
    return made


def grouped(**named: Any) -> Stats:
    """Return totals; each field may be named without its group."""
    groups = {"now": Present, "requests": RequestCounts}
    of_groups = {
        group: {each.name: named.pop(each.name) for each in fields(kind) if each.name in named}
        for group, kind in groups.items()
    }
    return Stats(**named, **{group: groups[group](**values) for group, values in of_groups.items()})


def _stats(**changes: object) -> Stats:
    usual: dict[str, object] = {
        "fetched": 251_934,
        "queued": 154_351,
        "in_flight": 38,
        "throttles": 202,
        "bytes": 12_400_000_000,
        "hosts_known": 40,
        "hosts_given_up": 2,
        "waits": a_wait(pace=20, busy=4, next_in_s=0.1, asked_to_wait=3, backing_off=2, paused=1),
        "host_views": [HANDBOOK, SHOP, ARCHIVE],
        "latencies": latencies(),
        "latest_url": "https://archive.statistics-office.example.com/tables/2019/population.html",
    }
    return grouped(**usual | changes)


def _waiting() -> Stats:
    waits = a_wait(next_in_s=41.0, asked_to_wait=3, paused=1)
    name = "cdn-assets-storage.example.net"
    cdn = named(HANDBOOK, name, next_in_s=125.0, retry_after_s=300.0, queued=900)
    return _stats(
        fetched=385_104, queued=24_719, in_flight=0, waits=waits, host_views=[HANDBOOK, cdn]
    )


def _refused() -> Stats:
    shop = SHOP._replace(problem="403", times=11, next_in_s=720.0, failing_s=38 * 60.0)
    waits = a_wait(next_in_s=720.0, backing_off=4)
    host_views = [shop, TICKETS._replace(failing_s=30 * 60.0)]
    changes = {"fetched": 397_410, "queued": 12_413, "in_flight": 0, "throttles": 7_904}
    return _stats(waits=waits, host_views=host_views, **changes)


LIMITS = Limits(concurrency=512)
MOMENTS: dict[str, Live] = {
    "starting": Live(
        CrawlState.STARTING,
        Stats(hosts_known=1, now=Present(in_flight=1, queued=1, waits=Waits(other=1))),
        0.4,
        0.0,
        0.4,
        limits=LIMITS,
    ),
    "running": Live(CrawlState.RUNNING, _stats(), 2 * HOURS + 840, 31.4, 0.0, limits=LIMITS),
    "growing": Live(
        CrawlState.RUNNING, _stats(), 2 * HOURS + 840, 31.4, 0.0, grows=True, limits=LIMITS
    ),
    "limited": Live(
        CrawlState.RUNNING,
        _stats(),
        2 * HOURS + 840,
        31.4,
        0.0,
        limits=LIMITS._replace(max_urls=1_000_000),
    ),
    "waiting": Live(CrawlState.WAITING, _waiting(), 4 * HOURS + 120, 0.0, 38.0, limits=LIMITS),
    "no-answer": Live(
        CrawlState.WAITING,
        Stats(
            fetched=12,
            hosts_known=1,
            now=Present(in_flight=1, oldest=OldestRequest(14.2, 20.0, 2, 3), waits=Waits(busy=1)),
        ),
        33.0,
        0.0,
        14.2,
        limits=LIMITS,
    ),
    "refused": Live(CrawlState.REFUSED, _refused(), 6 * HOURS + 60, 0.0, 2280.0, limits=LIMITS),
    "paused": Live(
        CrawlState.PAUSED,
        _stats(in_flight=0, is_paused=True),
        2 * HOURS + 840,
        0.0,
        38.0,
        limits=LIMITS,
    ),
    "paused-host": Live(
        CrawlState.PAUSED,
        _stats(
            in_flight=0,
            queued=1_870,
            waits=a_wait(paused=1),
            host_views=[RECIPES],
        ),
        2 * HOURS + 840,
        0.0,
        38.0,
        limits=LIMITS,
    ),
    "held": Live(
        CrawlState.HELD,
        _stats(trouble="no room to write crawl-a: free some disk space", in_flight=0),
        2 * HOURS + 840,
        0.0,
        38.0,
        limits=LIMITS,
    ),
    "stopping": Live(
        CrawlState.STOPPING,
        _stats(in_flight=3, grace_s=2.0),
        2 * HOURS + 840,
        31.4,
        0.0,
        limits=LIMITS,
    ),
}


def _totals(**changes: object) -> Stats:
    usual: dict[str, object] = {
        "fetched": 409_821,
        "bytes": 20_100_000_000,
        "statuses": Counter({200: 402_310, 301: 6_920, 404: 588, 500: 3}),
        "skipped": Counter({"off_host": 88_204, "robots": 2_114, "nofollow": 612, "scheme": 21}),
        "audited": 411_006,
        "retry_afters": 14,
        "throttles": 231,
        "tallies": {
            "handbook.example.org": HostTally(fetched=9, refused=31, latency_s=1.0),
            "archive.statistics-office.example.com": HostTally(fetched=10, latency_s=13.0),
        },
    }
    return grouped(**usual | changes)


def _ended(ending: Ending, **changes: object) -> Ended:
    """Return an end; `result` are fields of the result, `stats` of its totals."""
    stats = _totals(**changes.pop("stats", {}))  # type: ignore[arg-type]
    usual = {"seconds": 6 * HOURS + 1260, "pending": 0} | changes.pop("result", {})  # type: ignore[operator]
    result = CrawlResult(ending, stats, **usual)
    following = f"mannerly export {DIRECTORY} -o pages.jsonl"
    return Ended(result, DIRECTORY, next_command=following, **changes)  # type: ignore[arg-type]


ENDS: dict[str, Ended] = {
    "finished": _ended(Ending.FINISHED),
    "max-urls": _ended(
        Ending.MAX_URLS,
        stats={"fetched": 10_000, "skipped": Counter(), "throttles": 0},
        result={"seconds": 319.0, "pending": 61_204},
        limit="--max-urls 10,000",
    ),
    "stopped": _ended(
        Ending.STOPPED,
        stats={"fetched": 251_934},
        result={"seconds": 2 * HOURS + 840, "pending": 154_389},
    ),
    "incomplete": _ended(
        Ending.FINISHED,
        stats={"fetched": 409_112},
        result={
            "given_up": 709,
            "given_up_hosts": (
                GivenUpHost("intranet-mirror.example.com", 611, "host name not found"),
                GivenUpHost("photos.example.net", 98, "the certificate has expired"),
            ),
        },
    ),
    "failed": _ended(
        Ending.NO_SEED,
        result={
            "seed_problems": (
                SeedProblem(
                    "https://handbok.example.org/", "host name not found", "name_not_resolved"
                ),
            )
        },
    ),
    "elsewhere": _ended(
        Ending.FINISHED,
        stats={"fetched": 1},
        result={
            "astray": (
                SeedAstray("https://example.org/", 301, "https://www.example.net/", is_login=False),
            )
        },
    ),
    "login": _ended(
        Ending.FINISHED,
        stats={"fetched": 2},
        result={
            "astray": (
                SeedAstray(
                    "https://example.org/", 302, "https://example.org/login?next=/", is_login=True
                ),
            )
        },
    ),
}


def screens() -> dict[str, str]:
    """Return every screen by the name of its file."""
    found = {}
    for columns in WIDTHS:
        display = Display(columns, 40)
        for name, live in MOMENTS.items():
            found[f"live-{name}-{columns}.txt"] = "\n".join(block(live, display, DIRECTORY))
        for name, ended in ENDS.items():
            found[f"end-{name}-{columns}.txt"] = summary(ended, display)
        table = [*host_table(HOSTS, display), "", legend(HOSTS, display)]
        found[f"hosts-{columns}.txt"] = "\n".join(table)
    return found


if __name__ == "__main__":
    SCREENS.mkdir(exist_ok=True)
    for name, text in screens().items():
        (SCREENS / name).write_text(text + "\n", encoding="utf-8")
