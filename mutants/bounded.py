"""P5 memory is bounded, P6 nothing hangs, P7 an exit of 0 means done, P8 near the limit."""

from __future__ import annotations

from .model import Mutant

_TRANSFER = "crawler/fetch/transfer.py"
_BUDGET = "crawler/runtime/budget.py"
_AWAY = "crawler/runtime/test_store_away.py"
_LEAVING = "crawler/runtime/test_extract_leaving.py"

BOUNDED = (
    Mutant(
        "keep a body beyond its cap",
        "P5",
        "crawler/fetch/transfer.py",
        "                chunk, size, self._is_cut = chunk[: self._room], self._room, True\n",
        "                self._room = size\n",
        ("crawler/fetch/test_fetch_contract.py::test_fetcher_cuts_a_body_at_its_cap",),
        ("H1",),
    ),
    Mutant(
        "read headers without end",
        "P5",
        _TRANSFER,
        "        is_oversized = self._is_oversized(head)",
        "        is_oversized = False",
        ("crawler/fetch/test_fetch_curl.py::test_curl_types_what_is_malformed",),
    ),
    Mutant(
        "ignore the frontier's memory limit",
        "P5",
        "crawler/frontier/windows.py",
        "        room = 0 if in_memory >= self._memory_limit else self._per_host\n",
        "        room = self._per_host\n",
        (
            "crawler/frontier/test_frontier_memory.py::test_what_arrives_beyond_the_memory_limit_stays_on_disk",
        ),
    ),
    Mutant(
        "refill a window without regard to memory",
        "P5",
        "crawler/frontier/windows.py",
        "            limit = max(1, min(self._per_host * (ROOMY if roomy > 0 else 1), room))\n",
        "            limit = self._per_host * (ROOMY if roomy > 0 else 1)\n",
        (
            "crawler/frontier/test_frontier_memory.py::test_windows_are_refilled_within_the_memory_limit",
        ),
    ),
    Mutant(
        "grow a window beyond its limit",
        "P5",
        "crawler/host/queue.py",
        "            return 1 - self._cut(max(1, room))",
        "            return 1",
        (
            (
                "crawler/frontier/test_frontier_window.py::"
                "test_window_and_disk_together_are_one_sorted_queue"
            ),
        ),
    ),
    Mutant(
        "remember recent URLs without end",
        "P5",
        "crawler/store/sqlite/shard.py",
        "        self._recent, self._labels, self._inherited = set(), set(), 0\n\n    def _hand_over",
        "\n    def _hand_over",
        (("crawler/store/test_known.py::test_known_urls_leave_memory_when_they_are_in_the_index"),),
    ),
    Mutant(
        "keep a robots.txt beyond its cap",
        "P5",
        "crawler/robots/answer.py",
        "body[:MAX_BODY_BYTES]",
        "body",
        ("crawler/robots/test_gate.py::test_large_file_is_cut_not_refused",),
    ),
    Mutant(
        "keep every body",
        "P5",
        "crawler/shard/shard.py",
        "        answer = credible(answer)\n",
        "        answer = credible(answer)\n        globals().setdefault('_KEPT', []).append(answer)\n",
        ("crawler/shard/test_memory.py::test_bodies_leave_memory_with_their_pages",),
    ),
    Mutant(
        "let a host sleep that could be asked again",
        "P6",
        "crawler/frontier/core.py",
        "        if host.in_memory and earliest < inf:\n",
        "        if host.in_memory and earliest < 0:\n",
        (
            (
                "crawler/frontier/test_frontier_robots.py::"
                "test_pages_wait_for_an_unreachable_robots_and_are_not_lost"
            ),
        ),
    ),
    Mutant(
        "let a host with an idle connection go first for ever",
        "P6",
        "crawler/frontier/core.py",
        "host.on_wire < host.connections and counts.requests % _IN_A_ROW:\n",
        "host.on_wire < host.connections and counts.requests:\n",
        (
            "crawler/frontier/test_frontier.py::test_idle_connection_is_not_a_reason_to_starve_others",
        ),
    ),
    Mutant(
        "leave waiting hosts of a group uncalled",
        "P6",
        "crawler/frontier/core.py",
        "            self._places.call(key, next_due if ready - now <= _WORTH_A_REASON_S else now)",
        "            pass",
        (
            "crawler/frontier/test_frontier.py::test_hosts_are_served_side_by_side_and_each_at_its_own_pace",
        ),
    ),
    Mutant(
        "call a crawl idle with links in its outbox",
        "P7",
        "crawler/shard/remaining.py",
        "counts.queued or counts.outgoing or counts.retries",
        "counts.queued or counts.retries",
        ("crawler/shard/test_idle.py::test_a_shard_with_links_in_its_outbox_is_not_idle",),
    ),
    Mutant(
        "call a crawl idle with URLs in its waiting room",
        "P7",
        "crawler/shard/remaining.py",
        "counts.queued or counts.outgoing or counts.retries",
        "counts.queued - counts.waiting or counts.outgoing or counts.retries",
        ("crawler/shard/test_idle.py::test_a_shard_with_urls_in_the_waiting_room_is_not_idle",),
    ),
    Mutant(
        "call a crawl idle with a page under way",
        "P7",
        "crawler/shard/remaining.py",
        "self._flights.pending or self._pending.batch or self._given_up",
        "self._pending.batch or self._given_up",
        (
            (
                "crawler/shard/test_idle.py::"
                "test_a_shard_that_asks_for_robots_without_a_queue_is_not_idle"
            ),
        ),
    ),
    Mutant(
        "call a crawl idle with links in its inbox",
        "P7",
        "crawler/runtime/coordinator.py",
        "        return not unread and not worker.orders.has_news",
        "        return not worker.orders.has_news",
        ("crawler/runtime/test_idle.py::test_a_worker_with_links_in_its_inbox_is_not_idle",),
        ("I6",),
    ),
    Mutant(
        "start one page more than asked for",
        "P7",
        _BUDGET,
        "        return int(max(0, min(wanted, self._left)))",
        "        return int(max(0, min(wanted, self._left + 1)))",
        ("crawler/runtime/test_budget.py",),
        ("I7",),
    ),
    Mutant(
        "end while unused pages may come back",
        "P7",
        _BUDGET,
        "        return self._limit - self._lost - sum(self._used) <= 0",
        "        return self._limit - self._lost - sum(self._out) <= 0",
        ("crawler/runtime/test_budget.py::test_budget_machine::runTest",),
    ),
    Mutant(
        "end although a link came between two rounds",
        "P1",
        "crawler/runtime/agreement.py",
        "        is_confirmed = self._quiet > 0 and received == self._received",
        "        is_confirmed = self._quiet > 0",
        (
            (
                "crawler/runtime/test_agreement.py::"
                "test_a_link_that_was_received_between_two_rounds_begins_them_again"
            ),
        ),
    ),
    Mutant(
        "grant a dead worker's pages again",
        "P2",
        _BUDGET,
        "        self._lost += self._used[worker] if self._limit == inf else self._out[worker]\n",
        "",
        ("crawler/runtime/test_budget.py::test_budget_machine::runTest",),
    ),
    Mutant(
        "go on after --duration",
        "P7",
        "crawler/runtime/ending.py",
        "            return Ending.DURATION",
        "            return None",
        (
            (
                "crawler/runtime/test_orders.py::"
                "test_duration_can_be_set_while_a_crawl_runs_and_afterwards"
            ),
        ),
        ("I7",),
    ),
    Mutant(
        "ask a host for ever that only refuses",
        "P6",
        "politeness/answers.py",
        "        if bad_s >= self._shared.settings.give_up_after_s:\n",
        "        if bad_s >= 10 * self._shared.settings.give_up_after_s:\n",
        ("politeness/test_host_health.py::test_host_without_a_success_is_given_up_in_the_end",),
    ),
    Mutant(
        "follow one sitemap more than the limit",
        "P5",
        "crawler/shard/sitemaps.py",
        "        if count.taken >= self._limit or count.bytes >= self._max_bytes:\n            return None\n",
        "        if count.taken > self._limit or count.bytes >= self._max_bytes:\n            return None\n",
        ("crawler/shard/test_sitemaps.py::test_an_endless_index_ends_at_the_limit",),
    ),
    Mutant(
        "exit with 0 although URLs are pending",
        "P7",
        "cli/endings.py",
        "    left = result.pending > 0 or result.given_up > 0",
        "    left = result.given_up > 0",
        ("cli/test_crawl_command.py::test_ending_has_its_exit_code",),
    ),
    Mutant(
        "exit with 0 although hosts were given up",
        "P7",
        "cli/endings.py",
        "    left = result.pending > 0 or result.given_up > 0",
        "    left = result.pending > 0",
        ("cli/test_unreachable.py::test_a_site_that_stops_serving_is_given_up",),
    ),
    Mutant(
        "wait for ever for a page of a lost shard",
        "P6",
        "crawler/runtime/engine.py",
        "                    shard.flights.end(flight)  # it does not come back a second time\n",
        "                    pass\n",
        (f"{_AWAY}::test_page_that_was_parsed_elsewhere_is_not_lost",),
    ),
    Mutant(
        "forget the budget of a page of a lost shard",
        "P7",
        "crawler/runtime/engine.py",
        "            except (LeaseLost, StoreAway) as error:\n"
        "                self._give_back(flight)\n",
        "            except (LeaseLost, StoreAway) as error:\n",
        (f"{_AWAY}::test_page_that_a_program_acknowledges_is_not_lost",),
    ),
    Mutant(
        "let the user's function end its helper",
        "P1",
        "crawler/page/extract.py",
        "    except BaseException as error:  # noqa: BLE001 - whatever it is, it costs this page only\n",
        "    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this page only\n",
        (f"{_LEAVING}::test_leaving_costs_the_items_of_the_page",),
    ),
    Mutant(
        "let a copy of a helper answer",
        "P1",
        "crawler/runtime/helper_process.py",
        "                if os.getpid() != own_id:\n",
        "                if os.getpid() < 0:\n",
        (f"{_LEAVING}::test_harm_to_its_own_process_costs_nothing",),
    ),
    Mutant(
        "mix what the user's function prints with data",
        "P1",
        "crawler/runtime/helper_process.py",
        "        os.dup2(2, 1)\n",
        "        pass\n",
        (f"{_LEAVING}::test_crawl_goes_on_and_says_how_many_pages_failed",),
    ),
    Mutant(
        "hide that the user's function failed",
        "P7",
        "crawler/plugins/extract.py",
        '        record = record._replace(error=f"{EXTRACT_FAILED}: {items.error}")\n',
        "        pass\n",
        (f"{_LEAVING}::test_leaving_costs_the_items_of_the_page",),
    ),
    Mutant(
        "keep the functions of all crawls",
        "P5",
        "crawler/page/extract.py",
        "WeakValueDictionary[str, NamedFunction] = WeakValueDictionary()",
        "dict[str, NamedFunction] = {}",
        ("crawler/page/test_extract.py::test_function_is_forgotten_with_its_crawl",),
    ),
    Mutant(
        "lose the links of a page whose helper dies",
        "P1",
        "crawler/runtime/helpers.py",
        "TRIES = 2  #",
        "TRIES = 1  #",
        ("crawler/runtime/test_offload.py::test_work_is_done_again_when_its_helper_dies",),
    ),
    Mutant(
        "probe more than the error budget allows",
        "P8",
        "politeness/settings.py",
        "    probe_budget: float = _option(\n        0.005,",
        "    probe_budget: float = _option(\n        0.008,",
        ("simulation/test_promises.py",),
    ),
    Mutant(
        "cruise well below the limit",
        "P8",
        "politeness/settings.py",
        '        0.98, "ρ: share',
        '        0.92, "ρ: share',
        ("simulation/test_promises.py::test_defaults_settle_at_the_limit",),
        ("B11",),
    ),
    Mutant(
        "come back only once to what was given up",
        "P1",
        "crawler/store/sqlite/bring_back.py",
        "        return order._replace(failed=0)\n",
        "        return order._replace(failed=0, given_up=0)\n",
        (
            "crawler/store/test_store_sqlite.py::TestSqliteStore::test_failed_and_given_up_urls_are_brought_back",
        ),
    ),
    Mutant(
        "keep a Retry-After of any length",
        "P1",
        "politeness/headers.py",
        "    return min(wait_s, LONGEST_WAIT_S) if wait_s > 0 else None",
        "    return wait_s if wait_s > 0 else None",
        (
            "politeness/test_headers.py::test_retry_after_date_far_away_is_kept_up_to_a_hundred_years",
        ),
    ),
    Mutant(
        "refuse a host's record whose numbers are out of range",
        "P1",
        "crawler/store/sqlite/reader.py",
        "        return None if row is None else self._record(row, HostRecord)",
        "        return None if row is None else self._checked(row, HostRecord)",
        (
            (
                "crawler/store/test_absurd_values.py::"
                "test_mended_numbers_are_said_once_with_file_host_and_field"
            ),
        ),
    ),
    Mutant(
        "recall a record of any numbers",
        "P1",
        "politeness/core.py",
        "        record = record.within_bounds()\n",
        "",
        (
            (
                "politeness/test_absurd_numbers.py::"
                "test_absurd_record_of_a_memory_is_recalled_within_bounds"
            ),
        ),
    ),
)
