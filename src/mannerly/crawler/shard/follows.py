"""Decide what follows from an answer: one table, one function.

    answer                                        follows
    ------------------------------------------    -----------------------------------------------
    to a request for robots.txt                   LearnRules: the origin's rules, or another hop
    held back before it was sent                  Again; that is not a try
    no descriptors for it now                     Again after 2 s, however often
    no memory for it now, or no room              Again after 2 s, doubled with every try; after
                                                  `LACK_TRIES` tries Settled, with that as its error
    failed on our side, may pass, tries left      Again after 0.5 s, doubled with every try
    failed on our side otherwise                  Settled, with the reason as its error
    refused, and its host is given up             Abandoned, with the URLs that are queued
    to a check that asked with HEAD, refused      Again at once, with GET
    to any other check, with a status             Settled: a link is not asked for twice
    its encoding ended early, at the first try    Again after 0.5 s; the next time Settled
    refused or failed, and a retry is granted     Again when the politeness core says so
    a 403, or a page like the one before: the     Again; what it answers then decides
      core is undecided whether it is refused
    a page or a list too long for the loop        Read in another process
    a page that is to be rendered                 Render: a plug-in says so (`plugins.render`)
    anything else                                 Settled: record and links

Whether a retry is granted is decided by the politeness core before this is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.fetch.decoding import TRUNCATED
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import PASSING, STARVED, Entry, LocalError, RobotsRequest
from mannerly.crawler.page.checks import METHOD_REFUSED
from mannerly.crawler.page.long_work import long_work
from mannerly.politeness.retry import Retry

from .given_up import dropped_because

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Fetched, Now
    from mannerly.crawler.page.links import LinkRules
    from mannerly.politeness.retry import GiveUp

LOCAL_RETRY_S = 0.5  # doubled with every try
STARVED_RETRY_S = 2.0
LONGEST_STARVED_S = 64.0
LACK_TRIES = 9  # 5 minutes in all; if nothing else succeeds meanwhile, the run ends before that


class Again(NamedTuple):
    """Ask for it again at `due`."""

    entry: Entry  # with the tries so far
    due: float
    is_visit: bool = False  # nothing failed: a plug-in asks for it once more


class LearnRules(NamedTuple):
    """It was for a robots.txt."""

    request: RobotsRequest


class Read(NamedTuple):
    """Parse it in another process; the result comes back later."""

    work: Callable[[], object]


class Render(NamedTuple):
    """Show it in a browser; what comes out is read in place of the answer."""

    wait_for: str | None = None  # the selector to wait for


class Settled(NamedTuple):
    """It has its result; `failure` is the reason if it never reached the server."""

    failure: str | None = None


class Abandoned(NamedTuple):
    """It has no record: its host was given up, or it was sent once and has no answer."""

    reason: str


Follows: TypeAlias = Again | LearnRules | Read | Render | Settled | Abandoned

SETTLED = Settled()  # what follows from nearly every answer


class FollowContext(NamedTuple):
    """The facts of a shard that decide what follows, beside the answer."""

    max_attempts: int
    rules: LinkRules
    reads_elsewhere: bool  # there are helper processes for long work


def starved(
    entry: Entry, now: Now, lacked: int = 0, error: LocalError = LocalError.NO_MEMORY
) -> Again | Settled:
    """Return what follows when this machine could not do it: the page loses no attempt.

    `lacked` says how often memory lacked for it before. Other pages may need less, so it has an end
    of its own.
    """
    if lacked >= LACK_TRIES:
        return Settled(error.value)
    return Again(entry, now.mono + min(STARVED_RETRY_S * 2.0**lacked, LONGEST_STARVED_S))


def _after_local_error(
    item: Entry,
    error: LocalError,
    detail: str | None,
    now: Now,
    context: FollowContext,
    lacked: int,
) -> Again | Settled:
    if error is LocalError.HELD:
        return Again(item, now.mono)
    if error in STARVED or error is LocalError.NO_ROOM:
        return starved(item, now, lacked, error)
    if error in PASSING and item.attempts < context.max_attempts:
        due = now.mono + LOCAL_RETRY_S * 2.0**item.attempts
        return Again(item._replace(attempts=item.attempts + 1), due)
    return Settled(detail or error.value)


def what_follows(
    item: Entry | RobotsRequest,
    answer: Fetched,
    retry: Retry | GiveUp | None,
    now: Now,
    context: FollowContext,
    given_up: str | None = None,
    lacked: int = 0,
) -> Follows:
    """Return what to do with an answer. It changes nothing.

    `given_up` is the reason if the answer was a refusal and its host was given up, `lacked` how
    often memory lacked for this page before.
    """
    if isinstance(item, RobotsRequest):
        return LearnRules(item)
    if isinstance(answer.error, LocalError):
        return _after_local_error(item, answer.error, answer.detail, now, context, lacked)
    if given_up is not None:
        return Abandoned(dropped_because(given_up))
    row = KINDS[item.kind]
    if not row.is_tried_again and answer.status is not None:
        if row.after_refusal is not None and answer.status in METHOD_REFUSED:
            return Again(item._replace(kind=row.after_refusal), now.mono)
        return SETTLED
    if isinstance(retry, Retry):
        attempts = item.attempts + 1 if retry.costs_attempt else item.attempts
        return Again(item._replace(attempts=attempts), retry.due)
    if answer.detail == TRUNCATED and not item.attempts:
        return Again(item._replace(attempts=1), now.mono + LOCAL_RETRY_S)
    if context.reads_elsewhere:
        work = long_work(item, answer, context.rules, now.wall)
        if work is not None:
            return Read(work)
    return SETTLED
