"""--fail-on: what a rule means, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mannerly.cli.report import HELP
from mannerly.report import RuleError, parse_rule
from mannerly.report.findings import Numbers
from mannerly.report.proof import Totals
from mannerly.report.rules import MEASURES

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "own-site.md"

SOUND = Numbers(
    pages=200,
    broken=0,
    pages_with_broken=0,
    chains=0,
    loops=0,
    not_indexable=10,
    duplicates=0,
    failed=0,
    given_up=0,
    slowest_s=1.5,
    median_s=0.2,
    p95_s=0.9,
    proof=Totals(requests=1000, refused=10, early=0, retry_afters=3, retry_afters_broken=0),
)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("broken>0", None),
        ("broken>=0", "--fail-on broken>=0: broken is 0"),
        ("refused>1%", None),
        ("refused >= 1 %", "--fail-on refused >= 1 %: refused is 1.00 %"),
        ("refused>9", "--fail-on refused>9: refused is 10"),
        ("slow>2s", None),
        ("slow>1400ms", "--fail-on slow>1400ms: slow is 1,500 ms"),
        ("median>0.1s", "--fail-on median>0.1s: median is 0.20 s"),
        ("p95>1s", None),
        ("pages<201", "--fail-on pages<201: pages is 200"),
        ("unindexable>=5%", "--fail-on unindexable>=5%: unindexable is 5.00 %"),
        ("given_up>0", None),
        ("early>0", None),
    ],
)
def test_a_rule_is_broken_by_its_number(rule: str, said: str | None) -> None:
    """A limit is compared as it is written; shares are of pages or requests."""
    assert parse_rule(rule).broken(SOUND) == said


def test_a_share_of_nothing_breaks_no_rule() -> None:
    """A crawl without a request has no share of refusals."""
    nothing = replace(SOUND, proof=Totals(0, 0, 0, 0, 0))

    assert parse_rule("refused>0%").broken(nothing) is None


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("broken", "write a name, a comparison and a number"),
        ("broken=0", "such as broken>0"),
        ("speed>3", "there is no speed; allowed: broken, failed, given-up"),
        ("slow>2", "slow is a time, so add s or ms"),
        ("broken>2s", "broken is no time, so leave out s"),
        ("loops>1%", "loops is no share, so leave out %"),
        ("", "write a name"),
        ("broken>-1", "write a name"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_is_allowed(rule: str, said: str) -> None:
    """So that a typing error in CI does not pass for a kept rule."""
    with pytest.raises(RuleError) as error:
        parse_rule(rule)

    assert said in str(error.value)


@pytest.mark.parametrize("name", MEASURES)
def test_every_name_is_documented(name: str) -> None:
    """With the words that it has in the code."""
    assert f"| `{name}` | {MEASURES[name].help}" in GUIDE.read_text("utf-8")


def test_help_names_every_number() -> None:
    """Who has no documents at hand reads there what a rule can be about."""
    assert [name for name in MEASURES if not re.search(rf"\b{name}\b", HELP)] == []
