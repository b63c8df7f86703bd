"""The messages between a supervisor and its workers. The budget's are explained in `budget`.

Everything here is cheap to import: the supervisor needs no engine.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import StoreError

    from .delivery import Delivered


class Start(NamedTuple):
    """The first message to a worker: what to work on."""

    location: str  # of the crawl's store
    settings: CrawlSettings
    shards: list[int]
    is_resumed: bool
    delivers: bool  # send every page to the supervisor, and settle it when it is acknowledged
    worker: int  # the number of this process in the run


class Round(NamedTuple):
    """Report under this number: at once if nothing is under way, else with the next report."""

    number: int


class Drain(NamedTuple):
    """Start no request any more."""


class End(NamedTuple):
    """Break off what is under way, commit, and end."""


class Alive(NamedTuple):
    """The supervisor is at work."""


class GrantPages(NamedTuple):
    """So many more pages may be started."""

    pages: int


class Recall(NamedTuple):
    """Return the pages that were granted and not started."""


class Acknowledged(NamedTuple):
    """The program is done with these pages, by their tokens."""

    tokens: list[int]


ToWorker: TypeAlias = Round | Drain | End | Alive | GrantPages | Recall | Acknowledged


class Report(NamedTuple):
    """What a worker is doing, four times a second, and when it ends."""

    stats: Stats
    round: int  # the latest that it was asked for; -1: none yet
    is_idle: bool  # nothing to do, and nothing in its inboxes
    in_flight: int
    received: int  # links from other shards, since the worker began
    used: int  # pages started, since the worker began


class Ask(NamedTuple):
    """More pages are wanted."""


class Returned(NamedTuple):
    """The answer to `Recall`."""

    pages: int


class Pages(NamedTuple):
    """Pages for the program that iterates over the crawl."""

    pages: list[Delivered]


class Failed(NamedTuple):
    """The worker cannot go on, and neither can the crawl."""

    error: StoreError


ToSupervisor: TypeAlias = Report | Ask | Returned | Pages | Failed


def worker_id(pid: int) -> str:
    """Return the name of a worker among all workers on all machines."""
    return f"{machine()}:{pid}"


def machine() -> str:
    """Return the name of this machine."""
    return socket.gethostname()
