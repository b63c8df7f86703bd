"""What a shard knows of its hosts: the records in the store, and the politeness core's memory.

A host is recalled at its first turn in a run: its record is read, the politeness core is told what
earlier runs learned, and after a crash its gap counts from now, because what was in flight then was
never recorded. What changes is collected until the next commit. Records of hosts that the core has
forgotten are let go after they were written, so the book is as small as the core's registry.

Two keys are in use: a record belongs to a host, a lesson to a host's group (`group_by`). What the
core says of a group holds for all its hosts, those that are met later included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import HostRecord
from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from mannerly.crawler.store.base import ShardStore
    from mannerly.politeness import Politeness
    from mannerly.politeness.model import Instant


WORTH_KEEPING_S = 1.0  # a shorter wait is over before anybody has restarted


class _Sheet:
    """A host's record, but for what was counted since it was last made."""

    __slots__ = ("failed", "failures_in_a_row", "fetched", "record", "refused", "updated_at")

    def __init__(self) -> None:
        self.record: HostRecord | None = None  # most hosts have counts and nothing else
        self.fetched = self.failed = self.refused = self.failures_in_a_row = 0
        self.updated_at = 0.0

    def put(self, record: HostRecord) -> None:
        self.record = record
        self.fetched = record.fetched
        self.failed = record.failed
        self.refused = record.refused
        self.updated_at = record.updated_at

    def complete(self, host: str) -> HostRecord:
        """Made when somebody wants it, for pages are counted more often than records written."""
        make = HostRecord if self.record is None else self.record._replace
        return make(
            host=host,
            updated_at=self.updated_at,
            fetched=self.fetched,
            refused=self.refused,
            failed=self.failed,
        )


class HostBook:
    """The records of the hosts that are active in this run."""

    def __init__(self, store: ShardStore, politeness: Politeness, *, is_resumed: bool) -> None:
        self._store = store
        self._politeness = politeness
        self._is_resumed = is_resumed
        self._sheets: dict[str, _Sheet] = {}
        self.known = self._sheets.keys()  # the hosts that were recalled
        self._touched: set[str] = set()
        self._departed: dict[str, HostRecord] = {}  # forgotten by politeness, not yet committed
        self._may_know_more = is_resumed  # the store, of hosts that are not in the book
        self._is_grouped = politeness.settings.group_by != "host"
        self._members: dict[str, list[str]] = {}  # known hosts by the key of their group
        self._given_up: dict[str, str] = {}  # groups that were retired, and why

    def retired(self, host: str) -> str | None:
        """Why a known host was given up, if it was."""
        record = self._sheets[host].record
        return None if record is None else record.retired

    def fetched(self, host: str) -> int:
        """Pages that a known host has given."""
        return self._sheets[host].fetched

    def recall(self, host: str, now: Instant, wall: float) -> None:
        """A host's first turn in this run: what earlier runs learned about it."""
        self._sheets[host] = sheet = _Sheet()
        if self._is_grouped:
            self._join(host, wall)
        if not self._may_know_more:
            return  # nor can anybody have departed
        record = self._departed.pop(host, None)
        if record is not None:
            self._touched.add(host)
        else:
            record = self._store.host(host)
        if record is not None:
            sheet.put(record)
        key = self._politeness.key(host)
        if key not in self._politeness:  # else another host of its group was here first
            learned = record if key == host else self._store.host(key)
            if learned is not None and learned.updated_at:
                self._politeness.recall(_remembered(learned, wall), now=now, wall=wall)
            if self._is_resumed:
                self._politeness.contacted(host, now=now)

    def count(
        self, host: str, wall: float, *, fetched: int = 0, failed: int = 0, refused: int = 0
    ) -> None:
        """Add to a known host's counts."""
        sheet = self._sheets[host]
        sheet.fetched += fetched
        sheet.failed += failed
        sheet.refused += refused
        sheet.updated_at = wall
        if failed:
            sheet.failures_in_a_row += failed
        elif fetched:
            sheet.failures_in_a_row = 0
        self._touched.add(host)

    def failures_in_a_row(self, host: str) -> int:
        """How often a known host has failed since its last success in this run."""
        return self._sheets[host].failures_in_a_row

    def retire(self, key: str, reason: str, wall: float) -> list[str]:
        """Give up the hosts of a group, which are returned.

        That is written down with the next commit, so that a crash does not bring them back.
        """
        if not self._is_grouped:
            self._retire(key, reason, wall)
            return [key]
        self._given_up[key] = reason
        members = list(self._members.get(key, ()))
        for host in members:
            self._retire(host, reason, wall)
        return members

    def forget(self, key: str) -> None:
        """The politeness core has forgotten it; what is not committed yet is kept until then."""
        self._may_know_more = True
        for host in self._members.pop(key, ()) if self._is_grouped else (key,):
            sheet = self._sheets.pop(host, None)
            if sheet is not None and host in self._touched:
                self._touched.discard(host)
                self._departed[host] = sheet.complete(host)

    def changes(self, now: Instant, wall: float) -> list[HostRecord]:
        """What the next commit has to write. The same again, if that commit fails."""
        for lesson in self._politeness.drain(now=now, wall=wall):
            self._learn(lesson)
        return [*self._departed.values(), *(self._dated(host, now, wall) for host in self._touched)]

    def _dated(self, host: str, now: Instant, wall: float) -> HostRecord:
        """With the next instant at which it may be contacted: a crash must not shorten a wait."""
        record = self._sheets[host].complete(host)
        wait_s = self._politeness.not_before(host) - now
        return record._replace(next_at=wall + wait_s) if wait_s > WORTH_KEEPING_S else record

    def committed(self) -> None:
        """The changes are in the store."""
        self._touched.clear()
        self._departed.clear()

    def _join(self, host: str, wall: float) -> None:
        key = self._politeness.key(host)
        self._members.setdefault(key, []).append(host)
        if key in self._given_up:
            self._retire(host, self._given_up[key], wall)

    def _retire(self, host: str, reason: str, wall: float) -> None:
        sheet = self._sheets.get(host)
        if sheet is not None:
            self._write(sheet, sheet.complete(host)._replace(retired=reason, updated_at=wall))

    def _learn(self, lesson: Remembered) -> None:
        host = lesson.host
        sheet = self._sheets.get(host)
        if sheet is not None:
            self._write(sheet, _learned(sheet.complete(host), lesson))
        else:
            known = self._departed.get(host) or self._store.host(host) or HostRecord(host=host)
            self._departed[host] = _learned(known, lesson)
            self._may_know_more = True

    def _write(self, sheet: _Sheet, record: HostRecord) -> None:
        sheet.put(record)
        self._touched.add(record.host)


def _remembered(record: HostRecord, wall: float) -> Remembered:
    blocked_until = max(record.blocked_until, record.next_at)
    # A clock that was set back since must not make a pause longer than it was.
    was_left_s = blocked_until - record.updated_at
    return Remembered(
        host=record.host,
        lesson=Lesson(
            delay_s=record.adaptive_delay_s,
            floor_s=record.adaptive_delay_floor_s,
            allowance=record.allowance,
            block_s=record.block_s,
            concurrency=record.concurrency,
            is_proven=record.is_proven,
        ),
        crawl_delay_s=record.crawl_delay_s,
        blocked_until=min(blocked_until, wall + was_left_s),
        updated_at=record.updated_at,
    )


def _learned(record: HostRecord, lesson: Remembered) -> HostRecord:
    return record._replace(
        adaptive_delay_s=lesson.lesson.delay_s,
        adaptive_delay_floor_s=lesson.lesson.floor_s,
        crawl_delay_s=lesson.crawl_delay_s,
        allowance=lesson.lesson.allowance,
        block_s=lesson.lesson.block_s,
        concurrency=lesson.lesson.concurrency,
        is_proven=lesson.lesson.is_proven,
        blocked_until=lesson.blocked_until,
        updated_at=lesson.updated_at,
    )
