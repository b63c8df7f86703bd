"""A helper process: it does one piece of work after the other until its parent is gone.

`offload` starts it and gives it work. A helper that runs the user's code does nothing else, because
that code can change everything in its process. What the code prints goes to standard error:
standard output is for data. A copy of the process that the code has made (`os.fork`) ends when it
comes back here: it must not answer in the place of the helper.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.page.parsed import ParseFailed

from .machine import return_freed_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Channel

PARSER = "mannerly.crawler.page.long_work"
IDLE_S = 30.0  # without work, then a helper ends: it takes 0.2 s to start, and 40 MB to keep
NO_MEMORY = 77  # the exit status of a helper whose memory did not suffice


class Order(NamedTuple):
    """The first message to a helper: its limits, and what it runs."""

    memory: int | None  # bytes beyond those of its code; None: as many as there are
    longest_s: float  # for one piece of work; the parent ends a helper that takes longer
    prepare: Callable[[], object] | None = None  # called before the memory is limited
    is_users: bool = False  # its work runs the user's code


def main(channel: Channel) -> None:
    """Run a helper process."""
    order: Order = channel.wait()
    own_id = os.getpid()
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - not worth an import
        return_freed_memory()
        if order.is_users:
            _print_to_stderr()
        _prepare(order)
        channel.send(None)  # ready for work
        watchdog = _Watchdog(order.longest_s, nowhere)
        while True:
            watchdog.renew()
            try:
                result = done(channel.wait())
                if os.getpid() != own_id:
                    os._exit(0)  # a copy
                channel.send(result)
            except EOFError:
                return
            except MemoryError:  # the parent starts another helper for it
                os._exit(NO_MEMORY)
            except BaseException as error:  # noqa: BLE001 - whatever the user's code does
                if order.is_users or not isinstance(error, Exception):
                    os._exit(1)  # the user's code has broken this process: another helper does it
                channel.send(ParseFailed(type(error).__name__))  # it cannot be pickled


def done(work: Callable[[], object]) -> object:
    """Do a piece of work; return its result, or that it failed."""
    try:
        return work()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a page that fails affects no other page
        return ParseFailed(type(error).__name__)


class _Watchdog:
    """Ends this process if its parent is gone and its work has no end.

    A thread of `faulthandler` does that, which does not need the interpreter. It takes 50 µs to
    start, so it is renewed at times and not for every piece of work. While there is no work, the
    parent ends this process before that.
    """

    def __init__(self, longest_s: float, nowhere: TextIOWrapper) -> None:
        self._longest_s = max(longest_s, IDLE_S)
        self._nowhere = nowhere
        self._next = 0.0

    def renew(self) -> None:
        """Note that the parent is there: before each piece of work."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._longest_s
            faulthandler.dump_traceback_later(3 * self._longest_s, exit=True, file=self._nowhere)


def _print_to_stderr() -> None:
    with suppress(OSError):  # it is closed
        os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a function may end the process at any time


def _prepare(order: Order) -> None:
    """Import what is needed, then limit the memory: the code counts, too."""
    if order.prepare is not None:
        order.prepare()
    if order.memory is None or not sys.platform.startswith("linux"):
        return
    import resource

    import_module(PARSER)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + order.memory
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
