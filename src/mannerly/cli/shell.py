"""`mannerly shell`: one page in an interactive Python, to find out how to read it.

IPython is used if it is installed and a person types; else Python's own prompt, with completion by
the Tab key where there is readline.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import click

from .command_line import Argument
from .one_page import Data, Label, page_of
from .terminal import INCOMPLETE, fail, failing_clearly, safe_term, tell

if TYPE_CHECKING:
    from mannerly.crawler.page.page import Page

EXAMPLES = """\
Examples:
  mannerly shell https://example.com/               one polite request
  mannerly shell crawl-shop https://shop.example/   the kept answer of a crawl, if it has one
"""
_MOST_WORDS = 2


def shell(
    words: Annotated[
        list[str],
        Argument("[DIR] URL", "The page; with DIR, the answer that this crawl has kept is used."),
    ],
    *,
    label: Label = None,
    data: Data = None,
) -> None:
    """Open an interactive Python with one page as `page`.

    It is the object that handlers get: page.select("a"), page.select_one("h1").text, page.links,
    page.json(), page.data. Tab completes names. Nothing is kept.
    """
    with failing_clearly():
        if len(words) > _MOST_WORDS:
            fail(f"give a crawl and a URL, or a URL; not {len(words)} words")
        location = words[0] if len(words) == _MOST_WORDS else None
        page = page_of(words[-1], location, {}, label, data)
        if page is None:
            raise click.exceptions.Exit(INCOMPLETE)
    _interact(page)


def _interact(page: Page) -> None:
    import mannerly

    names: dict[str, Any] = {"page": page, "mannerly": mannerly}
    status = page.status if page.status is not None else page.error
    banner = (
        f"page is {safe_term(page.url)}: {status}, {len(page.body):,} bytes. "
        'Try page.select("a"), page.title, page.links; Ctrl-D ends.'
    )
    if not sys.stdin.isatty():
        sys.ps1 = sys.ps2 = ""  # lines from a pipe
        _plain(names, "")
        return
    try:
        from IPython import start_ipython  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        _plain(names, banner)
    else:
        tell(banner + "\n")
        start_ipython(argv=["--no-banner"], user_ns=names)


def _plain(names: dict[str, Any], banner: str) -> None:
    """Open Python's own prompt."""
    import code

    with suppress(ImportError):  # Windows
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    code.interact(banner, local=names, exitmsg="")
