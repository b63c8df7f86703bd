"""P4, for several crawls of one host: one sender, one pace, every pause kept through handovers."""

from __future__ import annotations

from .model import Mutant

_SHARED = "crawler/shard/shared.py"
_SHARD = "crawler/shard/shard.py"
_CONTRACT = "crawler/store/host_memory.py"
_FILE = "crawler/store/sqlite/host_file.py"
_HOST = "politeness/host.py"
_TURNS = "crawler/shard/test_shared.py::"
_SUITE = "crawler/store/test_host_memory.py::TestHostFile::"

SHARED = (
    Mutant(
        "send to a host that another crawl holds",
        "P4",
        _SHARED,
        "            self._away.setdefault(key, _Away(now.mono))\n            self._politeness.lend(key, now=now.mono)\n",
        "            self._away.setdefault(key, _Away(now.mono))\n",
        (_TURNS + "test_the_one_that_waits_says_for_whom",),
    ),
    Mutant(
        "hand over before the last answer",
        "P4",
        _SHARED,
        "        done = [key for key in self._ending if self._in_flight(key) == 0]",
        "        done = list(self._ending)",
        (_TURNS + "test_a_host_is_handed_over_when_its_requests_are_answered",),
    ),
    Mutant(
        "hand over without the next instant",
        "P4",
        _SHARED,
        "            next_in_s=max(0.0, state.allowed_at - now.mono),",
        "            next_in_s=0.0,",
        (_TURNS + "test_a_retry_after_outlives_the_crawl_that_got_it",),
    ),
    Mutant(
        "take over without the stored wait",
        "P4",
        _SHARED,
        "        if budget.next_in_s > 0.0 and until > politeness.not_before(key):",
        "        if False:",
        (_TURNS + "test_a_retry_after_outlives_the_crawl_that_got_it",),
    ),
    Mutant(
        "write a pause with the next sign of life",
        "P4",
        _SHARD,
        "            shared.is_urgent |= self.parts.is_urgent\n",
        "",
        (_TURNS + "test_a_retry_after_outlives_the_crawl_that_got_it",),
    ),
    Mutant(
        "send after the lease could have ended",
        "P4",
        _SHARD,
        "        if shared is not None and instant >= shared.sure_until:",
        "        if shared is not None and instant < 0.0:",
        (_TURNS + "test_a_crawl_that_was_stopped_for_long_sends_nothing_when_it_wakes",),
    ),
    Mutant(
        "never end a turn",
        "P4",
        _SHARED,
        "        return has_sent or held_s >= LONGEST_ROUND * share_s",
        "        return False",
        (_TURNS + "test_two_crawls_share_one_pace_and_take_turns",),
    ),
    Mutant(
        "forget the gap of a dead holder",
        "P4",
        _CONTRACT,
        "    return known._replace(gap_s=gap_s, next_in_s=max(known.next_in_s, gap_s))",
        "    return known._replace(gap_s=gap_s)",
        (_SUITE + "test_the_hosts_of_a_dead_holder_are_taken_over",),
    ),
    Mutant(
        "let a later word shorten a wait",
        "P4",
        _CONTRACT,
        "    new = new._replace(next_in_s=max(stored.next_in_s, new.next_in_s))\n",
        "",
        (_SUITE + "test_a_wait_is_never_shortened_by_what_is_written",),
    ),
    Mutant(
        "compare clocks across a reboot",
        "P4",
        "crawler/store/sqlite/host_rows.py",
        '    return its_boot == boot and (boot != "" or mono < now.mono + STALE_S)',
        '    return boot != "" or mono < now.mono + STALE_S',
        (_SUITE + "test_after_a_reboot_a_wait_is_served_in_full",),
    ),
    Mutant(
        "give a host to whoever asks first",
        "P4",
        _FILE,
        "            if first is not None and first.holder.crawl != crawl and is_early:",
        "            if False:",
        (_SUITE + "test_hosts_are_given_in_the_order_of_wishes",),
    ),
    Mutant(
        "let a connecting request leave a lent host",
        "P4",
        _HOST,
        "            or requested.is_lent\n",
        "",
        ("politeness/test_lent.py::test_a_request_that_is_connecting_does_not_leave",),
    ),
)
