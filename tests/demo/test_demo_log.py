from __future__ import annotations

import json
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.demo import (
    Record,
    RobotsFile,
    Site,
    before_robots,
    by_host,
    disallowed,
    gaps_s,
    inside_retry_after,
    judge,
    judge_all,
    log,
    most_in_flight,
    rates,
    read_log,
    refusals,
    repeats,
    robots_fetches,
    served,
    settled_rate,
    smallest_gap_s,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.2:8000"


def record(
    t: float,
    path: str = "/",
    *,
    status: int = 200,
    host: str = HOST,
    answered_after_s: float | None = 0.1,
    silence_s: float | None = None,
    in_flight: int = 1,
) -> Record:
    answered_at = None if answered_after_s is None else t + answered_after_s
    silent_until = t + (answered_after_s or 0.0) + silence_s if silence_s is not None else None
    return Record(
        t, host, "GET", path, status, "test/1", 1, 10, answered_at, silent_until, in_flight
    )


ROBOTS = record(0.0, "/robots.txt")


def test_hosts_are_told_apart_and_put_in_order_of_arrival() -> None:
    """A log in any order becomes one ordered list per host."""
    records = [record(2.0), record(1.0, host="127.0.0.3:8000"), record(0.5)]

    hosts = by_host(records)

    assert [r.t for r in hosts[HOST]] == [0.5, 2.0]
    assert [r.t for r in hosts["127.0.0.3:8000"]] == [1.0]


def test_smallest_gap_is_from_start_to_start() -> None:
    """How long an answer took does not count, and neither does its path."""
    records = [record(0.0, answered_after_s=5.0), record(1.0, "/robots.txt"), record(1.25)]

    assert gaps_s(records) == [1.0, 0.25]
    assert smallest_gap_s(records) == 0.25


@pytest.mark.parametrize("count", [0, 1])
def test_smallest_gap_of_less_than_two_requests_is_infinite(count: int) -> None:
    """Nothing came too close if nothing came twice."""
    assert smallest_gap_s([record(1.0)] * count) == inf


def test_rates_count_from_the_first_request_in_windows() -> None:
    """An empty window is a zero, and a request on the edge belongs to the later window."""
    records = [record(t) for t in (10.0, 10.5, 12.0, 14.1)]

    assert rates(records) == [2.0, 0.0, 1.0, 0.0, 1.0]
    assert rates(records, window_s=2.0) == [1.0, 0.5, 0.5]
    assert rates([]) == []


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=50), st.floats(0.1, 100))
def test_rates_lose_no_request(starts: list[float], window_s: float) -> None:
    """Whatever the window, the rates add up to all requests."""
    records = [record(t) for t in sorted(starts)]

    assert sum(rates(records, window_s)) * window_s == pytest.approx(len(records))


def test_refusals_are_429_and_503_and_the_rest_with_an_answer_was_served() -> None:
    """A missing page is an answer; a closed connection is neither."""
    records = [record(float(n), status=s) for n, s in enumerate((200, 404, 429, 503, 0, 301))]

    assert [r.status for r in refusals(records)] == [429, 503]
    assert [r.status for r in served(records)] == [200, 404, 301]


def test_settled_rate_is_what_was_served_in_the_last_seconds() -> None:
    """Neither the slow start nor the refusals count."""
    start = [record(float(t)) for t in range(10)]
    end = [record(10 + 0.25 * n) for n in range(41)]
    refused = [record(15.1, status=429), record(20.1, status=429)]

    assert settled_rate(by_host(start + end + refused)[HOST]) == pytest.approx(4.0)
    assert settled_rate(start[:1]) == settled_rate([]) == 0.0
    assert settled_rate([record(1.0), record(1.0)]) == inf


def test_request_inside_a_retry_after_is_found() -> None:
    """From the moment the wish could be read until the instant that it named."""
    refusal = record(10.0, status=429, silence_s=5.0)  # sent at 10.1, silence until 15.1
    on_its_way, early, late = record(10.12), record(14.9), record(15.2)

    assert inside_retry_after([refusal, on_its_way, early, late]) == [early]
    assert inside_retry_after([refusal, on_its_way], grace_s=0.0) == [on_its_way]


def test_longer_silence_outlasts_a_shorter_one_that_came_later() -> None:
    """A second refusal with a nearer date takes nothing back."""
    first = record(10.0, status=429, silence_s=60.0)
    second = record(10.01, status=429, silence_s=1.0)
    early = record(30.0)

    assert inside_retry_after([first, second, early]) == [early]


def test_retry_after_that_was_never_sent_does_not_count() -> None:
    """The client had gone away before it could read the wish."""
    unsent = record(10.0, status=429, silence_s=5.0, answered_after_s=None)

    assert inside_retry_after([unsent, record(11.0)]) == []


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.none() | st.floats(0, 50)),
        max_size=30,
        unique_by=lambda p: p[0],
    )
)
def test_sweep_agrees_with_the_definition_of_a_broken_silence(
    visits: list[tuple[float, float | None]],
) -> None:
    """One pass over the log finds what comparing every pair would find."""
    records = [
        record(t, silence_s=silence_s) for t, silence_s in sorted(visits, key=lambda v: v[0])
    ]

    by_pairs = [
        later
        for later in records
        if any(
            r.answered_at is not None
            and r.silent_until is not None
            and r.answered_at + 0.05 < later.t < r.silent_until
            for r in records
        )
    ]

    assert inside_retry_after(records) == by_pairs


def test_requests_before_the_rules_were_known_are_found() -> None:
    """Asking for robots.txt is not enough: its answer must have been there."""
    eager, patient = record(0.05, "/eager"), record(0.5, "/patient")

    assert before_robots([ROBOTS, eager, patient]) == [eager]
    assert before_robots([eager, patient]) == [eager, patient]
    assert robots_fetches([ROBOTS, eager]) == 1


def test_disallowed_requests_are_found_by_prefix() -> None:
    """All under the prefix, nothing beside it, and never robots.txt itself."""
    inside, beside = record(1.0, "/private/a?b"), record(2.0, "/private-not")

    assert disallowed([ROBOTS, inside, beside], ["/private/"]) == [inside]
    assert disallowed([ROBOTS, inside, beside], ["/"]) == [inside, beside]
    assert disallowed([inside], []) == []


def test_repeats_name_what_was_fetched_twice() -> None:
    """Only complete pages count: a retry after a refusal is no repetition."""
    records = [
        record(1.0, "/a"),
        record(2.0, "/a"),
        record(3.0, "/b", status=503),
        record(4.0, "/b"),
    ]

    assert repeats(records) == {"/a": 2}


def test_most_in_flight_is_the_highest_count() -> None:
    """Zero for a host without requests."""
    assert most_in_flight([record(1.0), record(1.1, in_flight=3), record(2.0)]) == 3
    assert most_in_flight([]) == 0


def test_polite_visit_breaks_nothing() -> None:
    """A gap within 2 % of the promise is kept, and a refusal alone is no fault."""
    site = Site(name="polite", limit="bucket:2:4", crawl_delay_s=1.0)
    records = [ROBOTS, record(0.99), record(1.98, status=429), record(5.0)]

    verdict = judge(site, records, least_gap_s=0.125)

    assert verdict.is_polite
    assert (verdict.requests, verdict.served, verdict.refused, verdict.robots) == (4, 3, 1, 1)
    assert (verdict.true_rate, verdict.host) == (1.0, HOST)
    assert verdict.smallest_gap_s == pytest.approx(0.99)


def test_coarse_clock_is_not_held_against_the_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stamps of a clock with steps of 16 ms can be that much too close, and no more."""
    site = Site(name="coarse")
    near, closer = [ROBOTS, record(0.5), record(0.61)], [ROBOTS, record(0.5), record(0.6)]
    assert not judge(site, near, least_gap_s=0.125).is_polite

    monkeypatch.setattr(log, "CLOCK_STEP_S", 0.015625)

    assert judge(site, near, least_gap_s=0.125).is_polite
    assert not judge(site, closer, least_gap_s=0.125).is_polite


def test_every_broken_promise_is_named() -> None:
    """Too close, inside a Retry-After, disallowed, and before the rules were known."""
    site = Site(name="victim", disallow=("/private/",))
    refusal = record(1.0, status=429, silence_s=10.0)

    verdict = judge(
        site, [ROBOTS, record(0.05), refusal, record(3.0, "/private/1")], least_gap_s=0.5
    )

    assert verdict.broken == (
        "1 gaps below 0.5 s, the smallest 0.050 s",
        "1 requests inside a Retry-After, the first /private/1",
        "1 disallowed requests, the first /private/1",
        "1 requests before robots.txt, the first /",
    )


def test_host_whose_robots_txt_fails_must_be_left_alone() -> None:
    """A 503 for robots.txt forbids all, a 404 nothing."""
    records = [ROBOTS, record(1.0, "/a")]

    assert not judge(Site(name="down", robots=RobotsFile.FAILING), records).is_polite
    assert judge(Site(name="open", robots=RobotsFile.MISSING), records).is_polite


def test_table_has_a_line_for_every_host_and_for_every_fault() -> None:
    """A host without requests has a line too, with dashes for what is not known."""
    sites = {
        HOST: Site(name="busy", about="a bucket", limit="bucket:2:4"),
        "other:1": Site(name="idle"),
    }
    records = [ROBOTS, *(record(1.0 + n / 2) for n in range(9)), record(5.1)]

    lines = table(judge_all(sites, records, least_gap_s=0.5)).splitlines()

    head = "Host Limit/s Settled Share Requests Refused Smallest gap"
    assert lines[0].split() == head.split()
    assert lines[1].split()[:7] == ["busy", "2.00", "1.96", "98", "%", "11", "0"]
    assert lines[1].endswith("0.100 s  a bucket")
    assert lines[2].split() == ["idle", "none", "0.00", "–", "0", "0", "–"]
    assert lines[3] == "! busy: 1 gaps below 0.5 s, the smallest 0.100 s"
    assert len(lines) == 4


def test_table_fits_into_80_columns_and_explains_a_share_above_its_limit() -> None:
    """Descriptions need 120 columns; 102 % without a word would read like a broken promise."""
    site = Site(name="bucket", about="a bucket of four, " * 9, limit="bucket:2:4")
    fast, slow = ([ROBOTS, *(record(1.0 + n * gap_s) for n in range(9))] for gap_s in (0.4, 0.5))

    above = table([judge(site, fast)], columns=80).splitlines()
    at_limit = table([judge(site, slow)], columns=80).splitlines()

    assert "107 %" in above[1]
    assert above[3].startswith("A share above 100 %")
    assert len(at_limit) == 2
    assert max(map(len, [*above, *at_limit])) < 80


def test_log_file_is_read_in_order_of_arrival(tmp_path: Path) -> None:
    """The file has the order in which answers ended."""
    path = tmp_path / "access.jsonl"
    records = [record(2.0), record(1.0, answered_after_s=None)]
    path.write_text("".join(json.dumps(r) + "\n" for r in records))

    read = read_log(path)

    assert read == records[::-1]
    assert all(earlier.t <= later.t for earlier, later in pairwise(read))
