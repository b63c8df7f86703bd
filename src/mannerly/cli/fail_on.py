"""The option --fail-on: exit with code 1 if a number of the crawl breaks a rule, for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import declaration

from .terminal import note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.report import FailRule
    from mannerly.report.findings import Numbers

HELP = (
    "Exit with code 1 if this holds, such as broken>0, refused>1% or slow>2s; also failed, "
    "given-up, chains, loops, duplicates, unindexable, early, pages, median, p95; repeatable."
)
FailOn = Annotated[list[str] | None, declaration(HELP, metavar="RULE")]

BROKEN_RULE = 1  # the exit code


def read_rules(texts: Iterable[str] | None) -> list[FailRule]:
    """Read the rules before anything is crawled.

    Raises:
        RuleError: one of them is no rule; the message says what is allowed.
    """
    if not texts:
        return []
    from mannerly.report import parse_rule

    return [parse_rule(text) for text in texts]


def broken_rules(rules: Iterable[FailRule], numbers: Numbers) -> list[str]:
    """Return the rules that are broken, each with its number."""
    return [said for rule in rules if (said := rule.broken(numbers)) is not None]


def rules_broken_by(location: str, rules: list[FailRule]) -> list[str]:
    """Read a crawl, and return the rules that it breaks; without rules nothing is read."""
    if not rules:
        return []
    from mannerly.crawler.stored import open_crawl
    from mannerly.report import find

    with open_crawl(location) as crawl:
        return broken_rules(rules, find(crawl).numbers)


def fail_if_broken(rules: Iterable[FailRule], numbers: Numbers) -> None:
    """Name the broken rules, and exit if there are any."""
    said = broken_rules(rules, numbers)
    for each in said:
        note(f"mannerly: {each}")
    if said:
        raise click.exceptions.Exit(BROKEN_RULE)
