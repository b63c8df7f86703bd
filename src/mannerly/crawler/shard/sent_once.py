"""Requests that are sent once: a form, an order, whatever is no GET and may not be repeated.

    never sent                        asked again like any request
    refused (429, 503 + Retry-After)  asked again when its host says
    answered otherwise                that is its result, also a 500
    sent, and no answer               dropped as UNANSWERED: `retry --unanswered` asks again
    cannot be noted                   not sent: asked again after a moment

That it was sent is noted in the store immediately before its first byte leaves. So after a crash
it is known of each request whether it may have arrived; after a power cut only with `durable`. A
note that fails does so inside the fetcher: the engine asks for the error (`take_failure`), and
treats it as that of a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import UNANSWERED, Entry, LocalError
from mannerly.crawler.payload import was_refused
from mannerly.crawler.store.base import StoreError

from .follows import SETTLED, Abandoned, Again, Settled

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Now, RobotsRequest
    from mannerly.crawler.store.base import ShardStore

    from .follows import Follows


NOTE_AGAIN_S = 1.0  # after a note that failed: every try takes a new connection


class SentOnce:
    """The requests of one shard that were sent and have no result yet."""

    def __init__(self, store: ShardStore) -> None:
        self._store = store
        self._sent: set[int] = set()
        self._unnoted: set[int] = set()  # held, because the note failed
        self._failure: StoreError | None = None

    def leaves(self, entry: Entry) -> bool:
        """Note that a request is about to leave; return whether that is noted, and it may."""
        try:
            self._store.note_sent(entry.seq)
        except StoreError as error:
            self._failure = error
            self._unnoted.add(entry.seq)
            return False
        self._sent.add(entry.seq)
        return True

    def take_failure(self) -> StoreError | None:
        """Return why a note failed, if one did since this was asked for last."""
        failure, self._failure = self._failure, None
        return failure

    def after(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Return what follows from an answer, without asking for it again if it was sent."""
        if not isinstance(item, Entry):
            return follows
        if item.seq in self._unnoted:
            self._unnoted.discard(item.seq)
            if answer.error is LocalError.HELD:
                return Again(item, now.mono + NOTE_AGAIN_S)
        if item.seq not in self._sent:
            return follows
        self._sent.discard(item.seq)
        if was_refused(answer.status, answer.headers):
            try:
                self._store.note_sent(item.seq, is_refused=True)
            except StoreError as error:  # the next owner would take it for unanswered
                self._failure = error
            return follows
        if answer.error is LocalError.NO_ROOM:  # it was answered, and may not be asked again
            return Settled(LocalError.NO_ROOM.value)
        if answer.status is None:
            return Abandoned(f"{UNANSWERED}: {answer.detail or answer.error}")
        return SETTLED if isinstance(follows, Again) else follows


def is_sent_once(item: Entry | RobotsRequest) -> bool:
    """Return whether a request is not repeated."""
    return KINDS[item.kind].is_sent_once
