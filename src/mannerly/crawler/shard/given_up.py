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
    from mannerly.crawler.model import Entry, Now, RobotsRequest
    from mannerly.politeness import events as polite

    from .parts import Parts

DROP_HOSTS = 500  # hosts whose URLs leave the queue per tick
DROP_SLICE = 1000  # URLs of one of them
BACK_SLICE = 1000  # URLs that come back per tick


class GivenUpHosts:
    """The given-up hosts whose queue is not empty yet."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._heard: list[tuple[str, str]] = []  # budgets that the core gave up, and why
        self._revived: str | None = None  # the last host that came back with its URLs

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __contains__(self, host: str) -> bool:
        return host in self._reasons

    def reason(self, host: str) -> str | None:
        """Return why a host was given up, while its queue is not empty yet; None if it was not."""
        return self._reasons.get(host)

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
            for host in parts.hosts.give_up(key, reason, now):
                self._reasons[host] = reason
                parts.emit(told.HostGivenUp(host, reason))
        self._heard.clear()

    def recall(self, host: str, parts: Parts, now: Now) -> None:
        """Recall a host at its first turn in this run: it may have been given up before."""
        if host in parts.hosts.known:
            return
        parts.hosts.recall(host, now)
        reason = parts.hosts.given_up(host)
        if reason is not None:
            self._reasons[host] = reason

    def revive(self, host: str, parts: Parts, now: Now) -> None:
        """Take a host into the crawl again, and have its robots.txt asked for again."""
        self.recall(host, parts, now)
        self._reasons.pop(host, None)
        parts.unreachable.forget(host)
        if parts.hosts.given_up(host) is not None:
            parts.politeness.revive(host, now=now.mono)
            if host in parts.paused_hosts:
                parts.politeness.pause(host, now=now.mono)
            parts.hosts.revive(host, now)
        for origin in (f"https://{host}", f"http://{host}"):
            record = parts.stored_robots(origin)[origin]
            if record is not None and record.failing_since:
                parts.forget_robots(origin)

    def bring_back(self, parts: Parts, now: Now) -> list[Entry]:
        """Queue a slice of what is to be tried again; return the new entries of the queue."""
        back = parts.store.bring_back(BACK_SLICE)
        if not back.hosts:
            self._revived = None
        for host, failed in back.hosts.items():
            # The URLs of a host come one after the other: it is revived with the first of them.
            if host != self._revived:
                self.revive(host, parts, now)
                self._revived = host
            parts.hosts.came_back(host, failed, back.lost.get(host, 0), now)
        return back.new

    def drop_urls(self, parts: Parts, now: Now) -> list[RobotsRequest]:
        """Drop what is queued for these hosts; return requests for robots.txt that wait there."""
        slice_ = dict(islice(self._reasons.items(), DROP_HOSTS))
        requests = parts.frontier.drop_hosts(slice_.keys(), now=now.mono).requests
        for host, reason in slice_.items():
            entries = parts.store.queued(host, after=(-1, -1), limit=DROP_SLICE)
            dropped = parts.frontier.withhold(entries)
            parts.batch.dropped += [(entry, dropped_because(reason)) for entry in dropped]
            if dropped:
                parts.emit(told.UrlsDropped("host_retired", len(dropped)))
            del self._reasons[host]
            if entries:  # look again after the others, when these are committed
                self._reasons[host] = reason
        return requests


def dropped_because(reason: str) -> str:
    """Return the reason that is recorded for the URLs of a host that was given up."""
    return f"host_retired: {reason}"
