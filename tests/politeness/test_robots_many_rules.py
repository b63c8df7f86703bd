"""Files with many wildcards: the same verdicts as by trying every rule, for a bounded effort."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mannerly.politeness.robots import Robots, RobotsVerdict
from mannerly.politeness.robots.matching import FEW_WILDCARDS

AGENT = "mannerly"
BYTES = 460_000


def file_of(lines: list[str]) -> Robots:
    return Robots.parse("\n".join(("User-agent: *", *lines)).encode())


def by_trying_all(lines: list[str], path: str) -> bool:
    """Return the verdict of the longest pattern that matches as a regular expression."""
    best, is_allowed = 0, True
    for line in lines:
        key, _, pattern = line.partition(": ")
        is_allow = key == "Allow"
        text = ".*".join(map(re.escape, pattern.removesuffix("$").split("*")))
        end = "$" if pattern.endswith("$") else ""
        rank = 2 * len(pattern) + is_allow
        if rank > best and re.match(text + end, path):
            best, is_allowed = rank, is_allow
    return is_allowed


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4 * FEW_WILDCARDS))
@example(seed=1, count=FEW_WILDCARDS)
@example(seed=1, count=FEW_WILDCARDS + 1)
def test_verdicts_are_those_of_every_rule_tried_in_turn(seed: int, count: int) -> None:
    """Storing rules by their letters changes no verdict, whatever the rules and the path."""
    rng = random.Random(seed)
    letters = rng.choice(("ab", "abc/", "abcdefgh/.", "*a", "**/"))
    lines = []
    for _ in range(count):
        pattern = "".join(rng.choices(letters + "*", k=rng.randint(0, 9)))
        end = rng.choice(("", "", "$"))
        lines.append(f"{rng.choice(('Allow', 'Disallow'))}: /{pattern}{end}")
    robots = file_of(lines)
    paths = ["/" + "".join(rng.choices(letters, k=rng.randint(0, 20))) for _ in range(10)]

    verdicts = [robots.allowed(path.replace("*", "x"), AGENT) for path in paths]

    assert verdicts == [by_trying_all(lines, path.replace("*", "x")) for path in paths]


def test_deciding_line_is_the_same_among_many_rules() -> None:
    """The line that is named as the reason is that of the longest pattern."""
    lines = [f"Disallow: /*x{number}" for number in range(1000)]
    robots = file_of([*lines, "Allow: /shop*x500.html"])

    explanation = robots.explain("/shop/x500.html", AGENT)

    assert (explanation.allowed, explanation.line_number) == (True, 1002)


def test_long_honest_file_is_judged_in_full() -> None:
    """Thousands of wildcards that have little in common do not count as too long to check."""
    lines = [f"Disallow: /*?filter{number}=" for number in range(20_000)]
    robots = file_of([*lines, "Disallow: /*.pdf$"])

    allowed = [
        robots.allowed(path, AGENT)
        for path in ("/shop/item.html?page=2", "/a?filter19999=x", "/a?filter=1", "/b.pdf")
    ]

    assert allowed == [True, False, True, False]


def hostile(pattern: str) -> list[str]:
    """Return as many lines as fit into the part of a file that is read."""
    lines, size, number = [], 0, 0
    while size < BYTES:
        lines.append("Disallow: " + pattern.replace("N", str(number)))
        size += len(lines[-1]) + 1
        number += 1
    return lines


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/*xN*", "/some/page/12345.html"),
        ("/*a*N$", "/some/page/a12345.html"),
        ("/*%61N*", "/some/p%61ge/12345.html"),
        ("/" + "*a" * 8000 + "N", "/" + "a" * 2000),
        ("/*a*b*c*d*e*N", "/" + "edcba" * 400),
        ("/*aaN", "/" + "aa0123456789" * 160),
    ],
)
def test_any_file_is_judged_within_milliseconds(pattern: str, path: str) -> None:
    """The largest file, written to be slow, costs no verdict more than a few milliseconds."""
    robots = file_of(hostile(pattern))
    robots.allowed(path, AGENT)  # compiles the rules

    began = time.process_time()
    for _ in range(20):
        robots.allowed(path, AGENT)
    took_s = (time.process_time() - began) / 20

    assert took_s < 0.01  # about 0.001


def test_path_that_takes_too_long_is_disallowed_with_the_reason() -> None:
    """If the rules cannot be checked within bounds, the path counts as forbidden."""
    robots = file_of(["Disallow: /" + "*a" * 8000 + "b"] * 2)

    explanation = robots.explain("/ab" + "a" * 2000, AGENT)

    assert explanation.verdict is RobotsVerdict.DISALLOWED
    assert "too long to check" in explanation.because
    assert explanation.line_number is None
