"""`mannerly check`: crawl a site, ask for everything that it links to, print what is broken.

0    nothing is broken
1    something is broken, or a rule of --fail-on is
2    usage, configuration or file error     3    no seed could be fetched
4    data directory in use or damaged       130, 143   stopped
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from mannerly.crawler.options.declared import CHECKING

from .command_line import (
    Argument,
    GivenOptions,
    OptionsOfCrawl,
)
from .config import ConfigError, resolve
from .crawl import RunPlan, carry_out, prepare, print_summary
from .report import broken_rules
from .stored import named_or_temporary
from .terminal import failing_clearly, note, print_json, safe_term, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.report.check import Broken, Checked
    from mannerly.report.findings import Findings

_FORMATS = (".html", ".csv", ".json")
_SOURCES = 5  # printed under a target
_FOUND = 1  # the exit code


OPTIONS = OptionsOfCrawl(
    left_out=(*CHECKING, "verbose"),  # a check decides them itself
    helps={  # it writes other files than a crawl
        "output": "Also write what is broken to a file: .html (the whole report), .csv or .json; "
        "repeatable.",
        "data_dir": "Keep the crawl in this directory (default: a temporary one).",
        "json": "Print what is broken as JSON on standard output.",
    },
)


def check(
    *,
    urls: Annotated[
        list[str] | None,
        Argument(
            "URL|FILE|-", "A URL, a host, a file with one URL per line, or - for standard input."
        ),
    ] = None,
    options: Annotated[GivenOptions, OPTIONS],
) -> None:
    """Find the broken links of a site.

    Pages are crawled as by `mannerly crawl`. Images, styles, scripts and pages of other sites are
    asked for once each, one request to a host at a time. Exit code 1 if anything is broken.
    """
    with failing_clearly(), named_or_temporary(urls, options, "check") as (location, is_kept):
        outputs = _outputs(options.pop("output", []))
        options |= {"data_dir": location, **CHECKING}
        configuration = resolve(options, environment=os.environ, directory=Path.cwd())
        plan = prepare(urls or [], configuration)._replace(is_kept=is_kept)
        _end_if_stopped(plan, carry_out(plan, fresh=bool(configuration.value("fresh"))))
        code = _check_links(plan, outputs)
    raise click.exceptions.Exit(code)


def _check_links(plan: RunPlan, outputs: list[Path]) -> int:
    """Ask for the other targets, print and write what was found; return the exit code."""
    from mannerly.crawler.stored import open_crawl
    from mannerly.report.check import order_checks, outcome
    from mannerly.report.findings import find

    is_quiet = bool(plan.configuration.value("quiet"))
    with open_crawl(plan.location) as crawl:
        count = order_checks(crawl)
    if count and not is_quiet:
        note(f"Checking {count:,} other links")
    if count:
        _end_if_stopped(plan, carry_out(_second_run(plan), fresh=False))
    with open_crawl(plan.location) as crawl:
        findings = find(crawl)
        checked = outcome(findings)
        for path in outputs:
            _write(path, findings, checked)
    rules = broken_rules(plan.rules, findings.numbers)
    if plan.configuration.value("json"):
        print_json(_described(checked) | {"broken_rules": rules})
    else:
        _print(checked)
    for each in rules:
        note(f"mannerly: {each}")
    if not is_quiet:
        _summarise(checked)
    return _FOUND if checked.broken or rules else 0


def _second_run(plan: RunPlan) -> RunPlan:
    """Return the plan for the links."""
    from mannerly.crawler.settings import checking_links

    return plan._replace(
        settings=checking_links(plan.settings), seeds=[], is_resumed=True, notices=[]
    )


def _end_if_stopped(plan: RunPlan, result: CrawlResult) -> None:
    """Exit if a run was stopped, crashed, or could not begin."""
    from .endings import CODES

    code = CODES.get(result.ending.value, 0)
    if not code:
        return
    if result.ending.value in ("stopped", "terminated"):
        note("Stopped before everything was checked")
    else:
        print_summary(plan, result)
    raise click.exceptions.Exit(code)


def _outputs(texts: object) -> list[Path]:
    paths = [Path(text) for text in texts] if isinstance(texts, list) else []
    for path in paths:
        if path.suffix not in _FORMATS:
            raise ConfigError(
                f"--output {path}: a check is written as {', '.join(_FORMATS[:-1])} or "
                f"{_FORMATS[-1]}"
            )
        if not path.absolute().parent.is_dir():
            raise ConfigError(f"--output {path}: there is no directory {path.parent}")
    return paths


def _write(path: Path, findings: Findings, checked: Checked) -> None:
    from mannerly.exports.rows import write_csv
    from mannerly.exports.whole import whole_file
    from mannerly.report.html import write_html

    if path.suffix == ".html":
        write_html(findings, path)
        return
    with whole_file(path) as file:
        if path.suffix == ".json":
            import msgspec

            file.write(msgspec.json.encode(_described(checked)) + b"\n")
        else:
            csv = next(each.csv for each in findings.sections if each.id == "broken")
            assert csv is not None
            write_csv(csv.rows(), csv.fields, file)


def _described(checked: Checked) -> dict[str, Any]:
    return {
        "pages": checked.pages,
        "links": checked.links,
        "broken": [
            {"target": each.target, "answer": each.answer, "linked_from": each.linked_from}
            for each in checked.broken
        ],
        "unchecked": checked.unchecked,
        "private": checked.private,
    }


def _print(checked: Checked) -> None:
    for each in checked.broken:
        show(f"{safe_term(each.answer)}: {safe_term(each.target)}")
        for line in _sources(each):
            show(f"    {line}")


def _sources(broken: Broken) -> Iterator[str]:
    for link in broken.linked_from[:_SOURCES]:
        said = f" “{safe_term(link['text'])}”" if link["text"] else ""
        kind = "" if link["kind"] == "a" else f" ({link['kind']})"
        yield f"linked from {safe_term(link['page'] or '')}{said}{kind}"
    more = len(broken.linked_from) - _SOURCES
    if more > 0:
        yield f"and {more:,} more links (--json and -o list all)"
    if not broken.linked_from:
        yield "a start page, or named by a sitemap"


def _summarise(checked: Checked) -> None:
    from mannerly.crawler.web.words import many

    pages, links = many(checked.pages, "page"), many(checked.links, "other link")
    found = many(len(checked.broken), "link") if checked.broken else "No link"
    verb = "are" if len(checked.broken) > 1 else "is"
    note(f"{found} {verb} broken: {pages} and {links} were checked")
    for reason, count in sorted(checked.unchecked.items()):
        note(f"Not checked: {count:,} × {safe_term(reason)}")
    if checked.private:
        allowed = " ".join(f"--allow-net {each}" for each in checked.private[:_SOURCES])
        more = len(checked.private) - _SOURCES
        note(f"To check private addresses, too: {safe_term(allowed)}" + (" …" if more > 0 else ""))
