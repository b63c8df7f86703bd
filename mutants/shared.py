"""P4, for several crawls of one host: one sender, one pace, every pause kept through handovers."""

from __future__ import annotations

from .model import Mutant

_SHARED = "hosts/turns.py"
_SHARD = "crawler/shard/shard.py"
_CONTRACT = "hosts/base.py"
_FILE = "hosts/file.py"
_HOST = "politeness/host.py"
_TURNS = "crawler/shard/test_shared.py::"
_PROGRAMS = "hosts/test_programs.py::"
_SUITE = "hosts/test_host_memory.py::TestHostFile::"

SHARED = (
    Mutant(
        "keep the lease of every host that was ever met",
        "P4",
        _SHARED,
        "        if self._forgotten:\n            self._give_back(now)\n",
        "",
        (_TURNS + "test_hosts_that_the_core_forgets_are_given_back",),
    ),
    Mutant(
        "let the next holder of a forgotten host send at once",
        "P4",
        _SHARED,
        "            return HostBudget(key, lesson, crawl_delay_s, sent_s_ago=0.0)",
        "            return HostBudget(key, lesson, crawl_delay_s)",
        (_TURNS + "test_a_host_that_was_given_back_is_claimed_again",),
    ),
    Mutant(
        "send to a host that another crawl holds",
        "P4",
        "crawler/shard/host_leases.py",
        "            self._politeness.suspend(budget.key, now=now.mono)\n            self._hosts.touch(budget.members)\n",
        "            self._hosts.touch(budget.members)\n",
        (_TURNS + "test_the_one_that_waits_says_for_whom",),
    ),
    Mutant(
        "hand over before the last answer",
        "P4",
        _SHARED,
        "        done = [each for each in self._ending if self._in_flight(each) == 0]",
        "        done = list(self._ending)",
        (_TURNS + "test_a_host_is_handed_over_when_its_requests_are_answered",),
    ),
    Mutant(
        "hand over without the next instant",
        "P4",
        _SHARED,
        "            max(0.0, state.allowed_at - now.mono),",
        "            0.0,",
        (_TURNS + "test_a_retry_after_outlives_the_crawl_that_got_it",),
    ),
    Mutant(
        "take over without the stored wait",
        "P4",
        _SHARED,
        "        if told.next_in_s > 0.0 and until > politeness.not_before(key):",
        "        if False:",
        (_TURNS + "test_a_retry_after_outlives_the_crawl_that_got_it",),
    ),
    Mutant(
        "write a pause with the next sign of life",
        "P4",
        _SHARD,
        "            if pending.is_urgent:\n",
        "            if False:\n",
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
        "hosts/rows.py",
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
        "join without the leases of a lone holder",
        "P4",
        _FILE,
        "                self._journal.apply()\n                row = self._file.row(",
        "                row = self._file.row(",
        (
            _SUITE + "test_a_holder_that_is_alone_writes_no_row_for_a_host",
            _SUITE + "test_who_joins_later_finds_every_lease",
        ),
    ),
    Mutant(
        "keep a journal beside another holder",
        "P4",
        _FILE,
        "        return not any(self._is_alive(*each, now=now) for each in others)",
        "        return True",
        (_SUITE + "test_a_host_of_another_crawl_is_in_use_until_it_is_released",),
    ),
    Mutant(
        "forget the gaps of a lone holder's hosts",
        "P4",
        "hosts/journal.py",
        "SELECT asked.key, claimed.holder, coalesce(asked.value, 0) FROM",
        "SELECT asked.key, claimed.holder, 0.0 FROM",
        (_SUITE + "test_who_comes_after_the_death_of_a_lone_holder_waits_as_long_as_any_other",),
    ),
    Mutant(
        "claim on without looking at the journal of another",
        "P4",
        _FILE,
        "                self._journal.apply()\n                self._file.execute(_HOLD",
        "                self._file.execute(_HOLD",
        (_SUITE + "test_a_lone_holder_that_was_stopped_claims_nothing_of_the_next_one",),
    ),
    Mutant(
        "trust the names of hosts after another process has written",
        "P4",
        "hosts/table.py",
        "            self._version, self._names = row[0], None",
        "            self._version = row[0]",
        (_SUITE + "test_a_lone_holder_is_told_of_a_wait_that_another_process_has_written",),
    ),
    Mutant(
        "let a connecting request leave a suspended host",
        "P4",
        _HOST,
        "            or requested.is_suspended\n",
        "",
        ("politeness/test_suspended.py::test_a_request_that_is_connecting_does_not_leave",),
    ),
    Mutant(
        "let a program send while its memory is away",
        "P4",
        "politeness/drivers/sharing.py",
        "        if now >= self._sharing.sure_until:\n            return Wait(",
        "        if False:\n            return Wait(",
        (_PROGRAMS + "test_nothing_is_sent_while_the_server_is_away",),
    ),
    Mutant(
        "let a program send after its lease could have ended",
        "P4",
        "hosts/programs.py",
        "        return host is not None and isinstance(host.lease, Turn) and now < self.sure_until",
        "        return host is not None",
        (_PROGRAMS + "test_a_program_that_was_stopped_sends_nothing_when_it_wakes",),
    ),
    Mutant(
        "write a program's pause with the next sign of life",
        "P4",
        "hosts/programs.py",
        "            if self._is_urgent:\n                turns.hurry()\n",
        "",
        (_PROGRAMS + "test_a_pause_is_written_before_the_program_can_die",),
    ),
    Mutant(
        "start a program's hosts without a lease",
        "P4",
        "hosts/programs.py",
        "        if is_new:\n            self._politeness.suspend(key, now=now)\n            self._wake.notify()\n",
        "        if is_new:\n            self._wake.notify()\n",
        (_PROGRAMS + "test_a_host_is_not_asked_before_its_lease_is_there",),
    ),
)
