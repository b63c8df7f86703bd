"""Make the totals of one process from its events: one method for each kind of event.

Every process folds its own events and sends the totals to its supervisor, which adds them up.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mannerly.crawler import events as crawl_events
from mannerly.crawler.host_view import HostStatus, status_of
from mannerly.crawler.model import CRASHED, GIVEN_UP, NOT_READ, is_failed
from mannerly.crawler.stats import (
    NOT_MODIFIED,
    OTHER_SECTIONS,
    REMARKABLE,
    Latencies,
    Stats,
    Waits,
    Warmth,
)
from mannerly.crawler.web.patterns import pattern_of, section_of
from mannerly.crawler.web.priority import is_held_back
from mannerly.politeness.events import Cancelled, ConcurrencyChanged, Opened, Throttled
from mannerly.politeness.model import THROTTLE, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.events import Event, HostPlaces, ShardMeasured
    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.model import PageRecord
    from mannerly.politeness.model import Instant
# A host that is full, paused or given up waits for no instant, so it is not in the heap.
PACED = (
    *(Reason.PACE, Reason.CRAWL_DELAY, Reason.MIN_DELAY, Reason.BANDWIDTH),
    *(Reason.RATE_LIMIT_HEADER, Reason.DURATION_FACTOR),
)
_DAY_S = 86_400.0
OTHER_PATTERNS = "other patterns"
OTHER_LABELS = "other labels"
OTHER_HOSTS = "other hosts"


class StatsFold:
    """Listens to the events of one process and keeps its totals."""

    def __init__(self) -> None:
        self.stats = Stats()
        self._seen: dict[int, crawl_events.HostsSeen] = {}
        self._shards: dict[int, ShardMeasured] = {}
        self._failures = 0  # URLs in a row that failed (`Stats.longest_failures`)
        self._folds: dict[type, Callable[[Any], None]] = {
            crawl_events.RequestSent: self._sent,
            crawl_events.RobotsAnswered: self._robots,
            crawl_events.PageSettled: self._page,
            crawl_events.ListSettled: self._list,
            crawl_events.RequisiteSettled: self._requisite,
            crawl_events.ItemsExtracted: self._extracted,
            crawl_events.HandlerLacked: self._handler_lacked,
            crawl_events.PageRendered: self._rendered,
            crawl_events.ShellFound: self._shell,
            crawl_events.PageRetried: self._retried,
            crawl_events.PageVisited: self._visited,
            crawl_events.UrlsDropped: self._dropped,
            crawl_events.UrlsFound: self._found,
            crawl_events.UrlsHeldBack: self._held_back,
            crawl_events.HostGivenUp: self._given_up,
            crawl_events.ShardMeasured: self._measured,
            crawl_events.HostsSeen: self._saw,
            crawl_events.HostWaits: self._waits,
            crawl_events.BatchCommitted: self._committed,
            crawl_events.StoreMended: self._mended,
            crawl_events.LoopStalled: self._stalled,
            crawl_events.ShardLost: self._lost,
            Throttled: self._throttled,
            Opened: self._opened,
            Cancelled: self._cancelled,
            ConcurrencyChanged: self._concurrency_changed,
        }

    def __call__(self, event: Event) -> None:
        """Add one event to the totals."""
        fold = self._folds.get(event.__class__)
        if fold is not None:
            fold(event)

    def _sent(self, event: crawl_events.RequestSent) -> None:
        host, gap_s, delay_s, is_early = event
        stats = self.stats
        stats.requests.audited += 1
        tally = None if gap_s is None and not is_early else stats.tally(host)
        if tally is not None and gap_s is not None and gap_s < tally.smallest_gap_s:
            tally.smallest_gap_s, tally.asked_gap_s = gap_s, delay_s
        if is_early:
            stats.requests.too_early += 1
            if tally is not None:
                tally.early += 1

    def _robots(self, event: crawl_events.RobotsAnswered) -> None:
        self.stats.robots += 1
        self.stats.other_statuses[event.status or 0] += 1

    def _page(self, event: crawl_events.PageSettled) -> None:
        # Unpacked: a field of a named tuple takes as long to read as ten variables.
        entry, record, outcome, latency_s, passed_over, is_local, is_unchanged = event
        stats, status, error = self.stats, record.status, record.error
        if status is None or status >= 400:
            self._count_failures(1)
        else:
            self._failures = 0
        if status is None:
            stats.failed[error or "unknown"] += 1
        else:
            stats.fetched += 1
            if not is_unchanged:
                stats.statuses[status] += 1
                stats.bytes += record.bytes
            elif error is None:
                stats.statuses[NOT_MODIFIED] += 1
            if latency_s > 0.0:
                stats.latencies.note(latency_s)
        if error is not None:
            stats.crashed += error == CRASHED
        if (error is not None or status is None or status >= 400) and is_failed(record):
            stats.failures[failure_of(record)] += 1
        tally = None if is_local else stats.tally(record.host)
        if tally is not None:
            tally.fetched += 1
            tally.latency_s += latency_s
            tally.refused += outcome is THROTTLE
        if passed_over:
            self._passed_over(passed_over)
        if is_held_back(entry.priority):
            pattern = self._held_pattern(record.host + pattern_of(record.url))
            if stats.held_back[pattern] > 0:  # else an earlier run has counted it
                stats.held_back[pattern] -= 1

    def _extracted(self, event: crawl_events.ItemsExtracted) -> None:
        self.stats.extracted.items += event.items
        if event.error is not None:
            self.stats.extracted.errors += 1
            self.stats.extracted.first_error = self.stats.extracted.first_error or event.error

    def _handler_lacked(self, event: crawl_events.HandlerLacked) -> None:
        lacking = self.stats.extracted.lacking
        is_named = event.label in lacking or len(lacking) < REMARKABLE
        lacking[event.label if is_named else OTHER_LABELS] += 1

    def _list(self, event: crawl_events.ListSettled) -> None:
        self.stats.robots += 1
        self.stats.other_statuses[event.record.status or 0] += 1
        self.stats.crashed += event.record.error == CRASHED
        self._passed_over(event.passed_over)

    def _rendered(self, event: crawl_events.PageRendered) -> None:
        self.stats.rendered += 1
        if event.error is not None:
            self.stats.render_errors[event.error] += 1

    def _shell(self, event: crawl_events.ShellFound) -> None:
        shells = self.stats.shells
        is_named = event.host in shells or len(shells) < REMARKABLE
        shells[event.host if is_named else OTHER_HOSTS] += 1

    def _requisite(self, event: crawl_events.RequisiteSettled) -> None:
        status, stats = event.status, self.stats
        stats.requisites += 1
        stats.requisites_failed += status is None or status >= 400
        stats.other_statuses[status or 0] += 1
        self._passed_over(event.passed_over)

    def _passed_over(self, counts: Mapping[str, int]) -> None:
        skipped = self.stats.skipped
        for reason, count in counts.items():
            skipped[reason] += count

    def _retried(self, event: crawl_events.PageRetried) -> None:
        self.stats.requests.retries += 1
        self.stats.other_statuses[event.status or 0] += 1
        tally = self.stats.tally(event.entry.host) if event.is_refusal else None
        if tally is not None:
            tally.refused += 1

    def _visited(self, event: crawl_events.PageVisited) -> None:
        stats = self.stats
        if not event.is_last:  # else it is counted as a page
            stats.other_statuses[event.status or 0] += 1
        section = section_of(event.url)
        if section not in stats.warmth and len(stats.warmth) >= REMARKABLE:
            section = OTHER_SECTIONS
        stats.warmth.setdefault(section, Warmth()).visit(event)
        stats.variants.setdefault(event.variant, Warmth()).visit(event)

    def _dropped(self, event: crawl_events.UrlsDropped) -> None:
        # Without the text after a colon: it differs by host, and is in the host's record.
        reason = event.reason.partition(":")[0]
        self.stats.skipped[reason] += event.urls
        if reason in GIVEN_UP:
            self._count_failures(event.urls)

    def _count_failures(self, urls: int) -> None:
        self._failures += urls
        if self._failures > self.stats.longest_failures:
            self.stats.longest_failures = self._failures

    def _found(self, event: crawl_events.UrlsFound) -> None:
        self.stats.found += event.urls

    def _held_back(self, event: crawl_events.UrlsHeldBack) -> None:
        for pattern, urls in event.patterns.items():
            self.stats.held_back[self._held_pattern(pattern)] += urls

    def _held_pattern(self, pattern: str) -> str:
        known = self.stats.held_back
        return pattern if pattern in known or len(known) < REMARKABLE else OTHER_PATTERNS

    def _given_up(self, _event: crawl_events.HostGivenUp) -> None:
        self.stats.hosts_given_up += 1

    def _throttled(self, event: Throttled) -> None:
        self.stats.requests.throttles += 1
        if event.retry_after_s is not None:
            self.stats.requests.retry_afters += 1
            self._blocked(Reason.RETRY_AFTER, event.retry_after_s)

    def _opened(self, event: Opened) -> None:
        self._blocked(Reason.BREAKER_OPEN, event.until - event.at)

    def _waits(self, event: crawl_events.HostWaits) -> None:
        # What a host asks for was counted when it asked.
        if event.reason != Reason.RETRY_AFTER:
            self._blocked(event.reason, event.wait_s, event.times)

    def _blocked(self, reason: str, seconds: float, times: int = 1) -> None:
        if seconds > 0.0:  # "forever" counts as a day, which is longer than any bucket
            waits = self.stats.requests.blocked.setdefault(str(reason), Latencies())
            waits.note(min(seconds, _DAY_S), times)

    def _cancelled(self, _event: Cancelled) -> None:
        self.stats.requests.cancellations += 1

    def _concurrency_changed(self, _event: ConcurrencyChanged) -> None:
        self.stats.requests.concurrency_changes += 1

    def _committed(self, event: crawl_events.BatchCommitted) -> None:
        self.stats.loop.commit_s = event.took_s
        if event.took_s > 0.0 and event.pages:
            self.stats.loop.commits.note(event.took_s)

    def _mended(self, event: crawl_events.StoreMended) -> None:
        self.stats.mended.append(event.words)

    def _stalled(self, _event: crawl_events.LoopStalled) -> None:
        self.stats.loop.stalls += 1

    def _lost(self, event: crawl_events.ShardLost) -> None:
        self.stats.shards_lost += 1
        self._shards.pop(event.shard, None)

    def _saw(self, event: crawl_events.HostsSeen) -> None:
        self._seen[event.shard] = event

    def host_views(self, now: Instant) -> list[HostView]:
        """Return the hosts that were seen last, as they are now."""
        return [host.after(now - seen.at) for seen in self._seen.values() for host in seen.hosts]

    def _measured(self, event: ShardMeasured) -> None:
        self._shards[event.shard] = event

    def forget(self, shard: int) -> None:
        """Leave out what was measured of a shard: it has another owner."""
        self._shards.pop(shard, None)
        self._seen.pop(shard, None)

    def summed(self) -> Stats:
        """Return a copy of the totals, with the sums over all shards."""
        mine, shards, waits = self.stats, self._shards.values(), Waits()
        for each in shards:
            waits.add(waits_of(each.places))
        now = replace(
            mine.now,
            in_flight=sum(each.in_flight for each in shards),
            undelivered=sum(each.undelivered for each in shards),
            queued=sum(each.queued for each in shards),
            hosts=sum(each.places.active for each in shards),
            scheduled=sum(each.places.heaped for each in shards),
            waits=waits,
        )
        return replace(
            mine,
            now=now,
            requests=copy(mine.requests),
            extracted=replace(mine.extracted, lacking=copy(mine.extracted.lacking)),
            loop=copy(mine.loop),
            hosts_known=sum(each.places.known for each in shards),
        )


def failure_of(record: PageRecord) -> str:
    """Return why a page failed: the error if there is no answer or it was not read, or a status."""
    if record.status is None or record.error in NOT_READ:
        return record.error or "unknown"
    return str(record.status)


def waits_of(places: HostPlaces) -> Waits:
    """Group the frontier's reasons into those that the progress line shows."""
    waiting = places.waiting
    # Only hosts that were asked too early have a reason; all others wait for their next slot.
    paced = places.heaped - places.ready - sum(waiting.values())
    paced += sum(waiting.get(reason, 0) for reason in PACED)
    states = Counter({HostStatus.PAUSED: places.paused})
    for reason, count in waiting.items():
        states[status_of(reason)] += count
    del states[HostStatus.FETCHING]
    return Waits(
        ready=places.ready,
        pace=max(0, paced),
        busy=places.busy,
        other=places.other,
        states=+states,
        next_in_s=places.next_in_s,
    )
