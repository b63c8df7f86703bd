"""Claims about what is kept between runs: the two memories, and the drivers that fill them."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import Reason, Refuse, Settings, Wait
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.memory.inmemory import InMemory
from mannerly.politeness.memory.sqlite import MemoryFileError, SqliteMemory
from mannerly.politeness.pace import Lesson
from mannerly.politeness.testing import FakeClock, MemoryContract, retry_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.politeness.memory.base import Memory

URL = "https://example.com/"
HOST = "example.com"
LINEAR = Settings(strategy="linear", seed=1)
DAY_S = 86_400.0


class TestInMemory(MemoryContract):
    @pytest.fixture
    def memory(self) -> Memory:
        return InMemory()


class TestSqliteMemory(MemoryContract):
    @pytest.fixture
    def memory(self, tmp_path: Path) -> Iterator[Memory]:
        memory = SqliteMemory(tmp_path / "memory.db")
        yield memory
        memory.close()

    def reopen(self, memory: Memory) -> Memory:
        assert isinstance(memory, SqliteMemory)
        memory.close()
        return SqliteMemory(memory.path)


# ------------------------------------------------------------------ the file


def test_columns_are_those_of_document_001(tmp_path: Path) -> None:
    """The learned delays are float seconds, zero where nothing was learned."""
    path = tmp_path / "memory.db"
    SqliteMemory(path).close()

    connection = sqlite3.connect(path)
    columns = {row[1]: row[2:5] for row in connection.execute("PRAGMA table_info(hosts)")}
    connection.close()

    for name in ("adaptive_delay_seconds", "adaptive_delay_floor_seconds", "crawl_delay_seconds"):
        assert columns[name] == ("REAL", 1, "0")


def test_memory_stays_one_file(tmp_path: Path) -> None:
    """After a write there is the database and nothing else: no log that has to travel with it."""
    memory = SqliteMemory(tmp_path / "memory.db")

    memory.save([Remembered(host=HOST, lesson=Lesson(delay_s=0.5))])

    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]
    assert repr(memory) == f"<SqliteMemory {tmp_path / 'memory.db'}>"
    memory.close()


def test_foreign_database_is_refused_untouched(tmp_path: Path) -> None:
    """A database of another program is named as such, and not one byte of it changes."""
    path = tmp_path / "photos.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(MemoryFileError, match="another program"):
        SqliteMemory(path)

    assert path.read_bytes() == before


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    """A file of a later version says so, rather than losing what it knows."""
    path = tmp_path / "memory.db"
    SqliteMemory(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(MemoryFileError, match="schema version 99"):
        SqliteMemory(path)


def test_file_of_version_1_is_converted(tmp_path: Path) -> None:
    """What it knows is kept; what it could not know begins at nothing."""
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE hosts (
            host TEXT PRIMARY KEY NOT NULL,
            adaptive_delay_seconds REAL NOT NULL DEFAULT 0,
            adaptive_delay_floor_seconds REAL NOT NULL DEFAULT 0,
            allowance REAL NOT NULL DEFAULT 0,
            block_seconds REAL NOT NULL DEFAULT 0,
            concurrency INTEGER NOT NULL DEFAULT 0,
            proven INTEGER NOT NULL DEFAULT 0,
            crawl_delay_seconds REAL NOT NULL DEFAULT 0,
            blocked_until REAL NOT NULL DEFAULT 0,
            updated_at REAL NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        INSERT INTO hosts VALUES ('example.com', 2.5, 1.5, 8, 3, 4, 1, 0.5, 70, 60);
        PRAGMA application_id = 1835953778;
        PRAGMA user_version = 1;
        """
    )
    connection.close()

    for _ in range(2):
        memory = SqliteMemory(path)
        record = memory.load(HOST)
        memory.close()

        lesson = Lesson(
            delay_s=2.5, floor_s=1.5, allowance=8, block_s=3, concurrency=4, is_proven=True
        )
        assert record == Remembered(
            host=HOST, lesson=lesson, crawl_delay_s=0.5, blocked_until=70, updated_at=60
        )


async def test_open_breaker_survives_a_restart(tmp_path: Path) -> None:
    """What is left of its open time is refused in the next run, too."""
    path = tmp_path / "memory.db"
    settings = Settings(seed=1, breaker_open_s=60.0, breaker_consecutive=1)
    async with AsyncPoliteness(settings, memory=SqliteMemory(path), clock=FakeClock()) as one:
        slot = one.try_slot(URL)
        assert isinstance(slot, Slot)
        slot.report(status=500)

    clock = FakeClock(now=3.0, wall=1_700_000_000.0 + 10.0)
    async with AsyncPoliteness(settings, memory=SqliteMemory(path), clock=clock) as two:
        decision = two.try_slot(URL)

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BREAKER_OPEN
    assert decision.until is not None
    assert 38.0 <= decision.until - 3.0 <= 62.0


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """A text file, or a directory that is not there, is an error with the path in it."""
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be looked at. " * 40)

    with pytest.raises(MemoryFileError, match=r"notes\.txt"):
        SqliteMemory(text)
    with pytest.raises(MemoryFileError, match=r"cannot open .*memory\.db"):
        SqliteMemory(tmp_path / "missing" / "memory.db")


def test_any_thread_may_use_it(tmp_path: Path) -> None:
    """Eight threads that load, save and forget leave exactly what was saved last."""
    memory = SqliteMemory(tmp_path / "memory.db")

    def work(number: int) -> None:
        for round_ in range(3):
            memory.save(
                Remembered(host=f"{number}-{place}.example", lesson=Lesson(delay_s=round_ + 1.0))
                for place in range(3)
            )
            memory.forget(f"{number}-0.example")
            assert memory.load(f"{number}-1.example") is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    for number in range(8):
        kept = memory.load(f"{number}-2.example")
        assert kept is not None
        assert kept.lesson.delay_s == 3.0
        assert memory.load(f"{number}-0.example") is None
    memory.close()


def test_two_objects_share_a_file(tmp_path: Path) -> None:
    """What one process writes, another one reads."""
    one, other = SqliteMemory(tmp_path / "memory.db"), SqliteMemory(tmp_path / "memory.db")

    one.save([Remembered(host=HOST, lesson=Lesson(delay_s=0.5))])

    found = other.load(HOST)
    assert found is not None
    assert found.lesson.delay_s == 0.5
    one.close()
    other.close()


# ------------------------------------------------------------------ the drivers


def refused(
    politeness: AsyncPoliteness | ThreadedPoliteness,
    *,
    pause_s: float | None = None,
    url: str = URL,
) -> None:
    """One request that the server answers with 429."""
    slot = politeness.try_slot(url)
    assert isinstance(slot, Slot)
    slot.report(status=429, headers={} if pause_s is None else retry_after(pause_s))


async def test_learned_pace_survives_a_restart(tmp_path: Path) -> None:
    """Learn, close, reopen at a later time: the first request already knows the pace."""
    path = tmp_path / "memory.db"
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as first:
        refused(first)
        learned = first.host(URL)

    clock = FakeClock(now=5_000.0, wall=1_700_000_000.0 + 3600.0)
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=clock) as second:
        async with second.slot(URL) as slot:
            slot.report(status=200)
        recalled = second.host(URL)

    assert learned is not None
    assert recalled is not None
    assert learned.delay_s == 1.5
    assert recalled.delay_s == pytest.approx(1.5, abs=0.01)
    assert recalled.not_before == pytest.approx(5_001.5, abs=0.01)


async def test_old_lesson_counts_less(tmp_path: Path) -> None:
    """A lesson as old as the half-life has half its weight."""
    path = tmp_path / "memory.db"
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as first:
        refused(first)

    clock = FakeClock(wall=1_700_000_000.0 + 7 * DAY_S)
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=clock) as second:
        second.try_slot(URL)
        recalled = second.host(URL)

    assert recalled is not None
    assert recalled.delay_s == pytest.approx(1.0)


async def test_long_retry_after_survives_a_restart_as_wall_time(tmp_path: Path) -> None:
    """A ban of ten minutes goes on after a restart, on a machine whose clock started anew."""
    path = tmp_path / "memory.db"
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock(90_000.0)) as one:
        refused(one, pause_s=590.0)

    clock = FakeClock(now=3.0, wall=1_700_000_000.0 + 60.0)
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=clock) as two:
        decision = two.try_slot(URL)

    assert isinstance(decision, Wait)
    assert decision.reason is Reason.RETRY_AFTER
    assert decision.until is not None
    assert 3.0 + 530.0 <= decision.until <= 3.0 + 531.0


async def test_short_retry_after_is_forgotten(tmp_path: Path) -> None:
    """A pause of less than a minute need not survive."""
    path = tmp_path / "memory.db"
    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as first:
        refused(first, pause_s=30.0)

    async with AsyncPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as second:
        assert isinstance(second.try_slot(URL), Slot)


def test_machines_wall_clock_serves_a_restart() -> None:
    """With the real clocks, too, a ban goes on in the next run for the rest of its time."""
    memory = InMemory()
    with ThreadedPoliteness(LINEAR, memory=memory) as first:
        refused(first, pause_s=500.0)

    with ThreadedPoliteness(LINEAR, memory=memory) as second:
        rest_s = second.ready_at(URL) - second.now()

    assert 490.0 < rest_s <= 501.0


def test_threads_remember_as_well(tmp_path: Path) -> None:
    """The thread driver keeps and recalls the same."""
    path = tmp_path / "memory.db"
    with ThreadedPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as first:
        refused(first)

    with ThreadedPoliteness(LINEAR, memory=SqliteMemory(path), clock=FakeClock()) as second:
        with second.slot(URL) as slot:
            slot.report(status=200)
        recalled = second.host(URL)

    assert recalled is not None
    assert recalled.delay_s == pytest.approx(1.5)


class Spy(InMemory):
    """A memory that counts, and that fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.saves: list[list[str]] = []
        self.is_broken = False
        self.is_closed = False

    def load(self, host: str) -> Remembered | None:
        self.loads.append(host)
        return super().load(host)

    def save(self, records: Iterable[Remembered]) -> None:
        kept = list(records)
        if self.is_broken:
            raise OSError("no space left on device")
        self.saves.append([record.host for record in kept])
        super().save(kept)

    def close(self) -> None:
        self.is_closed = True


def test_changes_are_written_every_thirty_seconds_and_at_close() -> None:
    """Nothing is written at once, all of it within half a minute, and the rest at the end."""
    clock, memory = FakeClock(), Spy()
    politeness = ThreadedPoliteness(LINEAR, memory=memory, clock=clock)

    refused(politeness)
    at_once = list(memory.saves)
    clock.advance(31.0)
    refused(politeness)
    on_the_tick = list(memory.saves)
    clock.advance(5.0)
    refused(politeness)
    politeness.close()

    assert at_once == []
    assert on_the_tick == [[HOST]]
    assert memory.saves == [[HOST], [HOST]]
    assert memory.is_closed


def test_untouched_hosts_are_not_written_again() -> None:
    """Only what changed since the last write is written."""
    clock, memory = FakeClock(), Spy()
    politeness = ThreadedPoliteness(LINEAR, memory=memory, clock=clock)
    refused(politeness)
    clock.advance(31.0)
    refused(politeness)

    for _ in range(3):
        clock.advance(31.0)
        slot = politeness.try_slot("https://quiet.example/")
        assert isinstance(slot, Slot)
        slot.report(status=200)
    politeness.close()

    assert memory.saves == [[HOST]]


def test_failed_write_is_kept_and_tried_again() -> None:
    """A full disk fails no request; the records are written once there is room."""
    clock, memory = FakeClock(), Spy()
    memory.is_broken = True
    politeness = ThreadedPoliteness(LINEAR, memory=memory, clock=clock)
    refused(politeness)
    clock.advance(31.0)
    refused(politeness)
    failure = politeness.memory_error

    memory.is_broken = False
    clock.advance(31.0)
    refused(politeness)

    assert isinstance(failure, OSError)
    assert politeness.memory_error is None
    assert memory.saves == [[HOST]]
    politeness.close()


def test_failed_last_write_is_raised() -> None:
    """At the end there is no later: the memory's error is the caller's, and it is closed."""
    memory = Spy()
    memory.is_broken = True
    politeness = ThreadedPoliteness(LINEAR, memory=memory, clock=FakeClock())
    refused(politeness)

    with pytest.raises(OSError, match="no space left"):
        politeness.close()

    assert memory.is_closed


async def test_failed_last_write_is_raised_in_asyncio() -> None:
    """The same in asyncio."""
    memory = Spy()
    memory.is_broken = True
    politeness = AsyncPoliteness(LINEAR, memory=memory, clock=FakeClock())
    refused(politeness)

    with pytest.raises(OSError, match="no space left"):
        await politeness.aclose()

    assert memory.is_closed


async def test_asyncio_writes_beside_the_loop() -> None:
    """A write that is due runs in a thread, and closing waits for it before the last one."""
    clock, memory = FakeClock(), Spy()
    politeness = AsyncPoliteness(LINEAR, memory=memory, clock=clock)
    refused(politeness)
    clock.advance(31.0)
    refused(politeness)
    clock.advance(5.0)
    refused(politeness)

    await politeness.aclose()

    assert memory.saves == [[HOST], [HOST]]
    kept = memory.load(HOST)
    assert kept is not None
    assert kept.lesson.delay_s == 3.5


async def test_many_tasks_load_a_host_once() -> None:
    """Fifty tasks that begin with the same host ask the memory once, and keep their order."""
    memory = Spy()
    memory.save([Remembered(host=HOST, lesson=Lesson(delay_s=2.5), updated_at=1_700_000_000.0)])
    clock = FakeClock()
    politeness = AsyncPoliteness(LINEAR, memory=memory, clock=clock)
    began = asyncio.Event()
    starts: list[float] = []

    async def work() -> None:
        async with politeness.slot(URL) as slot:
            starts.append(clock.now())
            began.set()
            slot.report(status=200)

    tasks = [asyncio.create_task(work()) for _ in range(50)]
    await began.wait()
    await clock.run(*tasks)

    assert memory.loads == [HOST]
    assert starts[:3] == [0.0, 2.5, 5.0]
    await politeness.aclose()


def test_known_crawl_delay_is_remembered() -> None:
    """What robots.txt asked for holds in the next run, before robots.txt is fetched again."""
    memory = InMemory()
    with ThreadedPoliteness(LINEAR, memory=memory, clock=FakeClock()) as first:
        first.robots(URL, 7.0)

    with ThreadedPoliteness(LINEAR, memory=memory, clock=FakeClock()) as second:
        slot = second.try_slot(URL)
        assert isinstance(slot, Slot)
        slot.report(status=200)

        assert second.ready_at(URL) == 7.0


def test_group_is_remembered_under_its_own_name() -> None:
    """A budget shared by several hosts is one record, even if its name is no host's."""
    groups = {"a.example": "the shops", "b.example": "the shops"}
    settings, memory = Settings(strategy="linear", group_by="ip", seed=1), InMemory()
    with ThreadedPoliteness(
        settings, memory=memory, group_of=groups.__getitem__, clock=FakeClock()
    ) as first:
        refused(first, url="https://a.example/")

    with ThreadedPoliteness(
        settings, memory=memory, group_of=groups.__getitem__, clock=FakeClock()
    ) as second:
        second.try_slot("https://b.example/")
        recalled = second.host("https://a.example/")

    assert memory.load("the shops") is not None
    assert recalled is not None
    assert recalled.delay_s == pytest.approx(1.5)


def test_parked_host_stays_blocked_after_a_restart() -> None:
    """A pause too long to wait for in one run is not forgotten by the next."""
    memory, clock = InMemory(), FakeClock()
    with ThreadedPoliteness(LINEAR, memory=memory, clock=clock) as first:
        refused(first, pause_s=7200.0)
        parked = first.try_slot(URL)

    with ThreadedPoliteness(LINEAR, memory=memory, clock=clock) as second:
        blocked = second.try_slot(URL)

    assert isinstance(parked, Refuse)
    assert not isinstance(blocked, Slot)
    assert blocked.until is not None
    assert blocked.until >= 7200.0
