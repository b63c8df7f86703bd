"""Hosts that are given up: their URLs leave the queue, a slice at a time, with the reason.

And the way back: URLs that failed or were given up are queued again, a slice at a time, and the
hosts that they belong to are taken into the crawl again.

A host is given up by the politeness core (it failed too often or for too long, robots.txt asks for
too long a delay; a shard asks it to, for what it has seen itself), or was given up in an earlier
run. The core tells (`on_event`), the reason goes into the host's record at once, and others ask
`Host.given_up`. Its URLs are dropped in the shard's own turn.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mannerly.crawler import events as crawl_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Entry, Now, RobotsRequest
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness import events as polite

    from .contacts import Contacts
    from .origins import RobotsFiles
    from .pending import Pending

DROP_HOSTS = 500  # hosts whose URLs leave the queue per tick
DROP_SLICE = 1000  # URLs of one of them
BACK_SLICE = 1000  # URLs that come back per tick


class GivenUpHosts:
    """The given-up hosts whose queue is not empty yet."""

    def __init__(
        self,
        contacts: Contacts,
        files: RobotsFiles,
        store: ShardStore,
        pending: Pending,
        emit: Callable[[crawl_events.Event], None],
    ) -> None:
        self._hosts, self._records = contacts.hosts, contacts.records
        self._politeness, self._frontier = contacts.politeness, contacts.frontier
        self._files = files
        self._store = store
        self._pending = pending
        self._emit = emit
        self._emptied: dict[Host, None] = {}  # in their order
        self._revived: str | None = None  # the last host that came back with its URLs

    def __bool__(self) -> bool:
        return bool(self._emptied)

    def heard(self, event: polite.Retired) -> None:
        """Give up the hosts of a budget that the politeness core has given up."""
        for host in self._records.give_up(event.host, event.reason):
            self._emptied[host] = None
            self._emit(crawl_events.HostGivenUp(host.name, event.reason))

    def give_up(self, host: str, reason: str, now: Now) -> None:
        """Give up a host for what the shard has seen of it."""
        self._politeness.give_up(host, reason, now=now.mono)

    def give_up_waiting(self, now: Now) -> None:
        """Give up every host that has URLs queued: all of them wait for too long."""
        for host, _ in list(self._store.queued_hosts()):
            self._politeness.give_up_waiting(host, now=now.mono)

    def recall(self, name: str, now: Now) -> Host:
        """Recall a host at its first turn in this run: it may have been given up before."""
        host = self._hosts.meet(name)
        if host.budget is None:
            self._records.recall(host, now)
            if host.given_up is not None:
                self._emptied[host] = None
        return host

    def revive(self, name: str, now: Now) -> Host:
        """Take a host into the crawl again, and have its robots.txt asked for again."""
        host = self.recall(name, now)
        self._emptied.pop(host, None)
        self._hosts.answered(host)
        if host.given_up is not None:
            self._politeness.revive(name, now=now.mono)
            if host.is_paused:
                self._politeness.pause(name, now=now.mono)
            self._records.revive(host, now)
        self._files.forget(name, only_failing=True)
        return host

    def bring_back(self, now: Now) -> list[Entry]:
        """Queue a slice of what is to be tried again; return the new entries of the queue."""
        back = self._store.bring_back(BACK_SLICE)
        if not back.hosts:
            self._revived = None
        for name, failed in back.hosts.items():
            # The URLs of a host come one after the other: it is revived with the first of them.
            if name != self._revived:
                self.revive(name, now)
                self._revived = name
            host = self.recall(name, now)
            self._records.came_back(host, failed, back.lost.get(name, 0), now)
        return back.new

    def drop_urls(self, now: Now) -> list[RobotsRequest]:
        """Drop what is queued for these hosts; return requests for robots.txt that wait there."""
        slice_ = list(islice(self._emptied, DROP_HOSTS))
        names = {host.name for host in slice_}
        requests = self._frontier.drop_hosts(names, now=now.mono).requests
        for host in slice_:
            reason = host.given_up
            entries = self._store.queued(host.name, after=(-1, -1), limit=DROP_SLICE)
            dropped = self._frontier.withhold(entries)
            self._pending.drop(dropped, dropped_because(reason or ""))
            if dropped:
                self._emit(crawl_events.UrlsDropped("host_retired", len(dropped)))
            del self._emptied[host]
            if entries:  # look again after the others, when these are committed
                self._emptied[host] = None
        return requests


def dropped_because(reason: str) -> str:
    """Return the reason that is recorded for the URLs of a host that was given up."""
    return f"host_retired: {reason}"
