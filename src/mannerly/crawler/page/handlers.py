"""Handlers: functions of the user, one for each kind of page, and which of them gets a page.

    @spider.on(label="product")     the answers to requests with this label
    @spider.on("*/category/*")      other pages whose URL matches; the first pattern that does wins
    @spider.on_error                answers of 400 and more, and URLs without an answer

Together they are one extract function (`extract`): a call with a page returns what its handler
returns. A handler is a function or a generator, plain or `async`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mannerly.crawler.web.scope import Glob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from .page import Page

    Handler: TypeAlias = Callable[[Page], Any]

F = TypeVar("F", bound="Handler")

FIRST_ERROR = 400  # of the statuses that are errors


class UnknownLabelError(LookupError):
    """A page has a label that no handler is for."""


class Handlers:
    """The handlers of a spider. Call it with a page to have that page handled."""

    def __init__(self) -> None:
        self._of_labels: dict[str, Handler] = {}
        self._of_patterns: list[tuple[Glob, Handler]] = []
        self._of_errors: Handler | None = None

    def on(self, *patterns: str, label: str | None = None) -> Callable[[F], F]:
        """Return a decorator that makes a function the handler of some pages.

            @spider.on("*/category/*")
            @spider.on(label="product")

        `patterns` are globs over the URL, as for `include`; of several handlers the one that was
        declared first gets a page. A page with a label goes to the handler of the label alone.

        Raises:
            ValueError: there is neither, both, or a second handler of a label.
            TypeError: a pattern is not text: the parentheses are missing.
        """
        if any(not isinstance(each, str) for each in patterns):
            raise TypeError('write @spider.on("*/pattern/*") or @spider.on(label="…")')
        if bool(patterns) == (label is not None):
            raise ValueError("a handler is for patterns or for a label: give one of them")
        if label == "" or label in self._of_labels:
            what = f"already has a handler: {label}" if label else "is empty: give patterns"
            raise ValueError(f"the label {what}")
        globs = [Glob(each) for each in patterns]

        def handles(handler: F) -> F:
            if label is not None:
                self._of_labels[label] = handler
            self._of_patterns += [(glob, handler) for glob in globs]
            return handler

        return handles

    def on_error(self, handler: F) -> F:
        """Make a function the handler of errors; it decorates without parentheses.

        It gets answers with a status of 400 and more, and URLs that were asked for and have no
        answer: `page.status` is None then, and `page.error` says why.

        Raises:
            ValueError: there is one already.
        """
        if self._of_errors is not None:
            raise ValueError("there is a handler of errors already")
        self._of_errors = handler
        return handler

    def takes(self, status: int | None) -> bool:
        """Return whether pages with this status may have a handler; None: without an answer."""
        if status is None or status >= FIRST_ERROR:
            return self._of_errors is not None
        return 200 <= status < 300

    def handler_of(self, page: Page) -> Handler | None:
        """Return the handler of a page; None: it is recorded only.

        Raises:
            UnknownLabelError: it has a label that no handler is for.
        """
        status = page.status
        if not self.takes(status):
            return None
        if status is None or status >= FIRST_ERROR:
            return self._of_errors
        if page.label:
            if page.label not in self._of_labels:
                known = ", ".join(self._of_labels) or "none"
                raise UnknownLabelError(
                    f"no handler has the label {page.label} (there are: {known})"
                )
            return self._of_labels[page.label]
        url = page.url
        return next((handler for glob, handler in self._of_patterns if glob.matches(url)), None)

    def __call__(self, page: Page) -> Any:
        """Return what the handler of a page returns; None if it has no handler.

        Raises:
            UnknownLabelError: it has a label that no handler is for.
        """
        handler = self.handler_of(page)
        return None if handler is None else _awaited(handler(page))


def _awaited(found: Any) -> Any:
    """Return what a handler returned; run it to its end if it is asynchronous."""
    if not inspect.isasyncgen(found) and not inspect.isawaitable(found):
        return found
    import asyncio  # few handlers need it

    return asyncio.run(_all_of(found) if inspect.isasyncgen(found) else _result_of(found))


async def _all_of(found: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in found]


async def _result_of(found: Awaitable[Any]) -> Any:
    return await found
