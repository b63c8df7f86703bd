"""The figures of a host: the same in the core, in its record, in the API and in metrics."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.views import a_view
from tests.harness.commands import run

from mannerly.crawler.crawl import Crawl
from mannerly.crawler.host_view import HostStatus, doing_in
from mannerly.crawler.stats import Present, Stats
from mannerly.crawler.stored import open_crawl
from mannerly.demo import DemoWeb, plain_sites
from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.snapshot import HostFigures
from mannerly.service.host_table import HostTable
from mannerly.service.metrics import Reading, metrics_text

if TYPE_CHECKING:
    from pathlib import Path

HOST = "a.example"
NAMES = ("p95_latency_s", "error_rate", "tokens", "success_streak", "error_streak")


def test_figures_are_those_of_the_snapshot() -> None:
    """After every answer: successes, refusals, failures."""
    core, now = Politeness(Settings(strategy="fixed", delay_s=0.5, seed=1)), 0.0
    seen = []

    for status in (200, 200, 429, 500, 500, 200, 200):
        now = max(now, core.ready_at(HOST, now=now))
        decision = core.reserve(HOST, now=now)
        assert isinstance(decision, Grant)
        now += 0.2
        core.report(decision.permit, Response(status, latency_s=0.2), now=now)
        snapshot, figures = core.host(HOST, now=now), core.figures(HOST, now=now)
        assert snapshot is not None
        assert figures is not None
        seen.append(figures)
        assert figures == tuple(getattr(snapshot, name) for name in HostFigures._fields)

    assert [figures.error_streak for figures in seen] == [0, 0, 1, 1, 1, 0, 0]
    assert [figures.success_streak for figures in seen] == [1, 2, 0, 0, 0, 1, 2]
    assert seen[-1].error_rate == 2 / 6  # the first success was not learned from
    assert seen[-1].p95_latency_s > 0.1


@pytest.mark.processes
def test_record_of_a_host_has_its_figures(tmp_path: Path) -> None:
    """`host show --json` prints them, and the API of a page tells the same."""
    location = str(tmp_path / "crawl")
    options = {"strategy": "fixed", "delay": 0.02, "max_rate": 50, "seeding_strategy": "none"}
    with DemoWeb(plain_sites(1, pages=80)) as web:  # more than a second: they are at most that old
        host = web.host("plain-0")
        with Crawl(web.seeds(), data_dir=location, processes=1, **options) as crawl:
            crawl.run()

    printed = json.loads(run("host", "show", location, host, "--json").stdout)
    with open_crawl(location) as stored, stored.view() as view:
        told = HostTable().one(view, host, [])
        record = next(record for reader in view.readers for record in reader.hosts())

    assert told is not None
    assert {name: printed[name] for name in NAMES} == {name: told[name] for name in NAMES}
    assert {name: printed[name] for name in NAMES} == {
        name: getattr(doing_in(record), name) for name in NAMES
    }
    assert printed["p95_latency_s"] > 0.0
    assert printed["success_streak"] >= 8
    assert printed["error_rate"] == printed["error_streak"] == 0


def test_metrics_of_the_busiest_hosts_have_their_figures() -> None:
    """On request, each with the name of its host."""
    standing = a_view(
        HOST, HostStatus.FETCHING, 3, p95_latency_s=0.25, error_rate=0.5, tokens=0.75,
        success_streak=7, error_streak=2,
    )  # fmt: skip

    text = metrics_text(
        Reading(Stats(now=Present(host_views=[standing])), {}, time.time()), hosts=1
    ).decode()

    for name, value in (
        ("p95_latency_seconds", 0.25),
        ("error_rate", 0.5),
        ("tokens", 0.75),
        ("success_streak", 7.0),
        ("error_streak", 2.0),
    ):
        assert f'mannerly_host_{name}{{host="{HOST}"}} {value}' in text
