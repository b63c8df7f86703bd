"""The end of a run's work, found from what its processes say of themselves.

Processes say how far they are (`WorkProgress`), in *rounds*: one begins when all answers to the one
before have arrived. The work is done when every process is idle with an empty inbox. One round is
enough for a process alone, which says it at one instant, and for the members of a fleet, which have
asked their store (`Fleet.finished`). Processes that send links to each other need two in a row, in
which none has received a link: then there was an instant with nothing to do and nothing in transit.
Idle twice is not enough by itself, since a link can pass from one process to another and back
between two rounds.

A host is *unreachable* if it would be given up before its next request is due. That only such hosts
are left is found in the same way, and that no page of `--max-urls` is; the requisites of pages that
were fetched are still waited for then. This module knows no process and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .ending import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence


class WorkProgress(NamedTuple):
    """The state of the work of one process, all of it at one instant."""

    is_idle: bool = False  # nothing to do, and nothing in its inboxes
    has_only_unreachable: bool = False  # nothing else is left
    in_flight: int = 0
    received: int = 0  # links from other shards, since the process began
    is_spent: bool = False  # it has no pages left to start, and there are none for it
    has_requisites: bool = False  # its pages need something that is not fetched yet


class Agreement:
    """Finds the end of one run; `rounds` in a row must agree."""

    def __init__(self, *, rounds: int) -> None:
        self._rounds = rounds
        self._quiet = self._spent = 0  # rounds in a row
        self._received: list[int] = []
        self.gives_up = False  # it is time to give unreachable hosts up

    def ask(self, processes: Sequence[WorkProgress], *, is_spent: bool = False) -> Ending | None:
        """Return why the work ends, after a round; None: it goes on.

        `is_spent`: no page is left for any of them.
        """
        is_quiet = all(each.is_idle or each.has_only_unreachable for each in processes)
        received = [each.received for each in processes]
        is_confirmed = self._quiet > 0 and received == self._received
        self._quiet = (self._quiet if is_confirmed else 0) + 1 if is_quiet else 0
        self._received = received
        self.gives_up = False
        if self._quiet >= self._rounds:
            if all(each.is_idle for each in processes):
                return Ending.FINISHED
            self.gives_up = True
        is_spent = is_spent or all(each.is_spent for each in processes)
        self._spent = self._spent + 1 if is_spent else 0
        is_under_way = any(each.in_flight or each.has_requisites for each in processes)
        if self._spent >= self._rounds and not is_under_way:
            return Ending.MAX_URLS
        return None

    def begin_again(self) -> None:
        """Forget the rounds so far: a process was replaced."""
        self._quiet = self._spent = 0
