"""Requests that are sent once: a form, an order, whatever is no GET and may not be repeated.

    never sent                        asked again like any request
    refused (429, 503 + Retry-After)  asked again when its host says
    answered otherwise                that is its result, also a 500
    sent, and no answer               dropped as UNANSWERED: `retry --unanswered` asks again

That it was sent is noted in the store immediately before its first byte leaves. So after a crash
it is known of each request whether it may have arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import UNANSWERED, Entry
from mannerly.crawler.payload import was_refused
from mannerly.crawler.store.base import StoreError

from .follows import SETTLED, Abandoned, Again

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, RobotsRequest
    from mannerly.crawler.store.base import ShardStore

    from .follows import Follows


class SentOnce:
    """The requests of one shard that were sent and have no result yet."""

    def __init__(self, store: ShardStore) -> None:
        self._store = store
        self._sent: set[int] = set()

    def leaves(self, entry: Entry) -> bool:
        """Note that a request is about to leave; return whether that is noted, and it may."""
        try:
            self._store.note_sent(entry.seq)
        except StoreError:
            return False
        self._sent.add(entry.seq)
        return True

    def after(self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows) -> Follows:
        """Return what follows from an answer, without asking for it again if it was sent."""
        if not isinstance(item, Entry) or item.seq not in self._sent:
            return follows
        self._sent.discard(item.seq)
        if was_refused(answer.status, answer.headers):
            self._store.note_refused(item.seq)
            return follows
        if answer.status is None:
            return Abandoned(f"{UNANSWERED}: {answer.detail or answer.error}")
        return SETTLED if isinstance(follows, Again) else follows


def is_sent_once(item: Entry | RobotsRequest) -> bool:
    """Return whether a request is not repeated."""
    return KINDS[item.kind].is_sent_once
