"""Both memories of hosts pass the suite; the file keeps its promises about clocks and damage."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.model import Now
from mannerly.crawler.store.base import StoreBusy, StoreError
from mannerly.hosts import journal, open_host_memory, table
from mannerly.hosts.base import Granted, Holder, HostBudget, is_private, usable
from mannerly.hosts.suite import HOST, LESSON, HostMemoryContract

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.hosts.base import HostMemory

NAMES = count()


class TestMemoryHosts(HostMemoryContract):
    def setup_method(self) -> None:
        super().setup_method()
        self.location = f"memory:test-{next(NAMES)}"

    def open_memory(self) -> HostMemory:
        return open_host_memory(self.location, times=self.times)


class TestHostFile(HostMemoryContract):
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self.path = tmp_path / "state" / "hosts.sqlite"

    def open_memory(self, boot: str = "one") -> HostMemory:
        return open_host_memory(self.path, boot=boot, times=self.times)

    def test_the_file_and_its_directory_are_private(self) -> None:
        self.memory()

        assert stat.S_IMODE(self.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(self.path.parent.stat().st_mode) == 0o700
        assert not list(self.path.parent.glob("*.new"))

    def test_a_clock_that_steps_changes_no_wait(self) -> None:
        one = self.joined("x")
        one.claim()
        one.memory.write(one.holder.id, [HostBudget(HOST, next_in_s=60.0)], self.now)

        for wall in (0.0, self.now.wall + 1e6):
            moved = Now(self.now.mono + 10.0, wall)
            assert one.memory.budgets([HOST], moved)[HOST].next_in_s == pytest.approx(50.0)

    def test_after_a_reboot_a_wait_is_served_in_full(self) -> None:
        """Nobody is alive any more, whatever the new clock says; a day is the longest wait."""
        one = self.joined("x")
        one.claim()
        one.claim("b.example")
        one.memory.write(
            one.holder.id,
            [HostBudget(HOST, next_in_s=60.0), HostBudget("b.example", next_in_s=1e6)],
            self.now,
        )
        memory = self.open_memory("two")
        self._opened.append(memory)
        late = Now(self.now.mono + 1.0, self.now.wall + 500.0)
        memory.join(Holder("new", "y", "crawl-y", "1"), late)

        granted = memory.claim("new", {HOST: 0.5, "b.example": 0.5}, late)

        waits = [each.budget.next_in_s for each in granted.values() if isinstance(each, Granted)]
        assert waits == [60.0, 86_400.0]

    def test_a_busy_file_is_not_waited_for(self) -> None:
        """The caller tries again soon; nothing has changed."""
        one, two = self.joined("x"), self.joined("y")
        with (
            two.memory._file.transaction(),  # type: ignore[attr-defined]
            pytest.raises(StoreBusy),
        ):
            one.claim()

        assert one.claim() == Granted(None)

    def test_a_damaged_file_is_refused_with_what_to_do(self) -> None:
        self.path.parent.mkdir()
        self.path.write_bytes(b"not a database" * 500)

        with pytest.raises(StoreError, match="--memory none"):
            self.open_memory()

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "state").write_text("a file")

        with pytest.raises(StoreError, match=r"hosts\.sqlite .*--memory FILE"):
            self.open_memory()

    def test_what_nobody_needs_is_removed(self) -> None:
        """Lessons of private hosts after a day, others after three months; so are the dead."""
        one = self.joined("x")
        for host in (HOST, "127.0.0.1:8080"):
            one.claim(host)
            one.memory.write(one.holder.id, [HostBudget(host, LESSON)], self.now)
        self.wait(2 * 86_400.0)
        two = self.joined("y")
        after_days = set(two.memory.budgets([HOST, "127.0.0.1:8080"], self.now))
        self.wait(100 * 86_400.0)
        three = self.joined("z")

        assert after_days == {HOST}
        assert three.memory.budgets([HOST], self.now) == {}
        assert three.memory._file.rows("SELECT count(*) FROM leases") == [(0,)]  # type: ignore[attr-defined]

    def test_a_holder_that_is_alone_writes_no_row_for_a_host(self) -> None:
        """Until another process joins: its hosts get their rows before that one is a holder."""
        one = self.joined("x")
        hosts = {f"{n}.example": 0.5 for n in range(100)}
        one.memory.claim(one.holder.id, hosts, self.now)
        alone = self.rows("leases"), self.rows("claimed")
        self.joined("y")

        assert alone == (0, 1)
        assert (self.rows("leases"), self.rows("claimed")) == (100, 0)

    def test_many_leases_are_moved_in_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each is a transaction of its own: the holder is not kept waiting for all of them."""
        monkeypatch.setattr(journal, "MANY_CLAIMED", 4)
        one = self.joined("x")
        for n in range(10):
            one.memory.claim(one.holder.id, {f"{n}.example": 0.5, f"{n}.test": 0.5}, self.now)
        two = self.joined("y")

        in_use = two.memory.in_use([f"{n}.test" for n in range(10)], self.now)

        assert set(in_use.values()) == {one.holder}
        assert (len(in_use), self.rows("leases")) == (10, 20)

    def test_many_budgets_are_moved_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A lone holder that learns much does not leave all of it to the next process."""
        monkeypatch.setattr(journal, "MANY_NOTED", 3)
        one = self.joined("x")
        counts = []
        for n in range(6):
            one.claim(f"{n}.example")
            one.memory.write(one.holder.id, [HostBudget(f"{n}.example", LESSON)], self.now)
            counts.append((self.rows("hosts"), self.rows("noted")))

        assert counts == [(0, 1), (0, 2), (0, 3), (4, 0), (4, 1), (4, 2)]

    def test_hosts_beyond_those_whose_names_are_in_memory_are_known(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their rows are searched instead; also if there are too many only after a while."""
        monkeypatch.setattr(journal, "MANY_NOTED", 0)
        monkeypatch.setattr(table, "MOST_NAMES", 2)
        one = self.joined("x")
        for n in range(5):
            one.claim(f"{n}.example")
            one.memory.write(one.holder.id, [HostBudget(f"{n}.example", LESSON)], self.now)
        answers = [one.claim(f"{n}.example") for n in range(6)]

        known = [isinstance(each, Granted) and each.budget is not None for each in answers]
        assert known == [True] * 5 + [False]

    def test_a_file_of_a_format_that_was_never_released_is_left_alone(self) -> None:
        """The message says what to do with it."""
        one = self.joined("x")
        file = one.memory._file  # type: ignore[attr-defined]
        with file.transaction():
            file.execute("DROP TABLE claimed; DROP TABLE noted; PRAGMA user_version = 1")
        one.memory.close()
        before = self.path.read_bytes()

        with pytest.raises(StoreError, match=r"has format 1, .* knows format 2\): move it away"):
            self.joined("y")
        assert self.path.read_bytes() == before

    def test_a_damaged_journal_is_left_out_and_said(self) -> None:
        """No crawl stops for it, and the message names the file."""
        one = self.joined("x")
        file = one.memory._file  # type: ignore[attr-defined]
        with file.transaction():
            file.execute("INSERT INTO noted (holder, name, budgets) VALUES (1, 'x', 'soon')")

        known = one.memory.budgets([HOST], self.now)
        self.joined("y")

        assert known == {}
        (words,) = one.memory.take_mended()
        assert words.startswith(f"{self.path}: left out a part of its journal")

    def rows(self, table: str) -> int:
        with closing(apsw.Connection(str(self.path))) as file:
            return int(str(file.execute(f"SELECT count(*) FROM {table}").get))

    def test_two_processes_create_it_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The one that comes second uses the file of the first."""
        link = os.link

        def slow(source: str, target: str) -> None:
            monkeypatch.setattr(os, "link", link)
            self.memory()
            link(source, target)

        monkeypatch.setattr(os, "link", slow)
        one = self.joined("x")
        one.claim()

        assert self.joined("y").claim() != Granted(None)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", False),
        ("93.184.216.34", False),
        ("127.0.0.1:8080", True),
        ("[::1]:8000", True),
        ("10.1.2.3", True),
        ("localhost", True),
        ("printer.local:631", True),
    ],
)
def test_private_hosts(host: str, expected: bool) -> None:
    assert is_private(host) == expected


def test_a_lesson_of_a_private_host_is_used_for_a_day() -> None:
    """The next owner of the port may be another server."""
    old = HostBudget("127.0.0.1:8080", LESSON, gap_s=3.0, next_in_s=5.0, learned_s_ago=90_000.0)

    assert usable(old) == old._replace(lesson=None)
    assert usable(old._replace(learned_s_ago=80_000.0)).lesson == LESSON
    assert usable(old._replace(host="example.org")).lesson == LESSON
