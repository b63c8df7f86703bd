"""`--metrics-file`: written as a whole, at intervals and at the end."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.test_endings import HTML, QUICK
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.harness.commands import run_at
from tests.harness.programs import program

from mannerly.cli.watchers import MetricsFile, together
from mannerly.crawler.events import HostWaits
from mannerly.crawler.runtime.ending import Watcher
from mannerly.crawler.runtime.event_batches import EventBatch
from mannerly.crawler.stats import RequestCounts, Stats
from mannerly.live.meter import Limits

if TYPE_CHECKING:
    from pathlib import Path


def value(path: Path, name: str) -> float:
    """The value of a metric without labels."""
    families = text_string_to_metric_families(path.read_text())
    return next(each.value for family in families for each in family.samples if each.name == name)


def test_file_is_written_at_intervals_and_at_the_end(tmp_path: Path) -> None:
    """Nothing else is left beside it."""
    path = tmp_path / "mannerly.prom"
    seen = []

    with MetricsFile(path, Limits(), interval_s=60, hosts=0) as metrics:
        for elapsed_s, pages in ((0.25, 1), (30.0, 2), (60.5, 3), (61.0, 4)):
            metrics(Stats(requests=RequestCounts(audited=pages)), elapsed_s)
            seen.append(value(path, "mannerly_requests_total"))

    assert seen == [1, 1, 3, 3]
    assert value(path, "mannerly_requests_total") == 4
    assert list(tmp_path.iterdir()) == [path]


def test_file_that_cannot_be_written_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The crawl goes on, and so does the file when there is room again."""
    path = tmp_path / "there" / "mannerly.prom"
    path.parent.mkdir()

    with MetricsFile(path, Limits(), interval_s=1, hosts=0) as metrics:
        path.parent.rmdir()
        for elapsed_s in (1.0, 2.0, 3.0):
            metrics(Stats(), elapsed_s)
        path.parent.mkdir()
        metrics(Stats(requests=RequestCounts(audited=9)), 9.0)

    assert capsys.readouterr().err.count("cannot be written") == 1
    assert value(path, "mannerly_requests_total") == 9


class Listener(Watcher):
    """Remembers what it was told."""

    def __init__(self, *, is_close: bool) -> None:
        self.is_close = is_close
        self.heard: list[int] = []

    def hear(self, batch: EventBatch) -> None:
        self.heard.append(len(batch.events))


def test_several_watchers_are_one_and_details_go_to_those_who_want_them() -> None:
    """The terminal does not print every wait because a metrics file counts them."""
    calm, close = Listener(is_close=False), Listener(is_close=True)

    both = together((calm, None, close))
    assert both is not None
    both.hear(EventBatch([HostWaits("a.example", "https://a.example/", 5.0, "pace")]))

    assert both.is_close
    assert (calm.heard, close.heard) == ([0], [1])
    assert together((None, calm)) is calm
    assert together(()) is None


@pytest.mark.processes
def test_crawl_writes_metrics_that_promtool_accepts(tmp_path: Path) -> None:
    """Requests, waits by reason and limits of a real crawl; no violation."""
    promtool = program("promtool", "prometheus")
    page = b"<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>"
    with RawServer(routes({"/": answer(page, "200 OK", HTML)})) as server:
        outcome = run_at(
            tmp_path, "crawl", server.url(), *QUICK, "--delay", "0.1", "--max-rate", "10",
            "--metrics-file", "crawl.prom", "--metrics-hosts", "3",
        )  # fmt: skip
    text = (tmp_path / "crawl.prom").read_text()
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=text, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert outcome.returncode == 0
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    assert 'mannerly_answers_total{status="2xx"} 1.0' in text
    assert 'mannerly_answers_total{status="4xx"} 4.0' in text  # three pages and robots.txt
    assert 'mannerly_limit{name="concurrency"} 512.0' in text
    assert "mannerly_politeness_violations_total 0.0" in text
    assert 'mannerly_wait_seconds_count{reason="' in text
    assert value(tmp_path / "crawl.prom", "mannerly_requests_total") == 5


@pytest.mark.processes
@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--metrics-file", "nowhere/a.prom"), "there is no directory nowhere"),
        (("--metrics-interval", "0"), "allowed: a number above 0"),
        (("--metrics-hosts", "-1"), "allowed: a whole number at least 0"),
    ],
)
def test_wrong_values_are_refused(tmp_path: Path, option: tuple[str, ...], said: str) -> None:
    """Before anything is requested."""
    outcome = run_at(tmp_path, "crawl", "http://127.0.0.1:9/", *option)

    assert outcome.returncode == 2
    assert said in outcome.stderr
