"""Find out why no seed of a crawl could be fetched, and which hosts were given up."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.model import PageRecord, Skipped
from mannerly.crawler.web.urls import host_key_of

from .reasons import error_words, skip_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .view import View

_FAILED_FROM = 400  # the first status that is an error


class SeedProblem(NamedTuple):
    """A seed that could not be fetched."""

    url: str
    cause: str  # in words
    code: str  # the reason code of the cause, or the status


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


def given_up_hosts(crawl: View, limit: int) -> list[tuple[str, str]]:
    """Return hosts that were given up, each with the reason in words."""
    found = (record for reader in crawl.readers for record in reader.hosts() if record.retired)
    return [(record.host, error_words(record.retired or "")) for record in islice(found, limit)]


def _problem(crawl: View, seed: str) -> SeedProblem | None:
    known = crawl.reader_of(host_key_of(seed)).find(seed)
    match known:
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


def _status_words(status: int) -> str:
    try:
        return f"the server answered {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"the server answered {status}"
