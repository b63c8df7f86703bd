"""`mannerly extract`: run handlers over the kept answers of a crawl, and write their items.

Nothing is asked for and the crawl is not changed, so one crawl serves every version of a handler.
An output is written when all handlers have run: Ctrl-C leaves an earlier one as it was.

    0    every handler ran
    1    one failed, or an answer is not there or cannot be read
    2    usage, the file cannot be loaded, or the crawl has kept no answers
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.values import OptionError, from_keywords
from mannerly.crawler.web.words import many

from .command_line import Argument
from .config import Configuration, resolve
from .stored import Location, has_all_records, opened
from .terminal import INCOMPLETE, USAGE, failing_clearly, note, print_json, safe_term, show

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.spider import FoundHandlers
    from mannerly.exports.about import About
    from mannerly.exports.handle import HandlerCounts, ItemSpool

    from .screen import Screen

EXAMPLES = """\
Examples:
  mannerly extract crawl-shop shop.py -o items.jsonl
  mannerly extract crawl-shop shop.py -o items.csv -o items.parquet
  mannerly about items.jsonl                    which version of shop.py made it
"""

_DRAWN_S, _LOGGED_S = 0.25, 10.0  # between two reports, on a terminal and elsewhere


def extract(
    location: Location,
    file: Annotated[
        str,
        Argument(
            "FILE.py[:NAME]", "A file with a spider or a function; :NAME picks one of several."
        ),
    ],
    *,
    output: Annotated[
        list[str],
        declaration(
            "Write the items to this file; format by suffix: .jsonl, .jsonl.gz, .csv, .parquet; - "
            "is stdout (JSON lines); repeatable.",
            short="-o",
            metavar="FILE",
            is_order=True,
        ),
    ],
    processes: Annotated[
        int | None,
        declaration("Helper processes that run handlers; by default one for each core.", low=1),
    ] = None,
    json: Annotated[bool, declaration("Print the numbers as JSON.")] = False,
    quiet: Annotated[bool, declaration("Print errors only.", short="-q")] = False,
) -> None:
    """Run handlers over the kept answers of a crawl, without a request.

    The crawl has to keep answers (--keep-bodies). Requests that handlers yield are counted, and not
    sent. Exit code 1 if a handler failed; the page and the line are named.
    """
    from mannerly.crawler.options.table import cores
    from mannerly.crawler.spider import find_handlers
    from mannerly.exports.about import counted, digest_of
    from mannerly.exports.handle import HandlerCounts, ItemSpool

    with failing_clearly():
        outputs = [each if each.startswith("items:") else f"items:{each}" for each in output]
        folder = _checked(outputs)
        found = find_handlers(file)
        about = _about(found, digest_of(Path(found.file)), location)
        tally = HandlerCounts()
        with ItemSpool(folder) as spool:
            with opened(location) as crawl, crawl.view() as view:
                _require_answers(view, location)
                _fill(spool, view, found, tally, processes or cores(), quiet=quiet or json)
                is_complete = has_all_records(crawl)
            if digest_of(Path(found.file)) != about.version:
                raise OptionError(
                    f"{found.file} was changed while its handlers ran: run the same command again"
                )
            about = counted(about, tally)
            code = _write(spool, outputs, about, quiet=quiet or json)
    _say(tally, location, quiet=quiet or json)
    if json:
        _print(about, tally)
    if not is_complete or tally.failed or tally.damaged or tally.unkept:
        code = code or INCOMPLETE
    if code:
        raise click.exceptions.Exit(code)


def about(
    items: Annotated[Path, Argument("FILE", "A file of items that `mannerly extract` has made.")],
    *,
    json: Annotated[bool, declaration("Print it as JSON.")] = False,
) -> None:
    """Show which version of which handlers made a file of items.

    Exit code 1 if the items were changed since.
    """
    from mannerly.exports.about import digest_of, read_about

    with failing_clearly():
        found = read_about(items)
        is_changed = found.items_digest is not None and digest_of(items) != found.items_digest
        file = Path(found.file)
        now = digest_of(file) if file.is_file() else None
    if json:
        print_json(found)
    else:
        state = (
            "the file no longer exists"
            if now is None
            else "unchanged since"
            if now == found.version
            else "changed since"
        )
        failed = f", handlers failed on {many(found.failed, 'page')}" if found.failed else ""
        show(
            safe_term(
                f"{items}: {many(found.items, 'item')} of {many(found.pages, 'page')}{failed}"
            )
        )
        show(safe_term(f"  made by   {found.handlers} in {found.file}"))
        show(f"  version   {found.version} ({state})")
        show(safe_term(f"  from      {found.crawl}, at {found.made_at}"))
    if is_changed:
        note(f"mannerly: {safe_term(str(items))} was changed since: it has other items")
        raise click.exceptions.Exit(INCOMPLETE)


def _checked(outputs: list[str]) -> Path:
    """Return the folder of the first output.

    Raises:
        ExportError: an output cannot be written.
    """
    from mannerly.exports import STDOUT, ExportError, read_target

    targets = [read_target(each) for each in outputs]
    paths = [each.path for each in targets]
    if len(set(paths)) < len(paths):
        raise ExportError("an output is named twice")
    if paths[0] == STDOUT:
        import tempfile

        return Path(tempfile.gettempdir())
    return Path(paths[0]).absolute().parent


def _about(found: FoundHandlers, version: str, location: str) -> About:
    from mannerly.exports.about import About
    from mannerly.version import VERSION

    at = datetime.fromtimestamp(int(time.time()), UTC).isoformat()
    return About(
        handlers=found.name,
        file=found.file,
        version=version,
        crawl=location,
        mannerly=VERSION,
        made_at=at,
        pages=0,
        items=0,
        failed=0,
    )


def _require_answers(view: View, location: str) -> None:
    from mannerly.exports import ExportError

    if not any(reader.segments() for reader in view.readers):
        raise ExportError(
            f"the crawl in {location} has kept no answers: run it anew with --keep-bodies --fresh"
        )


def _fill(
    spool: ItemSpool,
    view: View,
    found: FoundHandlers,
    tally: HandlerCounts,
    processes: int,
    *,
    quiet: bool,
) -> None:
    """Run the handlers on every page."""
    from mannerly.crawler.page.extract import Extracting
    from mannerly.exports.handle import handled

    configuration = resolve({}, environment=os.environ, directory=Path.cwd())
    given = from_keywords(found.options) | configuration.given
    longest_s = Configuration(given).settings().extract_timeout_s
    counts = [reader.counts() for reader in view.readers]
    total = sum(each.fetched + each.failed for each in counts)
    with _Progress(tally, total, is_shown=not quiet) as progress:
        extracting = Extracting(found.place, longest_s)
        for page in handled(view, found.function, extracting, tally, processes):
            spool.add(page.items)
            progress.tick()


def _write(spool: ItemSpool, outputs: list[str], about: About, *, quiet: bool) -> int:
    """Write every output, whether or not others fail; return the exit code."""
    import msgspec

    from mannerly.exports import STDOUT, read_target
    from mannerly.exports.about import write_about
    from mannerly.exports.items import export_items

    code = 0
    for target in map(read_target, outputs):
        try:
            outcome = export_items(spool.extracted, target, about=msgspec.to_builtins(about))
            if target.path != STDOUT:
                write_about(Path(target.path), about)
        except BrokenPipeError:
            raise
        except OSError as error:
            note(f"mannerly: cannot write {safe_term(target.path)}: {error.strerror}")
            code = USAGE
        else:
            if target.path != STDOUT and not quiet:
                note(f"Wrote {safe_term(target.path)}: {many(outcome.records, 'item')}")
    return code


def _say(tally: HandlerCounts, location: str, *, quiet: bool) -> None:
    """Say what is not in the items; failures also if it shall be quiet."""
    if tally.requests and not quiet:
        labels = [f"{name or 'no label'} {count:,}" for name, count in tally.requests.most_common()]
        requests = many(tally.requests.total(), "request")
        note(safe_term(f"Handlers yielded {requests}, which were not sent: {', '.join(labels)}"))
    if tally.lacking and not quiet:
        labels = [f"{name} {count:,}" for name, count in tally.lacking.most_common()]
        note(safe_term(f"Pages whose label no handler has: {', '.join(labels)}"))
    if tally.unkept:
        note(
            f"mannerly: the answers of {many(tally.unkept, 'page')} are not kept: fetch them with "
            f"`mannerly retry {shlex.quote(location)} --missing`, and run this again"
        )
    if tally.damaged:
        pages = many(tally.damaged, "page")
        note(f"mannerly: the kept answers of {pages} cannot be read: see mannerly doctor --deep")
    if tally.first_failure is not None:
        url, error = tally.first_failure
        pages = many(tally.failed, "page")
        note(f"mannerly: handlers failed on {pages}, first on {safe_term(url)}: {safe_term(error)}")


def _print(about: About, tally: HandlerCounts) -> None:
    import msgspec

    print_json(
        {
            **msgspec.to_builtins(about),
            "requests": tally.requests,
            "without_handler": tally.lacking,
            "not_kept": tally.unkept,
            "damaged": tally.damaged,
        }
    )


class _Progress:
    """One line while handlers run: redrawn on a terminal, else logged every ten seconds."""

    def __init__(self, tally: HandlerCounts, total: int, *, is_shown: bool) -> None:
        from .screen import Screen, is_foreground

        self._tally = tally
        self._total = total
        self._is_shown = is_shown
        is_drawn = is_shown and sys.stderr.isatty() and is_foreground(sys.stderr.fileno())
        self._screen: Screen | None = Screen() if is_drawn else None
        self._every_s = _DRAWN_S if is_drawn else _LOGGED_S
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if self._screen is not None:
            self._screen.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if self._screen is not None:
            self._screen.show([self._line(time.monotonic())])
            self._screen.close()

    def tick(self) -> None:
        """Say how far it is, if it is time to."""
        now = time.monotonic()
        if not self._is_shown or now < self._last + self._every_s:
            return
        self._last = now
        if self._screen is not None:
            self._screen.show([self._line(now)])
        else:
            note(self._line(now))

    def _line(self, now: float) -> str:
        tally = self._tally
        rate = tally.handled / max(now - self._began, 0.001)
        failed = f", {tally.failed:,} failed" if tally.failed else ""
        return (
            f"{tally.handled:,} of {self._total:,} pages handled, {rate:,.0f}/s, "
            f"{many(tally.items, 'item')}{failed}"
        )
