"""Lines on which the promises of crawls in a server rest: leases, waits, numbers of URLs."""

from __future__ import annotations

from .model import Mutant

_VALKEY = "crawler/store/valkey/"
_FAULTS = "crawler/store/test_store_valkey_faults.py::"
_REMINDERS = "crawler/store/test_reminders.py::"
_HOSTS = "hosts/test_host_server.py::"
_OUTRAN = "crawler/runtime/test_outran.py::"
_GOVERNOR = "crawler/runtime/test_governor.py::"

FLEETS = (
    Mutant(
        "claim a shard whatever its owner has renewed since",
        "P4",
        _VALKEY + "scripts/claim.lua",
        "if token ~= '' and A.over ~= token .. ' ' .. beat then\n",
        "if token ~= '' and A.over == '' then\n",
        (_FAULTS + "test_a_beat_that_a_claimer_does_not_know_of_refuses_its_claim",),
    ),
    Mutant(
        "read the age of a wait from the server's clock",
        "P4",
        _VALKEY + "host_codec.py",
        "    age_s = max(0.0, clocks.mono + clocks.clock_s - record.updated_mono)\n",
        "    age_s = max(0.0, clocks.wall - record.updated_at + clocks.ahead_s)\n",
        (_FAULTS + "test_a_wait_does_not_depend_on_the_clock_of_the_server",),
    ),
    Mutant(
        "compare the monotonic clocks of two machines",
        "P4",
        "database/ages.py",
        "        return max(0.0, now + ahead_s - made_at)\n",
        "        return max(0.0, now - made_at)\n",
        ("crawler/store/test_ages.py::test_another_machine_is_known_by_the_newest_of_its_stamps",),
    ),
    Mutant(
        "compare waits on a clock that was set between them",
        "P4",
        _VALKEY + "host_codec.py",
        "    return round(until - record.updated_at + record.updated_mono, 3) if until else 0.0\n",
        "    return until\n",
        (_REMINDERS + "test_no_wait_becomes_shorter_when_the_clock_of_the_server_was_set",),
    ),
    Mutant(
        "give the number of a URL again",
        "P2",
        _VALKEY + "scripts/arrive.lua",
        "  return counts.seq + #found / FOUND_SIZE > MOST_URLS\n",
        "  return false\n",
        (_FAULTS + "test_a_shard_without_numbers_for_more_urls_ends_the_crawl",),
    ),
    Mutant(
        "keep dead holders of hosts in a server",
        "P5",
        "hosts/server.py",
        "        if dead := self._dead:\n",
        "        if dead := set[str]():\n",
        (_HOSTS + "test_dead_holders_are_removed_with_their_leases_and_wishes",),
    ),
    Mutant(
        "add links as fast as before to an owner that lags behind",
        "P5",
        "crawler/runtime/engine.py",
        "                if result.lagging:\n",
        "                if False:\n",
        (_OUTRAN + "test_fewer_requests_are_under_way_until_the_owner_keeps_up",),
    ),
    Mutant(
        "stop a member because another one lags behind",
        "P7",
        "crawler/runtime/governor.py",
        "max(1, self.most // 4)",
        "0",
        (
            _OUTRAN + "test_fewer_requests_are_under_way_until_the_owner_keeps_up",
            _GOVERNOR + "test_a_member_that_outruns_an_owner_slows_to_a_quarter",
        ),
    ),
    Mutant(
        "never say that an owner lags behind",
        "P5",
        _VALKEY + "scripts/links.lua",
        "then lagging = lagging + 1 end\n",
        "then lagging = 0 end\n",
        (_FAULTS + "test_links_that_come_faster_than_their_owner_takes_them_wait",),
    ),
    Mutant(
        "forget that the group of a new host was given up",
        "P7",
        "crawler/host/records.py",
        "        if state is not None and state.gate is Reason.RETIRED:\n",
        "        if False:\n",
        ("crawler/shard/test_hosts.py::test_a_group_that_is_given_up_takes_its_hosts_along",),
    ),
)
