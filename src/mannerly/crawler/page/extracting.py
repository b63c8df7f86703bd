"""Run the extract function of a crawl: in helper processes, or in the crawl's own loop.

In the loop runs a function that only this process has, such as a lambda. While it runs, the crawl
does nothing else. So a thread watches it: after a second it says which function works on which
page, and after `longest_s` the function is ended by an exception. One that does not return from C
code (a regular expression without an end) cannot be ended, only named; one that ends the process
(`os._exit`) ends the crawl.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from .extract import is_only_here, items_here, load, prepare, shown, work_on
from .page import Page
from .parsed import clean_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mannerly.crawler.model import PageItems, PageRecord

SLOW_S = 1.0  # then it is said, and again after twice as long


class ExtractTimeout(BaseException):
    """The extract function took too long: raised in the function itself."""


class Extracting:
    """The extract function of a crawl. Close it to end what it has started here.

    Attributes:
        longest_s: seconds for one page.
        here: calls the function in this process; None: helper processes do the `work`.
        prepare: loads the function in a helper.
        work: returns the call on a page, as a value for a helper.
    """

    def __init__(self, name: str, longest_s: float) -> None:
        is_here = is_only_here(name) or not sys.executable  # without it there are no helpers
        self.longest_s = longest_s
        self.here = ExtractHere(name, longest_s) if is_here else None
        self.prepare = partial(prepare, name)
        self.work = partial(work_on, name)

    def close(self) -> None:
        """End the thread, if there is one."""
        if self.here is not None:
            self.here.close()


class ExtractHere:
    """Calls a function in this process, page by page. Close it to end its thread."""

    def __init__(self, name: str, longest_s: float) -> None:
        self.name = shown(name)
        self._function = load(name)
        self._longest_s = longest_s
        self._thread_id = 0
        # The page that it works on, and since when. Who takes it out decides how the call ends:
        # the caller when the function has returned, or the thread when its time is over.
        self._call: deque[tuple[str, float]] = deque()
        self._is_raised = threading.Event()
        self._is_closed = threading.Event()
        self._watch = threading.Thread(target=self._watched, name="mannerly-extract", daemon=True)
        self._watch.start()

    def __call__(self, record: PageRecord, headers: Mapping[str, str], body: bytes) -> PageItems:
        """Return the items of a page, or why there are none."""
        return items_here(self._called, Page(record, headers, body))

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()

    def _called(self, page: Page) -> Any:
        self._thread_id = threading.get_ident()
        self._is_raised.clear()
        call = (page.url, time.monotonic())
        self._call.append(call)
        try:
            return self._function(page)
        finally:
            if not self._has_ended(call):  # its time is over, even if it has just returned
                self._is_raised.wait()
                _raise_in(self._thread_id, None)  # nothing may be raised after this
                raise TimeoutError(f"took longer than {self._longest_s:g} s")

    def _has_ended(self, call: tuple[str, float]) -> bool:
        """End a call; return False if the other thread has done so before."""
        try:
            self._call.remove(call)
        except ValueError:
            return False
        return True

    def _watched(self) -> None:
        next_s = SLOW_S
        while not self._is_closed.wait(min(SLOW_S, self._longest_s) / 4):
            call = next(iter(self._call.copy()), ("", time.monotonic()))
            took_s = time.monotonic() - call[1]
            if took_s >= self._longest_s:
                if self._has_ended(call):
                    _raise_in(self._thread_id, ExtractTimeout)
                    self._is_raised.set()
            elif took_s < SLOW_S:
                next_s = SLOW_S
            elif took_s >= next_s:
                next_s = 2 * took_s
                text = f"the extract function {self.name} has worked for {took_s:.0f} s on"
                print(  # noqa: T201 - the loop that shows everything else waits
                    f"mannerly: {text} {clean_line(call[0])}; the crawl waits for it",
                    file=sys.stderr,
                    flush=True,
                )


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    """Raise an exception in a thread; None takes back one that was not raised yet."""
    import ctypes  # rarely needed

    raised = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), raised)
