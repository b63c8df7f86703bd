"""The container's description, judged by parsers: there is no container engine where tests run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from dockerfile_parse import DockerfileParser
from supply.lock import read_lock
from tests.harness.sites import free_port

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
    """In exec form, so that signals arrive; the health check asks what is served."""
    (health,) = values(steps, "HEALTHCHECK")
    program, flag, module = json.loads(health.partition("CMD ")[2])

    assert json.loads(values(steps, "ENTRYPOINT")[0]) == ["mannerly"]
    assert (program, flag) == ("python", "-m")
    assert find_spec(module) is not None
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


@pytest.mark.processes
@pytest.mark.parametrize("name", ["crawl", "serve"])
def test_compose_example_sets_options_that_exist(name: str, tmp_path: Path) -> None:
    """Its command and variables are read as the command reads them; it is locked down."""
    described = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service = described["services"][name]
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

    assert sorted(re.findall(r"# (MANNERLY_\w+)$", shown, re.MULTILINE)) == sorted(given)
    assert service["command"][0] == name
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "mem_limit" in service
    assert {mount.partition(":")[0] for mount in service["volumes"]} == set(described["volumes"])


@pytest.mark.processes
def test_compose_starts_a_service_that_answers(tmp_path: Path) -> None:
    """Its command, on a free port: healthy by its own check, and closed without the token."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["serve"]
    port = free_port()
    words = [word.replace("7465", str(port)) for word in service["command"]]
    check = [word.replace("7465", str(port)) for word in service["healthcheck"]["test"][1:]]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    serving = subprocess.Popen(
        [sys.executable, "-m", "mannerly", *words],
        cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert serving.stderr is not None
        said = serving.stderr.readline()
        for _ in range(100):
            healthy = subprocess.run(
                [sys.executable, *check[1:]], capture_output=True, timeout=60, check=False
            )
            if healthy.returncode == 0:
                break
            time.sleep(0.1)
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30)
        refused.value.close()
    finally:
        serving.terminate()
        serving.communicate(timeout=60)

    assert "Clients need a token" in said
    assert check[0] == "python"
    assert healthy.returncode == 0
    assert refused.value.code == 401


def test_compose_installs_what_the_service_needs(steps: list[dict[str, str]]) -> None:
    """The image has the versions of `locks/serve.txt`, with the extras `serve` and `redis`."""
    needed = {"starlette", "uvicorn", "prometheus-client", "cronsim", "pycurl", "redis"}

    assert any("locks/serve.txt" in run for run in values(steps, "RUN"))
    assert needed <= {pin.name for pin in read_lock(ROOT / "locks" / "serve.txt")}
