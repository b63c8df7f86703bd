"""One shard: all that belongs to its hosts, and nobody else touches it.

    due        the frontier's starts, as requests for the fetcher
    finished   an answer: politeness learns; then again later, an errand (`errands`), or a harvest
    commit     the batch so far goes to the store; what was new joins the frontier
    tick       now and then: links of other shards, retired hosts, what was learned

A page counts as in flight until it is committed: `pending` is what a crash would cost, and what
`workers` limits. Everything here is synchronous and is told the time, so the same code runs on
curl's sockets and in virtual time. How many pages of a host may go is `ration`'s to say, and what
robots.txt allows `robots_cache`'s.

Invariant: every entry that was handed out is in exactly one of: in flight, put back, in the batch.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeAlias

from mannerly.crawler.frontier.core import Frontier
from mannerly.crawler.frontier.quota import Ration
from mannerly.crawler.model import (
    GO,
    PASSING,
    Drop,
    Fetched,
    Kind,
    Later,
    LocalError,
    Request,
    RobotsRequest,
)
from mannerly.crawler.page.harvest import harvest, unreadable
from mannerly.crawler.page.long_work import long_work
from mannerly.crawler.robots.errands import Errands
from mannerly.crawler.stats import Stats, waits_of
from mannerly.crawler.store.base import Batch
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.seeds import sitemap_candidates
from mannerly.crawler.web.urls import site_of, without_port
from mannerly.politeness import Politeness, Response
from mannerly.politeness import events as told
from mannerly.politeness.model import NEUTRAL, OK, OVERLOAD, THROTTLE, ErrorKind
from mannerly.politeness.retry import Retry

from .audit import Witness
from .hosts import HostBook

if TYPE_CHECKING:
    from mannerly.crawler.frontier.sharding import Sharding
    from mannerly.crawler.model import Candidate, Entry, InFlight, Judgement, RobotsRecord
    from mannerly.crawler.page.rules import Rules
    from mannerly.crawler.robots.cache import Learned
    from mannerly.crawler.runtime.offload import Offload
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness.events import Event
    from mannerly.politeness.model import Instant, Outcome, Permit

PAGE = Kind.PAGE
DROP_SLICE = 1000  # URLs of a retired host that leave the queue per tick
RECEIVE = 2000
UNSENT_LOOK_S = 0.05  # how often to look whether a request that is still connecting has left
ROBOTS_MAX_BYTES = 600 * 1024  # more than the 500 KiB that are read
SITEMAP_MAX_BYTES = 60 * 1024 * 1024


Work: TypeAlias = "tuple[Shard, Entry, Fetched, Outcome]"


class Shard:
    """The hosts of one shard, their queue, their manners and their store."""

    def __init__(
        self,
        number: int,
        store: ShardStore,
        sharding: Sharding,
        settings: CrawlSettings,
        rules: Rules,
        *,
        max_in_flight: int,
        is_resumed: bool,
        now: Instant,
        offload: Offload[Work] | None = None,
    ) -> None:
        self.number = number
        self.stats = Stats()
        self.received = 0  # links that other shards sent
        self.store = store
        self._sharding = sharding
        self._settings = settings
        self._rules = rules
        self._now, self._wall = now, 0.0
        group_of = site_of if settings.politeness.group_by == "site" else None
        self.politeness = Politeness(
            settings.politeness, on_event=self._on_event, group_of=group_of, remember=True
        )
        self.frontier = Frontier(
            self.politeness,
            max_in_flight=max_in_flight,
            max_errands=settings.robots_limit,
            heap_limit=settings.heap_limit,
        )
        self._errands = Errands(
            settings,
            self.politeness,
            self.frontier,
            load=self._load_robots,
            is_given_up=self._is_given_up,
        )
        self._robots = self._errands.rules
        self._headers = (("From", settings.contact),) if settings.contact else ()
        self._offload = offload
        self._elsewhere = 0  # pages that others are at work on
        self._batch = Batch()
        self._recent = Recent()
        self._hosts = HostBook(store, self.politeness, is_resumed=is_resumed)
        limit = settings.max_per_host
        self._ration = Ration(limit, self._hosts.fetched) if limit else None
        self._witness = Witness(self.stats, settings.politeness.floor_s)
        self._retired: dict[str, str] = {}  # hosts whose queue is being emptied, and why
        self._under_way: set[int] = set()  # entries that are being fetched
        self._keeps_gaps = settings.politeness.enabled and settings.politeness.floor_s > 0.0
        self._unsent: dict[str, Permit] = {}  # by host: a request whose connection is being made
        self._pages_due = 0  # in the `due` under way
        self.frontier.load(store.queued_hosts(), now=now)

    @property
    def pending(self) -> int:
        """Pages that a crash now would cost."""
        return self.frontier.in_flight + self._elsewhere + len(self._batch.pages)

    @property
    def pending_pages(self) -> int:
        """Pages that came in and are not committed."""
        return len(self._batch.pages)

    @property
    def has_batch(self) -> bool:
        """Whether a commit would write anything that came from the web."""
        return bool(self._batch)

    @property
    def has_outgoing(self) -> bool:
        """Whether links that were found here wait to be delivered to other shards."""
        return self._sharding.shards > 1 and self.store.counts().outgoing > 0

    @property
    def is_idle(self) -> bool:
        """Nothing queued, under way, to be committed or to be delivered. The inbox may differ.

        The store has the last word: "finished" is never derived from counters of ours.
        """
        if self.frontier.in_flight or self._elsewhere or self._batch or self._retired:
            return False
        counts = self.store.counts()
        return counts.queued == 0 and counts.waiting == 0 and counts.outgoing == 0

    # ------------------------------------------------------------------ starting

    def offer(self, candidates: list[Candidate]) -> None:
        """Seeds: they belong to whichever shard owns their host."""
        for candidate in self._not_excluded(candidates):
            # Not noted as met: a seed keeps the tracking parameters that links lose.
            self._pass_on(candidate)

    def _not_excluded(self, candidates: list[Candidate]) -> list[Candidate]:
        """Seeds and sitemaps need not be in scope, but what is excluded is never fetched."""
        excludes = self._rules.scope.excludes
        wanted = [each for each in candidates if not excludes(each.url)]
        if excluded := len(candidates) - len(wanted):
            self.stats.skipped[SkipReason.EXCLUDED.value] += excluded
        return wanted

    def due(self, now: Instant, wall: float) -> tuple[list[Request], int]:
        """What is to be fetched now, and how many of these are pages: see --max-urls."""
        self._now, self._wall = now, wall
        frontier, store = self.frontier, self.store
        for wish in frontier.needs_refill():
            entries = store.queued(wish.host, after=wish.after, limit=wish.limit)
            frontier.refill(wish, entries, now=now)
        if self._ration is not None:
            self._ration.begin()
        taken = frontier.take(now, self._judge)
        self._batch.dropped += taken.dropped
        for _, reason in taken.dropped:
            # Without what a colon introduces: why a single host was given up is in its record.
            self.stats.skipped[reason.partition(":")[0]] += 1
        self._pages_due = 0
        return [self._request(start) for start in taken.starts], self._pages_due

    def _judge(self, entry: Entry) -> Judgement:
        host = entry.host
        if host not in self._hosts.known:
            self._recall(host)
        retired = self._retired.get(host) or self._hosts.retired(host)
        if retired:
            return Drop(f"host_retired: {retired}")
        if self._unsent and self.politeness.key(host) in self._unsent:
            return Later(self._now + UNSENT_LOOK_S)
        ruling = self._robots.rule(entry, self._now, self._wall)
        if ruling is GO and self._ration is not None and entry.kind == PAGE:
            return self._ration.judge(host)
        return ruling

    def _recall(self, host: str) -> None:
        self._hosts.recall(host, self._now, self._wall)
        retired = self._hosts.retired(host)
        if retired is not None:
            self._retired[host] = retired

    def _request(self, start: InFlight) -> Request:
        item, permit = start.item, start.permit
        settings = self._settings
        if self._keeps_gaps:
            self._unsent[permit.host.key] = permit
        patience_s, size = settings.timeout_s, settings.max_bytes
        if isinstance(item, RobotsRequest):
            self._robots.begin(item)
            patience_s, size = settings.robots_timeout_s, ROBOTS_MAX_BYTES
        else:
            self._under_way.add(item.seq)
            if item.kind != PAGE:
                size = SITEMAP_MAX_BYTES
            else:
                self._pages_due += 1
                if self._ration is not None:
                    self._ration.sent(item.host)
        host = without_port(item.host)
        start.shard = self.number
        return Request(item.url, host, patience_s, size, self._headers, start)

    def sent(self, start: InFlight, instant: Instant) -> None:
        """A request has left: the gap counts from here, however long its connection took."""
        permit = start.permit
        self._has_left(permit)
        self.politeness.sent(permit, now=instant)
        self._witness.sent(start.item.host, permit, instant)

    def _has_left(self, permit: Permit) -> None:
        if self._unsent.get(permit.host.key) is permit:
            del self._unsent[permit.host.key]

    # ------------------------------------------------------------------ answers

    def finished(self, start: InFlight, answer: Fetched, now: Instant, wall: float) -> bool:
        """Learn from an answer, then decide what follows; whether a page has to be asked again."""
        self._now, self._wall = now, wall
        answer = credible(answer)
        item, permit = start.item, start.permit
        if self._unsent:
            self._has_left(permit)
        error = answer.error
        response: Response | None = None
        outcome = NEUTRAL
        if isinstance(error, LocalError):
            # A stale connection took our bytes, and who knows whether they were read.
            was_sent = error is LocalError.STALE_CONNECTION
            self.politeness.cancel(permit, now=now, was_sent=was_sent)
        else:
            latency_s = answer.latency_s or answer.total_s
            response = Response(
                answer.status, latency_s, answer.headers, error, len(answer.body), wall
            )
            outcome = self.politeness.report(permit, response, now=now)
        if isinstance(item, RobotsRequest):
            self.stats.robots += 1
            self._learn_rules(self._errands.finished(item, answer, now, wall))
            self.frontier.done(start, now=now)
            return False
        self._under_way.discard(item.seq)
        is_elsewhere = False
        if response is None:
            is_again = self._finish_locally(item, answer)
        else:
            is_again = outcome is not OK and self._retried(start, item, response, outcome)
            is_elsewhere = not is_again and self._offloaded(item, answer, outcome)
            if not is_again and not is_elsewhere:
                self._finish_page(item, answer, outcome)
        self.frontier.done(start, now=now)
        if not is_elsewhere:
            self._came_back(item)
        return is_again and item.kind == PAGE

    def _came_back(self, entry: Entry) -> None:
        """It counts as fetched now, or not at all: whoever was held back may be judged again."""
        if self._ration is not None and entry.kind == PAGE:
            self._ration.back(entry.host)
            self.frontier.wake(entry.host, now=self._now)

    def _retried(self, start: InFlight, entry: Entry, response: Response, outcome: Outcome) -> bool:
        """Whether an answer that was no success is asked for again."""
        if entry.host in self._retired:
            return False
        retryable = self._settings.politeness.retry_statuses
        if outcome is NEUTRAL and response.status not in retryable:
            return False
        decision = self.politeness.retry(
            start.permit, response, outcome, attempt=entry.attempts + 1, now=self._now
        )
        tally = self._witness.tally(entry.host)
        if tally is not None and outcome is THROTTLE:
            tally.refused += 1
        if outcome is THROTTLE:
            self._count(entry.host, refused=1)
        if not isinstance(decision, Retry):
            return False
        self.stats.retries += 1
        again = entry._replace(attempts=entry.attempts + 1) if decision.costs_attempt else entry
        self.frontier.put_back(again, decision.due)
        return True

    def _finish_locally(self, entry: Entry, answer: Fetched) -> bool:
        """It failed on our side of the wire: again later, or never."""
        if answer.error in PASSING and entry.attempts < self._settings.politeness.max_attempts:
            again = entry._replace(attempts=entry.attempts + 1)
            self.frontier.put_back(again, self._now + 0.5 * 2.0**entry.attempts)
            return True
        reason = answer.detail or str(answer.error)
        self.stats.failed[reason] += 1
        record = harvest(entry, answer, self._rules, self._recent, self._wall).record
        self._batch.pages.append((entry, record._replace(error=reason)))
        return False

    def _offloaded(self, entry: Entry, answer: Fetched, outcome: Outcome) -> bool:
        """Long work goes elsewhere; until it comes back (`worked`) the page is under way."""
        if self._offload is None:
            return False
        work = long_work(entry, answer, self._rules.agent)
        if work is None:
            return False
        self._under_way.add(entry.seq)
        self._elsewhere += 1
        self._offload.give((self, entry, answer, outcome), work)
        return True

    def worked(
        self,
        entry: Entry,
        answer: Fetched,
        outcome: Outcome,
        work: object,
        now: Instant,
        wall: float,
    ) -> None:
        """Long work is done: finish the page that it was for."""
        self._now, self._wall = now, wall
        self._under_way.discard(entry.seq)
        self._elsewhere -= 1
        self._finish_page(entry, answer, outcome, work)
        self._came_back(entry)

    def _finish_page(
        self, entry: Entry, answer: Fetched, outcome: Outcome, work: object = None
    ) -> None:
        try:
            found = harvest(entry, answer, self._rules, self._recent, self._wall, work)
        except Exception:  # noqa: BLE001 - whatever it is, it would come again with every resume
            found = unreadable(entry, answer, self._wall)
        record, candidates, passed_over = found
        self._batch.pages.append((entry, record))
        if candidates:
            self._route(candidates)
        stats = self.stats
        for reason, count in passed_over.items():
            stats.skipped[reason] += count
        if entry.kind != PAGE:
            stats.robots += 1
            return
        host, status = entry.host, record.status
        if status is None:
            stats.failed[record.error or "unknown"] += 1
        else:
            stats.fetched += 1
            stats.statuses[status] += 1
            stats.bytes += record.bytes
        is_failure = outcome is OVERLOAD or outcome is THROTTLE
        self._count(host, fetched=not is_failure, failed=is_failure)
        tally = self._witness.tally(host)
        if tally is not None:
            tally.fetched += 1
            tally.latency_s += answer.latency_s
        if is_failure:
            self._watch_failures(host)

    def _watch_failures(self, host: str) -> None:
        """A host that fails so often in a row wastes everybody's time (document 001)."""
        count = self._hosts.failures_in_a_row(host)
        if count >= self._settings.host_failure_limit and host not in self._retired:
            self.politeness.retire(host, f"{count} failures in a row", now=self._now)

    # ------------------------------------------------------------------ robots.txt

    def _learn_rules(self, result: list[Learned]) -> None:
        for learned in result:
            origin, _, record, _, sitemaps = learned
            self._batch.robots[origin] = record
            if sitemaps and self._settings.seeding in ("sitemap", "all"):
                listed = sitemap_candidates(sitemaps, origin + "/robots.txt")
                self._route(self._not_excluded(listed))

    def _is_given_up(self, host: str) -> bool:
        if host not in self._hosts.known:
            self._recall(host)
        return host in self._retired or self._hosts.retired(host) is not None

    def _load_robots(self, origin: str) -> RobotsRecord | None:
        return self._batch.robots.get(origin) or self.store.robots(origin)

    # ------------------------------------------------------------------ what was found

    def _route(self, candidates: list[Candidate]) -> None:
        """Pass on what was not passed on lately."""
        for candidate in candidates:
            if self._recent.add(candidate.url):
                self._pass_on(candidate)

    def _pass_on(self, candidate: Candidate) -> None:
        """To our own queue, or to the shard that owns the host."""
        shard = self._sharding.shard_of(candidate.host)
        if shard == self.number:
            self._batch.found.append(candidate)
        else:
            self._batch.outgoing.append((shard, candidate))

    def _count(self, host: str, *, fetched: int = 0, failed: int = 0, refused: int = 0) -> None:
        if host not in self._hosts.known:
            self._recall(host)
        self._hosts.count(host, self._wall, fetched=fetched, failed=failed, refused=refused)

    # ------------------------------------------------------------------ committing

    def commit(self, now: Instant, wall: float) -> None:
        """Make everything so far durable, in one transaction."""
        self._now, self._wall = now, wall
        batch = self._batch
        batch.hosts = self._hosts.changes(now, wall)
        if not batch:
            return
        committed = self.store.commit(batch)
        self._batch = Batch()
        self._hosts.committed()
        self.stats.found += len(committed.new)
        frontier = self.frontier
        frontier.committed(entry for entry, _ in batch.pages)
        frontier.committed(entry for entry, _ in batch.dropped)
        frontier.add(committed.new, now=now)

    def tick(self, now: Instant, wall: float) -> None:
        """What need not happen at once."""
        self._now, self._wall = now, wall
        if self._sharding.shards > 1:
            self.store.deliver()
            received = self.store.receive(RECEIVE)
            self.received += len(received.new) + received.waiting
            self.stats.found += len(received.new)
            self.frontier.add(received.new, now=now)
        room = self._settings.frontier_limit - self.frontier.queued
        if room > 0 and self.store.counts().waiting:
            self.frontier.add(self.store.admit_waiting(min(room, 10_000)), now=now)
        for host in list(self._retired):
            self._empty(host)
        if not self.frontier.queued and not self.frontier.in_flight and not self._batch:
            # Nothing left as far as we know. If the store knows better, it is right.
            self.frontier.load(self.store.queued_hosts(), now=now)
        self._measure(now)

    def _retire(self, key: str, reason: str) -> None:
        for host in self._hosts.retire(key, reason, self._wall):
            self._retired[host] = reason

    def _empty(self, host: str) -> None:
        """Take a retired host's URLs out of the queue, a slice at a time, with the reason."""
        reason = self._retired[host]
        for errand in self.frontier.drop_host(host, now=self._now).errands:
            self._learn_rules(self._errands.give_up(errand, self._now, self._wall))
        entries = self.store.queued(host, after=(-1, -1), limit=DROP_SLICE)
        spoken_for = {entry.seq for entry, _ in (*self._batch.dropped, *self._batch.pages)}
        spoken_for |= self._under_way
        fresh = [entry for entry in entries if entry.seq not in spoken_for]
        self._batch.dropped.extend((entry, f"host_retired: {reason}") for entry in fresh)
        self.stats.skipped["host_retired"] += len(fresh)
        if not entries:
            del self._retired[host]

    def _measure(self, now: Instant) -> None:
        """Where the hosts are, for the progress line."""
        seen = self.frontier.snapshot(now)
        stats = self.stats
        stats.in_flight, stats.queued, stats.hosts = seen.in_flight, seen.queued, seen.active
        stats.waits = waits_of(seen, now)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, told.Throttled):
            self.stats.throttles += 1
        elif isinstance(event, told.Retired):
            self._retire(event.host, event.reason)
        elif isinstance(event, told.Stalled) and self._settings.give_up_stalled:
            self._retire(event.host, "stalled")
        elif isinstance(event, told.Evicted):
            self._hosts.forget(event.host)
            self._witness.forget(event.host)


def credible(answer: Fetched) -> Fetched:
    """The answer, unless no server can have given it: then a protocol error in its place."""
    status, latency_s, total_s = answer.status, answer.latency_s, answer.total_s
    is_timed = 0.0 <= latency_s < inf and 0.0 <= total_s < inf
    if is_timed and (answer.error is not None if status is None else 100 <= status < 1000):
        return answer
    return Fetched(answer.request, error=ErrorKind.PROTOCOL, detail="incredible_answer")
