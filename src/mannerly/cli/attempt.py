"""`mannerly try`: fetch one page, have its handler run, print what it yields.

The page is a kept answer, or asked for politely (`one_page`). The handler runs in this process.

    0    it ran, or the page has no handler
    1    it failed, or there is no page
    2    usage, or the file cannot be loaded

With --watch the page is got once, and the handler runs again whenever its file is saved, or another
file of its folder that it imports. A file that cannot be loaded is said, and waited for.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.values import OptionError

from .command_line import Argument
from .one_page import Data, Label, page_of
from .terminal import INCOMPLETE, failing_clearly, json_escaped, note, safe_term, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.page.page import Page
    from mannerly.crawler.page.request import Asked
    from mannerly.crawler.spider import FoundSpider

_POLL_S = 0.2  # between two looks whether a file was saved


def attempt(
    file: Annotated[
        str, Argument("FILE.py[:NAME]", "A file with a spider; of several, the name of one.")
    ],
    url: Annotated[str, Argument("URL", "The page.")],
    *,
    data_dir: Annotated[
        str | None,
        declaration(
            "Take the answer that this crawl has kept (--keep-bodies), if it has one, with the "
            "label and the data of its request.",
            metavar="DIR",
            is_order=True,
        ),
    ] = None,
    label: Label = None,
    data: Data = None,
    watch: Annotated[
        bool,
        declaration("Run the handler again whenever its file is saved.", is_order=True),
    ] = False,
) -> None:
    """Fetch one page, run its handler, and print its items and requests.

    Nothing is kept. An item is a line of JSON on standard output; a request is a line there, too,
    with its method, URL, label and data. An error is printed with its line.
    """
    from mannerly.crawler.spider import find_spider

    def page_for(found: FoundSpider) -> Page:
        page = page_of(url, data_dir, found.spider.options, label, data)
        if page is None:
            raise click.exceptions.Exit(INCOMPLETE)
        return page

    with failing_clearly():
        if watch:
            _watch(file, page_for)
            return
        found = find_spider(file)
        if not _has_run(found, page_for(found)):
            raise click.exceptions.Exit(INCOMPLETE)


def _has_run(found: FoundSpider, page: Page) -> bool:
    """Run the handler of a page and print what it yields; return False if it failed.

    Raises:
        OptionError: the page has a label that no handler is for.
    """
    from mannerly.crawler.page.extract import results_of
    from mannerly.crawler.page.handlers import UnknownLabelError

    try:
        handler = found.spider.handler_of(page)
    except UnknownLabelError as error:
        raise OptionError(str(error)) from None
    status = page.status if page.status is not None else page.error
    name = "no handler" if handler is None else getattr(handler, "__name__", "a handler")
    note(f"{safe_term(page.url)}: {status}, {safe_term(name)}")
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


# ---------------------------------------------------------------------- --watch


def _watch(file: str, page_for: Callable[[FoundSpider], Page]) -> None:
    """Run the handler now and after every save, until Ctrl-C."""
    from mannerly.crawler.page.extract import ExtractError
    from mannerly.crawler.spider import find_spider

    main = Path(file if file.endswith(".py") else file.rpartition(":")[0]).absolute()
    sys.dont_write_bytecode = True  # two saves in one second may be of one size
    page: Page | None = None
    with suppress(KeyboardInterrupt):
        while True:
            before = _states({main, *_imported(main)})
            try:
                found = find_spider(file)
                page = page or page_for(found)
                _has_run(found, page)
            except (ExtractError, OptionError) as error:
                note(f"mannerly: {safe_term(str(error))}")
            sys.stdout.flush()
            known = _states(_imported(main)) | before
            note(f"Waiting for the next save of {safe_term(main.name)}; Ctrl-C ends")
            while _states(known) == known or not main.exists():
                time.sleep(_POLL_S)
            for name in _imported(main).values():
                sys.modules.pop(name, None)
            note("")


def _imported(main: Path) -> dict[Path, str]:
    """Return the modules that were imported from the folder of a file, by their files."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if file.parent == main.parent and name != "__main__":
            found[file] = name
    return found


def _states(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    """Return what tells a saved file from the one before; None: it is not there."""
    states: dict[Path, tuple[int, int] | None] = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            states[file] = None
        else:
            states[file] = stat.st_mtime_ns, stat.st_size
    return states
