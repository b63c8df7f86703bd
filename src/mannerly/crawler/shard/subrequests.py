"""Requests of pages that are being rendered, in the shard that owns their host.

Such a request is an entry like any other for judge, frontier, politeness and fetcher: robots.txt,
pace, Retry-After, guard and retries hold. It differs in one thing: it is in no store. Its number is
negative, it goes before its host's queue, and its answer goes to the browser that waits for it. A
crash loses it together with its page, which is asked for again and rendered again.

Its page waits for it with a tab, so one that cannot be sent soon is refused: its host was given up,
or asks for a longer pause than `PATIENCE_S`. One that is on the wire is left to its answer.

A script's POST is sent once, as any request that is no GET or HEAD (`sent_once`). No store notes
that it was sent.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.host.inflight import Stage
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, LocalError
from mannerly.crawler.payload import REPEATABLE, was_refused
from mannerly.crawler.render.values import SubAnswer
from mannerly.crawler.web.urls import canonical, host_key_of

from .given_up import dropped_because

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Now, Request
    from mannerly.crawler.render.values import SubRequest

    from .contacts import Contacts
    from .interfaces import Renderer

PATIENCE_S = 120.0  # until the next request to a host: a page does not wait for longer


class SubRequests:
    """The requests of pages that wait in one shard."""

    def __init__(self, contacts: Contacts, renderer: Renderer | None) -> None:
        self._frontier, self._hosts = contacts.frontier, contacts.hosts
        self._politeness = contacts.politeness
        self._renderer = renderer
        self._waiting: dict[int, SubRequest] = {}
        self._queued: dict[int, Entry] = {}  # of these, what is not on the wire
        self._last = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, seq: int) -> bool:
        return seq in self._waiting

    def ask(self, wanted: SubRequest, now: Now) -> None:
        """Queue a request; its answer goes to the renderer."""
        url = canonical(wanted.url)
        if url is None:
            self._answer(wanted, _none("bad_url"))
            return
        self._last -= 1
        entry = Entry(self._last, url, host_key_of(url), 0, 0, wanted.page, 0, Kind.REQUISITE)
        self._waiting[entry.seq], self._queued[entry.seq] = wanted, entry
        self._frontier.ask(entry, now=now.mono)

    def complete(self, entry: Entry, request: Request) -> None:
        """Add to a request that is about to leave what its page sends with it."""
        del self._queued[entry.seq]
        wanted = self._waiting[entry.seq]
        request.headers += wanted.headers
        request.method, request.body = wanted.method, wanted.body
        # One that may have been kept alive too long cannot tell whether it was received.
        request.is_fresh |= wanted.method not in REPEATABLE

    def may_repeat(self, entry: Entry, stage: Stage, answer: Fetched) -> bool:
        """Return whether a request may be sent again after this answer."""
        if self._waiting[entry.seq].method in REPEATABLE:
            return True
        if answer.status is not None:
            return was_refused(answer.status, answer.headers)
        return stage is not Stage.SENT and answer.error is not LocalError.STALE_CONNECTION

    def put_back(self, entry: Entry) -> None:
        """A request is queued again."""
        self._queued[entry.seq] = entry

    def answered(self, entry: Entry, answer: Fetched) -> None:
        """A request has its answer."""
        if answer.status is None:
            self.refused(entry, answer.detail or "failed")
        else:
            self._end(entry, SubAnswer(answer.status, answer.headers, answer.body))

    def refused(self, entry: Entry, reason: str) -> None:
        """A request has no answer and will have none."""
        self._end(entry, _none(reason))

    def forget(self, wanted: SubRequest, now: Now) -> None:
        """Leave a request out if it is not on the wire: its page has ended."""
        for entry in self._queued.values():
            if self._waiting[entry.seq] is wanted:
                self._take_back(entry, "forgotten", now)
                return

    def tick(self, now: Now) -> None:
        """Refuse what cannot be sent soon."""
        for entry in list(self._queued.values()):
            host = self._hosts.get(entry.host)
            if host is not None and host.given_up is not None:
                self._take_back(entry, dropped_because(host.given_up), now)
            elif self._is_far(entry, now):
                self._take_back(entry, "host_waits", now)

    def _is_far(self, entry: Entry, now: Now) -> bool:
        """Return whether its host may not be asked for a long time."""
        ready = self._politeness.ready_at(entry.host, now=now.mono)
        return now.mono + PATIENCE_S < ready < inf

    def refuse_all(self, reason: str, now: Now) -> None:
        """The shard stops: no request is answered any more. None of them is on the wire."""
        for entry in list(self._queued.values()):
            self._take_back(entry, reason, now)

    def _take_back(self, entry: Entry, reason: str, now: Now) -> None:
        """Refuse a request that is queued, or was until the queue of its host was dropped."""
        self._frontier.take_back(entry, now=now.mono)
        self.refused(entry, reason)

    def _end(self, entry: Entry, answer: SubAnswer) -> None:
        self._frontier.committed((entry,))  # it is nowhere else
        self._queued.pop(entry.seq, None)
        wanted = self._waiting.pop(entry.seq, None)
        if wanted is not None:
            self._answer(wanted, answer)

    def _answer(self, wanted: SubRequest, answer: SubAnswer) -> None:
        assert self._renderer is not None, "only a browser asks"
        self._renderer.answer(wanted, answer)


def _none(reason: str) -> SubAnswer:
    return SubAnswer(None, {}, b"", reason)
