from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from mannerly.cli.figures import many, rate, size, span
from mannerly.cli.progress import Meter, Pace, Progress, live_line, log_fields, reason_to_wait
from mannerly.cli.summary import summary
from mannerly.cli.terminal import safe_term
from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.stats import HostTally, OldestRequest, Stats, Waits

BUSY = Stats(
    fetched=1204,
    queued=5310,
    in_flight=12,
    throttles=2,
    failed=Counter(timeout=3),
    waits=Waits(ready=3, pace=12, retry_after=2, breaker=1, next_in_s=0.4),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_live_line_answers_stuck_or_polite() -> None:
    """Pages, rate, queue, what the hosts wait for, and how long it may take."""
    line = live_line(BUSY, Pace(38.2, 139.0), width=200, color=False)

    assert line == (
        "1,207 pages  38.2/s  queue 5,310  hosts: 3 ready, 12 waiting, 2 on Retry-After, 1 failing"
        "  12 in flight  about 2 min 19 s left  3 failed  2 refused"
    )


def test_live_line_says_how_long_an_answer_is_waited_for() -> None:
    """After three seconds: before that it is ordinary."""
    late, soon = (OldestRequest(waited_s, 20.0, 2, 3) for waited_s in (14.0, 2.0))

    assert live_line(
        Stats(in_flight=1, oldest=late), Pace(0.0, None), width=99, color=False
    ).endswith("1 waiting for an answer, 14 of 20 s, try 2 of 3")
    assert live_line(
        Stats(in_flight=1, oldest=soon), Pace(0.0, None), width=99, color=False
    ).endswith("1 in flight")


def test_live_line_says_when_the_next_request_goes() -> None:
    """A crawl with nothing under way is waiting for an instant that it knows."""
    waiting = Stats(fetched=7, queued=4, waits=Waits(retry_after=1, next_in_s=42.0))

    assert "hosts: 1 on Retry-After  next in 42 s" in live_line(
        waiting, Pace(0.0, None), width=200, color=False
    )


@pytest.mark.parametrize("width", [1, 10, 20, 40, 80, 120])
def test_live_line_fits_its_terminal(width: int) -> None:
    """A line that wraps cannot be redrawn."""
    line = live_line(BUSY, Pace(38.2, 139.0), width=width, color=False)

    assert 0 < len(line) <= max(1, width - 1)


def test_meter_measures_the_last_ten_seconds() -> None:
    """A fast beginning is forgotten, and the first report has a rate."""
    meter = Meter()

    first = meter.update(Stats(fetched=100), 1.0)
    for second in range(2, 31):
        last = meter.update(Stats(fetched=100, queued=10), float(second))

    assert first.per_second == 100
    assert last == Pace(0.0, None)


def test_meter_ends_at_the_nearest_limit() -> None:
    """Queue, --max-urls and --duration: whichever comes first."""
    stats = Stats(fetched=10, queued=1000)

    assert Meter().update(stats, 1.0).left_s == 100
    assert Meter(max_urls=30).update(stats, 1.0).left_s == 2
    assert Meter(duration_s=1.5).update(stats, 1.0).left_s == 0.5


@pytest.mark.parametrize(
    ("stats", "words"),
    [
        (Stats(in_flight=1), "1 request in flight, no response yet"),
        (
            Stats(in_flight=1, oldest=OldestRequest(14.2, 20.0, 2, 3)),
            "1 waiting for an answer, 14 of 20 s, try 2 of 3",
        ),
        (
            Stats(in_flight=7, oldest=OldestRequest(14.2, 20.0, 1, 3)),
            "7 waiting for an answer, the oldest 14 of 20 s, try 1 of 3",
        ),
        (Stats(waits=Waits(ready=1)), "1 host about to be asked"),
        (Stats(waits=Waits(retry_after=2)), "2 hosts told to wait (Retry-After)"),
        (Stats(waits=Waits(pace=1, breaker=1)), "1 host waiting for its next slot; 1 host failing"),
        (Stats(waits=Waits(pace=10)), "10 hosts waiting for their next slot"),
        (Stats(in_flight=1, trouble="no room to write x"), "no room to write x"),
        (Stats(), "nothing is queued"),
        (Stats(queued=999_562), "999,562 URLs queued, none of them due yet"),
    ],
)
def test_waiting_has_a_reason(stats: Stats, words: str) -> None:
    """It never hangs in silence."""
    assert reason_to_wait(stats).startswith(words)


def test_log_fields_leave_out_what_is_nothing() -> None:
    """A line is short when there is little to say."""
    assert log_fields(Stats(fetched=0), Pace(0.0, None)) == {"pages": 0}


def test_progress_is_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is redrawn in place, and gone at the end; NO_COLOR takes the colour."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("NO_COLOR", "1")

    with Progress() as progress:
        progress(BUSY, 1.0)

    assert terminal.getvalue().startswith("\r\x1b[2K1,207 pages")
    assert terminal.getvalue().endswith("\r\x1b[2K")
    assert "\x1b[1m" not in terminal.getvalue()


@pytest.mark.parametrize("log_format", [None, "text", "json"])
def test_progress_is_a_log_elsewhere(
    monkeypatch: pytest.MonkeyPatch, log_format: str | None
) -> None:
    """A line an interval, no escape sequence: what moves is Crawling, what does not is Waiting."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)

    with Progress(log_format=log_format, log_interval_s=10) as progress:
        for elapsed_s in (0.25, 9.0, 10.0, 10.25, 20.0, 20.5):
            progress(BUSY, elapsed_s)

    lines = stream.getvalue().splitlines()
    if log_format == "json":
        assert [json.loads(line)["event"] for line in lines] == ["Crawling", "Waiting"]
        assert json.loads(lines[1])["reason"] == "12 requests in flight, no response yet"
    else:
        assert lines[0][20:].startswith(" Crawling  pages=1207 ")
        assert lines[1][20:].startswith(" Waiting: 12 requests in flight, no response yet  pages=")
    assert "\x1b" not in stream.getvalue()


def test_summary_tells_what_was_fetched_what_was_not_and_how_to_resume() -> None:
    """Every count has its reason in words, and escape sequences of hosts are made harmless."""
    stats = Stats(
        fetched=120,
        bytes=3_400_000,
        statuses=Counter({200: 110, 404: 10}),
        failed=Counter(timeout=3, dns=1),
        skipped=Counter(
            {"off_host": 2287, "scheme": 21, "robots": 1, "new_code": 3, "nofollow": 0}
            | {"host_retired": 39}
        ),
        audited=770,
        throttles=4,
        robots=2,
        retries=5,
        tallies={
            "slow.example": HostTally(fetched=2, latency_s=5.0),
            "evil\x1b[2J.example": HostTally(fetched=9, refused=4),
        },
    )

    text = summary(CrawlResult(Ending.STOPPED, stats, 60.0, 33), "my crawl")

    skipped = (
        "2,287 links to other hosts (--scope), 21 not http(s), 3 new_code, "
        "1 forbidden by robots.txt (--ignore-robots)"
    )
    politeness = (
        "all 770 requests kept each host's minimum delay; 4 of 126 responses were refusals (3.2%)"
    )
    assert text.splitlines() == [
        "Stopped: 124 pages in 1 min, 2.1/s",
        "  fetched     110 with status 200, 10 with status 404; 3.4 MB",
        "  failed      3 timed out (--timeout), 1 host name not found",
        f"  skipped     {skipped}",
        "  given up    39 URLs of hosts that were given up",
        "  retries     5",
        "  slowest     slow.example (2.5 s per response)",
        "  refused by  evil\\x1b[2J.example (4 times)",
        f"  politeness  {politeness}",
        "  left        33 URLs in the queue",
        "To resume: mannerly resume 'my crawl'",
    ]


def test_summary_does_not_hide_a_request_that_was_early() -> None:
    """The audit's finding is printed, and the user is asked to report it."""
    stats = Stats(fetched=9, too_early=1, tallies={"a.example": HostTally(early=1)})
    text = summary(CrawlResult(Ending.FINISHED, stats, 1.0, 0))

    loudly = "VIOLATED: 1 request sent before the host's minimum delay was over (a.example): please"
    assert loudly in text
    assert "To resume" not in text


def test_summary_of_a_resumed_crawl_counts_this_run() -> None:
    """Its pages come on top of those of earlier runs."""
    result = CrawlResult(Ending.FINISHED, Stats(fetched=9), 1.0, 0)

    assert summary(result, is_resumed=True).startswith("Finished: 9 more pages in 1.0 s")


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
