"""Hosts that are given up: their URLs leave the queue, a slice at a time, with the reason.

And the way back: URLs that failed or were given up are queued again, a slice at a time, and the
hosts that they belong to are taken into the crawl again.

A host is given up by the politeness core (it failed too often or for too long, robots.txt asks for
too long a delay), or was given up in an earlier run. The core only tells (`on_event`); what follows
is done in the shard's own turn.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mannerly.crawler import events as told

if TYPE_CHECKING:
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.model import Entry, Now, RobotsRequest
    from mannerly.politeness import events as polite

    from .parts import Parts

DROP_HOSTS = 500  # hosts whose URLs leave the queue per tick
DROP_SLICE = 1000  # URLs of one of them
BACK_SLICE = 1000  # URLs that come back per tick


class GivenUpHosts:
    """The given-up hosts whose queue is not empty yet."""

    def __init__(self) -> None:
        self._emptied: dict[Host, None] = {}  # in their order
        self._heard: list[tuple[str, str]] = []  # budgets that the core gave up, and why
        self._revived: str | None = None  # the last host that came back with its URLs

    def __bool__(self) -> bool:
        return bool(self._emptied)

    def heard(self, event: polite.Retired) -> None:
        """Note that the politeness core has given up a budget."""
        self._heard.append((event.host, event.reason))

    def give_up(self, host: str, reason: str, parts: Parts, now: Now) -> None:
        """Give up a host for what the shard has seen of it."""
        parts.politeness.give_up(host, reason, now=now.mono)
        self.follow(parts, now)

    def give_up_waiting(self, parts: Parts, now: Now) -> None:
        """Give up every host that has URLs queued: all of them wait for too long."""
        for host, _ in list(parts.store.queued_hosts()):
            parts.politeness.give_up_waiting(host, now=now.mono)
        self.follow(parts, now)

    def follow(self, parts: Parts, now: Now) -> None:
        """Give up the hosts of the budgets that the core has given up."""
        for key, reason in self._heard:
            for host in parts.records.give_up(key, reason, now):
                self._emptied[host] = None
                parts.emit(told.HostGivenUp(host.name, reason))
        self._heard.clear()

    def recall(self, name: str, parts: Parts, now: Now) -> Host:
        """Recall a host at its first turn in this run: it may have been given up before."""
        host = parts.hosts.meet(name)
        if host.budget is None:
            parts.records.recall(host, now)
            if host.given_up is not None:
                self._emptied[host] = None
        return host

    def revive(self, name: str, parts: Parts, now: Now) -> Host:
        """Take a host into the crawl again, and have its robots.txt asked for again."""
        host = self.recall(name, parts, now)
        self._emptied.pop(host, None)
        parts.hosts.answered(host)
        if host.given_up is not None:
            parts.politeness.revive(name, now=now.mono)
            if host.is_paused:
                parts.politeness.pause(name, now=now.mono)
            parts.records.revive(host, now)
        for origin in (f"https://{name}", f"http://{name}"):
            record = parts.stored_robots(origin)[origin]
            if record is not None and record.failing_since:
                parts.forget_robots(origin)
        return host

    def bring_back(self, parts: Parts, now: Now) -> list[Entry]:
        """Queue a slice of what is to be tried again; return the new entries of the queue."""
        back = parts.store.bring_back(BACK_SLICE)
        if not back.hosts:
            self._revived = None
        for name, failed in back.hosts.items():
            # The URLs of a host come one after the other: it is revived with the first of them.
            if name != self._revived:
                self.revive(name, parts, now)
                self._revived = name
            host = self.recall(name, parts, now)
            parts.records.came_back(host, failed, back.lost.get(name, 0), now)
        return back.new

    def drop_urls(self, parts: Parts, now: Now) -> list[RobotsRequest]:
        """Drop what is queued for these hosts; return requests for robots.txt that wait there."""
        slice_ = list(islice(self._emptied, DROP_HOSTS))
        names = {host.name for host in slice_}
        requests = parts.frontier.drop_hosts(names, now=now.mono).requests
        for host in slice_:
            reason = host.given_up
            entries = parts.store.queued(host.name, after=(-1, -1), limit=DROP_SLICE)
            dropped = parts.frontier.withhold(entries)
            because = dropped_because(reason or "")
            parts.pending.batch.dropped += [(entry, because) for entry in dropped]
            if dropped:
                parts.emit(told.UrlsDropped("host_retired", len(dropped)))
            del self._emptied[host]
            if entries:  # look again after the others, when these are committed
                self._emptied[host] = None
        return requests


def dropped_because(reason: str) -> str:
    """Return the reason that is recorded for the URLs of a host that was given up."""
    return f"host_retired: {reason}"
