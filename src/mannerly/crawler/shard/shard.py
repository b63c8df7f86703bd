"""One shard: the conversation between frontier, politeness, robots, fetch, page and store.

Read top to bottom, this is the way of a URL. Every step is a plain call that is told the time and
returns a value. What others want to know besides goes to `emit` as an event.

    start_due   whose turn is it, may it go, what is still missing to say so
    may_leave   its connection is open: may it still go?
    sent        a request has left
    answered    learn from an answer, then do what follows from it (`follows`)
    read        a page that was parsed elsewhere comes back
    settle      a page and what it brought join the batch
    commit      the batch goes to the store; what was new joins the frontier
    tick        now and then: links of other shards, given-up hosts, measurements
    release     another process works on it from now on

A shard belongs to one loop and one thread, and all of it is synchronous: the same code runs on real
sockets and in virtual time. An entry that was taken is in flight, put back, or in the batch.

This module is long because the way of a URL, and all that a runtime may ask, is in one place.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from mannerly.crawler import events as crawl_events
from mannerly.crawler.events import Events, Watched
from mannerly.crawler.host.inflight import Flights
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry, Fetched, LocalError, Request, RobotsRequest
from mannerly.crawler.page.long_work import long_work
from mannerly.crawler.store.base import StoreError
from mannerly.politeness.events import Retired
from mannerly.politeness.model import THROTTLE

from . import origins
from .contacts import Contacts
from .follows import (
    Abandoned,
    Again,
    FollowContext,
    LearnRules,
    Read,
    Render,
    starved,
    what_follows,
)
from .given_up import GivenUpHosts
from .host_samples import HostSamples, NextWaits
from .interfaces import PageReading, PageResult
from .judge import REPLACED, Judge
from .orders import HostControl, Orders
from .origins import Origins, RobotsFiles, gate_for
from .pending import Pending
from .plugin import HelperWork, Plugins
from .reading import credible, harvest_safely
from .remaining import Remaining
from .reporting import Reporting
from .requests import RequestMaker, Unsendable
from .routes import Routes
from .sent_once import SentOnce, is_sent_once
from .sitemaps import Lists, SitemapQuota
from .subrequests import SubRequests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.control import Control
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.host.host import Host
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Candidate, FetchError, Now, RawExchange, RobotsRecord
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import Batch, Committed, ShardStore
    from mannerly.hosts.leases import Leases
    from mannerly.politeness.events import Event as PolitenessEvent
    from mannerly.politeness.model import Instant, Outcome

    from .interfaces import Consumer, PageReader, Renderer

WIDENS_BY = 8  # one more connection to a host at a time, for so many requests under way
PASSES = 4  # of one `start_due`: rules and queues are read in between
ADMIT = 10_000  # URLs of the waiting room let in per tick

REPEATED = "repeated"  # a request with a payload that was asked for before

_SCARCE = (LocalError.NO_MEMORY, LocalError.NO_ROOM)


class Shard:
    """The hosts of one shard, their queue, their pace and their store.

    `boot` names the boot of the machine, if it has a name: within one boot, monotonic instants of
    an earlier run can be compared with those of this one. `watched` says what is reported of single
    hosts. `leases`: hosts are shared with other crawls.
    """

    def __init__(
        self,
        number: int,
        store: ShardStore,
        sharding: Sharding,
        settings: CrawlSettings,
        rules: LinkRules,
        *,
        is_resumed: bool,
        now: Now,
        events: Events | None = None,
        reader: PageReader | None = None,
        consumer: Consumer | None = None,
        plugins: Plugins | None = None,
        boot: str = "",
        watched: Watched = Watched.NO,
        leases: Leases | None = None,
        renderer: Renderer | None = None,
    ) -> None:
        self.number = number
        self.store = store
        self.received = 0  # links that other shards sent
        self._emit = emit = (events or Events()).emit
        self._settings = settings
        self._plugins = plugins = plugins or Plugins()
        self.pending = pending = Pending(number, sharding.shard_of, plugins)
        gate = gate_for(settings, sharding, number)
        self.contacts = contacts = Contacts(
            store,
            number,
            sharding,
            settings,
            gate,
            rules.has_seed_on,
            self._heard,
            resumed_at=now.mono if is_resumed else None,
            boot=boot,
            leases=leases,
        )
        self.frontier, self.politeness = contacts.frontier, contacts.politeness
        self.hosts = contacts.hosts
        robots_limit = sharding.share(settings.robots_limit, number)
        self.flights = Flights(number, self.hosts, robots_limit)
        self.routes = routes = Routes(number, sharding, rules, self.hosts, pending, emit)
        quota = SitemapQuota(self.hosts, settings.max_sitemaps)
        self._lists = lists = Lists(self.hosts, quota, routes, self.flights, pending, emit)
        files = RobotsFiles(gate, store, pending)
        self.given_up = given_up = GivenUpHosts(contacts, files, store, pending, emit)
        takes_lists = settings.seeding in ("sitemap", "all")
        self.origins = Origins(
            contacts, files, given_up, routes, lists if takes_lists else None, emit
        )
        self._orders = Orders(
            HostControl(contacts, given_up, files, pending),
            given_up,
            self.origins,
            routes,
            plugins,
            store,
            pending,
            settings,
        )
        self._reporting = Reporting(contacts, given_up, plugins, pending, settings)
        self.left = Remaining(number, contacts, routes, self.flights, given_up, store, pending)
        self.judge = Judge(contacts, gate, routes, quota, plugins, settings.max_per_host, store)
        self.judge.ignores_robots = settings.render_ignore_robots_for_assets
        self.subrequests = SubRequests(contacts, renderer)
        self._request = RequestMaker(settings, self.flights, plugins, store, self.subrequests)
        self.sent_once = SentOnce(store)
        self._samples = HostSamples(number, contacts) if watched is not Watched.NO else None
        self._waits = NextWaits(contacts) if watched is Watched.CLOSELY else None
        self._reader = reader
        self._renderer = renderer
        self._consumer = consumer
        self._lacked: Counter[int] = Counter()  # how often memory lacked for a page, by its seq
        self._follow_context = FollowContext(
            settings.politeness.max_attempts, rules, reader is not None
        )
        self.frontier.load(store.queued_hosts(), now=now.mono)

    # ------------------------------------------------------------------ starting

    def offer(self, candidates: list[Candidate]) -> None:
        """Take in seeds; those of other shards are passed on."""
        self.routes.seeds(candidates)

    def start_due(
        self, now: Now, room: int, *, has_time: bool = True, pages: bool = True
    ) -> list[Request]:
        """Return up to `room` requests that may be sent now; each has its permit.

        `has_time`: the loop has had time for more connections to the same hosts. Without `pages`
        only what pages under way wait for may start.
        """
        frontier, requests = self.frontier, list[Request]()
        self.judge.holds_pages = not pages
        if pages and self.judge.held:
            self._wake_held(self.judge.held, now)
        widening = 1 + self.flights.unsettled // WIDENS_BY if has_time else 0
        for _ in range(PASSES):
            taken = frontier.take(
                now.mono,
                self.judge,
                room=room - len(requests),
                robots_room=self.flights.robots_room,
                widening=widening,
            )
            for entry, reason in taken.dropped:
                self.judge.replaced.discard(entry.seq)
                self._drop(entry, origins.because(self.hosts.get(entry.host), reason))
            for flight in taken.starts:
                if flight.host.budget is None:  # forgotten while it waited for its robots.txt
                    self.given_up.recall(flight.item.host, now)
                try:
                    requests.append(self._request(flight))
                except Unsendable as problem:
                    self._give_back(flight, str(problem), now)
            if not taken.unknown and not taken.refills:
                break
            needs = [each for each in taken.unknown if self.origins.is_admitted(each, now)]
            if needs and (shared := self.contacts.shared) is not None:
                shared.claim([need.host for need in needs], now)
            for need in needs:
                self.origins.provide(need, now)
            for wanted in taken.refills:
                entries = self.store.queued(wanted.host, after=wanted.after, limit=wanted.limit)
                if self.store.has_payloads:
                    self._drop_replaced(entries)
                frontier.refill(wanted, entries, now=now.mono)
        return requests

    def has_requisites(self, now: Now) -> bool:
        """Return whether something else than pages is left to fetch, while pages are held."""
        return self.left.has_requisites(self.next_due(now), now)

    def _wake_held(self, hosts: Iterable[str], now: Now) -> None:
        """Ask hosts again whose pages were held."""
        for name in tuple(hosts):
            self.judge.held.discard(name)
            self.frontier.wake(self.hosts.get(name), now=now.mono)

    def next_due(self, now: Now) -> Instant | None:
        """Return when to call `start_due` again; None: after the next answer, link or order."""
        return self.frontier.next_due(now.mono, robots_room=self.flights.robots_room)

    # ------------------------------------------------------------------ answers

    def may_leave(self, flight: InFlight, instant: Instant, address: str) -> bool:
        """Return whether a request may be sent now that a connection to its address is open."""
        if instant >= self.store.sure_until:
            return False  # another process may be the owner: this one may have been stopped
        host, permit, shared = flight.item.host, flight.permit, self.contacts.shared
        if shared is not None and instant >= shared.sure_until:
            return False
        may_leave = self.contacts.addresses.may_leave(host, address, permit, now=instant)
        if not may_leave or not self.politeness.may_leave(permit, now=instant):
            return False
        item = flight.item
        return not is_sent_once(item) or (isinstance(item, Entry) and self.sent_once.leaves(item))

    def sent(self, flight: InFlight, instant: Instant) -> None:
        """A request has left: the gap counts from here, however long its connection took."""
        self.flights.sent(flight)
        self.politeness.sent(flight.permit, now=instant)
        host = flight.host
        self.contacts.records.sent(host)
        assert host.budget is not None, "a host that is asked is known"
        self._emit(host.budget.sent(host.name, flight.permit, instant))
        if self._waits is not None:
            wait = self._waits.after(host.name, instant)
            if wait is not None:
                self._emit(wait)

    def answered(self, flight: InFlight, answer: Fetched, now: Now) -> bool:
        """Learn from an answer, then do what follows; return whether a page ended without a record.

        Then its place among `--max-urls` is free again.
        """
        answer = credible(answer)
        self.flights.answered(flight)
        outcome, retry = self._reporting.report(flight, answer, now)
        item = flight.item
        given_up = flight.host.given_up if outcome is THROTTLE else None
        lacked = 0 if answer.error is None else self._lacks(item, answer.error)
        follows = what_follows(item, answer, retry, now, self._follow_context, given_up, lacked)
        for after_answer in self._plugins.after_answer:
            follows = after_answer(item, answer, follows, now)
        if is_sent_once(item):
            follows = self.sent_once.after(item, answer, follows, now)
        frees_page = False
        if isinstance(follows, Again):
            frees_page = self._ask_again(flight, answer, follows, outcome, now)
        elif isinstance(follows, LearnRules):
            self.flights.end(flight)
            self.origins.answered(follows.request, answer, now)
        elif isinstance(follows, Abandoned):
            assert isinstance(item, Entry)
            self.flights.end(flight)
            self._drop(item, follows.reason)
            # It has no record, so it is not a page of this run.
            frees_page = KINDS[item.kind].is_page
        elif isinstance(item, Entry) and item.seq < 0:
            self.flights.end(flight)
            self.subrequests.answered(item, answer)
            self._emit(crawl_events.RequisiteSettled(item, answer.status, {}))
        elif isinstance(follows, Render):
            assert self._renderer is not None
            self.flights.read(flight)
            self._renderer.render(PageReading(flight, answer, outcome), follows.wait_for)
        elif isinstance(follows, Read):
            assert self._reader is not None
            self.flights.read(flight)
            self._reader.give(PageReading(flight, answer, outcome), follows.work, len(answer.body))
        else:
            frees_page = self._harvest(flight, answer, outcome, now, None, follows.failure)
        self.frontier.done(flight, now=now.mono)
        return frees_page

    def read(self, reading: PageReading, work: object, now: Now) -> bool:
        """Work on a page has come back; return whether the page ended without a record."""
        if reading.found is None or reading.finish is None:
            return self._harvest(reading.flight, reading.answer, reading.outcome, now, work)
        self._complete(reading, reading.finish(reading.found, work), now)
        return False

    def rendered(self, reading: PageReading, answer: Fetched, now: Now) -> bool:
        """A page has come back from a browser; return whether it ended without a record."""
        flight, outcome = reading.flight, reading.outcome
        entry = flight.item
        assert isinstance(entry, Entry)
        work = long_work(entry, answer, self.routes.rules, now.wall) if self._reader else None
        if self._reader is None or work is None:
            return self._harvest(flight, answer, outcome, now)
        self._reader.give(PageReading(flight, answer, outcome), work, len(answer.body))
        return False

    def settle(self, flight: InFlight, result: PageResult, now: Now) -> None:
        """A page and what it brought belong together: one entry of the next commit."""
        entry = flight.item
        assert isinstance(entry, Entry)
        outcome, latency_s, found, is_local, exchange = result
        row = KINDS[entry.kind]
        if not row.is_page:
            settle = self._settle_requisite if row.is_requisite else self._lists.add
            settle(flight, found, exchange)
            return
        self.flights.settle(flight)
        record, candidates, passed_over, _, _, is_unchanged, _, _, requests, is_shell = found
        self.pending.settle(entry, found, exchange)
        if requests:
            self.routes.seeds(requests)
        if candidates or entry.host in self.routes.shares:
            self.routes.of_page(entry, record, candidates)
        self._emit(
            crawl_events.PageSettled(
                entry, record, outcome, latency_s, passed_over, is_local, is_unchanged
            )
        )
        if is_shell:
            self._emit(crawl_events.ShellFound(entry.host))
        elif record.render_s is not None:
            error, refused = record.render_error, record.render_refused or 0
            self._emit(crawl_events.PageRendered(entry.url, error, refused))
        self._reporting.count(flight, entry, record, outcome, now)
        self._wake_held_back(flight.host, entry, now)

    def _settle_requisite(
        self, flight: InFlight, found: Harvest, exchange: RawExchange | None
    ) -> None:
        entry = flight.item
        assert isinstance(entry, Entry)
        self.flights.settle(flight)
        self.pending.settle(entry, found, exchange)
        self.routes.seeds(found.requests)
        self._emit(crawl_events.RequisiteSettled(entry, found.record.status, found.passed_over))

    def cancelled(self, flight: InFlight, now: Now) -> None:
        """A request was broken off: it is still queued, and is asked for in the next run."""
        self.politeness.cancel(flight.permit, now=now.mono, was_sent=True)
        self.contacts.addresses.cancel(flight.permit, now=now.mono, was_sent=True)
        self.flights.end(flight)
        if isinstance(flight.item, Entry) and flight.item.seq < 0:
            self.subrequests.refused(flight.item, "cancelled")

    def _give_back(self, flight: InFlight, reason: str, now: Now) -> None:
        """Drop a request that cannot be made; nothing was sent."""
        entry, permit = flight.item, flight.permit
        assert isinstance(entry, Entry)
        self.politeness.cancel(permit, now=now.mono)
        self.contacts.addresses.cancel(permit, now=now.mono, was_sent=False)
        self.flights.end(flight)
        self._drop(entry, reason)
        self.frontier.done(flight, now=now.mono)

    def _drop_replaced(self, entries: list[Entry]) -> None:
        """Drop links whose URL is asked for with a label, before they are in memory."""
        links = [entry for entry in entries if KINDS[entry.kind].is_link]
        labelled = self.store.labelled([entry.url for entry in links])
        for entry in self.frontier.withhold(each for each in links if each.url in labelled):
            self._drop(entry, REPLACED)

    def _harvest(
        self,
        flight: InFlight,
        answer: Fetched,
        outcome: Outcome,
        now: Now,
        work: object = None,
        failure: str | None = None,
    ) -> bool:
        """Read an answer and finish its request; without memory for that, ask for it again."""
        entry = flight.item
        assert isinstance(entry, Entry)
        try:
            found = harvest_safely(entry, answer, self.store, self.routes, now, work, failure)
        except MemoryError:
            follows = starved(entry, now, self._lacks(entry, LocalError.NO_MEMORY))
            if isinstance(follows, Again) and not is_sent_once(entry):
                self._emit(crawl_events.PageRetried(entry, is_refusal=False, status=answer.status))
                return self._put_back(flight, follows, now)
            failure = LocalError.NO_MEMORY.value
            answer = Fetched(answer.request, error=LocalError.NO_MEMORY, detail=failure)
            found = harvest_safely(entry, answer, self.store, self.routes, now, None, failure)
        is_local = failure is not None
        if self._plugins.after_reading:
            reading = PageReading(flight, answer, outcome, is_local=is_local)
            self._complete(reading, found, now)
        else:
            self._conclude(flight, answer, outcome, found, now, is_local=is_local)
        return False

    def _complete(self, reading: PageReading, found: Harvest, now: Now) -> None:
        """Let the plug-ins add to a page that was read, and finish its request."""
        flight, answer, outcome, _, _, step, is_local = reading
        places = self._plugins.after_reading
        while step < len(places):
            entry = flight.item
            assert isinstance(entry, Entry)
            added = places[step](entry, answer, found)
            step += 1
            if not isinstance(added, HelperWork):
                found = added
            elif self._reader is None:
                found = added.finish(found, added.work())
            else:
                self.flights.read(flight)
                tag = PageReading(flight, answer, outcome, found, added.finish, step, is_local)
                if added.is_users:
                    self._reader.run(tag, added.work, len(answer.body), entry.url)
                else:
                    self._reader.give(tag, added.work, len(answer.body))
                return
        self._conclude(flight, answer, outcome, found, now, is_local=is_local)

    def _conclude(
        self,
        flight: InFlight,
        answer: Fetched,
        outcome: Outcome,
        found: Harvest,
        now: Now,
        *,
        is_local: bool,
    ) -> None:
        """Settle a page, or hand it to the program first."""
        result = PageResult(outcome, answer.latency_s, found, is_local, answer.exchange)
        if self._consumer is not None and KINDS[flight.item.kind].is_page:
            self.flights.deliver(flight)  # it is settled when the program acknowledges it
            self._consumer.give(flight, answer, result)
        else:
            self.settle(flight, result, now)

    def _lacks(self, item: Entry | RobotsRequest, error: FetchError) -> int:
        """Count that memory lacked for a page, if so; return how often it did before."""
        if isinstance(item, RobotsRequest) or error not in _SCARCE:
            return 0
        self._lacked[item.seq] += 1
        return self._lacked[item.seq] - 1

    def _ask_again(
        self, flight: InFlight, answer: Fetched, again: Again, outcome: Outcome, now: Now
    ) -> bool:
        """Ask for an entry again later, unless it may be sent once; return whether it is a page."""
        entry = again.entry
        if entry.seq < 0 and not self.subrequests.may_repeat(entry, flight.stage, answer):
            self.flights.end(flight)
            self.subrequests.answered(entry, answer)
            return False
        is_failed = answer.error is not LocalError.HELD and not again.is_visit
        if is_failed:  # else it has not been tried, or a plug-in asks once more
            self._emit(crawl_events.PageRetried(entry, outcome is THROTTLE, answer.status))
        return self._put_back(flight, again, now)

    def _put_back(self, flight: InFlight, again: Again, now: Now) -> bool:
        """Ask for an entry again later; return whether it is a page."""
        self.flights.end(flight)
        self.frontier.put_back(again.entry, again.due)
        if again.entry.seq < 0:
            self.subrequests.put_back(again.entry)
        self.contacts.records.put_back(flight.host, again.due)
        self._wake_held_back(flight.host, again.entry, now)
        return KINDS[again.entry.kind].is_page

    def _drop(self, entry: Entry, reason: str) -> None:
        if entry.seq < 0:
            self.subrequests.refused(entry, reason)
            return
        self.pending.drop((entry,), reason)
        self._emit(crawl_events.UrlsDropped(reason, 1))

    def _wake_held_back(self, host: Host, entry: Entry, now: Now) -> None:
        """A page is not under way any more: pages held back by --max-per-host may go."""
        if self._settings.max_per_host is not None and KINDS[entry.kind].is_page:
            self.frontier.wake(host, now=now.mono)

    # ------------------------------------------------------------------ committing

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is left to do here, unless another shard sends links."""
        return self.left.is_idle

    def has_only_unreachable(self, now: Now) -> bool:
        """Return whether only unreachable hosts are left (`remaining`)."""
        return self.left.has_only_unreachable(self.next_due(now), now)

    def give_up_unreachable(self, now: Now) -> None:
        """Give up the hosts that are left, if there are no others."""
        if self.has_only_unreachable(now):
            self.given_up.give_up_waiting(now)

    def commit(self, now: Now) -> None:
        """Make everything so far durable, in one transaction."""
        batch = self.to_commit(now)
        if batch:
            self.committed(self.store.commit(batch), now)

    def to_commit(self, now: Now) -> Batch:
        """Return everything so far; `committed` gets the result of its commit."""
        return self.pending.complete(self.contacts.records.changes(now))

    def committed(self, committed: Committed, now: Now) -> None:
        """Go on: the batch is durable."""
        pending, frontier, shared = self.pending, self.frontier, self.contacts.shared
        if shared is not None:
            if pending.is_urgent:
                shared.hurry()
            shared.flush(now)
        if committed.repeated:
            self._emit(crawl_events.UrlsDropped(REPEATED, committed.repeated))
        batch = pending.committed()
        self.flights.committed()
        frontier.committed(entry for entry, _ in (*batch.pages, *batch.dropped))
        if self._lacked:
            for entry, _ in (*batch.pages, *batch.dropped):
                self._lacked.pop(entry.seq, None)
        self._found(committed.new, now)
        self.contacts.records.committed()
        self._lists.settle()

    def tick(self, now: Now, received: Committed | None = None) -> None:
        """Do what need not happen at once: links of other shards, given-up hosts, measurements.

        `received`: what other shards have queued here (`ShardStore.pass_links`).
        """
        for record in self.store.reminders():
            self.contacts.records.remind(self.given_up.recall(record.host, now), record, now)
        if received is not None:
            if received.repeated:
                self._emit(crawl_events.UrlsDropped(REPEATED, received.repeated))
            self.received += len(received.new) + received.waiting
            self._found(received.new, now)
        self._upkeep(now)
        if self.subrequests:
            self.subrequests.tick(now)
        for seq in [each for each in self._lacked if each < 0 and each not in self.subrequests]:
            del self._lacked[seq]
        self._emit(self.left.measured(now))
        seen = None if self._samples is None else self._samples.take(now)
        if seen is not None:
            self._emit(seen)

    def _upkeep(self, now: Now) -> None:
        """Let URLs in that wait for room, bring others back, and give up hosts."""
        frontier, store, given_up = self.frontier, self.store, self.given_up
        room = self._settings.frontier_limit - frontier.queued
        if room > 0 and store.counts().waiting:
            frontier.add(store.admit_waiting(min(room, ADMIT)), now=now.mono)
        frontier.add(given_up.bring_back(now), now=now.mono)
        self.origins.give_up_overdue(now)
        is_waiting = not self.flights.pending and not self.pending.batch
        if self.hosts.silent and is_waiting and not given_up:
            self.origins.press([name for name, _ in store.queued_hosts()], now)
        for request in given_up.drop_urls(now):
            self.origins.give_up(request, now)
        is_waiting = not self.flights.pending and not self.pending.batch
        if is_waiting and not frontier.queued and store.counts().queued:
            # Nothing left as far as memory knows. If the store knows better, it is right.
            frontier.load(store.queued_hosts(), now=now.mono)

    def _heard(self, event: PolitenessEvent) -> None:
        """Take an event of the politeness core. What follows from it is done later."""
        self._emit(event)
        self.contacts.heard(event)
        if isinstance(event, Retired):
            self.given_up.heard(event)

    def control(self, number: int, order: Control, now: Now) -> None:
        """Act on a control record, as far as it concerns this shard."""
        self._orders.apply(number, order, now)

    # ------------------------------------------------------------------ other shards and processes

    def take_robots_requests(self) -> list[RobotsRequest]:
        """Return the requests for a robots.txt that other shards have to send, each one once."""
        return self.origins.foreign.take_new()

    @property
    def awaited_origins(self) -> frozenset[str]:
        """Return the origins whose robots.txt another shard was asked for."""
        return self.origins.foreign.origins

    def robots_found(self, record: RobotsRecord, now: Now) -> None:
        """Take over a robots.txt that another shard has fetched for this one."""
        self.origins.found_elsewhere(record, now)

    @property
    def holds_answers(self) -> bool:
        """Return whether a plug-in keeps answers in memory."""
        return bool(self._plugins.held_bytes)

    @property
    def held_bytes(self) -> int:
        """Return how many bytes of answers plug-ins keep in memory until they are written."""
        return sum([held() for held in self._plugins.held_bytes])

    def abandon(self, now: Now) -> None:
        """Keep only what hosts have asked for: the shard has another owner, or is unsure."""
        with suppress(StoreError):
            self.store.remember_hosts(self.contacts.records.changes(now))
        self.routes.rules.hrefs.clear()  # links of its last pages are not written

    def release(self, now: Now) -> None:
        """Give its hosts back: this process does not work on it any more."""
        self.subrequests.refuse_all("shard_moved", now)
        if (shared := self.contacts.shared) is not None:
            shared.leave(now)

    def close(self) -> None:
        """Close plug-ins and store; a claim that cannot be given back ends by itself."""
        self._plugins.close()
        with suppress(StoreError):
            self.store.close()

    def _found(self, new: list[Entry], now: Now) -> None:
        self._emit(crawl_events.UrlsFound(len(new)))
        if self.store.has_payloads:
            self._replace_links(new)
        self.frontier.add(new, now=now.mono)
        if self.judge.held:
            self._wake_held(self.judge.held.intersection(each.host for each in new), now)

    def _replace_links(self, new: list[Entry]) -> None:
        """Have the links in memory dropped in whose place new requests with a label come."""
        for entry in new:
            host = self.hosts.get(entry.host) if KINDS[entry.kind].carries else None
            link = None if host is None else host.link_to(entry.url)
            payload = None if link is None else self.store.payload(entry.seq)
            if link is not None and payload is not None and payload.takes_place:
                self.judge.replaced.add(link.seq)
