"""`mannerly export`: write the records of a crawl to files; so does `--output` of a run."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import ProjectUse, declaration
from mannerly.crawler.web.choices import Content

from .config import ConfigError
from .stored import Location, has_all_records, opened, require_crawl
from .terminal import INCOMPLETE, USAGE, failing_clearly, note, safe_term

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.exports import Choice

    from .config import Configuration

CsvRaw = Annotated[
    bool,
    declaration(
        "Write CSV cells as they are: no apostrophe before what a spreadsheet would run.",
        project_use=ProjectUse.NONE,
    ),
]


def export(
    location: Location,
    *,
    output: Annotated[
        list[str],
        declaration(
            "Table pages (default), links or items; format by suffix: .jsonl, .jsonl.gz, "
            ".csv, .parquet, .xml (sitemap), .warc.gz, .wacz, or a folder/; - is stdout (JSON "
            "lines); repeatable.",
            short="-o",
            metavar="[TABLE:]FILE",
            is_order=True,
        ),
    ],
    content: Annotated[
        Content,
        declaration("Content of pages in .jsonl, .parquet and folders (needs kept bodies)."),
    ] = Content.NONE,
    include_skipped: Annotated[
        bool,
        declaration("Add skipped and given-up URLs, with the reason."),
    ] = False,
    changed: Annotated[
        bool,
        declaration("Only pages that are new or may have changed since the last crawl."),
    ] = False,
    unreserved: Annotated[
        bool,
        declaration(
            "Without pages that their site reserves: noai, tdm-reservation, or a "
            "Content-Signal of ai-train=no."
        ),
    ] = False,
    csv_raw: CsvRaw = False,
    quiet: Annotated[bool, declaration("Print errors only.", short="-q")] = False,
) -> None:
    """Write a crawl's records to files."""
    from mannerly.adapters.spider_queue import is_spider
    from mannerly.exports import Choice, ExportError, Format, check_target

    with failing_clearly():
        is_crawl = not is_spider(location)
        if is_crawl:
            require_crawl(location)
        formats = {check_target(target) for target in output}
        if Format.XML in formats and include_skipped:
            raise ExportError("a sitemap lists only pages: leave out --include-skipped")
        if csv_raw and Format.CSV not in formats:
            raise ExportError("--csv-raw is for .csv files: leave it out, or add -o FILE.csv")
        choice = Choice(include_skipped=include_skipped, changed=changed, unreserved=unreserved)
        written = write_all(location, output, choice, content=content, csv_raw=csv_raw, quiet=quiet)
        is_complete = True
        if is_crawl:
            with opened(location) as crawl:
                is_complete = has_all_records(crawl)
    code = written or (0 if is_complete else INCOMPLETE)
    if code:
        raise click.exceptions.Exit(code)


def write_all(
    location: str | Path,
    outputs: list[str],
    choice: Choice | None = None,
    *,
    content: Content = Content.NONE,
    csv_raw: bool = False,
    quiet: bool = False,
) -> int:
    """Write every output, whether or not others fail; name those that failed.

    Returns:
        The exit code: 0, `INCOMPLETE` if damaged answers were left out, `USAGE` if one was not
        written.

    Raises:
        StoreError: the crawl cannot be read.
    """
    if not outputs:
        return 0
    from mannerly.exports import Choice, ExportError, export

    code = 0
    for target in outputs:
        try:
            outcome = export(
                location, target, choice=choice or Choice(), content=content, csv_raw=csv_raw
            )
        except (ExportError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the output is closed (`| head`)
            why = error.strerror if isinstance(error, OSError) else str(error)
            note(f"mannerly: cannot write {safe_term(target)}: {why}")
            code = USAGE
        else:
            for line in [] if quiet else outcome.described():
                note(safe_term(line))
            if outcome.loss is not None:
                note(f"mannerly: {safe_term(outcome.loss)}")
                code = code or INCOMPLETE
    return code


def check_outputs(configuration: Configuration) -> None:
    """Raise ConfigError or ExportError for outputs that cannot be written."""
    outputs = configuration.texts("output")
    if not outputs:
        return
    from mannerly.exports import STDOUT, read_target

    wants_stdout = sum(read_target(output).path == STDOUT for output in outputs)
    wants_stdout += bool(configuration.value("json"))
    if wants_stdout > 1:
        raise ConfigError("--json and --output - both write to standard output: choose one")


def check_function(name: str) -> None:
    """Load the extract function, so that a mistake is found before the first request."""
    from mannerly.crawler.page.extract import ExtractError, load

    try:
        load(name)
    except ExtractError as error:
        raise ConfigError(f"--extract: {error}") from error


def for_outputs(settings: CrawlSettings, configuration: Configuration) -> CrawlSettings:
    """Return settings that keep bodies or links, if an output needs them."""
    outputs = configuration.texts("output")
    if not outputs:
        return settings
    from mannerly.exports import Table, read_target

    content = content_of(configuration)
    targets = [read_target(output) for output in outputs]
    if any(target.needs_bodies(content) for target in targets):
        settings = replace(settings, keep_bodies=True)
    if any(target.table is Table.LINKS for target in targets):
        settings = replace(settings, links=True)
    return settings


def content_of(configuration: Configuration) -> Content:
    """Return the content of pages that goes into the outputs."""
    return Content(str(configuration.value("content")))
