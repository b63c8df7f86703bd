"""Helper processes: they do long work and run the user's code, so that no page stops the loop.

A parser holds the interpreter while it works: the tree of 8 MB takes a third of a second, in which
no other host is served. Pages above `BIG_BYTES` (40 ms, if they need a tree) go to a helper, which
is a child process (`child`, `helper_process`). The user's code may take longer still, never return,
or end its process. It runs in helpers of its own (`Role`): it can break a process for other work.

At most `Role.limit` helpers run, each started when it is first needed, since most crawls never see
such a page, and ended after `IDLE_S` without work, which gives its memory back. More work than
helpers waits in line; so does a large page while others are read.

One thread talks to the helpers (`helpers`): a megabyte does not fit into a socket's buffer, and the
loop must not wait for a helper that is just starting. Work and results pass between the loop and
the thread through two queues, so nothing is shared; a result makes `descriptor` readable.

The memory of a parse helper is limited by the size of the largest page: some bytes of markup can
become fifty bytes of tree each.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from .helper_process import IDLE_S
from .helpers import HelperThread, Piece, Role
from .machine import return_freed_memory
from .waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.page.extract import Extracting

LONGEST_S = 30.0  # the largest page takes a second
HELPER_BYTES = 64 * 1024 * 1024  # of memory that a helper may use, whatever the page
TREE = 24  # and so many times the largest page: four copies of it, and its tree
CODE_BYTES = 1024 * 1024 * 1024  # of memory for the user's code, beyond what its modules take
AHEAD = 64  # pieces for a helper of the user's code at once, if they are quick

T = TypeVar("T")


def code_role(limit: int, extract: Extracting | None) -> Role | None:
    """Return the role of helpers that run the user's code; None: nothing runs in helpers."""
    if extract is None or extract.here is not None:
        return None
    longest_s, prepare = extract.longest_s, extract.prepare
    return Role("extract helper", limit, CODE_BYTES, longest_s, AHEAD, prepare, is_users=True)


class Offload(Generic[T]):
    """Helper processes of a loop. Every piece of work returns one result, unless it is closed.

    `limit` and `max_bytes` are for parsing; `code` is the role of helpers for the user's code.
    """

    def __init__(
        self,
        limit: int,
        *,
        max_bytes: int = 0,
        idle_s: float = IDLE_S,
        code: Role | None = None,
    ) -> None:
        self._given: WakingQueue[Piece | None] = WakingQueue()  # None: close
        self._done: WakingQueue[tuple[int, object]] = WakingQueue()
        self._tags: dict[int, T] = {}
        self._last = 0
        memory = HELPER_BYTES + TREE * max_bytes if max_bytes else None
        self._parsing = Role("parse helper", limit, memory, LONGEST_S)
        self._code = code
        self._idle_s = idle_s
        self._thread: threading.Thread | None = None
        self._helpers: HelperThread | None = None

    @property
    def descriptor(self) -> int:
        """Return the descriptor that is readable when there are results; -1 after `close`."""
        return self._done.fileno()

    @property
    def pending(self) -> int:
        """Return how many pieces were given and not yet collected."""
        return len(self._tags)

    def give(self, tag: T, work: Callable[[], object], size: int = 0) -> None:
        """Give work to a helper: a picklable function without arguments, such as a `partial`.

        `tag` stays here, and comes back with the result. `size` is that of the page, in bytes.
        """
        self._give(tag, work, size, self._parsing)

    def run(self, tag: T, work: Callable[[], object], size: int, page: str) -> None:
        """Give work that runs the user's code on a page; `page` is named if it takes long."""
        assert self._code is not None, "there is a role for it"
        self._give(tag, work, size, self._code, page)

    def _give(
        self, tag: T, work: Callable[[], object], size: int, role: Role, page: str = ""
    ) -> None:
        self._last += 1
        self._tags[self._last] = tag
        self._given.put([Piece(self._last, work, size, role, page)])
        if self._thread is None:
            return_freed_memory()  # the first large page
            self._helpers = helpers = HelperThread(self._given, self._done, self._idle_s)
            thread = threading.Thread(target=helpers.run, name="mannerly-offload", daemon=True)
            thread.start()
            self._thread = thread

    def trouble(self, now: float) -> str | None:
        """Return a sentence about a helper that does not answer, or one that died lately."""
        return None if self._helpers is None else self._helpers.trouble(now)

    def collect(self) -> list[tuple[T, object]]:
        """Return the results that have arrived, without waiting."""
        return [(self._tags.pop(number), result) for number, result in self._done.take()]

    def close(self) -> None:
        """End the helpers; their unfinished work is dropped. Closing twice is harmless."""
        self._given.put([None])
        if self._thread is not None:
            self._thread.join()
        self._given.close()
        self._done.close()
