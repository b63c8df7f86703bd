"""Tell the politeness core what came back, and keep count of each host's pages and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.fetch.base import HEADERS_SUFFICE
from mannerly.crawler.host.inflight import Stage
from mannerly.crawler.host.records import WORTH_KEEPING_S
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry, LocalError, is_failed
from mannerly.crawler.web.caches import CacheState, cache_state
from mannerly.politeness import Response
from mannerly.politeness.model import NEUTRAL, OK, OVERLOAD, THROTTLE
from mannerly.politeness.retry import GiveUp

if TYPE_CHECKING:
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Fetched, Now, PageRecord
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.politeness.model import Outcome
    from mannerly.politeness.retry import Retry

    from .contacts import Contacts
    from .given_up import GivenUpHosts
    from .pending import Pending
    from .plugin import Plugins


class Reporting:
    """The reports of one shard on its answers."""

    def __init__(
        self,
        contacts: Contacts,
        given_up: GivenUpHosts,
        plugins: Plugins,
        pending: Pending,
        settings: CrawlSettings,
    ) -> None:
        self._politeness, self._addresses = contacts.politeness, contacts.addresses
        self._records = contacts.records
        self._given_up = given_up
        self._plugins = plugins
        self._pending = pending
        self._refusals: dict[int, int] = {}  # by seq, with `refusal_retries` only
        self._failure_limit = settings.host_failure_limit
        self._renders = bool(settings.render)
        self._knows_caches = settings.warm  # an answer of a cache says nothing about the site

    def report(
        self, flight: InFlight, answer: Fetched, now: Now
    ) -> tuple[Outcome, Retry | GiveUp | None]:
        """Tell the politeness core; return what it makes of the answer, and of a retry."""
        politeness, permit, item, host = self._politeness, flight.permit, flight.item, flight.host
        error = answer.error
        mono, wall = now
        if isinstance(error, LocalError):
            # What was sent and then failed here, or was lost with a stale connection, may have been
            # read.
            was_sent = flight.stage is Stage.SENT or error is LocalError.STALE_CONNECTION
            politeness.cancel(permit, now=mono, was_sent=was_sent)
            self._addresses.cancel(permit, now=mono, was_sent=was_sent)
            return NEUTRAL, None
        latency_s = answer.latency_s or answer.total_s
        # Shells of one application are the same for all URLs, and so are answers such as an empty
        # list: that is no challenge.
        is_alike = self._renders or KINDS[item.kind].is_requisite
        has_body = not is_alike or answer.status is None or answer.status >= HEADERS_SUFFICE
        response = Response(  # by position: keywords take half as long again
            answer.status,
            latency_s,
            answer.headers,
            error,
            len(answer.body),
            wall,
            self._knows_caches and cache_state(answer.headers) is CacheState.HIT,
            item.url,
            answer.digest if has_body else None,
        )
        outcome = politeness.report(permit, response, now=mono)
        self._pending.count_answer(wall, is_refusal=outcome is THROTTLE)
        self._addresses.report(permit, response, now=mono)
        if answer.status is not None and answer.status >= 300 and "retry-after" in answer.headers:
            assert host.budget is not None, "a host that was asked is known"
            host.budget.refused(answer.headers, mono, wall)
        is_trouble = outcome is THROTTLE or outcome is OVERLOAD
        if is_trouble and permit.host.free_at(mono) - mono > WORTH_KEEPING_S:
            # What a crash must not forget: it is committed before anything else happens.
            self._pending.hurry()
        if self._refusals and outcome is not THROTTLE and isinstance(item, Entry):
            self._refusals.pop(item.seq, None)
        if outcome is THROTTLE:  # of every kind of request, as the server's log has them
            self._records.count(host, now, refused=1)
        if outcome is OK or not isinstance(item, Entry):
            return outcome, None
        is_final = outcome is NEUTRAL and (
            response.status not in permit.host.retry_policy.retry_statuses
        )
        if is_final or host.given_up is not None:
            return outcome, None
        attempt = item.attempts + 1
        refusals = 1
        if outcome is THROTTLE and permit.host.retry_policy.refusal_retries is not None:
            refusals = self._refusals[item.seq] = self._refusals.get(item.seq, 0) + 1
        decision = politeness.retry(
            permit, response, outcome, attempt=attempt, now=mono, refusals=refusals
        )
        if isinstance(decision, GiveUp):
            self._refusals.pop(item.seq, None)
        return outcome, decision

    def count(
        self, flight: InFlight, entry: Entry, record: PageRecord, outcome: Outcome, now: Now
    ) -> None:
        """Count a page for its host; a host that fails too often in a row is given up.

        A page that has a record was counted when it was fetched first.

        Pages are counted as the store counts them. Whether the host is in trouble is for the
        outcome to say: a page that was not read has failed, but that says nothing about its host.
        """
        host, has_failed = flight.host, is_failed(record, entry.kind)
        is_failure = outcome is OVERLOAD or outcome is THROTTLE
        if host.budget is None:  # its page was with the program for so long
            self._given_up.recall(host.name, now)
        is_new = not self._plugins.was_counted(entry)
        self._records.count(
            host,
            now,
            fetched=is_new and not has_failed,
            failed=is_new and has_failed,
            is_failure=is_failure,
        )
        if is_failure:
            failures = 0 if host.counts is None else host.counts.failures_in_a_row
            if failures >= self._failure_limit:
                self._given_up.give_up(host.name, f"{failures} failures in a row", now)
