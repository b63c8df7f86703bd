"""robots.txt in a shard: bring an origin's rules into memory, ask for them, obey them.

The gate (`robots.gate`) decides what is known and what an answer means. Here its requests go to the
frontier, its records into the batch, its delays to the politeness core, and hosts are woken.
A redirect to a host of another shard is followed by that shard (`ForeignRobots`).

Some hosts do not answer, not even for this file. While there is anything else to do, such a host is
asked again after a minute, then after two: it may be restarting. When nothing else is left in the
shard, waiting would only keep the crawl from ending: the host is asked `TRIES` times in all, as
soon as its pace allows, and then given up with the cause. So the crawl of a misspelled host ends
within seconds, and says that its name was not found.

A request that another shard has to send, because it owns the host:

    a.example/robots.txt ──301──► b.example/robots.txt, a host of another shard

Only the owner of b.example knows its pace, so the next hop is the owner's to send. The worker
passes the request on with a control record (`FetchRobots`); the owner sends it in a slot of the
host, and keeps the answer in its store as the robots.txt of a.example. There the worker finds it
and brings it back. Meanwhile the pages of a.example wait, as they do for any robots.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.events import RobotsAnswered
from mannerly.crawler.model import Fetched, LocalError, Request, RobotsRequest
from mannerly.crawler.robots.gate import (
    DEFAULT_MEMORY_BYTES,
    UNREACHABLE,
    RobotsGate,
    request_for,
)
from mannerly.crawler.web.urls import host_key_of
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.events import Event
    from mannerly.crawler.frontier.model import Need
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.hosts import Hosts
    from mannerly.crawler.model import Now, RobotsRecord
    from mannerly.crawler.robots.gate import Learned
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness.model import Instant

    from .contacts import Contacts
    from .given_up import GivenUpHosts
    from .pending import Pending
    from .routes import Routes
    from .sitemaps import Lists


PATIENCE_S = 120.0  # then the file counts as unreachable, and is asked for again later


class ForeignRobots:
    """The requests of one shard that others have to send, until their answers are known."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[RobotsRequest, Instant]] = {}  # by origin, with a deadline
        self._new: list[RobotsRequest] = []

    def ask(self, request: RobotsRequest, now: Now) -> None:
        """Have a request sent by the shard that owns its host."""
        self._asked[request.origin] = request, now.mono + PATIENCE_S
        self._new.append(request)

    def take_new(self) -> list[RobotsRequest]:
        """Return the requests that were not passed on yet."""
        new, self._new = self._new, []
        return new

    @property
    def origins(self) -> frozenset[str]:
        """The origins whose robots.txt was asked for."""
        return frozenset(self._asked)

    def answered(self, origin: str) -> None:
        """An origin's robots.txt is known."""
        self._asked.pop(origin, None)

    def take_overdue(self, now: Now) -> list[RobotsRequest]:
        """Return the requests that were not answered in time; they are asked for no longer."""
        overdue = [request for request, until in self._asked.values() if now.mono >= until]
        for request in overdue:
            del self._asked[request.origin]
        return overdue


TRIES = 3
# Time-outs of this file have a limit of their own: --robots-timeout, not --timeout.
TIMEOUTS = frozenset({"timeout", "first_byte_timeout", "body_timeout"})


def gate_for(settings: CrawlSettings, sharding: Sharding, number: int) -> RobotsGate:
    """Return the gate of a shard."""
    return RobotsGate(
        settings.agent_token,
        unreachable="allow" if settings.robots_unreachable == "allow" else "disallow",
        ignore=settings.ignore_robots,
        patience_s=settings.robots_patience_s,
        memory_bytes=sharding.share(DEFAULT_MEMORY_BYTES, number),
    )


class RobotsFiles:
    """The robots.txt files of one shard: rules in memory, records in the batch and the store."""

    def __init__(self, gate: RobotsGate, store: ShardStore, pending: Pending) -> None:
        self.gate = gate
        self._store = store
        self._pending = pending

    def stored(self, *origins: str) -> dict[str, RobotsRecord | None]:
        """Return the latest record of each origin, one that is not committed yet included."""
        fresh, stored = self._pending.batch.robots, self._store.robots
        return {each: fresh[each] if each in fresh else stored(each) for each in origins}

    def learned(self, record: RobotsRecord) -> None:
        """Put a record into the batch."""
        self._pending.learn_robots(record)

    def forget(self, host: str, *, only_failing: bool = False) -> None:
        """Have the files of a host fetched again; `only_failing`: those that could not be read."""
        for origin in (f"https://{host}", f"http://{host}"):
            record = self.stored(origin)[origin] if only_failing else None
            if not only_failing or (record is not None and record.failing_since):
                self.gate.forget(origin)
                self._pending.forget_robots(origin)


class Origins:
    """The origins of one shard, and what is asked for and learned of them."""

    def __init__(
        self,
        contacts: Contacts,
        files: RobotsFiles,
        given_up: GivenUpHosts,
        routes: Routes,
        lists: Lists | None,
        emit: Callable[[Event], None],
    ) -> None:
        self._contacts = contacts
        self._hosts, self._frontier = contacts.hosts, contacts.frontier
        self._files, self.gate = files, files.gate
        self._given_up = given_up
        self._routes = routes
        self._lists = lists  # None: sitemaps that a robots.txt names are not taken
        self._emit = emit
        self.foreign = ForeignRobots()

    def is_admitted(self, need: Need, now: Now) -> bool:
        """Return whether a host may be contacted now; if not, it is asked again when it may be."""
        admitted_at = self._contacts.admit(need.host, now)
        if admitted_at > now.mono:
            self._frontier.wake(self._hosts.get(need.host), now=now.mono, at=admitted_at)
        return admitted_at <= now.mono

    def provide(self, need: Need, now: Now) -> None:
        """Bring a host's record and an origin's rules into memory, or ask for the rules."""
        name, origin = need
        robots, frontier = self.gate, self._frontier
        host = self._given_up.recall(name, now)
        if robots.needs(origin, now.mono):
            # Rules that expired in memory are not loaded again: a record from a wall clock that was
            # years ahead would never end.
            record = None if origin in robots else self._files.stored(origin)[origin]
            if record is not None and not _is_untried(record, host):
                self._obey(robots.load(record, now), now)
            if robots.needs(origin, now.mono) and host.given_up is None:
                frontier.request(robots.request(origin), now=now.mono)
                return
        frontier.wake(host, now=now.mono)

    def answered(self, request: RobotsRequest, answer: Fetched, now: Now) -> None:
        """Learn from an answer, or follow its redirect with a slot of the other host."""
        self._emit(RobotsAnswered(request, answer.status))
        learn(request, answer, self._hosts)
        for origin in request.origins[1:]:
            # This answer is that origin's own robots.txt, too: its queued request is not needed.
            own = request_for(origin)
            if self._frontier.unrequest(own):
                self.gate.withdrawn(own)
                self._frontier.wake(self._hosts.get(own.host), now=now.mono)
        stored = self._files.stored(*request.origins)
        follows = self.gate.answered(request, answer, stored, now)
        if isinstance(follows, RobotsRequest):
            self.follow(follows, now)
            return
        self._learn(follows, now)
        if not follows:  # it failed on our side for the moment: its pages are judged again
            host = self._hosts.get(host_key_of(request.origin + "/"))
            self._frontier.wake(host, now=now.mono)

    def follow(self, request: RobotsRequest, now: Now) -> None:
        """Send the next hop of a redirect, or have it sent by the shard that owns its host."""
        if not self._routes.owns(request.host):
            self.foreign.ask(request, now)
            return
        if self._given_up.recall(request.host, now).given_up is None:
            self._frontier.request(request, now=now.mono)
        else:
            self.give_up(request, now)

    def found_elsewhere(self, record: RobotsRecord, now: Now) -> None:
        """Take over a robots.txt that another shard has fetched for an origin of this one."""
        self.foreign.answered(record.origin)
        if record.origin in self.gate.fetching:
            self.gate.withdrawn(request_for(record.origin))
            self._learn([self.gate.load(record, now)], now)

    def give_up_overdue(self, now: Now) -> None:
        """Learn that no other shard has answered: the file is unreachable for the moment."""
        for request in self.foreign.take_overdue(now):
            if request.origin in self.gate.fetching:
                asked = Request(request.url, "", 0.0)
                self.answered(request, Fetched(asked, error=ErrorKind.TIMEOUT), now)

    def give_up(self, request: RobotsRequest, now: Now) -> None:
        """A request cannot be sent: its origin's pages must not wait for it."""
        stored = self._files.stored(*request.origins)
        self._learn(self.gate.give_up(request, stored, now), now)

    def _learn(self, result: list[Learned], now: Now) -> None:
        """Keep rules, obey them, and let the pages go that waited for them."""
        for learned in result:
            self._files.learned(learned.record)
            if self._routes.owns(learned.host):  # else another shard finds it in the store
                self._obey(learned, now)
            if learned.sitemaps and self._lists is not None:
                self._lists.named(learned.origin + "/robots.txt", learned.sitemaps)
            host = self._hosts.get(learned.host)
            self._frontier.wake(host, now=now.mono)
            self._hosts.touch([] if host is None else [host])

    def _obey(self, learned: Learned, now: Now) -> None:
        if learned.record.failing_since and learned.record.body is None:
            return  # a file that cannot be read says nothing: a delay that was known before holds
        delay_s = learned.crawl_delay_s
        self._contacts.politeness.robots(learned.host, crawl_delay_s=delay_s, now=now.mono)
        budget = self._hosts.budget(self._hosts.key(learned.host))
        budget.robots(delay_s, is_grouped=self._hosts.is_grouped)

    def press(self, names: list[str], now: Now) -> None:
        """Nothing else than these hosts is left: ask the silent ones again, or give them up.

        If one of them has answered, the others are waited for.
        """
        queued = [self._hosts.get(name) for name in names]
        silent = [host for host in queued if host is not None and host.silence is not None]
        if len(silent) < len(queued):
            return
        for host in silent:
            silence = host.silence
            if silence is None or host.is_paused:
                continue
            if self.gate.has_rules(silence.origin):
                self._hosts.answered(host)  # an older copy, or none is needed: its pages answer
            elif silence.tries >= TRIES:
                self._hosts.answered(host)
                self._given_up.give_up(host.name, silence.cause, now)
            else:
                self.gate.expire(silence.origin, now.mono)
                self._frontier.wake(host, now=now.mono)


def _is_untried(record: RobotsRecord, host: Host) -> bool:
    """Return whether only an earlier process got no answer, perhaps because it was stopped."""
    return record.status is None and record.body is None and host.silence is None


def learn(request: RobotsRequest, answer: Fetched, hosts: Hosts) -> None:
    """Note whether a host has answered a request for its robots.txt."""
    host = hosts.get(request.host)
    if host is None or host.budget is None:
        return  # it is of another shard
    if answer.error is None:
        hosts.answered(host)
    elif request.hops == 0 and not isinstance(answer.error, LocalError):
        cause = answer.detail or answer.error.value
        hosts.fell_silent(host, request.origin, "robots_timeout" if cause in TIMEOUTS else cause)


def because(host: Host | None, reason: str) -> str:
    """Return a reason for which a URL is dropped, with the cause if its robots.txt is that."""
    if host is None or host.silence is None or reason != UNREACHABLE:
        return reason
    return f"{reason}: {host.silence.cause}"
