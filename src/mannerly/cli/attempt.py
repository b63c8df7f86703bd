"""`mannerly try`: fetch one page, have its handler run, print what it yields.

The page is asked for as in a crawl of the spider: its robots.txt is read first, the options of
its host hold, and its host has the pace that other crawls of this machine keep, too. The handler
runs in this process.

    0    it ran, or the page has no handler
    1    it failed, or there is no page
    2    usage, or the file cannot be loaded
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.values import OptionError, from_keywords

from .command_line import Argument
from .config import Configuration, resolve
from .stored import opened
from .terminal import INCOMPLETE, failing_clearly, json_escaped, note, safe_term, show

if TYPE_CHECKING:
    from mannerly.crawler.page.page import Page
    from mannerly.crawler.page.request import Asked
    from mannerly.crawler.spider import FoundSpider

ONE_PAGE = {"follow": False, "seeding_strategy": "none", "processes": 1}


def attempt(
    file: Annotated[
        str, Argument("FILE.py[:NAME]", "A file with a spider; of several, the name of one.")
    ],
    url: Annotated[str, Argument("URL", "The page.")],
    *,
    data_dir: Annotated[
        str | None,
        declaration(
            "Take the answer that this crawl has kept (--keep-bodies), if it has one.",
            metavar="DIR",
            is_order=True,
        ),
    ] = None,
    label: Annotated[
        str | None,
        declaration(
            "Have the handler of this label run, in place of that of the URL.",
            metavar="LABEL",
            is_order=True,
        ),
    ] = None,
    data: Annotated[
        str | None,
        declaration("The data of the request, as JSON.", metavar="JSON", is_order=True),
    ] = None,
) -> None:
    """Fetch one page, run its handler, and print its items and requests.

    Nothing is kept. An item is a line of JSON on standard output; a request is a line there, too,
    with its method, URL, label and data. An error is printed with its line.
    """
    from mannerly.crawler.page.handlers import UnknownLabelError
    from mannerly.crawler.page.page import Page
    from mannerly.crawler.payload import payload
    from mannerly.crawler.spider import find_spider

    with failing_clearly():
        found = find_spider(file)
        carried = payload(label=label or "", data=_read(data))
        page = (_kept(data_dir, url) if data_dir else None) or _fetched(found, url)
        if page is None:
            raise click.exceptions.Exit(INCOMPLETE)
        page = Page(page.record, page.headers, page.body, carried=carried)
        try:
            handler = found.spider.handler_of(page)
        except UnknownLabelError as error:
            raise OptionError(str(error)) from None
    status = page.status if page.status is not None else page.error
    name = "no handler" if handler is None else getattr(handler, "__name__", "a handler")
    note(f"{safe_term(page.url)}: {status}, {safe_term(name)}")
    if not _has_run(found, page):
        raise click.exceptions.Exit(INCOMPLETE)


def _read(data: str | None) -> Any:
    import msgspec

    try:
        return None if data is None else msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise OptionError(f"--data is not JSON: {error}") from None


def _kept(directory: str, url: str) -> Page | None:
    """Return a page whose answer a crawl has kept; None: it has none."""
    from mannerly.crawler.page.page import Page
    from mannerly.crawler.web.seeds import canonical_seeds
    from mannerly.crawler.web.urls import host_key_of
    from mannerly.exports.content import KeptAnswers

    (wanted,) = canonical_seeds([url])
    with opened(directory) as crawl, crawl.view() as view:
        folder = view.store.segment_folder
        for _, record, place in view.reader_of(host_key_of(wanted)).kept_pages():
            if record.url == wanted and place is not None and folder is not None:
                with KeptAnswers(folder) as answers:
                    answer = answers.read(place)
                return Page(record, answer.headers, answer.body)
    return None


def _fetched(found: FoundSpider, url: str) -> Page | None:
    """Return a page, or the one that it redirects to; say why if there is none."""
    from mannerly.crawler.crawl import Crawl

    configuration = resolve({}, environment=os.environ, directory=Path.cwd())
    given = from_keywords(found.spider.options) | configuration.given | from_keywords(ONE_PAGE)
    given.pop("extract", None)  # the handler runs here
    page = None
    with (
        TemporaryDirectory(prefix="mannerly-") as directory,
        Crawl.of(Configuration(given).settings(), [url], directory, given) as crawl,
    ):
        for page in crawl:
            if page.redirect_to is None:
                return page
    if page is None:
        note(f"mannerly: {safe_term(url)} was not fetched")
    return page


def _has_run(found: FoundSpider, page: Page) -> bool:
    """Run the handler and print what it yields; return False if it failed."""
    from mannerly.crawler.page.extract import results_of

    try:
        items, asked = results_of(found.spider(page))
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises
        own = found.place.rpartition(":")[0]
        lines = [each.lineno for each in extract_tb(error.__traceback__) if each.filename == own]
        where = f"line {lines[-1]}: " if lines else ""
        note(f"mannerly: {where}{type(error).__name__}: {safe_term(str(error))}")
        return False
    for item in items:
        show(json_escaped(item.decode()))
    for each in asked:
        show(_line(each))
    return True


def _line(asked: Asked) -> str:
    """Return a request as a line; what it sends may be a secret, and is left out."""
    from mannerly.crawler.payload import NOTHING, decode

    carried = decode(asked.carried) if asked.carried else NOTHING
    label = f" label={carried.label}" if carried.label else ""
    data = f" data={carried.json.decode()}" if carried.json else ""
    return safe_term(f"{carried.method} {asked.url}{label}{data}")
