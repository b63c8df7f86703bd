"""`mannerly retry`: try URLs again that failed or were given up, or whose answer or record is lost.

A running crawl does so within a second. A stopped one is resumed, with the settings that it began
with, as `mannerly resume` does; one in a server does so when a worker joins it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.options.values import OptionError
from mannerly.crawler.web.words import many

from .command_line import GivenOptions, OptionsOfCrawl
from .endings import resume_command
from .stored import Location, opened
from .terminal import failing_clearly, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.options.values import Value
    from mannerly.crawler.stored import StoredCrawl


def retry(
    location: Location,
    *,
    failed: Annotated[
        bool,
        declaration(
            "URLs without an answer, with a status of 500 or more, refused (such as 401, 403, "
            "429), or not read; and seeds that gave no page.",
            is_order=True,
        ),
    ] = False,
    given_up: Annotated[
        bool,
        declaration("URLs whose host or robots.txt could not be reached.", is_order=True),
    ] = False,
    skipped: Annotated[
        str | None,
        declaration(
            "URLs that were skipped for this reason: as in export --include-skipped.",
            metavar="REASON",
            is_order=True,
        ),
    ] = None,
    unanswered: Annotated[
        bool,
        declaration(
            "Requests such as a POST that were sent and got no answer: they are not repeated "
            "by themselves, because they may have been carried out.",
            is_order=True,
        ),
    ] = False,
    missing: Annotated[
        bool,
        declaration(
            "Pages whose record is lost with the disk of a worker, or whose kept answer is "
            "(--keep-bodies), as doctor --repair says.",
            is_order=True,
        ),
    ] = False,
    failed_handlers: Annotated[
        bool,
        declaration(
            "Pages on which handlers failed: their handlers run again, on kept answers "
            "(--keep-bodies) without a request; other pages are fetched again, a POST, too.",
            is_order=True,
        ),
    ] = False,
    host: Annotated[
        str | None, declaration("Only those of one host.", metavar="HOST", is_order=True)
    ] = None,
    json: Annotated[bool, declaration("Print the result as JSON.")] = False,
    quiet: Annotated[bool, declaration("Print errors only.", short="-q")] = False,
    sent: Annotated[GivenOptions, OptionsOfCrawl(only=("auth", "header", "user_agent", "contact"))],
) -> None:
    """Try failed, given-up, skipped or missing URLs again.

    Without --failed, --given-up, --skipped, --unanswered, --missing and --failed-handlers: failed
    and given-up ones. A crawl that is not running is resumed; --auth, --header, --user-agent and
    --contact are for that run.
    """
    from mannerly.crawler.store import is_in_server

    from .run import handler_failures

    with failing_clearly():
        given: dict[str, Value] = {"quiet": quiet, **({"json": True} if json else {})}
        given |= sent
        skipped = _reason(skipped, unanswered=unanswered)
        with opened(location) as crawl:
            _check_sent(list(sent), crawl)
            total = crawl.status().total
            found = _skipped(crawl, skipped)
            lost = _lost(crawl) if missing else 0
            unkept = _missing(crawl, lost) if missing else 0
            lines: list[str] = []
            others = failed or given_up or skipped or failed_handlers
            if missing and not (lost or unkept or others):
                if not quiet:
                    note("No page has lost its answer: there is nothing to fetch again")
                return
            if failed_handlers:
                lines += _handled_again(crawl, host)
            again = crawl.retry(
                failed=failed,
                given_up=given_up,
                skipped=skipped,
                missing=missing,
                failed_handlers=failed_handlers,
                host=host,
            )
            is_running = crawl.store.is_running()
        if failed or given_up or not (skipped or missing or failed_handlers):
            lines.append(_said(total, failed=failed, given_up=given_up, host=host))
        if lost and again:
            lines.append(_said_missing(again, host, "record is lost"))
        elif lost:
            lines.append(
                f"{many(lost, 'record')} of pages are missing, but no URL is known that is not "
                "queued already: if they are on shared storage, give its directory (--data-dir)"
            )
        if unkept:
            lines.append(_said_missing(unkept, host, "answer is not kept"))
        if skipped is not None:
            lines.append(_said_skipped(found, skipped, host))
        for line in [] if quiet else lines:
            note(line)
        if is_running or is_in_server(location):
            if not is_running and not quiet:
                note(f"It begins when a worker joins: {resume_command(location)}")
            return
        code = _resumed(location, given)
        code = code or (handler_failures(location) if failed_handlers else 0)
    raise click.exceptions.Exit(code)


def _resumed(location: str, given: dict[str, Value]) -> int:
    """Run the crawl, and return its exit code."""
    from .crawl import carry_out, finish
    from .resume import stored_plan

    plan = stored_plan(location, given)
    return finish(plan, carry_out(plan, fresh=False))


def _handled_again(crawl: StoredCrawl, host: str | None) -> list[str]:
    """Run the handlers that have failed, over kept answers; return what to say.

    Raises:
        OptionError: there is no such page, or handlers cannot be run here.
    """
    from mannerly.crawler.inspection.view import settings_of
    from mannerly.crawler.options.table import cores
    from mannerly.crawler.page.extract import ExtractError, Extracting, load
    from mannerly.exports.handle_again import handle_again

    if crawl.store.fleet is not None:
        raise OptionError("--failed-handlers is for crawls in a directory")
    if crawl.store.is_running():
        raise OptionError("--failed-handlers: the crawl is running; stop it first")
    failures = crawl.handler_failures()
    if failures is None:
        raise OptionError("no handler has failed on a page: there is nothing to run again")
    settings = settings_of(crawl.store.manifest)
    try:
        load(settings.extract or "")
    except ExtractError as error:
        raise OptionError(f"the handlers of this crawl: {error}") from error
    extract = Extracting(settings.extract or "", settings.extract_timeout_s)
    kept, failed = handle_again(crawl, settings, extract, cores(), host)
    found = [f"Ran the handlers of {many(kept, 'page')} on kept answers"] if kept else []
    if failed:
        found.append(f"They failed again on {many(failed, 'page')}")
    if failures.pages > kept and host is None:
        again = many(failures.pages - kept, "page")
        found.append(f"Fetching {again} again: no kept answer that can be read")
    return found


def _check_sent(names: list[str], crawl: StoredCrawl) -> None:
    """Refuse options of requests where this command sends none: a run keeps its own."""
    flags = ", ".join(OPTIONS[name].flag for name in names)
    if names and crawl.store.fleet is not None:
        raise OptionError(f"{flags}: give that to the workers of the crawl (mannerly crawl)")
    if names and crawl.store.is_running():
        raise OptionError(f"{flags} cannot be changed while the crawl runs: stop it first")


def retry_command(location: str) -> str:
    """Return the command that tries everything again that failed or was given up."""
    return f"mannerly retry {shlex.quote(location)}"


def _lost(crawl: StoredCrawl) -> int:
    """Return how many records are lost; a directory that is not there is a mistake."""
    from mannerly.crawler.store import record_folders

    for folder in record_folders():
        if not folder.is_dir():
            raise OptionError(
                f"there is no directory {folder} (--data-dir): everything in it would be fetched "
                "again. If it is lost, leave it out; if all are lost, name an empty directory"
            )
    return crawl.lost_records()


def _missing(crawl: StoredCrawl, lost: int) -> int:
    """Return how many pages have lost their answer; a mistake if there can be no such page."""
    if not crawl.keeps_bodies:
        if lost or crawl.store.fleet is not None:
            return 0
        raise OptionError(
            "--missing is for crawls that keep answers, and this one does not (--keep-bodies)"
        )
    return sum(1 for _ in crawl.missing())


def _reason(skipped: str | None, *, unanswered: bool) -> str | None:
    """Return the reason of the skipped URLs that are asked for again."""
    from mannerly.crawler.model import UNANSWERED

    if not unanswered:
        return skipped
    if skipped not in (None, UNANSWERED):
        raise OptionError("--unanswered and --skipped: give one after the other")
    return UNANSWERED


def _skipped(crawl: StoredCrawl, reason: str | None) -> int:
    """Return how many URLs were skipped for a reason; one that nothing has is a mistake."""
    if reason is None:
        return 0
    counts = Counter(each.reason.partition(":")[0] for each in crawl.skipped())
    if not counts[reason]:
        known = ", ".join(f"{name} ({count:,})" for name, count in counts.most_common())
        raise OptionError(f"no URL was skipped for {reason!r}; skipped are: {known or 'none'}")
    return counts[reason]


def _said(total: dict[str, int], *, failed: bool, given_up: bool, host: str | None) -> str:
    both = failed == given_up
    if host is not None:
        kinds = "failed and given-up" if both else "failed" if failed else "given-up"
        return f"Trying the {kinds} URLs of {safe_term(host)} again"
    counts = [f"{total['failed']:,} failed"] if failed or both else []
    counts += [f"{total['given_up']:,} given-up"] if given_up or both else []
    return f"Trying {' and '.join(counts)} URLs again"


def _said_missing(count: int, host: str | None, why: str) -> str:
    if host is not None:
        return f"Fetching the pages of {safe_term(host)} again whose {why}"
    return f"Fetching {many(count, 'page')} again whose {why}"


def _said_skipped(found: int, reason: str, host: str | None) -> str:
    which = f"the URLs of {safe_term(host)}" if host is not None else many(found, "URL")
    return f"Trying {which} again: skipped ({safe_term(reason)})"
