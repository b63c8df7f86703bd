"""robots.txt files beside a memory of hosts: in a file, in a server, in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.valkey_server import LocalServer

from mannerly.hosts.robots import KeptRobots, open_robots

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORIGIN, RULES = "https://a.example", b"User-agent: *\nDisallow: /\xff"
WALL = 1_750_000_000.0

pytestmark = pytest.mark.processes


@pytest.fixture(params=["file", "server", "process"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "server":
        with LocalServer() as server:
            yield server.url
    else:
        yield str(tmp_path / "hosts.sqlite") if request.param == "file" else f"memory:{tmp_path}"


@pytest.mark.parametrize("body", [RULES, b"", None])
def test_another_process_reads_what_was_kept(location: str, body: bytes | None) -> None:
    """A body comes back byte by byte; a site without rules is told from an empty file."""
    writer, reader = open_robots(location), open_robots(location)

    writer.save(ORIGIN, KeptRobots(body, 600.0), WALL)
    kept = reader.load(ORIGIN, WALL)
    unknown = reader.load("https://b.example", WALL)
    writer.close()
    reader.close()

    assert kept is not None
    assert kept.body == body
    assert 0.0 < kept.expires_in_s <= 600.0
    assert unknown is None


def test_what_has_expired_is_not_known(location: str) -> None:
    """By the wall clock of the reader, or of the server."""
    memory = open_robots(location)
    memory.save(ORIGIN, KeptRobots(RULES, 0.01), WALL)
    time.sleep(0.02)

    assert memory.load(ORIGIN, WALL + 1.0) is None

    memory.close()


def test_a_clock_that_was_set_back_makes_nothing_last(tmp_path: Path) -> None:
    """What was fetched in the future is fetched again."""
    memory = open_robots(str(tmp_path / "hosts.sqlite"))
    memory.save(ORIGIN, KeptRobots(RULES, 600.0), WALL)

    assert memory.load(ORIGIN, WALL - 3600.0) is None

    memory.close()
