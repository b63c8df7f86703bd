"""Requests of pages that are being rendered, in the shard that owns their host.

Such a request is an entry like any other for judge, frontier, politeness and fetcher: robots.txt,
pace, Retry-After, guard and retries hold. It differs in one thing: it is in no store. Its number is
negative, it goes before its host's queue, and its answer goes to the browser that waits for it. A
crash loses it together with its page, which is asked for again and rendered again.

Its page waits for it with a tab, so one that cannot be sent soon is refused: its host was given up,
or asks for a longer pause than `PATIENCE_S`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry
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
        self._entries: dict[int, Entry] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, wanted: SubRequest, now: Now) -> None:
        """Queue a request; its answer goes to the renderer."""
        url = canonical(wanted.url)
        if url is None:
            self._answer(wanted, _none("bad_url"))
            return
        self._last -= 1
        entry = Entry(self._last, url, host_key_of(url), 0, 0, wanted.page, 0, Kind.REQUISITE)
        self._waiting[entry.seq], self._entries[entry.seq] = wanted, entry
        self._frontier.ask(entry, now=now.mono)

    def complete(self, entry: Entry, request: Request) -> None:
        """Add to a request what its page sends with it."""
        wanted = self._waiting.get(entry.seq)
        if wanted is not None:
            request.headers += wanted.headers
            request.method, request.body = wanted.method, wanted.body

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
        """Leave a request out if it was not sent yet: its page has ended."""
        for seq, each in self._waiting.items():
            if each is wanted and self._frontier.take_back(self._entries[seq], now=now.mono):
                self.refused(self._entries[seq], "forgotten")
                return

    def tick(self, now: Now) -> None:
        """Refuse what cannot be sent soon."""
        for entry in list(self._entries.values()):
            host = self._hosts.get(entry.host)
            if host is not None and host.given_up is not None:
                self._frontier.take_back(entry, now=now.mono)
                self.refused(entry, dropped_because(host.given_up))
            elif self._is_far(entry, now) and self._frontier.take_back(entry, now=now.mono):
                self.refused(entry, "host_waits")

    def _is_far(self, entry: Entry, now: Now) -> bool:
        """Return whether its host may not be asked for a long time."""
        ready = self._politeness.ready_at(entry.host, now=now.mono)
        return now.mono + PATIENCE_S < ready < inf

    def refuse_all(self, reason: str, now: Now) -> None:
        """The shard stops: no request is answered any more."""
        for entry in list(self._entries.values()):
            self._frontier.take_back(entry, now=now.mono)
            self.refused(entry, reason)

    def _end(self, entry: Entry, answer: SubAnswer) -> None:
        self._frontier.committed((entry,))  # it is nowhere else
        self._entries.pop(entry.seq, None)
        wanted = self._waiting.pop(entry.seq, None)
        if wanted is not None:
            self._answer(wanted, answer)

    def _answer(self, wanted: SubRequest, answer: SubAnswer) -> None:
        assert self._renderer is not None, "only a browser asks"
        self._renderer.answer(wanted, answer)


def _none(reason: str) -> SubAnswer:
    return SubAnswer(None, {}, b"", reason)
