"""Options of the service and of its jobs: read from every place, allowed by their declaration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.commands import SOURCE_PATH
from tests.harness.sites import free_port
from tests.harness.waiting import eventually

from mannerly.cli import commands
from mannerly.cli.config import ConfigError, Configuration, resolve, resolve_own
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.settings import CrawlSettings
from mannerly.service.jobs.model import ALLOWED, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.options.values import Given

SERVE = commands()["serve"].own_options


def resolve_service(
    command_line: dict[str, Any], *, environment: dict[str, str], directory: Path | None
) -> tuple[Configuration, dict[str, Given]]:
    """Return the options of jobs, and those of the service itself."""
    own = resolve_own("serve", SERVE, command_line, environment=environment, directory=directory)
    return resolve({}, environment=environment, directory=directory), own


JOB_FILE = """
linear-base-delay = 0.7
per_host = 3
[serve]
data-root = "here"
jobs = 7
throttle_delay = 30.0
"""


def test_service_reads_options_of_jobs_from_variables_and_files(tmp_path: Path) -> None:
    """A job without options of its own has the operator's: the variable wins over the file."""
    (tmp_path / "mannerly.toml").write_text(JOB_FILE)
    variables = {"MAX_INFLIGHT_PER_HOST": "5", "MANNERLY_FAILURE_THRESHOLD": "9"}

    jobs, own = resolve_service({"jobs": 4}, environment=variables, directory=tmp_path)

    pace = settings_of({}, jobs.settings(CrawlSettings())).politeness
    assert (pace.linear_base_delay_s, pace.max_concurrency) == (0.7, 5)
    assert {name: given.value for name, given in own.items()} == {
        "data_root": "here",
        "jobs": 4,
        "throttle_delay": 30.0,
        "failure_threshold": 9,
    }


@pytest.mark.parametrize("name", SERVE)
def test_every_option_of_the_service_has_a_variable(name: str) -> None:
    """Of the same form as those of a crawl."""
    text = "5" if SERVE[name].kind.name in ("INTEGER", "NUMBER") else "text"

    _, own = resolve_service({}, environment={f"MANNERLY_{name.upper()}": text}, directory=None)

    assert list(own) == [name]


def test_variable_of_the_threshold_has_its_old_name() -> None:
    """As the requirement calls it."""
    old = {"BBB_JOB_FAILURE_THRESHOLD": "3"}

    _, own = resolve_service({}, environment=old, directory=None)

    assert own["failure_threshold"].value == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve]\njob = 2\n", "did you mean jobs"),
        ("serve = 2\n", "not a table"),
        ('[serve]\njobs = "two"\n', "a whole number"),
        ('[serve]\nlisten = "0.0.0.0:80"\n', "may not set this option"),
        ('[serve]\ndata_root = "/var/elsewhere"\n', "inside its own directory"),
    ],
)
def test_wrong_table_of_the_service_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """By every command, with its place; a project file opens nothing."""
    (tmp_path / "mannerly.toml").write_text(text)

    for read in (resolve, resolve_service):
        with pytest.raises(ConfigError, match=words):
            read({}, environment={}, directory=tmp_path)


def test_other_commands_use_nothing_of_the_service(tmp_path: Path) -> None:
    """Its table stands beside the options of a crawl."""
    (tmp_path / "mannerly.toml").write_text(JOB_FILE)

    found = resolve({}, environment={"MANNERLY_JOBS": "4"}, directory=tmp_path)

    assert set(found.given) == {"linear_base_delay", "per_host"}


def test_jobs_may_set_the_pace_and_not_what_is_the_operators() -> None:
    """What a job may set is declared with the option."""
    groups = ("linear_", "aimd_", "gradient_", "breaker_", "retry_")
    of_pace = {name for name in OPTIONS if name.startswith(groups)}
    never = {"extract", "output", "data_dir", "allow_net", "proxy", "memory", "pacing", "header"}

    assert of_pace <= set(ALLOWED)
    assert never.isdisjoint(ALLOWED)
    assert (
        settings_of({"linear_base_delay": 2}, CrawlSettings()).politeness.linear_base_delay_s == 2
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("proxy", "proxy is an option of the operator, not of a job"),
        ("pacing", "pacing is an option of the operator, not of a job"),
        ("max_url", "max_url is not an option of a job; did you mean max_urls?"),
        ("delay_s", "delay_s is not an option of a job; did you mean delay?"),
        ("enabled", "enabled is not an option of a job"),
    ],
)
def test_refused_option_is_never_suggested(name: str, words: str) -> None:
    """What is suggested can be set."""
    with pytest.raises(ValueError, match="option") as raised:
        settings_of({name: 1}, CrawlSettings())

    assert str(raised.value) == words


@pytest.mark.processes
def test_command_reads_its_variables_and_its_file(tmp_path: Path) -> None:
    """The real command: its number of jobs is that of the file, its address that of a variable."""
    (tmp_path / "mannerly.toml").write_text(JOB_FILE)
    port = free_port()
    variables = {"PYTHONPATH": SOURCE_PATH, "MANNERLY_LISTEN": f"127.0.0.1:{port}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mannerly", "serve"], cwd=tmp_path, env=os.environ | variables
    )

    def metrics() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    try:
        eventually(metrics)
        text = metrics()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    assert 'mannerly_limit{name="jobs"} 7.0' in text
    assert (tmp_path / "here" / "jobs.db").exists()
