"""`mannerly report`: write what a crawl has found as one HTML file, with CSV files beside it.

Rules of `--fail-on` are read before anything is crawled, and turn into an exit code at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import declaration

from .export import CsvRaw  # noqa: TC001 - the command line reads the annotations
from .stored import Location, has_all_records, opened
from .terminal import fail, failing_clearly, note, safe_term

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


def report(
    location: Location,
    *,
    output: Annotated[
        Path,
        declaration("The HTML file to write.", short="-o", metavar="FILE", is_order=True),
    ] = Path("report.html"),
    csv: Annotated[
        Path | None,
        declaration(
            "Also write every table with all its rows as a CSV file into DIR.",
            metavar="DIR",
            is_order=True,
        ),
    ] = None,
    csv_raw: CsvRaw = False,
    fail_on: FailOn = None,
    quiet: Annotated[bool, declaration("Print errors only.", short="-q")] = False,
) -> None:
    """Write a report: broken links, redirects, duplicates and more.

    It is one HTML file that needs nothing else. The crawl may be running.
    """
    from mannerly.report import find, write_html
    from mannerly.report.table import write_csv_files

    with failing_clearly():
        rules = read_rules(fail_on)
        _check(output, csv)
        if csv_raw and csv is None:
            fail("--csv-raw goes with --csv DIR")
        with opened(location) as crawl:
            findings = find(crawl)
            if csv is not None:
                write_csv_files(findings, csv, is_raw=csv_raw)
            write_html(findings, output, csv)
            is_complete = has_all_records(crawl)
        if not quiet:
            note(f"{findings.sentence}.")
            beside = f", its tables are in {safe_term(str(csv))}" if csv is not None else ""
            note(f"The report is in {safe_term(str(output))}{beside}")
        fail_if_broken(rules, findings.numbers)
    if not is_complete:
        raise click.exceptions.Exit(1)


def _check(output: Path, csv: Path | None) -> None:
    """Find mistakes before a long crawl is read."""
    if output.is_dir():
        fail(f"{output} is a directory: add a file name, such as {output / 'report.html'}")
    if not output.absolute().parent.is_dir():
        fail(f"cannot write {output}: there is no directory {output.parent}")
    if csv is not None and csv.exists() and not csv.is_dir():
        fail(f"cannot write CSV files into {csv}: it is a file")
