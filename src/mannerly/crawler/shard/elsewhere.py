"""The interfaces of those that work on a shard's pages: helper processes, and a consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Fetched, InFlight, RawExchange
    from mannerly.crawler.page.record import Harvest
    from mannerly.politeness.model import Outcome

Reading: TypeAlias = "tuple[InFlight, Fetched, Outcome]"
"""A request whose page is parsed in another process; it comes back with the result."""


class PageReader(Protocol):
    """Parses pages that are too long for the loop (`runtime.offload`)."""

    def give(self, tag: Reading, work: Callable[[], object], size: int) -> None:
        """Give work to another process; the result comes back through `Shard.read` with its tag.

        `size` is that of the body, in bytes.
        """


class PageResult(NamedTuple):
    """The result of a page, until it is settled."""

    outcome: Outcome
    latency_s: float
    found: Harvest
    is_local: bool  # it failed on our side: that says nothing about the host
    exchange: RawExchange | None = None  # if answers are kept


class Consumer(Protocol):
    """The program that iterates over a crawl: a page is settled when it acknowledges it."""

    def give(self, flight: InFlight, answer: Fetched, result: PageResult) -> None:
        """Hand a page over; it comes back through `Shard.settle`."""
