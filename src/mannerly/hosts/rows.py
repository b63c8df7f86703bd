"""The tables of a memory of hosts in a file; budgets as rows of `hosts`, dated on both scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mannerly.database.sqlite import FileKind
from mannerly.politeness.model import Now
from mannerly.politeness.pace import Lesson

from .base import (
    LONGEST_UNSURE_S,
    STALE_S,
    UNREADABLE_WAIT_S,
    HostBudget,
    later,
    merged,
)

if TYPE_CHECKING:
    from mannerly.database.sqlite import Row

HOSTS = FileKind(
    "host memory",
    0x6D6E686D,  # "mnhm"
    2,
    """
    CREATE TABLE hosts (
        host TEXT PRIMARY KEY NOT NULL,
        delay_s REAL NOT NULL, floor_s REAL NOT NULL, allowance REAL NOT NULL,
        block_s REAL NOT NULL, concurrency INTEGER NOT NULL, is_proven INTEGER NOT NULL,
        crawl_delay_s REAL NOT NULL, gap_s REAL NOT NULL, sent_s_ago REAL, next_in_s REAL NOT NULL,
        failing_s REAL, failures_in_a_row INTEGER NOT NULL, breaker_opens INTEGER NOT NULL,
        breaker_in_s REAL, learned_at REAL NOT NULL, learned_by TEXT NOT NULL,
        mono REAL NOT NULL, wall REAL NOT NULL, boot TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE holders (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, crawl TEXT NOT NULL,
        name TEXT NOT NULL, worker TEXT NOT NULL, mono REAL NOT NULL, wall REAL NOT NULL,
        boot TEXT NOT NULL, lease_s REAL NOT NULL
    );
    CREATE TABLE leases (
        host TEXT PRIMARY KEY NOT NULL, holder INTEGER NOT NULL, gap_s REAL NOT NULL,
        freed_at REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE wishes (
        number INTEGER PRIMARY KEY, host TEXT NOT NULL, holder INTEGER NOT NULL,
        UNIQUE (host, holder)
    );
    CREATE TABLE times (
        lease_s REAL NOT NULL, heartbeat_s REAL NOT NULL, silent_s REAL NOT NULL,
        grace_s REAL NOT NULL, turn_s REAL NOT NULL, round_s REAL NOT NULL
    );
    CREATE TABLE claimed (
        number INTEGER PRIMARY KEY, holder INTEGER NOT NULL, count INTEGER NOT NULL,
        hosts TEXT NOT NULL
    );
    CREATE TABLE noted (
        number INTEGER PRIMARY KEY, holder INTEGER NOT NULL, name TEXT NOT NULL,
        budgets TEXT NOT NULL
    );
    """,
)

_NO_LESSON = Lesson()


class HostRow(NamedTuple):
    """A row of the table `hosts`; a value that makes no sense becomes the default."""

    host: str
    delay_s: float = 0.0
    floor_s: float = 0.0
    allowance: float = 0.0
    block_s: float = 0.0
    concurrency: int = 0
    is_proven: bool = False
    crawl_delay_s: float = 0.0
    gap_s: float = 0.0
    sent_s_ago: float | None = None
    next_in_s: float = UNREADABLE_WAIT_S
    failing_s: float | None = None
    failures_in_a_row: int = 0
    breaker_opens: int = 0
    breaker_in_s: float | None = None
    learned_at: float = 0.0
    learned_by: str = ""
    mono: float = 0.0
    wall: float = 0.0
    boot: str = ""


FIELDS = ", ".join(HostRow._fields)
READ = f"""
SELECT {FIELDS} FROM json_each(?) AS asked CROSS JOIN hosts ON hosts.host = asked.value
"""  # noqa: S608
WRITE = f"INSERT OR REPLACE INTO hosts ({FIELDS}) VALUES ({', '.join('?' * 20)})"  # noqa: S608

_LEARNED_BY = HostRow._fields.index("learned_by")


def is_of_boot(its_boot: str, mono: float, now: Now, boot: str) -> bool:
    """Return whether an instant is of this boot of the machine; it may be later than `now`."""
    return its_boot == boot and (boot != "" or mono < now.mono + STALE_S)


def row_of(budget: HostBudget, now: Now, boot: str) -> Row:
    """Return a budget as a row that is written now."""
    lesson = budget.lesson or _NO_LESSON
    return (
        budget.host,
        lesson.delay_s,
        lesson.floor_s,
        lesson.allowance,
        lesson.block_s,
        lesson.concurrency,
        lesson.is_proven,
        budget.crawl_delay_s,
        budget.gap_s,
        budget.sent_s_ago,
        budget.next_in_s,
        budget.failing_s,
        budget.failures_in_a_row,
        budget.breaker_opens,
        budget.breaker_in_s,
        0.0 if budget.lesson is None else now.wall - budget.learned_s_ago,
        budget.learned_by,
        now.mono,
        now.wall,
        boot,
    )


def merged_row(stored: Row | None, new: Row, by: str) -> Row:
    """Return the row that is kept after a holder has written its word: see `merged`."""
    if stored is None:  # of most hosts nothing was known
        return (*new[:_LEARNED_BY], by if new[_LEARNED_BY - 1] else "", *new[_LEARNED_BY + 1 :])
    (mono, wall, boot) = new[-3:]
    at = Now(mono, wall)
    kept = merged(budget_of(stored, at, boot), budget_of(new, at, boot), by)
    return row_of(kept, at, boot)


def budget_of(row: Row, now: Now, boot: str) -> HostBudget:
    """Return a row as a budget: waits are shorter by the time since it was written.

    After a reboot that time is not known, and they are served in full.
    """
    host, delay_s, floor_s, allowance, block_s, concurrency, is_proven = row[:7]
    crawl_delay_s, gap_s, sent_s_ago, next_in_s, failing_s, failures, opens = row[7:14]
    breaker_in_s, learned_at, learned_by, mono, _, its_boot = row[14:]
    is_this_boot = is_of_boot(its_boot, mono, now, boot)
    lesson = Lesson(
        delay_s=delay_s,
        floor_s=floor_s,
        allowance=allowance,
        block_s=block_s,
        concurrency=int(concurrency),
        is_proven=bool(is_proven),
    )
    budget = HostBudget(
        host=host,
        lesson=lesson if learned_at else None,
        crawl_delay_s=crawl_delay_s,
        gap_s=gap_s,
        sent_s_ago=sent_s_ago if is_this_boot else None,
        next_in_s=next_in_s if is_this_boot else min(next_in_s, LONGEST_UNSURE_S),
        failing_s=failing_s,
        failures_in_a_row=failures,
        breaker_opens=opens,
        breaker_in_s=breaker_in_s,
        learned_s_ago=max(0.0, now.wall - learned_at) if learned_at else 0.0,
        learned_by=learned_by,
    )
    return later(budget, now.mono - mono if is_this_boot else 0.0, 0.0)
