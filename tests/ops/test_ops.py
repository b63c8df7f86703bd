"""The dashboard, the alert rules and the systemd unit that are shipped, judged by their tools."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.crawler.views import a_view
from tests.harness.programs import program

from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.stats import Latencies, Present, RequestCounts, Stats
from mannerly.crawler.store.fleet import FleetFigures
from mannerly.live.meter import LimitUse
from mannerly.service.background import TaskHealth
from mannerly.service.metrics import Reading, metrics_text

if TYPE_CHECKING:
    from collections.abc import Iterator

OPS = Path(__file__).parents[2] / "ops"
NAME = re.compile(r"\bmannerly_[a-z0-9_]+")


def existing() -> set[str]:
    """The names of all samples of a crawl in a server with a busy host, and of a service."""
    waits = Latencies()
    waits.note(1.0)
    host = a_view("a.example", HostStatus.FETCHING, 1)
    stats = Stats(
        fleet=FleetFigures(),
        requests=RequestCounts(blocked={"pace": waits}),
        now=Present(host_views=[host]),
    )
    reading = Reading(
        stats,
        {"jobs": LimitUse(2, 1)},
        0.0,
        {"running": 1},
        {"finished": 1},
        {"jobs": TaskHealth(0, None)},
    )
    text = metrics_text(reading, hosts=5)
    return {
        sample.name
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def expressions(node: object) -> Iterator[str]:
    """Every query in a file of Grafana or Prometheus."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for each in node:
            yield from expressions(each)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool", "prometheus"), *arguments],
        cwd=OPS, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "alerts.yml", "alerts.test.yml"])
def test_every_metric_that_is_named_exists(file: str) -> None:
    """In the dashboard, in the rules and in their tests."""
    text = (OPS / file).read_text("utf-8")

    named = set(NAME.findall(text))

    assert named
    assert named - existing() == set()


def test_dashboard_shows_every_metric() -> None:
    """But for those that are a part of another one; all panels ask the chosen data source."""
    dashboard = json.loads((OPS / "grafana-dashboard.json").read_text("utf-8"))
    named = {name for query in expressions(dashboard) for name in NAME.findall(query)}
    parts = ("_bucket", "_count", "_sum")
    whole = {name for name in existing() if not name.endswith(parts)}

    assert whole - named == {
        "mannerly_known_hosts",
        "mannerly_host_pages",
        "mannerly_host_refusals",
        "mannerly_host_tokens",
        "mannerly_host_success_streak",
        "mannerly_host_error_streak",
        "mannerly_host_politeness_violations_total",
        "mannerly_updated_timestamp_seconds",
        "mannerly_requisites_total",
        "mannerly_requisites_failed_total",
    }
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in dashboard["panels"])


@pytest.mark.processes
def test_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    """Promtool parses each of them as a rule."""
    dashboard = json.loads((OPS / "grafana-dashboard.json").read_text("utf-8"))
    queries = [
        query.replace("$__rate_interval", "5m").replace("$instance", ".*")
        for panel in dashboard["panels"]
        for query in expressions(panel)
    ]
    rules = [{"record": f"query:{number}", "expr": each} for number, each in enumerate(queries)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    checked = promtool("check", "rules", str(file))

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(queries)} rules found" in checked.stdout


@pytest.mark.processes
def test_alert_rules_fire_when_they_should() -> None:
    """Each of them on the case that it is for, and none on a healthy crawl."""
    checked, tested = (
        promtool("check", "rules", "alerts.yml"),
        promtool("test", "rules", "alerts.test.yml"),
    )
    names = [
        rule["alert"]
        for group in yaml.safe_load((OPS / "alerts.yml").read_text())["groups"]
        for rule in group["rules"]
    ]
    tests = (OPS / "alerts.test.yml").read_text()

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert all(re.search(rf"alertname: {name}\n\s+exp_alerts", tests) for name in names)


@pytest.mark.processes
def test_unit_is_valid_and_starts_the_service(tmp_path: Path) -> None:
    """As systemd reads it; the program is one that exists here."""
    analyze = program("systemd-analyze", "systemd")
    text = (OPS / "mannerly.service").read_text("utf-8")
    command = re.search(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
    assert command is not None
    unit = tmp_path / "mannerly.service"
    unit.write_text(text.replace(command[1], "/bin/true"))

    verified = subprocess.run(
        [analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (verified.returncode, verified.stderr) == (0, "")
    assert command[2].split()[0] == "serve"
