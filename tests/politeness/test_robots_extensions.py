"""Crawl-delay, Request-rate, Visit-time, and the explanation of a verdict."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import time
from time import process_time

import pytest
from tests.politeness.cases import case

from mannerly.politeness.bounds import LONGEST_WAIT_S
from mannerly.politeness.robots import Explanation, RequestRate, Robots, RobotsVerdict, VisitTime


def test_crawl_delay_is_a_plain_finite_number() -> None:
    """ASCII digits make a delay, however large; every other spelling is as good as absent."""
    cases: list[tuple[str, float | None]] = [
        ("10", 10.0),
        ("0", 0.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e9", 1e9),
        ("10 # seconds", 10.0),
        ("007", 7.0),
        ("", None),
        ("-1", None),
        ("-0", None),
        ("+5", None),
        ("nan", None),
        ("inf", None),
        ("1e999", LONGEST_WAIT_S),
        ("1000000000000", LONGEST_WAIT_S),
        ("9" * 5_000, LONGEST_WAIT_S),
        ("1_000", None),
        ("９", None),
        ("٣", None),
        ("10s", None),
        ("1,5", None),
        ("0x10", None),
        ("1 2", None),
        ("soon", None),
    ]
    for value, delay_s in cases:
        with case(value, delay_s):
            robots = Robots.parse(f"User-agent: *\nCrawl-delay: {value}".encode())

            assert robots.crawl_delay_s("foo") == delay_s


def test_extensions_take_linear_time() -> None:
    """Lines that make a backtracking pattern slow are read at once, though there are many."""
    many = {
        "Crawl-delay": "1" * 16_000 + "x",
        "Request-rate": "1/1" + " " * 16_000 + "-",
        "Visit-time": "0000" + " " * 16_000 + "x",
    }
    lines = [f"{key}: {value}\n" for key, value in many.items()] * 10
    robots = Robots.parse(("User-agent: *\n" + "".join(lines)).encode())

    began = process_time()
    found = (robots.crawl_delay_s("m"), robots.request_rate("m"), robots.visit_time("m"))
    took_s = process_time() - began

    assert found == (None, None, None)
    assert took_s < 1.0  # 0.05


def test_crawl_delay_is_looked_for_in_own_groups_first() -> None:
    """The first sound value of the agent's own groups counts, else the first of `*`."""
    cases: list[tuple[str, float | None]] = [
        ("User-agent: foo\nCrawl-delay: 1\nDisallow:\nUser-agent: *\nCrawl-delay: 2", 1.0),
        ("User-agent: *\nCrawl-delay: 2\nDisallow:\nUser-agent: foo\nDisallow: /", 2.0),
        ("User-agent: *\nCrawl-delay: 2\nDisallow:\nUser-agent: foo\nCrawl-delay: x", 2.0),
        ("User-agent: foo\nCrawl-delay: x\nCrawl-delay: 3\nCrawl-delay: 4", 3.0),
        ("User-agent: foo\nCrawl-delay: 3\nDisallow: /\nUser-agent: foo\nCrawl-delay: 9", 3.0),
        ("User-agent: foo\nCrawl-delay: 3\nUser-agent: bar\nDisallow: /", 3.0),
        ("User-agent: bar\nCrawl-delay: 3\nDisallow: /", None),
        ("Crawl-delay: 3\nUser-agent: foo\nDisallow: /", None),
        ("User-agent: foo\nCrawl-delay 3", 3.0),
        ("User-agent: foo\nCrawldelay: 3", 3.0),
    ]
    for body, delay_s in cases:
        with case(body, delay_s):
            robots = Robots.parse(body.encode())

            assert robots.crawl_delay_s("foo/1.0") == delay_s


def test_request_rate_is_requests_per_period() -> None:
    """Requests over seconds, minutes or hours, perhaps within some hours; nothing else."""
    cases: list[tuple[str, RequestRate | None]] = [
        ("1/5", RequestRate(1, 5)),
        ("10/60s", RequestRate(10, 60)),
        ("1 / 10m", RequestRate(1, 600)),
        ("100/1H", RequestRate(100, 3600)),
        ("1/5 0600-0845", RequestRate(1, 5, VisitTime(time(6), time(8, 45)))),
        ("0/5", None),
        ("1/0", None),
        ("1", None),
        ("-1/5", None),
        ("1/5 9999-0000", None),
        ("1/5 sometimes", None),
        ("1/" + "9" * 5_000, None),
        ("１/５", None),
    ]
    for value, rate in cases:
        with case(value, rate):
            robots = Robots.parse(f"User-agent: *\nRequest-rate: {value}".encode())

            assert robots.request_rate("foo") == rate


def test_request_rate_comes_down_to_an_interval() -> None:
    """Ten requests a minute leave six seconds from one to the next."""
    assert RequestRate(10, 60).interval_s == 6.0


@pytest.mark.parametrize(
    ("value", "hours"),
    [
        ("0600-0845", VisitTime(time(6), time(8, 45))),
        ("06:00 - 08:45", VisitTime(time(6), time(8, 45))),
        ("2200-0500", VisitTime(time(22), time(5))),
        ("2400-0500", None),
        ("0660-0700", None),
        ("600-845", None),
        ("", None),
    ],
)
def test_visit_time_is_a_pair_of_hours(value: str, hours: VisitTime | None) -> None:
    """Two times of day in UTC; an impossible one makes the line void."""
    robots = Robots.parse(f"User-agent: *\nVisit-time: {value}".encode())

    assert robots.visit_time("foo") == hours


def test_explanation_names_the_line_that_decided() -> None:
    """Verdict, group, rule and line are those of the longest match."""
    robots = Robots.parse(
        "# rules\r\nUser-agent: *\r\nDisallow: /\r\n\r\n"
        "User-agent: Foo\r\nDisallow: /café\r\nAllow: /café/menu".encode()
    )

    forbidden = robots.explain("https://example.com/caf%C3%A9/x", "foo/1.0")
    allowed = robots.explain("/café/menu", "foo")

    assert forbidden == Explanation(
        RobotsVerdict.DISALLOWED, "line 6, Disallow: /café", "foo", "Disallow: /café", 6
    )
    assert (allowed.allowed, allowed.rule, allowed.line_number) == (True, "Allow: /café/menu", 7)
    assert str(forbidden) == "disallowed: line 6, Disallow: /café"


@pytest.mark.parametrize(
    ("lines", "line_number"),
    [
        (("Disallow: /a", "Allow: /a", "Allow: /a"), 3),
        (("Disallow: /*b", "Disallow: /ab"), 2),
        (("Disallow: /a", "Disallow: /ab", "Disallow: /"), 3),
    ],
)
def test_first_of_equal_rules_is_the_one_named(lines: tuple[str, ...], line_number: int) -> None:
    """Among rules that say the same with the same weight, the reader is sent to the first."""
    robots = Robots.parse("\n".join(("User-agent: *", *lines)).encode())

    assert robots.explain("/ab", "foo").line_number == line_number


@pytest.mark.parametrize(
    ("robots", "url", "text"),
    [
        (Robots.parse(b""), "/a", "allowed: no group for 'foo'"),
        (
            Robots.parse(b"User-agent: *\nDisallow: /b"),
            "/a",
            "allowed: no rule of group '*' matches",
        ),
        (
            Robots.parse(b"User-agent: *\nDisallow: /"),
            "/robots.txt",
            "allowed: robots.txt itself may always be fetched",
        ),
        (Robots.allow_all(), "/a", "allowed: there is no robots.txt"),
        (Robots.disallow_all(), "/a", "disallowed: robots.txt cannot be reached"),
        (Robots.disallow_all("HTTP 503"), "/a", "disallowed: HTTP 503"),
    ],
)
def test_explanation_without_a_rule_says_why(robots: Robots, url: str, text: str) -> None:
    """A verdict without a rule has no line number, but a reason."""
    explanation = robots.explain(url, "foo")

    assert str(explanation) == text
    assert explanation.allowed is robots.allowed(url, "foo")
    assert (explanation.rule, explanation.line_number) == (None, None)


def test_explanation_cannot_be_changed() -> None:
    """An explanation cannot be changed."""
    explanation = Robots.allow_all().explain("/a", "foo")

    with pytest.raises(FrozenInstanceError):
        explanation.rule = "Disallow: /"  # type: ignore[misc]


@pytest.mark.parametrize("robots", [Robots.allow_all(), Robots.disallow_all()])
def test_blanket_outcome_asks_for_nothing(robots: Robots) -> None:
    """Without a file there is no delay, no rate, no hours and no sitemap."""
    wishes = (robots.crawl_delay_s("foo"), robots.request_rate("foo"), robots.visit_time("foo"))

    assert wishes == (None, None, None)
    assert robots.sitemaps == ()


def test_repr_says_what_is_held() -> None:
    """An operator sees at a glance how much a file says, or why there is none."""
    parsed = Robots.parse(b"User-agent: a\nUser-agent: *\nDisallow: /\nSitemap: /s.xml")

    assert repr(parsed) == "<Robots 2 agents, 1 sitemaps>"
    assert repr(Robots.disallow_all("HTTP 503")) == "<Robots everything disallowed: HTTP 503>"
