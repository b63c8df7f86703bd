"""The times of a fleet fit each other: what must hold between them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import mannerly.crawler.store.fleet_times as t
from mannerly.crawler.store.fleet import SHARED
from mannerly.database.client import TIMEOUT_S

LONGEST_TAKEOVER_S = 20.0  # promised in docs/how-to/fleet.md
COMMITTED_S = 1.0


def test_an_owner_is_silent_before_its_lease_can_end() -> None:
    """Also if the answer to a renewal, and a call after it, take as long as they may."""
    assert TIMEOUT_S < t.MARGIN_S
    assert t.RENEW_S + 2 * TIMEOUT_S + t.AGAIN_S <= t.LEASE_S - t.MARGIN_S


def test_a_lease_survives_a_renewal_that_fails() -> None:
    """The second one comes before its owner has to be silent."""
    assert 2 * t.RENEW_S + TIMEOUT_S <= t.LEASE_S - t.MARGIN_S


def test_shards_of_a_dead_member_have_another_owner_in_time() -> None:
    """When its lease is over: found, and claimed beyond the quota if need be."""
    assert t.SILENT_S < t.LEASE_S
    assert t.LEASE_S + t.BALANCE_S + t.OVERDUE_S + t.BALANCE_S < LONGEST_TAKEOVER_S


def test_a_living_member_is_counted() -> None:
    """One renewal may be late by a timeout; after an outage all heartbeats are renewed first."""
    assert t.RENEW_S + TIMEOUT_S + t.AGAIN_S <= t.SILENT_S
    assert t.SILENT_S - t.RENEW_S < t.BACK_S


def test_a_lease_that_has_ended_is_left_to_an_owner_that_can_renew_it() -> None:
    """After a restart of the server that takes a lease, and then a renewal."""
    assert t.RESTARTED_S >= t.LEASE_S + t.RENEW_S
    assert t.LEFT_S > t.RESTARTED_S
    assert t.WAITING_S < t.OVERDUE_S


def test_a_shard_beyond_the_quota_stays_until_members_see_each_other() -> None:
    """Else it would change hands again at once."""
    assert t.BEYOND_KEPT_S >= t.SILENT_S + t.RENEW_S


def test_waits_are_kept_longer_than_a_server_can_forget_them() -> None:
    """Until the failover is noticed, and the member has called again."""
    assert t.WAITS_KEPT_S >= t.REPLICA_LAG_S + t.FAILOVER_NOTICED_S + t.AGAIN_S + TIMEOUT_S
    assert t.LEASE_S > t.RENEW_S + TIMEOUT_S  # told again before a claim is granted


def test_a_page_is_committed_within_a_second() -> None:
    """The commit's own time included; polls are no more frequent than commits."""
    assert SHARED.commit_after_s <= SHARED.commit_within_s < COMMITTED_S
    assert SHARED.tick_s > t.POLL_S
    assert t.MOVING_S < t.BALANCE_S


def test_hosts_are_given_up_when_every_heartbeat_has_said_so() -> None:
    """Two renewals of each member."""
    assert t.QUIET_S >= 2 * t.RENEW_S + TIMEOUT_S
    assert t.REST_S < t.REST_AGAIN_S


def test_every_time_has_a_sentence() -> None:
    """In the line above it."""
    lines = Path(t.__file__).read_text("utf-8").splitlines()
    for before, line in pairwise(lines):
        if re.match(r"[A-Z_]+_S = ", line):
            assert re.match(r"# .*[.,]$", before), line
