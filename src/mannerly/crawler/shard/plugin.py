"""The four places where something may be added to the way of a URL, and the plug-ins of a shard.

    before a request   admits, was_counted, ask   may it go, and with what?
    after an answer    after_answer               what follows: ask again, or something else
    after reading      after_reading              change what was found, add to it, work elsewhere
    in the commit      settle, flush, committed   what joins the batch

A plug-in inherits `Plugin` and writes the methods that it needs. Beside these places it may take
orders (`ordered`), tell what it holds in memory (`held_bytes`) and release it (`close`). The
methods of each place are collected once, so a place that no plug-in uses is an empty tuple.

A plug-in cannot hurt the manners of a crawl: it sees no permit, and what it asks for passes
robots.txt, pace and guard like any URL. It has no clock and does no I/O. It may keep what concerns
pages under way, and loses that with the process: such a page is asked for again. Code of users does
not run in a method, but as work in a helper process (`HelperWork`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import (
        Drop,
        Entry,
        Fetched,
        Now,
        RawExchange,
        Request,
        RobotsRequest,
    )
    from mannerly.crawler.page.record import Harvest

    from .follows import Follows
    from .pending import Pending


class HelperWork(NamedTuple):
    """Work on a page for a helper process."""

    work: Callable[[], object]  # picklable
    finish: Callable[[Harvest, object], Harvest]  # is given its result, or why there is none
    is_users: bool = True  # it runs the user's code, in helpers of its own


class Plugin:
    """Something that a crawl does beside fetching and reading pages. Each method may be left out.

    Attributes:
        is_on: it has something to do now. While it is off none of its methods is called but
            `ordered`, which may switch it on.
    """

    is_on: bool = True

    # ------------------------------------------------------------------ before a request

    def admits(self, entry: Entry) -> Drop | None:
        """Return why a queued URL is not asked for any more; None: nothing is against it."""

    def was_counted(self, entry: Entry) -> bool:
        """Return whether a page has a record already: it is no further page of its host."""
        return False

    def ask(self, entry: Entry, request: Request) -> None:
        """Change a request before it is sent, but for its URL: headers, limits, method."""

    # ------------------------------------------------------------------ after an answer

    def after_answer(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Return what follows from an answer; `follows` is what would without this plug-in."""
        return follows

    # ------------------------------------------------------------------ after reading

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest | HelperWork:
        """Return what was found, changed or added to; or work, after which it is finished."""
        return found

    # ------------------------------------------------------------------ in the commit

    def settle(
        self, entry: Entry, found: Harvest, exchange: RawExchange | None, pending: Pending
    ) -> None:
        """Put into the batch what belongs to an entry whose record is in it."""

    def flush(self, pending: Pending) -> None:
        """Complete a batch that is about to be committed. Nothing is lost if that fails."""

    def committed(self) -> None:
        """Note that the batch is durable."""

    # ------------------------------------------------------------------ beside the way of a URL

    def ordered(self, order: Control, *, is_new: bool) -> None:
        """Take a control record; `is_new` is False for one that was acted on before."""

    def held_bytes(self) -> int:
        """Return how many bytes of answers it keeps in memory until they are written."""
        return 0

    def close(self) -> None:
        """Release what it has opened."""


class Plugins:
    """The plug-ins of one shard, as the methods of each place that have something to do."""

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self._all = tuple(plugins)
        self._collect()

    def _collect(self) -> None:
        at = self._at
        self.admit: tuple[Callable[[Entry], Drop | None], ...] = at(Plugin.admits)
        self.counted: tuple[Callable[[Entry], bool], ...] = at(Plugin.was_counted)
        self.ask: tuple[Callable[[Entry, Request], None], ...] = at(Plugin.ask)
        self.after_answer: tuple[
            Callable[[Entry | RobotsRequest, Fetched, Follows, Now], Follows], ...
        ] = at(Plugin.after_answer)
        self.after_reading: tuple[
            Callable[[Entry, Fetched, Harvest], Harvest | HelperWork], ...
        ] = at(Plugin.after_reading)
        self.settle: tuple[Callable[[Entry, Harvest, RawExchange | None, Pending], None], ...] = at(
            Plugin.settle
        )
        self.flush: tuple[Callable[[Pending], None], ...] = at(Plugin.flush)
        self.committed: tuple[Callable[[], None], ...] = at(Plugin.committed)
        self.held_bytes: tuple[Callable[[], int], ...] = at(Plugin.held_bytes)

    def _at(self, place: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
        """Return the methods of a place, of the plug-ins that are on and have their own."""
        name = place.__name__
        return tuple(
            getattr(each, name)
            for each in self._all
            if each.is_on and getattr(type(each), name) is not place
        )

    def ordered(self, order: Control, *, is_new: bool) -> None:
        """Pass a control record on, which may switch plug-ins on."""
        for each in self._all:
            each.ordered(order, is_new=is_new)
        self._collect()

    def was_counted(self, entry: Entry) -> bool:
        """Return whether a page has a record already."""
        return bool(self.counted) and any(each(entry) for each in self.counted)

    def close(self) -> None:
        """Release what the plug-ins have opened."""
        for each in self._all:
            each.close()
