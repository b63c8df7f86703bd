"""The fold over the reports of a run, its log lines, and its summary."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest
from tests.crawler.views import a_view, a_wait

from mannerly.cli.block import block
from mannerly.cli.display import Display
from mannerly.cli.event_log import ORDINARY, EventLog
from mannerly.cli.progress import Progress
from mannerly.cli.summary import Ended, summary
from mannerly.cli.terminal import safe_term
from mannerly.crawler import events as crawl_events
from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.inspection.reasons import error_words
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.runtime.event_batches import EventBatch
from mannerly.crawler.stats import HostTally, OldestRequest, Present, RequestCounts, Stats, Waits
from mannerly.crawler.web.words import many, rate, size, span
from mannerly.live.meter import CrawlState, Limits, Meter, at_least_s, log_fields
from mannerly.live.sentence import doing
from mannerly.politeness import events as polite

BUSY = Stats(
    fetched=1204,
    failed=Counter(timeout=3),
    hosts_known=18,
    now=Present(
        queued=5310,
        in_flight=12,
        waits=a_wait(ready=3, pace=12, next_in_s=0.4, asked_to_wait=2, backing_off=1),
    ),
    requests=RequestCounts(throttles=2),
)
ASKED = a_view("a.example", HostStatus.ASKED_TO_WAIT, 10, 2.0, 60.0)


def test_speed_is_the_mean_of_the_last_ten_seconds() -> None:
    """A fast beginning is forgotten, and the first report has a rate."""
    meter = Meter()

    first = meter.update(Stats(fetched=100), 1.0)
    for second in range(2, 31):
        last = meter.update(Stats(fetched=100, now=Present(queued=10)), float(second))

    assert first.per_second == 100
    assert (last.per_second, last.idle_s) == (0.0, 29.0)


def test_time_to_go_is_that_of_the_host_that_takes_longest() -> None:
    """By its queue and pace, or until it comes back, unless --duration is shorter."""
    quick = a_view("quick.example", HostStatus.FETCHING, 5000, 0.001)
    slow = ASKED._replace(next_in_s=1.0)
    stats = Stats(fetched=10, now=Present(queued=5010, host_views=[quick, slow]))
    waiting = Stats(fetched=10, now=Present(queued=5010, host_views=[quick, ASKED]))

    assert at_least_s(Meter().update(stats, 1.0)) == 20.0
    assert at_least_s(Meter().update(waiting, 1.0)) == 60.0
    assert at_least_s(Meter(Limits(duration_s=3.0)).update(stats, 1.0)) == 2.0
    assert at_least_s(Meter().update(Stats(now=Present(queued=3)), 1.0)) is None


@pytest.mark.parametrize(
    ("stats", "state"),
    [
        (Stats(now=Present(in_flight=1)), CrawlState.STARTING),
        (BUSY, CrawlState.RUNNING),
        (
            Stats(fetched=1, now=Present(waits=a_wait(next_in_s=60.0, asked_to_wait=1))),
            CrawlState.WAITING,
        ),
        (
            Stats(now=Present(in_flight=1, oldest=OldestRequest(5.0, 20.0, 2, 3))),
            CrawlState.WAITING,
        ),
        (
            Stats(
                now=Present(
                    waits=a_wait(next_in_s=60.0, backing_off=1),
                    host_views=[ASKED._replace(state=HostStatus.BACKING_OFF, problem="403")],
                )
            ),
            CrawlState.REFUSED,
        ),
        (
            Stats(
                now=Present(
                    waits=a_wait(next_in_s=60.0, backing_off=1),
                    host_views=[ASKED._replace(state=HostStatus.BACKING_OFF, problem="timeout")],
                )
            ),
            CrawlState.WAITING,
        ),
        (Stats(now=Present(is_paused=True)), CrawlState.PAUSED),
        (Stats(now=Present(trouble="no room to write x")), CrawlState.HELD),
        (Stats(fetched=5, now=Present(idle_reason="waiting for shards")), CrawlState.WAITING),
        (
            Stats(fetched=5, now=Present(queued=1, idle_reason="waiting for shards")),
            CrawlState.RUNNING,
        ),
        (Stats(now=Present(is_paused=True, grace_s=2.0)), CrawlState.STOPPING),
    ],
)
def test_a_report_has_a_state(stats: Stats, state: CrawlState) -> None:
    """Progress, or the reason why there is none."""
    assert Meter().update(stats, 5.0).state is state


def test_a_worker_that_has_nothing_to_fetch_says_what_it_waits_for() -> None:
    """On the terminal and in the log; its pages are no end of the crawl."""
    live = Meter().update(
        Stats(fetched=61, now=Present(idle_reason="waiting for shards: all are …")), 5.0
    )

    first, second, *_ = block(live, Display(columns=80))

    assert doing(live, str) == ["waiting for shards: all are …"]
    assert log_fields(live)["reason"] == "waiting for shards: all are …"
    assert "Waiting  waiting for shards" in first
    assert second == "61 pages of this worker"


def test_a_wait_ends_with_the_next_page() -> None:
    """Not three seconds before it, when the countdown is almost over."""
    meter = Meter()
    waits = [a_wait(next_in_s=left_s, asked_to_wait=1) for left_s in (60.0, 2.0)]
    long, short = (meter.update(Stats(fetched=7, now=Present(waits=each)), 90.0) for each in waits)
    after = meter.update(Stats(fetched=8, now=Present(waits=waits[1])), 95.0)

    assert long.state is short.state is CrawlState.WAITING
    assert after.state is CrawlState.RUNNING


def test_hosts_are_counted_once() -> None:
    """Those without a queue are done, unless they were given up."""
    stats = Stats(hosts_known=10, hosts_given_up=2, now=Present(waits=a_wait(pace=3, paused=1)))

    counts = Meter().update(stats, 1.0).counts

    assert counts[HostStatus.FETCHING] == 3
    assert counts[HostStatus.DONE] == 4
    assert sum(counts.values()) == 10


# ---------------------------------------------------------------------- log lines


@pytest.mark.parametrize(
    ("stats", "fields"),
    [
        (
            Stats(now=Present(in_flight=1, oldest=OldestRequest(14.2, 20.0, 2, 3))),
            {"reason": "answer", "waited_s": 14, "timeout_s": 20, "attempt": 2, "attempts": 3},
        ),
        (
            Stats(now=Present(waits=a_wait(next_in_s=60.0, asked_to_wait=1), host_views=[ASKED])),
            {"next_host": "a.example", "next_in_s": 60.0, "reason": "retry_after"},
        ),
        (
            Stats(now=Present(waits=Waits(pace=1, next_in_s=9.0))),
            {"next_in_s": 9.0, "reason": "pace"},
        ),
        (
            Stats(now=Present(waits=Waits(other=1, next_in_s=59.0))),
            {"next_in_s": 59.0, "reason": "robots_txt"},
        ),
        (Stats(now=Present(trouble="no room to write x")), {"reason": "no room to write x"}),
        (Stats(now=Present(queued=999_562)), {"reason": "nothing_due"}),
        (Stats(), {"reason": "nothing_queued"}),
    ],
)
def test_waiting_has_a_reason(stats: Stats, fields: dict[str, object]) -> None:
    """It never hangs in silence."""
    assert fields.items() <= log_fields(Meter().update(stats, 5.0)).items()


@pytest.mark.parametrize("log_format", [None, "text", "json"])
def test_progress_is_a_log_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, log_format: str | None
) -> None:
    """A line an interval, one at once for a change of state, and no escape sequence."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    waiting = Stats(fetched=1207, now=Present(waits=a_wait(next_in_s=60.0, asked_to_wait=1)))

    with Progress(log_format=log_format, log_interval_s=10) as progress:
        for elapsed_s in (0.25, 9.0, 10.0, 10.25):
            progress(BUSY, elapsed_s)
        progress(waiting, 10.5)
        progress(waiting, 10.75)

    lines = stream.getvalue().splitlines()
    if log_format == "json":
        said = [json.loads(line) for line in lines]
        assert [each["event"] for each in said] == ["Running", "Waiting"]
        assert said[1]["reason"] == "retry_after"
    else:
        assert lines[0][20:].startswith(" Running pages=1207 per_second=")
        assert lines[1][20:].startswith(" Waiting pages=1207 ")
        assert lines[1].endswith("asked_to_wait=1 done=17 next_in_s=60.0 reason=retry_after") or (
            lines[1].endswith("asked_to_wait=1 next_in_s=60.0 reason=retry_after")
        )
    assert len(lines) == 2
    assert "\x1b" not in stream.getvalue()


def test_changes_of_pace_and_breakers_are_logged() -> None:
    """With the host, the pace before and after, and the refusals in a row."""
    news = EventBatch(
        [
            polite.Slowed("a.example", 1.0, 0.25, 0),
            polite.Slowed("a.example", 2.0, 0.5, 2),
            polite.Opened("b.example", 1.0, 61.0, 1),
            crawl_events.HostGivenUp("c.example", "name_not_resolved"),
            crawl_events.HostWaits("d.example", "https://d.example/\x1b[2J", 5.0, "pace"),
        ],
        left_out=3,
    )

    lines = [line[21:] for line in EventLog("text").lines(news)]

    assert lines == [
        "Slowed host=a.example to_per_second=4.0 delay_s=0.25 refusals=0",
        "Slowed host=a.example from_per_second=4.0 to_per_second=2.0 delay_s=0.5 refusals=2",
        "Breaker-opened host=b.example for_s=60.0 times=1",
        f'Given-up host=c.example reason="{error_words("name_not_resolved")}"',
        "Waiting 5.0 s before request to https://d.example/\\x1b[2J",
        "Omitted events=3",
    ]


def test_above_a_live_block_only_what_needs_a_look_is_said() -> None:
    """The pace is in the block already."""
    news = EventBatch(
        [polite.Slowed("a.example", 1.0, 0.25, 0), polite.Opened("b.example", 1, 61, 1)]
    )

    (line,) = EventLog("text", leaves_out=ORDINARY).lines(news)

    assert "Breaker-opened" in line


def test_json_has_the_same_keys() -> None:
    """Escape sequences of a URL are escaped as JSON does it."""
    news = EventBatch(
        [crawl_events.HostWaits("d.example", "https://d.example/\x1b[2J", 5.0, "pace")]
    )

    (line,) = EventLog("json").lines(news)

    assert json.loads(line)["url"] == "https://d.example/\x1b[2J"
    assert "\x1b" not in line


# ---------------------------------------------------------------------- the summary


def test_the_headline_tells_what_share_of_the_pages_is_there() -> None:
    """Refusals and errors by status; what no request can mend, such as 404, has a record only."""
    stats = Stats(
        fetched=301,
        statuses=Counter({200: 126, 404: 20, 403: 140, 503: 14, 401: 1}),
        failures=Counter({"403": 140, "503": 14, "401": 1, "crashes_parser": 0}),
    )
    few = Stats(fetched=10, statuses=Counter({200: 9, 404: 1}), failures=Counter({"404": 1}))
    most = CrawlResult(Ending.FINISHED, stats, 10.0, 0)

    lines = summary(Ended(most, "crawl-a", next_command="mannerly report crawl-a")).splitlines()
    seed = summary(Ended(CrawlResult(Ending.FINISHED, few, 1.0, 0))).splitlines()

    assert lines[0] == (
        "✓ Finished: 146 of 301 pages, 140 refused with 403, 14 answered with 503, "
        "1 refused with 401, in 10 s, 30.1 pages/s"
    )
    assert (
        "  Failed       140 refused with 403   14 answered with 503   1 refused with 401" in lines
    )
    assert lines[-1].strip().split("  ")[0] == "mannerly retry crawl-a"
    assert seed[0].startswith("✓ Finished: 9 of 10 pages, 1 not found (404), in")


def test_summary_tells_what_was_fetched_what_was_not_and_what_to_do() -> None:
    """Every count has its reason in words, and escape sequences of hosts are made harmless."""
    stats = Stats(
        fetched=120,
        bytes=3_400_000,
        statuses=Counter({200: 109, 206: 1, 404: 10}),
        failed=Counter(timeout=3, dns=1),
        failures=Counter(timeout=3, dns=1),
        skipped=Counter(
            {"off_host": 2287, "scheme": 21, "robots": 1, "new_code": 3, "nofollow": 0}
            | {"host_retired": 39}
        ),
        robots=2,
        tallies={
            "slow.example": HostTally(fetched=2, latency_s=5.0),
            "evil\x1b[2J.example": HostTally(fetched=9, refused=4),
        },
        requests=RequestCounts(audited=770, throttles=4, retries=5),
    )
    result = CrawlResult(Ending.FINISHED, stats, 60.0, 0)

    text = summary(Ended(result, next_command="mannerly export x"))

    assert text.splitlines() == [
        "✓ Finished: 120 of 124 pages, 4 without an answer, in 1 min, 2.1 pages/s, 3.4 MB",
        "",
        "  Politeness   all 770 requests kept each host's gap",
        "  Answers      110 × 2xx   10 × 4xx",
        "  Failed       3 timed out (--timeout)   1 host name not found",
        "  Refused      4 (3.2 %), most by evil\\x1b[2J.example (4)",
        "  Retries      5",
        "  Skipped      2,287 links to other hosts (--scope)   21 not http(s)",
        "               3 new_code   1 forbidden by robots.txt (--ignore-robots)",
        "  Slowest      slow.example, 2.5 s a response",
        "",
        "  mannerly export x",
    ]


@pytest.mark.parametrize("ending", [Ending.FINISHED, Ending.STOPPED])
def test_summary_does_not_hide_a_request_that_was_early(ending: Ending) -> None:
    """The audit's finding is printed, and the user is asked to report it."""
    stats = Stats(
        fetched=9, tallies={"a.example": HostTally(early=1)}, requests=RequestCounts(too_early=1)
    )
    text = summary(Ended(CrawlResult(ending, stats, 1.0, 0)))

    loudly = "VIOLATED: 1 request sent before the host's gap was over (a.example): please"
    assert loudly in " ".join(text.split())


def test_summary_of_a_resumed_crawl_counts_this_run() -> None:
    """Its pages come on top of those of earlier runs."""
    result = CrawlResult(Ending.FINISHED, Stats(fetched=9), 1.0, 0)

    assert summary(Ended(result, is_resumed=True)).startswith("✓ Finished: 9 more pages in 1.0 s")


def test_command_that_goes_on_stands_alone_and_is_quoted() -> None:
    """So that a triple click takes it."""
    result = CrawlResult(Ending.STOPPED, Stats(fetched=9), 1.0, 33)

    assert summary(Ended(result, "my crawl")).splitlines()[-1] == "  mannerly resume 'my crawl'"


def test_safe_term_lets_nothing_invisible_through() -> None:
    """Escape sequences, marks that turn the line around, line ends, half characters."""
    text = safe_term("é 漢 \x1b]0;x\x07\x9b31m\u202e\u2028\n\t\r\x00\ud800[/red]")

    assert text.isprintable()
    assert text.startswith("é 漢 \\x1b]0;x")
    assert text.endswith("[/red]")
    assert len(safe_term("x" * 10_000)) == 400


def test_figures_are_read_at_a_glance() -> None:
    """Two units at most, and never a row of noughts."""
    spans = [span(s) for s in (-1, 0.04, 9.94, 9.96, 59.6, 200, 7500, 273_600)]

    assert spans == [
        "0.0 s",
        "0.0 s",
        "9.9 s",
        "10 s",
        "1 min",
        "3 min 20 s",
        "2 h 5 min",
        "3 d 4 h",
    ]
    assert [rate(r) for r in (0, 0.05, 1.25, 1234)] == ["0.0/s", "3.0/min", "1.2/s", "1,234/s"]
    assert [size(n) for n in (999, 1_500, 2.5e13)] == ["999 B", "1.5 kB", "25.0 TB"]
    assert [many(1, "URL"), many(2_000, "URL")] == ["1 URL", "2,000 URLs"]
