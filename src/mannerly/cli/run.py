"""`mannerly run`: crawl with the handlers of a spider, and write its items.

A run is a crawl whose extract function is the spider (`crawler.spider`). The options that the
spider was made with are the weakest: the command line, the environment and files win over them.

    1    as `crawl`; also if a handler has failed on a page, now or earlier, or a request was not
         sent because its secret cannot be read
    2    as `crawl`; also if the file cannot be loaded or has no such spider
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.values import Given, from_keywords
from mannerly.crawler.web.words import many

from .command_line import Argument, GivenOptions, OptionsOfCrawl
from .config import Configuration, resolve
from .crawl import carry_out, finish, prepare
from .stored import opened
from .terminal import INCOMPLETE, failing_clearly, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.spider import FoundSpider

EXAMPLES = """\
Examples:
  mannerly run shop.py -o items.jsonl           into ./crawl-shop, if the spider is called shop
  mannerly run shops.py:tea --max-urls 100      one of several spiders in a file
  mannerly run shop.py https://test.example/    other seeds than its own
  mannerly run shop.py --redis-url redis://db/0 the same on each machine: one crawl
"""

OPTIONS = OptionsOfCrawl(
    left_out=("extract", "warm"),
    helps={
        "data_dir": "Directory of the crawl (default: crawl- and the name of the spider).",
        "crawl": "Name of the crawl in the server (default: crawl- and the name of the spider).",
        "output": "Write the items to this file at the end; format by suffix: .jsonl, .jsonl.gz, "
        ".csv, .parquet; - is stdout; pages:FILE and links:FILE write other tables; repeatable.",
    },
)


def run(
    file: Annotated[
        str, Argument("FILE.py[:NAME]", "A file with a spider; of several, the name of one.")
    ],
    *,
    urls: Annotated[
        list[str] | None,
        Argument("URL|FILE|-", "Begin with these in place of the seeds of the spider."),
    ] = None,
    options: Annotated[GivenOptions, OPTIONS],
) -> None:
    """Run a spider: a crawl with a handler for each kind of page.

    To resume it, run the same command again. Exit code 1 if a handler failed on a page (its error
    is in the record of the page), or if a secret of a request cannot be read.
    """
    from mannerly.crawler.spider import find_spider

    with failing_clearly():
        found = find_spider(file)
        configuration = _with_spider(
            resolve(options, environment=os.environ, directory=Path.cwd()), found
        )
        plan = prepare(
            urls or list(found.spider.seeds), configuration, directory=f"crawl-{found.name}"
        )
        result = carry_out(plan, fresh=bool(configuration.value("fresh")))
        code = finish(plan, result)
        code = code or max(handler_failures(plan.location), _unsent(plan.location))
    raise click.exceptions.Exit(code)


def _with_spider(configuration: Configuration, found: FoundSpider) -> Configuration:
    """Return the configuration of a run of a spider; a file without a table is for items."""
    from mannerly.exports import Table

    given = from_keywords(found.spider.options) | configuration.given
    given["extract"] = Given(found.place, found.name)
    if "output" in given:
        outputs = [
            text if text.partition(":")[0] in list(Table) else f"{Table.ITEMS}:{text}"
            for text in configuration.texts("output")
        ]
        given["output"] = given["output"]._replace(value=outputs)
    return Configuration(given)


def handler_failures(location: str) -> int:
    """Say on how many pages handlers have failed, in this run or before; return the exit code."""
    with opened(location) as crawl:
        failed = crawl.handler_failures()
    if failed is None:
        return 0
    note(f"mannerly: {safe_term(failed.words)}")
    return INCOMPLETE


def _unsent(location: str) -> int:
    """Say which secrets of requests could not be read; return the exit code."""
    from mannerly.crawler.shard.requests import UNREADABLE

    with opened(location) as crawl:
        reasons = [each.reason.partition(": ") for each in crawl.skipped()]
    missing = [needs for reason, _, needs in reasons if reason == UNREADABLE]
    if not missing:
        return 0
    needs = safe_term("; ".join(dict.fromkeys(missing)))
    note(
        f"mannerly: {many(len(missing), 'request')} not sent, for lack of {needs}. Then send what "
        f"is missing: mannerly retry {safe_term(shlex.quote(location))} --skipped {UNREADABLE}"
    )
    return INCOMPLETE
