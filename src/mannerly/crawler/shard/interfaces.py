"""The interfaces of those that work on a shard's pages: helper processes, and a consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Fetched, RawExchange
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.render.values import SubAnswer, SubRequest
    from mannerly.politeness.model import Outcome

    Finish: TypeAlias = Callable[[Harvest, object], Harvest]


class PageReading(NamedTuple):
    """A request whose page is read in another process; it comes back with the result."""

    flight: InFlight
    answer: Fetched
    outcome: Outcome
    found: Harvest | None = None  # if it was parsed: a plug-in works on it
    finish: Finish | None = None  # makes the result of that work a part of what was found
    step: int = 0  # the plug-ins after reading that had their turn
    is_local: bool = False  # it failed on our side: that says nothing about the host


class PageReader(Protocol):
    """Works on pages in other processes (`runtime.offload`)."""

    def give(self, tag: PageReading, work: Callable[[], object], size: int) -> None:
        """Give work to another process; the result comes back through `Shard.read` with its tag.

        `size` is that of the body, in bytes.
        """

    def run(self, tag: PageReading, work: Callable[[], object], size: int, page: str) -> None:
        """The same for work of a plug-in that runs the user's code; `page` is the URL."""


class Renderer(Protocol):
    """Shows pages in browsers (`runtime.rendering`)."""

    def render(self, tag: PageReading, wait_for: str | None) -> None:
        """Show the page of an answer; the result comes back through `Shard.rendered`."""

    def answer(self, request: SubRequest, answer: SubAnswer) -> None:
        """Give a page what it has asked for."""


class PageResult(NamedTuple):
    """The result of a page, until it is settled."""

    outcome: Outcome
    latency_s: float
    found: Harvest
    is_local: bool = False  # it failed on our side: that says nothing about the host
    exchange: RawExchange | None = None  # if answers are kept


class Consumer(Protocol):
    """The program that iterates over a crawl: a page is settled when it acknowledges it."""

    def give(self, flight: InFlight, answer: Fetched, result: PageResult) -> None:
        """Hand a page over; it comes back through `Shard.settle`."""
