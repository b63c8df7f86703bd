"""The messages between a supervisor and its workers. `budget` explains those about pages.

This module is cheap to import, since the supervisor does not import the engine.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from mannerly.crawler.events import Watched
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import StoreError

    from .agreement import WorkProgress
    from .coordinator import Membership
    from .delivery import Delivered
    from .event_batches import EventBatch

OUT_OF_MEMORY = 71  # the exit status of a worker that ended for lack of memory


class Start(NamedTuple):
    """The first message to a worker: the crawl, its settings and the worker's shards."""

    location: str  # of the crawl's store
    settings: CrawlSettings
    shards: list[int]
    is_resumed: bool
    delivers: bool  # send every page to the supervisor, and settle it when it is acknowledged
    worker: int  # the number of this process in the run
    watched: Watched
    membership: Membership | None = None  # it takes and releases shards while it runs


class Round(NamedTuple):
    """Report with this number: at once if nothing is under way, else at the usual time."""

    number: int


class GiveUpUnreachable(NamedTuple):
    """Give up the unreachable hosts (`agreement`): nothing else is left."""


class Drain(NamedTuple):
    """Start no more requests."""


class End(NamedTuple):
    """Cancel the requests under way, commit, and end."""


class Alive(NamedTuple):
    """The supervisor is alive: sent when there is nothing else to say."""


class GrantPages(NamedTuple):
    """Allows the worker to start so many more pages."""

    pages: int


class Recall(NamedTuple):
    """Return the pages that were granted and not started."""


class Acknowledged(NamedTuple):
    """The program is done with these pages, by their tokens."""

    tokens: list[int]


ToWorker: TypeAlias = (
    Round | GiveUpUnreachable | Drain | End | Alive | GrantPages | Recall | Acknowledged
)


class Report(NamedTuple):
    """The totals and state of a worker: sent four times a second, and when it ends."""

    stats: Stats
    round: int  # the number of the latest Round; -1: none yet
    progress: WorkProgress
    used: int  # pages started, since the worker began
    events: EventBatch | None = None  # since the report before


class Ask(NamedTuple):
    """The worker asks for more pages."""


class Returned(NamedTuple):
    """The answer to `Recall`."""

    pages: int


class Pages(NamedTuple):
    """Pages for the program that iterates over the crawl."""

    pages: list[Delivered]


class Failed(NamedTuple):
    """The worker cannot continue: the crawl ends with this error."""

    error: StoreError | OSError


ToSupervisor: TypeAlias = Report | Ask | Returned | Pages | Failed


def worker_id(pid: int) -> str:
    """Return the name of a worker among all workers on all machines."""
    return f"{machine()}:{pid}"


def machine() -> str:
    """Return the name of this machine."""
    return socket.gethostname()
