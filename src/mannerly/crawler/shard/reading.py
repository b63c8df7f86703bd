"""Read an answer so that no page can harm the crawl: it may cost its own links, nothing else."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.fetch.base import HEADERS_SUFFICE
from mannerly.crawler.fetch.decoding import BAD, decode
from mannerly.crawler.model import CRASHED, Fetched
from mannerly.crawler.page.harvest import harvest, unreadable
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, Now
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.store.base import ShardStore

    from .routes import Routes

DEATHS = 2  # processes that a page may take down before it is not parsed any more


def readable(answer: Fetched) -> Fetched:
    """Return an answer with its body decoded.

    One that cannot be decoded is an error of its server, unless an archive keeps it.
    """
    encoding = answer.headers.get("content-encoding")
    if encoding is None or answer.status is None:
        return answer
    body, problem = decode(answer.body, encoding, answer.request.max_bytes)
    if problem == BAD and answer.exchange is None and answer.status < HEADERS_SUFFICE:
        return Fetched(
            answer.request,
            latency_s=answer.latency_s,
            total_s=answer.total_s,
            error=ErrorKind.PROTOCOL,
            detail="bad_content_encoding",
        )
    is_cut = answer.is_truncated or problem is not None
    detail = answer.detail or problem
    return Fetched(  # `replace` would take six times as long
        answer.request,
        answer.status,
        answer.headers,
        body,
        answer.latency_s,
        answer.total_s,
        answer.error,
        detail,
        is_cut,
        answer.exchange,
    )


def credible(answer: Fetched) -> Fetched:
    """Return the answer, or a protocol error if no server can have given it."""
    status, latency_s, total_s = answer.status, answer.latency_s, answer.total_s
    if status is not None and 100 <= status < 1000 and 0.0 <= latency_s <= total_s < inf:
        return answer  # as nearly all are
    is_timed = 0.0 <= latency_s < inf and 0.0 <= total_s < inf
    if is_timed and (answer.error is not None if status is None else 100 <= status < 1000):
        return answer
    return Fetched(answer.request, error=ErrorKind.PROTOCOL, detail="incredible_answer")


def harvest_safely(
    entry: Entry,
    answer: Fetched,
    store: ShardStore,
    routes: Routes,
    now: Now,
    work: object = None,
    failure: str | None = None,
) -> Harvest:
    """Return the record and links of an answer; `failure` becomes the record's error.

    Raises:
        MemoryError: there is no memory for it now, which says nothing about the page.
    """
    if store.suspects and store.suspects.get(entry.seq, 0) >= DEATHS:
        return unreadable(entry, answer, now.wall, error=CRASHED)
    store.parsing(entry.seq)
    try:
        found = harvest(entry, answer, routes.rules, routes.recent, now.wall, work)
    except MemoryError:
        store.parsing(0)
        routes.rules.hrefs.clear()  # its links count as passed on, and are not: it is read again
        raise
    except Exception:  # noqa: BLE001 - whatever it is, it would come again with every resume
        routes.rules.hrefs.clear()
        found = unreadable(entry, answer, now.wall)
    store.parsing(0)
    if failure is not None:
        found = found._replace(record=found.record._replace(error=failure))
    return found
