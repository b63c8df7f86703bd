"""The instants at which an engine commits and ticks, and its patience with a full disk.

    commit   `Rhythm.commit_after_s` after the one before, later while commits take long
    early    every `Rhythm.early_s`: whether a commit is awaited before that
    tick     every `Rhythm.tick_s`: links of other shards, and what need not happen at once

This module knows no shard and reads no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreFull

from .machine import FULL_PATIENCE_S

if TYPE_CHECKING:
    from mannerly.crawler.store.fleet import Rhythm
    from mannerly.politeness.model import Instant

COMMIT_SHARE = 0.1  # of all time; if commits take more, they are made less often
FULL_RETRY_S = 1.0  # between two tries to write to a full disk


class CommitSchedule:
    """The instants of the next commit and of the next tick of one engine."""

    def __init__(self, rhythm: Rhythm, now: Instant) -> None:
        self.rhythm = rhythm
        self.tick_at = now
        # An instant, not a span: the sum of two floats may never become as large as a third.
        self.commit_at = now + rhythm.commit_after_s
        self.early_at = now
        # A commit costs much, so it is not made for the sake of few shards.
        self.is_seldom = rhythm.early_s > 0.0
        self.is_disk_full = False  # the last write found no room
        self.trouble: str | None = None  # why nothing can be written
        self._full_since: Instant = now

    def wakes_at(self, now: Instant, *, has_batch: bool) -> Instant:
        """Return when there is something to do here; `has_batch`: something waits for a commit."""
        until = max(now, self.tick_at)
        if has_batch:
            until = min(until, self.commit_at)
            if self.is_seldom:
                until = min(until, max(now, self.early_at))
        return until

    def takes_early_look(self, now: Instant) -> bool:
        """Return whether it is time to see if a commit is awaited; the next time is later then."""
        if now < self.early_at or self.is_disk_full:
            return False
        self.early_at = now + self.rhythm.early_s
        return True

    def committed(self, took_s: float, now: Instant) -> None:
        """Plan the next commit after one of everything."""
        rhythm = self.rhythm
        pause_s = took_s * (1.0 - COMMIT_SHARE) / COMMIT_SHARE
        self.commit_at = now + min(max(rhythm.commit_after_s, pause_s), rhythm.commit_within_s)
        if self.is_seldom:
            self.early_at = now + max(rhythm.early_s, pause_s)
            self.tick_at = now  # links are passed on in the same rhythm

    def ticked(self, now: Instant) -> None:
        """Plan the next tick. All that was to be written has found room."""
        self.tick_at = now + self.rhythm.tick_s
        self.is_disk_full, self.trouble = False, None

    def wait_for_room(self, error: StoreFull, now: Instant) -> None:
        """Write again later. Nothing was written, so nothing is lost.

        Raises:
            StoreFull: the disk has been full for FULL_PATIENCE_S.
        """
        if not self.is_disk_full:
            self.is_disk_full, self._full_since = True, now
        if now - self._full_since >= FULL_PATIENCE_S:
            raise StoreFull(f"{error} (waited {FULL_PATIENCE_S:g} s)") from error
        self.trouble = str(error)
        self.commit_at = self.tick_at = now + FULL_RETRY_S
