"""A host's record in the store, as the politeness core remembers it, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.politeness.memory.base import Remembered
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from mannerly.crawler.model import HostRecord, Now

LONGEST_UNSURE_S = 86_400.0  # of a wait from before a reboot: it may be over long since


def unlearned(record: HostRecord) -> HostRecord:
    """Return a host as on its first day, but for its counts and the waits that it asked for."""
    return record._replace(
        adaptive_delay_s=0.0,
        adaptive_delay_floor_s=0.0,
        crawl_delay_s=0.0,
        allowance=0.0,
        block_s=0.0,
        concurrency=0,
        is_proven=False,
        retired=None,
        failing_since=0.0,
        failures_in_a_row=0,
        breaker_failures=0,
        breaker_opens=0,
        breaker_until=0.0,
    )


def left_s(record: HostRecord, until: float, boot: str, now: Now) -> float:
    """Return how much is left of a wait that ends at `until`; 0 if it is over.

    Both ends of what was left then come from one clock, so no step of it matters. The time since
    then is known if the machine was not rebooted. Otherwise it could only be read from the wall
    clock, which may be a day wrong, so the wait is served in full.
    """
    was_left_s = until - record.updated_at
    if boot and boot == record.boot:
        return max(0.0, was_left_s - max(0.0, now.mono - record.updated_mono))
    return max(0.0, min(was_left_s, LONGEST_UNSURE_S))


def remembered_of(record: HostRecord, wall: float, pause_s: float, open_s: float) -> Remembered:
    """Return what the politeness core is told of a record; its waits end after these times."""
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
        blocked_until=wall + pause_s,
        updated_at=record.updated_at,
        failing_since=record.failing_since,
        failures_in_a_row=record.breaker_failures,
        breaker_opens=record.breaker_opens,
        breaker_until=wall + open_s if record.breaker_until else 0.0,
    )


def with_lesson(record: HostRecord, lesson: Remembered) -> HostRecord:
    """Return a record with what the politeness core has learned."""
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
        failing_since=lesson.failing_since,
        breaker_failures=lesson.failures_in_a_row,
        breaker_opens=lesson.breaker_opens,
        breaker_until=lesson.breaker_until,
    )
