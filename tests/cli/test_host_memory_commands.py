"""The memory of hosts at the command line: host show, host forget, doctor, a damaged file."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import make_crawl
from tests.harness.commands import invoke

from mannerly.crawler.model import Now
from mannerly.hosts import host_memory_location, open_host_memory
from mannerly.hosts.base import Holder, HostBudget
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from pathlib import Path


HOST = "a.example"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A memory that knows a limit of a host, from another crawl."""
    path = tmp_path / "hosts.sqlite"
    monkeypatch.setenv("MANNERLY_MEMORY", str(path))
    now = Now(time.monotonic(), time.time())
    with closing(open_host_memory(path)) as memory:
        memory.join(Holder("1", "other", "crawl-other", "1"), now)
        memory.claim("1", {HOST: 1.0}, now)
        lesson = Lesson(delay_s=0.5, floor_s=0.25)
        memory.leave("1", [HostBudget(HOST, lesson, learned_s_ago=7200.0)], now)
    return path


def test_host_show_says_where_a_lesson_came_from(tmp_path: Path, memory: Path) -> None:
    crawl = make_crawl(tmp_path / "crawl")

    text = invoke("host", "show", crawl, HOST).stdout
    fields = json.loads(invoke("host", "show", crawl, HOST, "--json").stdout)

    assert "all crawls know 2.0/s, refused at 4.0/s, from crawl crawl-other 2 h" in text
    assert fields["shared"]["learned_by"] == "crawl-other"


def test_host_forget_forgets_for_all_crawls(tmp_path: Path, memory: Path) -> None:
    crawl = make_crawl(tmp_path / "crawl")

    assert invoke("host", "forget", crawl, HOST).exit_code == 0
    assert "all crawls know" not in invoke("host", "show", crawl, HOST).stdout


def test_doctor_names_the_file_and_says_what_is_wrong(memory: Path) -> None:
    sound = invoke("doctor")
    memory.write_bytes(b"damaged" * 1000)
    damaged = invoke("doctor")

    assert (sound.exit_code, damaged.exit_code) == (0, 1)
    assert memory.name in sound.stdout
    assert "not fit to crawl" in damaged.output


def test_a_crawl_with_a_damaged_memory_sends_nothing(tmp_path: Path, memory: Path) -> None:
    """Exit code 4 and what to do, because without it a host could get twice the load."""
    memory.write_bytes(b"damaged" * 1000)

    ended = invoke("crawl", "http://127.0.0.1:9/", "--data-dir", tmp_path / "new", "--quiet")

    assert ended.exit_code == 4
    assert "--memory none" in ended.output


def test_the_memory_is_a_file_of_the_user(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    state = {**home, "XDG_STATE_HOME": str(tmp_path / "state")}
    default = str(tmp_path / ".local" / "state" / "mannerly" / "hosts.sqlite")

    assert host_memory_location(None, home) == default
    assert host_memory_location(None, state) == str(tmp_path / "state/mannerly/hosts.sqlite")
    assert host_memory_location("/x/y.sqlite", state) == "/x/y.sqlite"
    assert host_memory_location("none", state) is None
    assert host_memory_location(None, {**state, "MANNERLY_MEMORY": "none"}) is None
    assert host_memory_location("file", {**state, "MANNERLY_MEMORY": "none"}) == "file"
