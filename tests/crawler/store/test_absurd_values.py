"""Values of absurd size and of other types, in every column of the files: nothing is bricked."""

from __future__ import annotations

import re
import time
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.exports.stored_example import SHARDING, make_crawl
from tests.hostile.absurd import ODD_VALUES

from mannerly.crawler.model import Now
from mannerly.crawler.store import examine, open_crawl, repair
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import candidate
from mannerly.database.ranges import MAX_NUMBER, out_of_range
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import Granted, Holder, HostBudget
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = SHARDING.shard_of("a.example")
OPTIONS = ShardOptions(frontier_limit=1000)
NOW = Now(time.monotonic(), time.time())
HOSTS = {f"{name}.example": 1.0 for name in "abcd"}
VALUED = ("hosts", "robots", "traffic")  # tables of what is known of hosts: no URL is in them
NUMBERED = ("pages", "skipped")
OUT_OF_RANGE = ("-1", "1e300", "-1e300", "9e999", "-9e999", "9223372036854775807")


def columns_of(file: Path, *tables: str) -> Iterator[tuple[str, str]]:
    """The columns of tables that hold a number."""
    with closing(apsw.Connection(str(file))) as connection:
        for table in tables:
            for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                if kind != "BLOB":
                    yield table, name


def change(file: Path, statement: str) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(statement)


def every_look(crawl: Path) -> list[tuple[object, ...]]:
    """The records of a shard, as its owner and as a reader beside it see them."""
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        store.commit(Batch(found=[candidate("/another")]))
        found = [*store.hosts(), *store.traffic(), *store.skipped()]
        found += [record for _, record in store.pages()]
        robots = store.robots("https://a.example")
        return [*found, *([] if robots is None else [robots])]


@pytest.mark.parametrize("value", ODD_VALUES)
def test_odd_values_of_hosts_are_mended(tmp_path: Path, value: str) -> None:
    """All columns at once, but for names and numbers of rows: the shard opens and is repaired."""
    crawl = make_crawl(tmp_path / "crawl")
    file = crawl / f"shard-{HERE}.db"
    for table, column in columns_of(file, *VALUED):
        if column not in ("id", "host", "origin", "interval"):
            change(file, f"UPDATE OR IGNORE {table} SET {column} = {value}")

    found = every_look(crawl)
    repair(str(crawl))

    assert all(out_of_range(record) is None for record in found)
    assert {record[0] for record in found} >= {"a.example"}
    assert examine(str(crawl)) == []


@pytest.mark.parametrize("value", OUT_OF_RANGE)
def test_numbers_of_pages_out_of_range_are_mended(tmp_path: Path, value: str) -> None:
    """Those of every column: the records are read and the doctor puts them in range."""
    crawl = make_crawl(tmp_path / "crawl")
    file = crawl / f"shard-{HERE}.db"
    for table, column in columns_of(file, *NUMBERED):
        if column not in ("position", "seq", "host", "kind", "elements", "hops", "round"):
            number = f"iif(typeof({column}) IN ('integer', 'real'), {value}, {column})"
            change(file, f"UPDATE OR IGNORE {table} SET {column} = {number}")

    found = every_look(crawl)
    wrong = examine(str(crawl))
    repair(str(crawl))

    assert all(out_of_range(record) is None for record in found)
    assert any("rows with numbers out of range" in each for each in wrong)
    assert examine(str(crawl)) == []


def test_mended_numbers_are_said_once_with_file_host_and_field(tmp_path: Path) -> None:
    crawl = make_crawl(tmp_path / "crawl")
    file = crawl / f"shard-{HERE}.db"
    change(file, "UPDATE hosts SET blocked_until = 1e20, crawl_delay_seconds = -1")

    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        record = store.host("a.example")
        store.host("a.example")
        said = store.take_mended()

        assert record is not None
        assert (record.crawl_delay_s, record.blocked_until) == (0.0, MAX_NUMBER - 1)
        assert said == [
            f"{file}: a.example: crawl_delay_s was -1, blocked_until was 1e+20",
        ]
        assert store.take_mended() == []


@pytest.fixture
def memory_file(tmp_path: Path) -> Path:
    """A memory with something in every table, of two holders of which one was killed."""
    path = tmp_path / "hosts.sqlite"
    with closing(open_host_memory(path)) as memory:
        memory.join(Holder("1", "x", "x", "1"), NOW)
        memory.claim("1", dict.fromkeys(list(HOSTS)[:2], 1.0), NOW)
        budgets = [HostBudget(host, Lesson(delay_s=0.5)) for host in list(HOSTS)[:2]]
        memory.write("1", budgets, NOW)
        memory.join(Holder("2", "y", "y", "1"), NOW)
        memory.claim("2", HOSTS, NOW)
        memory.join(Holder("3", "z", "z", "1"), NOW)
    return path


def use(path: Path) -> tuple[set[str], list[str]]:
    """Do everything with a memory; return the hosts that were granted, and what was said."""
    later = Now(NOW.mono + 100.0, NOW.wall + 100.0)
    with closing(open_host_memory(path)) as memory:
        memory.join(Holder("9", "new", "new", "1"), later)
        claimed = memory.claim("9", HOSTS, later)
        memory.renew("9", [HostBudget(host, next_in_s=1.0) for host in HOSTS], later)
        memory.wanted("9", later)
        memory.in_use(HOSTS, later)
        memory.budgets(HOSTS, later)
        memory.release("9", [HostBudget("a.example")], later)
        memory.forget("b.example", later)
        memory.leave("9", [HostBudget("c.example")], later)
        granted = {host for host, each in claimed.items() if isinstance(each, Granted)}
        return granted, memory.take_mended()


@pytest.mark.parametrize("value", ODD_VALUES)
@pytest.mark.parametrize(
    "table", ["hosts", "holders", "leases", "wishes", "times", "claimed", "noted"]
)
def test_odd_values_in_a_memory_of_hosts_stop_no_crawl(
    memory_file: Path, table: str, value: str
) -> None:
    """Everything can be done with it, and the hosts of holders that are dead can be had."""
    change(
        memory_file, "INSERT INTO claimed (holder, count, hosts) VALUES (1, 1, '{\"d.example\":1}')"
    )
    change(memory_file, "INSERT INTO noted (holder, name, budgets) VALUES (1, 'x', '[[\"a\",1]]')")
    keys = ("host", "number") if table != "claimed" else ("number",)
    for _, column in columns_of(memory_file, table):
        if column not in keys:
            change(memory_file, f"UPDATE OR IGNORE {table} SET {column} = {value}")

    granted, said = use(memory_file)

    assert granted == set(HOSTS)
    assert all(re.match(re.escape(f"{memory_file}: "), words) for words in said)
