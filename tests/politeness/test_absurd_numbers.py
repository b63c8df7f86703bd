"""Absurd numbers in headers, robots.txt and memories: nothing raises, all waits are bounded."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING

import pytest
from tests.hostile.absurd import ABSURD, ODD_VALUES

from mannerly.politeness import Politeness, Response, Settings
from mannerly.politeness.bounds import LONGEST_WAIT_S
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.memory.sqlite import SqliteMemory
from mannerly.politeness.model import Grant
from mannerly.politeness.pace import Lesson
from mannerly.politeness.robots import Robots
from mannerly.politeness.robots.keeping import MAX_AGE_S, lifetime_s
from mannerly.politeness.settings import STRATEGIES

if TYPE_CHECKING:
    from pathlib import Path

HOST, NOW, WALL = "a.example", 1000.0, 1_795_000_000.0
HEADERS = (
    *("Retry-After", "Date", "Age", "RateLimit-Reset", "X-RateLimit-Remaining"),
    *("X-RateLimit-Limit", "X-RateLimit-Reset", "X-Rate-Limit-Reset"),
)
STRUCTURED = (
    ("RateLimit", '"default";r={};t=5'),
    ("RateLimit", '"default";r=0;t={}'),
    ("RateLimit", "limit=9, remaining=0, reset={}"),
    ("RateLimit-Policy", '"default";q={};w=60'),
    ("RateLimit-Policy", '"default";q=100;w={}'),
    ("RateLimit-Policy", '"c";q={};qu="concurrent-requests"'),
    ("RateLimit-Policy", '"b";q={};w={};qu="content-bytes"'),
)
FIELDS = (*((name, "{}") for name in HEADERS), *STRUCTURED)
ABSURD_NUMBERS = (0, -1, 5e-324, 1, 1e12, 1e300, inf, -inf, nan, 10**400, "x", None, b"x", 2**63)


def answered(status: int, headers: dict[str, str]) -> Politeness:
    core = Politeness(Settings(seed=1), remember=True)
    decision = core.reserve(HOST, now=NOW)
    assert isinstance(decision, Grant)
    response = Response(status, 0.1, headers, received_at=WALL)
    outcome = core.report(decision.permit, response, now=NOW)
    core.retry(decision.permit, response, outcome, attempt=1, now=NOW)
    return core


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_absurd_header_asks_for_a_bounded_wait(field: tuple[str, str]) -> None:
    """With every status, the next request is at most 100 years away, or the host is given up."""
    name, form = field
    usual = {"RateLimit": '"default";r=1;t=9', "X-RateLimit-Remaining": "0", "Retry-After": "5"}
    for text, status in product(ABSURD, (200, 429, 503)):
        core = answered(status, usual | {name: form.replace("{}", text)})

        (record,) = core.drain(now=NOW, wall=WALL) or [None]
        seen = core.host(HOST, now=NOW)
        assert seen is not None
        assert seen.not_before <= NOW + LONGEST_WAIT_S + 1.0, (text, status)
        assert seen.delay_s <= 86_400.0, (text, status)
        assert record is None or record == record.within_bounds(), (text, status)


@pytest.mark.parametrize("key", ["Crawl-delay", "Request-rate", "Visit-time"])
@pytest.mark.parametrize("form", ["{}", "{}/5", "1/{}", "1/{}h", "5 {}", "{}-{}"])
def test_absurd_line_of_robots_txt_is_absent_or_bounded(key: str, form: str) -> None:
    """Whatever it says, a delay is between 0 and 100 years, and a core takes it."""
    for text in ABSURD:
        line = f"User-agent: *\n{key}: {form.replace('{}', text)}\n".encode("utf-8", "replace")
        robots = Robots.parse(line)
        rate, delay_s = robots.request_rate("x"), robots.crawl_delay_s("x")
        robots.visit_time("x")
        core = Politeness(Settings(seed=1))

        for each in (delay_s, None if rate is None else rate.interval_s):
            core.robots(HOST, crawl_delay_s=each, now=NOW)
            assert each is None or 0.0 <= each <= LONGEST_WAIT_S, text


def test_absurd_lifetime_of_robots_txt_is_at_most_a_day() -> None:
    for text in ABSURD:
        assert 0.0 < lifetime_s(f"max-age={text}") <= MAX_AGE_S


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_absurd_record_of_a_memory_is_recalled_within_bounds(strategy: str) -> None:
    """Also twice, and with an open breaker: the host may be contacted within 100 years."""
    for one, two in product(ABSURD_NUMBERS, repeat=2):
        core = Politeness(Settings(strategy=strategy, seed=1))
        record = Remembered(
            host=HOST,
            lesson=Lesson(
                delay_s=one,  # type: ignore[arg-type]
                floor_s=two,  # type: ignore[arg-type]
                allowance=one,  # type: ignore[arg-type]
                block_s=two,  # type: ignore[arg-type]
                concurrency=one,  # type: ignore[arg-type]
                is_proven=True,
            ),
            crawl_delay_s=two,  # type: ignore[arg-type]
            blocked_until=one,  # type: ignore[arg-type]
            updated_at=two,  # type: ignore[arg-type]
            failing_since=one,  # type: ignore[arg-type]
            failures_in_a_row=two,  # type: ignore[arg-type]
            breaker_opens=one,  # type: ignore[arg-type]
            breaker_until=two,  # type: ignore[arg-type]
        )

        for _ in range(2):
            core.recall(record, now=NOW, wall=WALL)
        ready_at = core.ready_at(HOST, now=NOW)
        core.reserve(HOST, now=ready_at)

        assert ready_at <= NOW + LONGEST_WAIT_S, (one, two)


@pytest.mark.parametrize("value", ODD_VALUES)
def test_absurd_values_in_the_file_of_a_memory_are_put_in_range(tmp_path: Path, value: str) -> None:
    """Numbers out of range and values of another type are no reason to stop."""
    memory = SqliteMemory(tmp_path / "hosts.sqlite")
    memory.save([Remembered(host=HOST, lesson=Lesson(delay_s=0.5))])
    with closing(sqlite3.connect(tmp_path / "hosts.sqlite")) as file:
        columns = [row[1] for row in file.execute("PRAGMA table_info(hosts)")][1:]
        for column in columns:
            file.execute(f"UPDATE OR IGNORE hosts SET {column} = {value}")
        file.commit()

    record = memory.load(HOST)
    memory.close()

    assert record is not None
    assert record == record.within_bounds()


@pytest.mark.parametrize(("value", "wait_s"), [(120, 120.0), (b"120", 120.0), (1.5, 2.0)])
def test_retry_after_that_is_no_text_is_read_as_one(value: object, wait_s: float) -> None:
    """A program that keeps headers as numbers or bytes is told no error, and the host waits."""
    core = answered(429, {"Retry-After": value})  # type: ignore[dict-item]

    assert core.ready_at(HOST, now=NOW) >= NOW + wait_s


@pytest.mark.parametrize("value", [None, [], {}, object(), float("nan"), ("120",)])
def test_retry_after_of_another_type_counts_as_absent(value: object) -> None:
    core = answered(429, {"Retry-After": value, "Date": value, "RateLimit": value})  # type: ignore[dict-item]

    assert core.ready_at(HOST, now=NOW) < NOW + 3600.0
