"""One page for `try` and `shell`: a kept answer of a crawl, or one polite request.

The page is asked for as in a crawl: its robots.txt is read first, the options of its host hold, and
its host has the pace that other crawls of this machine keep, too. Nothing of it is kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.values import OptionError, from_keywords

from .config import Configuration, resolve
from .stored import opened
from .terminal import note, safe_term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.page.page import Page

ONE_PAGE = {"follow": False, "seeding_strategy": "none", "processes": 1}

Label = Annotated[
    str | None,
    declaration("The label of the request that led to the page.", metavar="LABEL", is_order=True),
]
Data = Annotated[
    str | None,
    declaration("The data of that request, as JSON.", metavar="JSON", is_order=True),
]


def page_of(
    url: str, location: str | None, options: Mapping[str, Any], label: str | None, data: str | None
) -> Page | None:
    """Return a page, or the one that it redirects to; say why if there is none.

    Args:
        url: of the page.
        location: a crawl whose kept answer is taken, if it has one.
        options: of the crawl that the page is asked for in.
        label: of the request that led to the page; None: that of the kept request, or none.
        data: of the request, as JSON; None likewise.

    Raises:
        OptionError: the data is not JSON.
    """
    import msgspec

    from mannerly.crawler.page.page import Page
    from mannerly.crawler.payload import payload

    try:
        given = None if data is None else msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise OptionError(f"--data is not JSON: {error}") from None
    page = (None if location is None else _kept(location, url)) or _fetched(options, url)
    if page is None or (label is None and given is None):
        return page
    kept_label, kept_data = page.label, page.data or None
    carried = payload(
        label=kept_label if label is None else label, data=kept_data if given is None else given
    )
    return Page(page.record, page.headers, page.body, carried=carried)


def _kept(location: str, url: str) -> Page | None:
    """Return a page whose answer a crawl has kept; None: it has none."""
    from mannerly.exports.handle import kept_page

    with opened(location) as crawl, crawl.view() as view:
        page = kept_page(view, url)
    if page is None:
        note(f"{safe_term(location)} has no kept answer of {safe_term(url)}: it is asked for")
    return page


def _fetched(options: Mapping[str, Any], url: str) -> Page | None:
    """Return a page, or the one that it redirects to; say why if there is none."""
    from mannerly.crawler.crawl import Crawl

    configuration = resolve({}, environment=os.environ, directory=Path.cwd())
    given = from_keywords(options) | configuration.given | from_keywords(ONE_PAGE)
    given.pop("extract", None)  # handlers run here
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
