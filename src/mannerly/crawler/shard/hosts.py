"""Hosts of a shard: their records in the store, and their state in the politeness core.

A host is recalled at its first turn in a run: its record is read, the politeness core is told what
earlier runs learned, and after a crash its gap counts from now, because what was in flight then was
never recorded. Changes are collected until the next commit. Records of hosts that the core has
evicted leave memory after they were written, so memory is bounded by the core's registry.

Two keys are in use: a record belongs to a host, a lesson to a host's group (`group_by`). What the
core says of a group holds for all its hosts, including those that are met later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.host_view import NOTHING_SEEN, pack_doing
from mannerly.crawler.model import HostRecord
from mannerly.politeness.model import NEVER, Reason

from .remembering import left_s, remembered_of, unlearned, with_lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.host_view import Doing
    from mannerly.crawler.model import Now
    from mannerly.crawler.store.base import ShardReader
    from mannerly.politeness import Politeness
    from mannerly.politeness.memory.base import Remembered
    from mannerly.politeness.model import Instant

    from .audit import SpacingAudit
    from .shared import SharedHosts


SEEN_S = 1.0  # what a record says a host does is at most this old while all goes well
WORTH_KEEPING_S = 1.0  # a shorter wait is over before a crawl has restarted


_UNKNOWN = HostRecord("")  # most hosts have counts and nothing else
_NEXT_AT = HostRecord._fields.index("next_at")


def _see_nothing(_host: str, _retry_at: Instant, _now: Now) -> Doing:
    return NOTHING_SEEN


class _Counts:
    """A host's stored record, and what was counted since it was made."""

    __slots__ = (
        *("failed", "failures_in_a_row", "fetched", "record", "refused", "requests"),
        *("doing", "look_at", "retry_at", "updated_at"),
    )

    def __init__(self) -> None:
        self.record: HostRecord | None = None  # most hosts have counts and nothing else
        self.fetched = self.failed = self.refused = self.failures_in_a_row = self.requests = 0
        self.updated_at = 0.0
        self.doing = b""  # as `HostRecord` has it
        self.look_at = NEVER  # when to see anew what the host does
        self.retry_at = NEVER  # when the URL that was put back last is due

    def put(self, record: HostRecord) -> None:
        self.record = record
        self.fetched = record.fetched
        self.failed = record.failed
        self.failures_in_a_row = record.failures_in_a_row
        self.refused = record.refused
        self.requests = record.requests
        self.updated_at = record.updated_at
        self.doing = record.doing

    def complete(self, host: str) -> HostRecord:
        """Return the up-to-date record. Pages are counted more often than records are written."""
        make = HostRecord if self.record is None else self.record._replace
        return make(
            host=host,
            fetched=self.fetched,
            refused=self.refused,
            failed=self.failed,
            failures_in_a_row=self.failures_in_a_row,
            requests=self.requests,
            updated_at=self.updated_at,
            doing=self.doing,
        )


class HostRecords:
    """The records of the hosts that are active in this run."""

    def __init__(
        self,
        memory: ShardReader,
        politeness: Politeness,
        audit: SpacingAudit,
        *,
        is_resumed: bool,
        boot: str = "",
        see: Callable[[str, Instant, Now], Doing] = _see_nothing,
    ) -> None:
        self._memory = memory
        self._see = see
        self._politeness = politeness
        self._audit = audit
        self._boot = boot
        self._is_resumed = is_resumed
        self._counts: dict[str, _Counts] = {}
        self.known = self._counts.keys()  # the hosts that were recalled
        self._touched: set[str] = set()
        self._departed: dict[str, HostRecord] = {}  # evicted by politeness, not yet committed
        self._may_know_more = is_resumed  # the store may have records of hosts not in memory
        self.is_grouped = politeness.settings.group_by != "host"
        self._members: dict[str, list[str]] = {}  # known hosts by the key of their group
        self._given_up: dict[str, str] = {}  # groups that were given up, and why
        self.shared: SharedHosts | None = None  # None: no other crawl can want these hosts

    def given_up(self, host: str) -> str | None:
        """Return why a known host was given up; None if it was not."""
        record = self._counts[host].record
        return None if record is None else record.retired

    def fetched(self, host: str) -> int:
        """Return how many pages a known host has given."""
        return self._counts[host].fetched

    def is_new(self, host: str) -> bool:
        """Return whether a host was never contacted, in this run or an earlier one."""
        if host in self._counts:
            return False
        if not self._may_know_more:
            return True
        record = self._departed.get(host) or self._memory.host(host)
        return record is None or not record.updated_at

    def recall(self, host: str, now: Now) -> None:
        """Load what earlier runs learned about a host, at its first turn in this run."""
        own_at = self._recall(host, now)
        if self.shared is not None:
            key = self._politeness.key(host) if self.is_grouped else host
            self.shared.met(key, own_at, now)

    def _recall(self, host: str, now: Now) -> float:
        """Load a host's own record; return the wall time of what it says of the pace, or 0."""
        self._counts[host] = counts = _Counts()
        if self.is_grouped:
            self._join(host, now)
        if not self._may_know_more:
            return 0.0  # and no host can have departed
        record = self._departed.pop(host, None)
        if record is not None:
            self._touched.add(host)
        else:
            record = self._memory.host(host)
        if record is not None:
            counts.put(record)
        key = self._politeness.key(host)
        if key not in self._politeness:  # else another host of its group was here first
            learned = record if key == host else self._memory.host(key)
            if learned is not None and learned.updated_at:
                pause_s = left_s(learned, learned.next_at or learned.blocked_until, self._boot, now)
                open_s = left_s(learned, learned.breaker_until, self._boot, now)
                remembered = remembered_of(learned, now.wall, pause_s, open_s)
                self._politeness.recall(remembered, now=now.mono, wall=now.wall)
                self._audit.recall(key, learned)
                self._audit.blocked(key, now.mono + max(pause_s, open_s))
            if self._is_resumed:
                self._politeness.contacted(host, now=now.mono)
            if learned is not None and learned.adaptive_delay_s:
                return learned.updated_at
        return 0.0

    def remind(self, record: HostRecord, now: Now) -> None:
        """Wait as long as an earlier owner of a known host was asked to: no wait gets shorter."""
        key = self._politeness.key(record.host)
        waits = (record.next_at, record.blocked_until, record.breaker_until)
        until = now.mono + max(left_s(record, each, self._boot, now) for each in waits)
        if until > now.mono:
            self._politeness.block(key, until, Reason.RETRY_AFTER, now=now.mono)
            self._audit.blocked(key, until)
        self._touched.add(record.host)  # the commit that follows has its record

    def count(
        self,
        host: str,
        now: Now,
        *,
        fetched: int = 0,
        failed: int = 0,
        refused: int = 0,
        is_failure: bool = False,
    ) -> None:
        """Add to a known host's counts; `is_failure` tells whether the host was in trouble."""
        counts = self._counts[host]
        counts.fetched += fetched
        counts.failed += failed
        counts.refused += refused
        counts.updated_at = now.wall
        if refused or is_failure:
            counts.look_at = NEVER
        if is_failure:
            counts.failures_in_a_row += 1
        elif fetched:
            counts.failures_in_a_row = 0
        self._touched.add(host)

    def put_back(self, host: str, due: Instant) -> None:
        """Note that a URL of a host will be asked for again at an instant."""
        counts = self._counts.get(host)
        if counts is not None:
            counts.retry_at = due
            self.touch([host])

    def touch(self, hosts: Iterable[str]) -> None:
        """Write with the next commit what these hosts do and wait for: it may have changed."""
        for host in hosts:
            counts = self._counts.get(host)
            if counts is not None:
                counts.look_at = NEVER
                self._touched.add(host)

    def sent(self, host: str) -> None:
        """Count a request to a known host."""
        counts = self._counts.get(host)
        if counts is not None:
            counts.requests += 1
            self._touched.add(host)

    def failures_in_a_row(self, host: str) -> int:
        """Return how often a known host has failed since its last success in this run."""
        return self._counts[host].failures_in_a_row

    def give_up(self, key: str, reason: str, now: Now) -> list[str]:
        """Give up the hosts of a group, and return them.

        It is written with the next commit, so that a crash does not bring them back.
        """
        if not self.is_grouped:
            self._give_up(key, reason, now)
            return [key]
        self._given_up[key] = reason
        members = list(self._members.get(key, ()))
        for host in members:
            self._give_up(host, reason, now)
        return members

    def revive(self, host: str, now: Now) -> None:
        """Take a host that was given up into the crawl again."""
        self._given_up.pop(self._politeness.key(host), None)
        counts = self._counts[host]
        counts.failures_in_a_row = 0
        self._write(counts, counts.complete(host)._replace(retired=None, updated_at=now.wall))

    def came_back(self, host: str, failed: int, lost: int, now: Now) -> None:
        """Some pages of a known host that had failed, or whose record is lost, are queued again."""
        counts = self._counts[host]
        counts.failed = max(0, counts.failed - failed)
        counts.fetched = max(0, counts.fetched - lost)
        counts.updated_at = now.wall
        self._touched.add(host)

    def of_key(self, key: str) -> list[str]:
        """Return the known hosts that share a budget."""
        return self._members.get(key, []) if self.is_grouped else [key]

    def group_of(self, host: str) -> list[str]:
        """Return the known hosts that share a known host's budget, itself included."""
        return self._members[self._politeness.key(host)] if self.is_grouped else [host]

    def unlearn(self, host: str, now: Now) -> None:
        """Forget what was learned about a host, but for its counts and the waits it asked for.

        What was learned of a group is in the record of its key.
        """
        counts = self._counts[host]
        self._write(counts, unlearned(counts.complete(host))._replace(updated_at=now.wall))
        key = self._politeness.key(host)
        if key in self._counts and key != host:
            self.unlearn(key, now)
        elif key != host:
            known = self._departed.get(key) or self._memory.host(key)
            if known is not None:
                self._departed[key] = unlearned(known)._replace(updated_at=now.wall)
                self._may_know_more = True

    def forget(self, key: str) -> None:
        """Drop a host that the politeness core has evicted; what is not committed yet is kept."""
        self._may_know_more = True
        for host in self._members.pop(key, ()) if self.is_grouped else (key,):
            counts = self._counts.pop(host, None)
            if counts is not None and host in self._touched:
                self._touched.discard(host)
                self._departed[host] = counts.complete(host)

    def changes(self, now: Now) -> list[HostRecord]:
        """Return the records that the next commit has to write; the same again if it fails."""
        for lesson in self._politeness.drain(now=now.mono, wall=now.wall):
            self._learn(lesson)
            if self.shared is not None:
                self.shared.learned(lesson)
        changed = [
            self._current(host, record, record, now) for host, record in self._departed.items()
        ]
        changed += [self._known(host, now) for host in self._touched]
        return changed

    def record(self, host: str, now: Now) -> HostRecord:
        """Return the record of a host as the next commit would write it."""
        return self._known(host, now) if host in self._counts else HostRecord(host)

    def _known(self, host: str, now: Now) -> HostRecord:
        counts = self._counts[host]
        if now.mono >= counts.look_at:
            doing = self._see(host, counts.retry_at, now)
            counts.doing = pack_doing(doing)
            # A wait or a problem may end at any time; figures are as old as they may be.
            counts.look_at = NEVER if doing.waits_for or doing.problem else now.mono + SEEN_S
        return self._current(host, counts, counts.record or _UNKNOWN, now)

    def _current(
        self,
        host: str,
        counts: _Counts | HostRecord,
        known: HostRecord,
        now: Now,
    ) -> HostRecord:
        """Return the record of a host as it is now; nearly every page brings one of these.

        With the next instant at which it may be contacted: a crash must not shorten a wait.
        """
        wait_s = self._politeness.not_before(host) - now.mono
        noted = self._audit.noted(self._politeness.key(host))
        values = (  # in the order of the class: by keywords it takes ten times as long
            host,
            *known[1:_NEXT_AT],  # what was learned
            now.wall + wait_s if wait_s > WORTH_KEEPING_S else 0.0,
            now.wall,
            counts.fetched,
            counts.refused,
            counts.failed,
            known.retired,
            known.failing_since,
            counts.failures_in_a_row,
            known.breaker_failures,
            known.breaker_opens,
            known.breaker_until,
            self._boot,
            now.mono,
            # What was noted in earlier runs stays where this one has nothing.
            noted.smallest_gap_s or known.smallest_gap_s,
            noted.required_gap_s or known.required_gap_s,
            noted.early or known.early,
            _at(noted.smallest_at, now) or known.smallest_gap_at,
            counts.requests,
            noted.retry_afters or known.retry_afters,
            noted.retry_afters_broken or known.retry_afters_broken,
            counts.doing,
        )
        return HostRecord._make(values)

    def committed(self) -> None:
        """The changes are in the store."""
        self._touched.clear()
        self._departed.clear()

    def _join(self, host: str, now: Now) -> None:
        key = self._politeness.key(host)
        self._members.setdefault(key, []).append(host)
        if key in self._given_up:
            self._give_up(host, self._given_up[key], now)

    def _give_up(self, host: str, reason: str, now: Now) -> None:
        counts = self._counts.get(host)
        if counts is not None:
            record = counts.complete(host)._replace(retired=reason, updated_at=now.wall)
            self._write(counts, record)

    def _learn(self, lesson: Remembered) -> None:
        host = lesson.host
        counts = self._counts.get(host)
        if counts is not None:
            self._write(counts, with_lesson(counts.complete(host), lesson))
        else:
            known = self._departed.get(host) or self._memory.host(host) or HostRecord(host=host)
            self._departed[host] = with_lesson(known, lesson)
            self._may_know_more = True

    def _write(self, counts: _Counts, record: HostRecord) -> None:
        counts.put(record)
        self._touched.add(record.host)


def _at(instant: Instant, now: Now) -> float:
    """Return the wall time of an instant of this run; 0 if there is none."""
    return 0.0 if instant == NEVER else round(now.wall - (now.mono - instant), 3)
