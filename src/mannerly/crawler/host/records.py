"""Hosts of a shard: their records in the store, and their state in the politeness core.

A host is recalled at its first turn in a run: its record is read, and the politeness core is told
what earlier runs learned. In a resumed crawl its gap counts from the moment at which the shard was
claimed: what was in flight in an earlier process was never recorded, and left before that. Changes
are collected until the next commit. Records of hosts that the core has evicted leave memory after
they were written, so memory is bounded by the core's registry.

Two keys are in use: a record belongs to a host, a lesson to a host's group (`group_by`). What the
core says of a group holds for all its hosts, including those that are met later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mannerly.crawler.host_view import NOTHING_SEEN, pack_doing
from mannerly.crawler.model import HostRecord
from mannerly.politeness.model import NEVER, Reason

from .audit import Spacing
from .host import EMPTY_RECORD
from .remembering import left_s, remembered_of, unlearned, with_lesson

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.host_view import Doing
    from mannerly.crawler.model import Now
    from mannerly.crawler.store.base import ShardReader
    from mannerly.politeness import Politeness
    from mannerly.politeness.memory.base import Remembered
    from mannerly.politeness.model import Instant

    from .budget import Budget
    from .host import Host, HostCounts
    from .hosts import Hosts


SEEN_S = 1.0  # what a record says a host does is at most this old while all goes well
# For so long after the claim gaps count from it. The state of a host that seems idle for longer may
# be forgotten before its first request, so later ones count from that host's turn.
RESUMED_LATELY_S = 60.0
WORTH_KEEPING_S = 1.0  # a shorter wait is over before a crawl has restarted

_NEXT_AT = HostRecord._fields.index("next_at")
_NOTHING_NOTED = Spacing()


def _see_nothing(_host: Host, _now: Now) -> Doing:
    return NOTHING_SEEN


class Sharing(Protocol):
    """The other crawls that may want the same hosts."""

    def met(self, budget: Budget, own_at: float, now: Now) -> None: ...

    def learned(self, lesson: Remembered) -> None: ...


class HostRecords:
    """The records of the hosts that are known in this run."""

    def __init__(
        self,
        hosts: Hosts,
        store: ShardReader,
        politeness: Politeness,
        *,
        resumed_at: Instant | None = None,
        boot: str = "",
        see: Callable[[Host, Now], Doing] = _see_nothing,
    ) -> None:
        self._see = see
        self._hosts = hosts
        self._store = store
        self._politeness = politeness
        self._boot = boot
        self._resumed_at = resumed_at
        # The store may have records of hosts that are not in memory.
        self._may_know_more = resumed_at is not None
        self.shared: Sharing | None = None  # None: no other crawl can want these hosts

    def is_new(self, name: str) -> bool:
        """Return whether a host was never contacted, in this run or an earlier one."""
        host = self._hosts.get(name)
        if host is not None and host.budget is not None:
            return False
        if not self._may_know_more:
            return True
        record = self._latest(name)
        return record is None or not record.updated_at

    def recall(self, host: Host, now: Now) -> None:
        """Load what earlier runs learned about a host, at its first turn in this run."""
        budget = self._hosts.join(host)
        own_at = self._recall(host, budget, now)
        if self.shared is not None:
            self.shared.met(budget, own_at, now)

    def _recall(self, host: Host, budget: Budget, now: Now) -> float:
        """Load a host's own record; return the wall time of what it says of the pace, or 0."""
        record = self._latest(host.name) if self._may_know_more else None
        if host.counts is None:
            counts = host.own_counts
            if record is not None:
                counts.put(record)
        self._join_given_up(host, budget)
        if not self._may_know_more:
            return 0.0
        key, politeness = budget.key, self._politeness
        if key not in politeness:  # else another host of its group was here first
            learned = record if key == host.name else self._latest(key)
            if learned is not None and learned.updated_at:
                pause_s = left_s(learned, learned.next_at or learned.blocked_until, self._boot, now)
                open_s = left_s(learned, learned.breaker_until, self._boot, now)
                remembered = remembered_of(learned, now.wall, pause_s, open_s)
                politeness.recall(remembered, now=now.mono, wall=now.wall)
                budget.recall(learned)
                budget.blocked(now.mono + max(pause_s, open_s))
            if self._resumed_at is not None:
                is_late = now.mono - self._resumed_at > RESUMED_LATELY_S
                politeness.contacted(host.name, now=now.mono if is_late else self._resumed_at)
            if learned is not None and learned.adaptive_delay_s:
                return learned.updated_at
        return 0.0

    def remind(self, host: Host, record: HostRecord, now: Now) -> None:
        """Wait as long as an earlier owner of a known host was asked to: no wait gets shorter."""
        budget, counts = _known(host)
        waits = (record.next_at, record.blocked_until, record.breaker_until)
        until = now.mono + max(left_s(record, each, self._boot, now) for each in waits)
        if until > now.mono:
            self._politeness.block(budget.key, until, Reason.RETRY_AFTER, now=now.mono)
            budget.blocked(until)
        self._hosts.change(host, counts)  # the commit that follows has its record

    def count(
        self,
        host: Host,
        now: Now,
        *,
        fetched: int = 0,
        failed: int = 0,
        refused: int = 0,
        is_failure: bool = False,
    ) -> None:
        """Add to a known host's counts; `is_failure` tells whether the host was in trouble."""
        counts = host.counts
        assert counts is not None
        counts.answered(
            now.wall, fetched=fetched, failed=failed, refused=refused, is_failure=is_failure
        )
        if not counts.is_changed:
            self._hosts.change(host, counts)

    def put_back(self, host: Host, due: Instant) -> None:
        """Note that a URL of a host will be asked for again at an instant."""
        if host.counts is not None:
            host.counts.put_back(due)
            self._hosts.touch([host])

    def sent(self, host: Host) -> None:
        """Count a request to a known host."""
        counts = host.counts
        assert counts is not None
        counts.asked()
        if not counts.is_changed:
            self._hosts.change(host, counts)

    def give_up(self, key: str, reason: str) -> list[Host]:
        """Note why the hosts of a group are given up, and return them.

        It is written with the next commit, so that a crash does not bring them back.
        """
        members = self._hosts.of_key(key)
        for host in members:
            self._give_up(host, reason)
        return members

    def revive(self, host: Host, now: Now) -> None:
        """Take a host that was given up into the crawl again."""
        _, counts = _known(host)
        record = counts.complete(host.name)
        revived = record._replace(retired=None, failures_in_a_row=0, updated_at=now.wall)
        self._write(host, counts, revived)

    def came_back(self, host: Host, failed: int, lost: int, now: Now) -> None:
        """Some pages of a known host that had failed, or whose record is lost, are queued again."""
        _, counts = _known(host)
        counts.came_back(failed, lost, now.wall)
        self._hosts.change(host, counts)

    def unlearn(self, host: Host, now: Now) -> None:
        """Forget what was learned about a host, but for its counts and the waits it asked for.

        What was learned of a group is in the record of its key.
        """
        budget, _ = _known(host)
        budget.unlearned()
        self._unlearn(host.name, now)
        if budget.key != host.name:
            self._unlearn(budget.key, now)

    def evicted(self, key: str) -> None:
        """The politeness core has evicted a key; what is not committed yet is kept."""
        self._may_know_more = True
        budget = self._hosts.budget_of(key)
        noted = _NOTHING_NOTED if budget is None else budget.noted
        for host in [] if budget is None else budget.members:
            counts = host.counts
            if counts is not None and counts.is_changed:
                known = counts.complete(host.name)
                counts.put(
                    known._replace(
                        smallest_gap_s=noted.smallest_gap_s or known.smallest_gap_s,
                        required_gap_s=noted.required_gap_s or known.required_gap_s,
                        early=noted.early or known.early,
                        retry_afters=noted.retry_afters or known.retry_afters,
                        retry_afters_broken=noted.retry_afters_broken or known.retry_afters_broken,
                    )
                )
        self._hosts.evict(key)

    def changes(self, now: Now) -> list[HostRecord]:
        """Return the records that the next commit has to write; the same again if it fails."""
        for lesson in self._politeness.drain(now=now.mono, wall=now.wall):
            self._learn(lesson)
            if self.shared is not None:
                self.shared.learned(lesson)
        return [self._current(host, counts, now) for host, counts in self._hosts.changed]

    def record(self, name: str, now: Now) -> HostRecord:
        """Return the record of a host as the next commit would write it."""
        host = self._hosts.get(name)
        if host is None or host.counts is None:
            return HostRecord(name)
        return self._current(host, host.counts, now)

    def committed(self) -> None:
        """The changes are in the store."""
        self._hosts.committed()

    def _current(self, host: Host, counts: HostCounts, now: Now) -> HostRecord:
        """Return the record of a host as it is now; nearly every page brings one of these.

        With the next instant at which it may be contacted: a crash must not shorten a wait.
        """
        name, known, budget = host.name, counts.record or EMPTY_RECORD, host.budget
        if budget is not None and now.mono >= counts.inspect_at:
            doing = self._see(host, now)
            # A wait or a problem may end at any time; figures are as old as they may be.
            is_brief = bool(doing.waits_for or doing.problem)
            counts.saw(pack_doing(doing), NEVER if is_brief else now.mono + SEEN_S)
        wait_s = self._politeness.not_before(name) - now.mono
        noted = _NOTHING_NOTED if budget is None else budget.noted
        values = (  # in the order of the class: by keywords it takes ten times as long
            name,
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

    def _latest(self, name: str) -> HostRecord | None:
        """Return the latest record of a name, one that is not committed yet included."""
        host = self._hosts.get(name)
        if host is not None and host.counts is not None:
            return host.counts.complete(name)
        return self._store.host(name)

    def _unlearn(self, name: str, now: Now) -> None:
        record = self._latest(name)
        if record is not None:
            host = self._hosts.meet(name)
            self._write(host, host.own_counts, unlearned(record)._replace(updated_at=now.wall))
            self._may_know_more = True

    def _join_given_up(self, host: Host, budget: Budget) -> None:
        """Give up a host that is met after its group was."""
        state = self._politeness.state(budget.key)
        if state is not None and state.gate is Reason.RETIRED:
            for other in budget.members:
                if other is not host and other.given_up is not None:
                    self._give_up(host, other.given_up)
                    return

    def _give_up(self, host: Host, reason: str) -> None:
        _, counts = _known(host)
        self._write(host, counts, counts.complete(host.name)._replace(retired=reason))

    def _learn(self, lesson: Remembered) -> None:
        """Keep what the politeness core has learned; of a group it is in the record of its key."""
        record = self._latest(lesson.host) or HostRecord(lesson.host)
        host = self._hosts.meet(lesson.host)
        self._may_know_more |= host.counts is None
        self._write(host, host.own_counts, with_lesson(record, lesson))

    def _write(self, host: Host, counts: HostCounts, record: HostRecord) -> None:
        counts.put(record)
        self._hosts.change(host, counts)


def _known(host: Host) -> tuple[Budget, HostCounts]:
    """Return what a known host has."""
    assert host.budget is not None, "it was recalled"
    assert host.counts is not None, "it was recalled"
    return host.budget, host.counts


def _at(instant: Instant, now: Now) -> float:
    """Return the wall time of an instant of this run; 0 if there is none."""
    return 0.0 if instant == NEVER else round(now.wall - (now.mono - instant), 3)
