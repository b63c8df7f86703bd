"""The health check of the container asks what is served there."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.harness.sites import free_port
from tests.harness.waiting import eventually
from tests.service.running import ServiceProcess

from mannerly.service.health import DEFAULT_PORT, served_port

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = ["/opt/mannerly/bin/python", "/opt/mannerly/bin/mannerly"]


@pytest.mark.parametrize(
    ("words", "variables", "port"),
    [
        (["serve"], {}, DEFAULT_PORT),
        (["serve", "--listen", "0.0.0.0:80"], {}, 80),
        (["serve", "--listen=[::]:81"], {}, 81),
        (["serve"], {"MANNERLY_LISTEN": "0.0.0.0:82"}, 82),
        (["crawl", "https://a.example/", "--dashboard", "0.0.0.0:83"], {}, 83),
        (["crawl", "https://a.example/", "--dashboard"], {}, DEFAULT_PORT),
        (["crawl", "--dashboard", "https://a.example/"], {}, DEFAULT_PORT),
        (["crawl", "https://a.example/"], {}, None),
    ],
)
def test_port_is_that_of_the_command(
    words: list[str], variables: dict[str, str], port: int | None
) -> None:
    """Also beside the init process of a container; a crawl without a page serves nothing."""
    init = ["/sbin/docker-init", "--", *PROGRAM[1:], "status"]

    assert served_port([init, [*PROGRAM, *words]], variables) == port


def check(port: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "mannerly.service.health", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.processes
def test_check_fails_while_nothing_answers() -> None:
    """A service that is started and hangs is not healthy."""
    code, said = check(free_port())

    assert code == 1
    assert "no answer" in said


@pytest.mark.processes
def test_check_fails_with_the_reason_while_the_service_is_not_ready(tmp_path: Path) -> None:
    """A full disk is told, and its end."""
    with ServiceProcess(tmp_path / "jobs") as service:
        well = check(service.port)
        service.create("https://a.invalid/", options={"give_up_after": 1})
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        eventually(lambda: check(service.port)[0] == 1)
        ill = check(service.port)
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        eventually(lambda: check(service.port)[0] == 0)

    assert well == (0, "")
    assert ill[0] == 1
    assert "no room to write" in ill[1]
