"""Find out why no seed of a crawl could be fetched or followed, and which hosts were given up."""

from __future__ import annotations

import re
import time
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import PageRecord, Skipped
from mannerly.crawler.web.seeds import MAX_MOVES
from mannerly.crawler.web.urls import host_key_of

from .reasons import error_words, skip_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .view import View

_FAILED_FROM = 400  # the first status that is an error
_OK = 200
_FEW_PAGES = 20  # in a crawl with more, a login page is no obstacle
# A path or host that says "login" as whole words.
_LOGIN = re.compile(
    r"(?:^|[/._?&=-])(?:log-?in|log-?on|sign-?in|sso|oauth2?|saml2?|authenticate)(?:$|[/._?&=-])",
    re.IGNORECASE,
)


class SeedProblem(NamedTuple):
    """A seed that could not be fetched."""

    url: str
    cause: str  # in words
    code: str  # the reason code of the cause, or the status


class SeedAstray(NamedTuple):
    """A seed that leads by redirects out of the crawl, to a skipped page, or to a login."""

    url: str
    status: int  # of the last redirect
    target: str
    is_login: bool
    skipped: str = ""  # why the target was not fetched, if it was taken into the crawl


class GivenUpHost(NamedTuple):
    """A host with URLs that were given up."""

    host: str
    urls: int
    reason: str  # in words


def seed_problems(crawl: View, seeds: Iterable[str]) -> list[SeedProblem]:
    """Return the problem of every seed of a finished crawl; nothing if it has fetched any page.

    A response with an error status, such as 403, does not count. Usually the first seed was
    fetched, and then this is one look-up.
    """
    problems = []
    for seed in seeds:
        problem = _problem(crawl, seed)
        if problem is None:
            return []
        problems.append(problem)
    has_page = any(_is_fetched(record) for record in crawl.pages())
    return [] if has_page else problems


def astray(crawl: View, seeds: Iterable[str]) -> list[SeedAstray]:
    """Return where the seeds lead to, if none of them leads to a page that could be fetched.

    Each leads out of the crawl, to a page that was skipped, or to a login page.

    A page that leads to a login counts only in a crawl of few pages: another one has found a way.
    """
    found = []
    for seed in seeds:
        led = _led_astray(crawl, seed)
        if led is None:
            return []
        found.append(led)
    if any(each.is_login for each in found):
        pages = islice((page for page in crawl.pages() if page.status == _OK), _FEW_PAGES + 1)
        if sum(1 for _ in pages) > _FEW_PAGES:
            return []
    return found


def given_up_hosts(crawl: View, limit: int) -> list[GivenUpHost]:
    """Return the hosts with most URLs that were given up, each with the reason in words."""
    pairs = (pair for reader in crawl.readers for pair in reader.given_up_hosts())
    found = []
    for host, urls in nlargest(limit, pairs, key=itemgetter(1)):
        record = crawl.reader_of(host).host(host)
        reason = error_words(record.retired) if record is not None and record.retired else ""
        found.append(GivenUpHost(host, urls, reason or skip_words("robots_unreachable")))
    return found


def lost_seeds(crawl: View, seeds: Iterable[str]) -> list[PageRecord]:
    """Return a record for each seed that has none because it was skipped or given up."""
    found = []
    for seed in seeds:
        host = host_key_of(seed)
        known = crawl.reader_of(host).find(seed)
        if isinstance(known, Skipped):
            cause = known.reason.partition(": ")[2] or known.reason
            found.append(
                PageRecord(
                    url=seed,
                    status=None,
                    depth=0,
                    parent=None,
                    title=None,
                    content_type=None,
                    bytes=0,
                    latency_ms=0.0,
                    fetched_at=time.time(),
                    attempts=0,
                    links=0,
                    canonical=None,
                    redirect_to=None,
                    error=cause,
                    host=host,
                    digest=None,
                )
            )
    return found


def _problem(crawl: View, seed: str) -> SeedProblem | None:
    known = crawl.reader_of(host_key_of(seed)).find(seed)
    match known:
        case None if crawl.reader_of(host_key_of(seed)).knows(seed):
            return SeedProblem(seed, "its record is with another worker of this crawl", "unknown")
        case None:
            return SeedProblem(seed, "it never came to the crawl's queue", "unknown")
        case PageRecord(status=None, error=error):
            return SeedProblem(seed, error_words(error or "unknown"), error or "unknown")
        case PageRecord(status=int(status)) if not _is_fetched(known):
            return SeedProblem(seed, _status_words(status), str(status))
        case Skipped(reason=reason):
            cause = reason.partition(": ")[2]
            words = error_words(cause) if reason.startswith("host_retired: ") else None
            return SeedProblem(seed, words or skip_words(reason), cause or reason)
    return None


def _is_fetched(record: PageRecord) -> bool:
    return record.status is not None and record.status < _FAILED_FROM


def _led_astray(crawl: View, seed: str) -> SeedAstray | None:
    url, status = seed, 0
    for _ in range(MAX_MOVES):
        known = crawl.reader_of(host_key_of(url)).find(url)
        if known is None:  # the last redirect was not followed
            return SeedAstray(seed, status, url, _is_login(seed, url)) if status else None
        if isinstance(known, Skipped) and status:
            return SeedAstray(seed, status, url, _is_login(seed, url), skip_words(known.reason))
        if not isinstance(known, PageRecord) or known.error is not None:
            return None
        if known.redirect_to is None:
            is_login = status != 0 and _is_login(seed, url)
            return SeedAstray(seed, status, url, is_login=True) if is_login else None
        url, status = known.redirect_to, known.status or 0
    return None


def _is_login(seed: str, target: str) -> bool:
    """Return whether a seed that does not look like a login page leads to one that does."""
    return _LOGIN.search(target) is not None and _LOGIN.search(seed) is None


def _status_words(status: int) -> str:
    from http import HTTPStatus  # its table takes a millisecond

    try:
        return f"the server answered {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"the server answered {status}"
