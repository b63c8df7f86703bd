"""The container's description, judged by parsers: there is no container engine where tests run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[1]


@pytest.fixture
def steps() -> list[dict[str, str]]:
    """The instructions of the Dockerfile, in order."""
    parsed = DockerfileParser(str(ROOT / "Dockerfile"))
    return [step for step in parsed.structure if step["instruction"] != "COMMENT"]


def values(steps: list[dict[str, str]], instruction: str) -> list[str]:
    return [step["value"] for step in steps if step["instruction"] == instruction]


def test_image_has_two_stages_and_no_moving_version(steps: list[dict[str, str]]) -> None:
    """What builds stays in the first stage; base images name a version."""
    first, second = values(steps, "FROM")

    assert first.endswith(" AS build")
    assert "latest" not in first + second
    assert second == first.removesuffix(" AS build")
    assert [copy for copy in values(steps, "COPY") if copy.startswith("--from=build ")]


def test_image_does_not_run_as_root(steps: list[dict[str, str]]) -> None:
    """The last user is a number other than 0, which Kubernetes can check, and owns /data."""
    (user,) = values(steps, "USER")

    assert int(user) > 0
    assert any(f"--owner {user} " in run and "/data" in run for run in values(steps, "RUN"))


def test_image_starts_the_command_and_has_a_health_check(steps: list[dict[str, str]]) -> None:
    """In exec form, so that signals arrive; the health check calls the command, too."""
    (health,) = values(steps, "HEALTHCHECK")

    assert json.loads(values(steps, "ENTRYPOINT")[0]) == ["mannerly"]
    assert json.loads(health.partition("CMD ")[2])[0] == "mannerly"
    assert values(steps, "STOPSIGNAL") == ["SIGTERM"]


def test_image_is_made_of_files_that_exist_and_are_sent(steps: list[dict[str, str]]) -> None:
    """Every COPY from the clone names something there that .dockerignore lets through."""
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}

    for copy in values(steps, "COPY"):
        if copy.startswith("--from"):
            continue
        for source in copy.split()[:-1]:
            assert (ROOT / source).exists()
            assert source in sent


def test_image_installs_locked_versions_only(steps: list[dict[str, str]]) -> None:
    """Every dependency is checked by its hash, and the last install looks for nothing else."""
    installs = [
        part for run in values(steps, "RUN") for part in run.split("&&") if "install" in part
    ]
    pip = [part for part in installs if "/pip " in part]

    assert len(pip) == 2
    assert "--require-hashes" in pip[0]
    assert "--no-deps" in pip[1]


def test_compose_example_sets_options_that_exist(tmp_path: Path) -> None:
    """Its command and variables are read as the command reads them; it is locked down."""
    described = yaml.safe_load((ROOT / "compose.yaml").read_text())
    (service,) = described["services"].values()
    given = {name: str(value) for name, value in service["environment"].items()}

    shown = subprocess.run(
        [sys.executable, "-m", "mannerly", "config", "show", "--origin"],
        env={"PATH": "/usr/bin:/bin", **given},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    assert sorted(re.findall(r"# (MANNERLY_\w+)", shown)) == sorted(given)
    assert service["command"][0] == "crawl"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "mem_limit" in service
    assert {mount.partition(":")[0] for mount in service["volumes"]} == set(described["volumes"])
