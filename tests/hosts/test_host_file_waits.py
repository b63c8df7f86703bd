"""How long a memory of hosts in a file waits for other writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mannerly.crawler.model import Now
from mannerly.database.errors import StoreError
from mannerly.database.sqlite import Database
from mannerly.hosts import file
from mannerly.hosts.base import Holder
from mannerly.hosts.file import BUSY_MS, HostFile

if TYPE_CHECKING:
    from pathlib import Path

NOW = Now(10.0, 1_700_000_000.0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits that were set, in order."""
    chosen: list[int] = []
    open_file = Database.open

    def opened(*place: Any, **options: Any) -> Database:
        database = open_file(*place, **options)
        wait_for = database.wait_for

        def noted(milliseconds: int) -> None:
            chosen.append(milliseconds)
            wait_for(milliseconds)

        database.wait_for = noted
        return database

    monkeypatch.setattr(Database, "open", opened)
    return chosen


def test_the_loop_of_a_crawl_waits_briefly_after_a_host_was_forgotten(
    tmp_path: Path, waits: list[int]
) -> None:
    """Only the command itself may take long."""
    memory = HostFile(tmp_path / "hosts.sqlite")
    memory.join(Holder("x", "x", "x", "1"), NOW)

    memory.forget("a.example", NOW)
    memory.close()

    assert waits[-1] == BUSY_MS


def test_the_loop_of_a_crawl_waits_briefly_after_it_could_not_join(
    tmp_path: Path, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on, and tries again."""

    def fail(*_: object) -> None:
        raise StoreError("the disk is broken")

    memory = HostFile(tmp_path / "hosts.sqlite")
    monkeypatch.setattr(file, "tidy", fail)

    with pytest.raises(StoreError):
        memory.join(Holder("x", "x", "x", "1"), NOW)
    memory.close()

    assert waits[-1] == BUSY_MS
