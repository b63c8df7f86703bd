"""What was mended late: lacks of the machine, parts that die, orders that wait, hosts given up."""

from __future__ import annotations

from .model import Mutant

_SHARD = "crawler/shard/shard.py"
_LACKS = "crawler/shard/test_lacks.py"
_GIVEN_UP = "crawler/shard/test_given_up.py"
_BOOK = "crawler/runtime/order_book.py"
_BOOK_TESTS = "crawler/runtime/test_order_book.py"
_SUPERVISED = "crawler/runtime/supervised.py"
_SUPERVISED_TESTS = "crawler/runtime/test_supervised.py"
_CURL = "crawler/fetch/curl.py"
_CURL_TESTS = "crawler/fetch/test_fetch_curl.py"
_DOCTOR = "crawler/store/sqlite/doctor.py"
_FORBIDDEN = "test_forbidden_pages_are_asked_for_again_until_three_have_stayed_so"
_DAMAGE = "crawler/store/test_damage.py"

LEFT = (
    Mutant(
        "ask without end for a page that lacks memory",
        "P6",
        "crawler/shard/follows.py",
        "    if lacked >= LACK_TRIES:\n",
        "    if lacked < 0:\n",
        (f"{_LACKS}::test_a_page_that_lacks_memory_while_it_is_read_fails_in_the_end",),
    ),
    Mutant(
        "ask without end for a page that has no room",
        "P6",
        _SHARD,
        "_SCARCE = (LocalError.NO_MEMORY, LocalError.NO_ROOM)",
        "_SCARCE = (LocalError.NO_MEMORY,)",
        (f"{_LACKS}::test_a_page_for_which_there_is_no_room_fails_in_the_end",),
    ),
    Mutant(
        "forget how often memory lacked",
        "P6",
        _SHARD,
        "        self._lacked[item.seq] += 1\n",
        "        self._lacked[item.seq] = 1\n",
        (f"{_LACKS}::test_a_page_that_lacks_memory_while_it_is_read_fails_in_the_end",),
    ),
    Mutant(
        "exit 0 although memory lacked for a page",
        "P7",
        "cli/endings.py",
        "    unread = result.unread + stats.crashed + sum(stats.failures[each] for each in UNFINISHED)\n",
        "    unread = stats.crashed\n",
        (f"{_LACKS}::test_a_page_that_lacks_memory_while_it_is_read_fails_in_the_end",),
    ),
    Mutant(
        "take a request that left for one that did not",
        "P4",
        "crawler/shard/reporting.py",
        "flight.stage is Stage.SENT or ",
        "",
        (f"{_LACKS}::test_a_request_that_left_and_failed_here_has_used_its_slot",),
    ),
    Mutant(
        "start before reading what came while stopped",
        "P4",
        "crawler/runtime/engine.py",
        "        if busy_s > STALLED_S:",
        "        if False:",
        (
            (
                "crawler/runtime/test_starved.py::"
                "test_a_refusal_that_came_while_the_process_was_stopped_is_read_first"
            ),
        ),
    ),
    Mutant(
        "send although the process was stopped just now",
        "P4",
        _CURL,
        "        if now - self._read_until > FRESH_S and self._has_company(request):",
        "        if False:",
        ((f"{_CURL_TESTS}::test_nothing_leaves_if_the_process_was_stopped_immediately_before"),),
    ),
    Mutant(
        "end a run without reading what has arrived",
        "P4",
        "crawler/runtime/engine.py",
        "        self._wire.close_exit()\n        self._receive(0.0)\n",
        "",
        (
            (
                "crawler/runtime/test_leaving.py::"
                "test_a_refusal_that_has_arrived_when_the_run_ends_is_kept"
            ),
        ),
    ),
    Mutant(
        "take a stopped crawl for one whose workers hang",
        "P1",
        "crawler/runtime/supervisor.py",
        "                worker.excuse(turn_s)\n",
        "                pass\n",
        (
            (
                "crawler/runtime/test_stuck.py::"
                "test_workers_of_a_crawl_that_was_stopped_are_not_taken_for_stuck"
            ),
        ),
    ),
    Mutant(
        "try again on a connection that may be dead",
        "P6",
        "crawler/fetch/transfer.py",
        "int(is_fresh)",
        "0",
        (f"{_CURL_TESTS}::test_a_retry_has_a_connection_of_its_own",),
    ),
    Mutant(
        "revive a host at its first retry only",
        "P1",
        "crawler/shard/given_up.py",
        "        if not back.hosts:\n            self._revived = None\n",
        "",
        (f"{_GIVEN_UP}::test_a_second_retry_revives_a_host_again",),
    ),
    Mutant(
        "give up a host that the operator has paused",
        "P1",
        "politeness/gate.py",
        "        if self._gate not in _SET_BY_OPERATOR:\n            self.retire(reason, now)\n",
        "        self.retire(reason, now)\n",
        (f"{_GIVEN_UP}::test_whatever_gives_a_host_up_leaves_a_paused_one_alone",),
    ),
    Mutant(
        "obey the robots.txt of another shard's host",
        "P4",
        "crawler/shard/origins.py",
        "            if self._routes.owns(learned.host):",
        "            if learned.host:",
        (
            (
                "crawler/shard/test_foreign.py::"
                "test_owner_does_not_obey_rules_of_an_origin_that_is_not_its_own"
            ),
        ),
    ),
    Mutant(
        "keep every request for a robots.txt of another shard",
        "P6",
        _BOOK,
        "        if self._robots > 2 * ROBOTS_KEPT:\n",
        "        if self._robots < 0:\n",
        (f"{_BOOK_TESTS}::test_requests_for_robots_files_of_others_are_kept_for_a_while_only",),
    ),
    Mutant(
        "forget orders of people with those of the web",
        "P6",
        _BOOK,
        "            if too_many and isinstance(order, FetchRobots):\n",
        "            if too_many:\n",
        (f"{_BOOK_TESTS}::test_requests_for_robots_files_of_others_are_kept_for_a_while_only",),
    ),
    Mutant(
        "lose an order that could not be written",
        "P1",
        _BOOK,
        "                self._store.order(self._unsent[0])\n                del self._unsent[0]\n",
        "                self._store.order(self._unsent.pop(0))\n",
        (f"{_BOOK_TESTS}::test_what_cannot_be_written_is_written_later",),
    ),
    Mutant(
        "take a busy file for one without news",
        "P7",
        _BOOK,
        "        except (StoreBusy, StoreAway):\n            return True\n",
        "        except (StoreBusy, StoreAway):\n            return False\n",
        (f"{_BOOK_TESTS}::test_a_busy_file_is_read_later",),
    ),
    Mutant(
        "let a busy file end the run",
        "P6",
        _BOOK,
        "        except (StoreBusy, StoreFull, StoreAway) as error:",
        "        except (StoreFull, StoreAway) as error:",
        (f"{_BOOK_TESTS}::test_a_process_that_holds_the_file_ends_no_run",),
    ),
    Mutant(
        "name no worker that died",
        "P6",
        _SUPERVISED,
        "        if self.deaths and now - self.deaths[-1] < NAMED_S:",
        "        if now < 0.0:",
        (f"{_SUPERVISED_TESTS}::test_a_death_is_named_for_a_while_and_forgiven_after_an_hour",),
    ),
    Mutant(
        "show the trouble of a worker that is gone",
        "P6",
        _SUPERVISED,
        "    return replace(stats.ended(), hosts_known=0)",
        "    return replace(stats, hosts_known=0)",
        (f"{_SUPERVISED_TESTS}::test_the_totals_of_a_dead_worker_stay_and_its_troubles_go",),
    ),
    Mutant(
        "count two lacks of descriptors as one",
        "P6",
        "crawler/runtime/machine.py",
        " or now - self.resume_at > STARVED_AGAIN_S:",
        ":",
        (
            (
                "crawler/runtime/test_starved.py::"
                "test_two_lacks_of_descriptors_with_time_between_are_two"
            ),
        ),
    ),
    Mutant(
        "let a look at a crawl end its start",
        "P6",
        "database/sqlite.py",
        "        cache_bytes: int = 1 << 20,\n        busy_ms: int = _RECOVERY_MS,\n",
        "        cache_bytes: int = 1 << 20,\n        busy_ms: int = 0,\n",
        (
            (
                "crawler/store/test_store_directory.py::"
                "test_the_owner_waits_for_a_file_that_is_locked_for_a_moment"
            ),
        ),
    ),
    Mutant(
        "move only the key of an unreadable row aside",
        "P1",
        _DOCTOR,
        '"row": row}',
        '"row": {}}',
        (f"{_DAMAGE}::test_a_row_that_is_moved_aside_is_kept_whole",),
    ),
    Mutant(
        "forget what an interrupted repair has built",
        "P1",
        _DOCTOR,
        "            if _replaced(file):\n",
        "            if False:\n",
        (f"{_DAMAGE}::test_a_repair_that_was_killed_between_its_renames_can_be_repeated",),
    ),
    Mutant(
        "stumble over a start that was killed within a file",
        "P6",
        "crawler/store/sqlite/crawl.py",
        "        Database.roll_back(file)\n",
        "",
        (
            (
                "crawler/store/test_store_directory.py::"
                "test_a_start_that_was_killed_within_a_file_is_made_anew"
            ),
        ),
    ),
    Mutant(
        "believe no 403 that is given later",
        "P8",
        "politeness/doubts.py",
        "            self._leaning = PROOF\n",
        "            pass\n",
        ("politeness/test_doubts.py::test_the_same_page_given_later_is_a_proof",),
    ),
    Mutant(
        "take forbidden pages for refusals without end",
        "P8",
        "politeness/doubts.py",
        "        self._leaning = max(SURE, self._leaning - 1)\n",
        "",
        (f"crawler/shard/test_403.py::{_FORBIDDEN}",),
    ),
)
