"""P1 nothing lost, P2 nothing twice, P3 each record once in an export."""

from __future__ import annotations

from .model import Mutant

_CHANGE = "crawler/store/sqlite/change.py"
_STORE = "crawler/store/sqlite/shard.py"
_INBOX = "crawler/store/sqlite/inbox.py"
_BASE = "database/sqlite.py"
_FILTER = "crawler/store/sqlite/maybe_known.py"
_FRONTIER = "crawler/frontier/core.py"
_WINDOW = "crawler/host/queue.py"

WHOLE = (
    Mutant(
        "judge a translation without its return link as right",
        "P7",
        "report/listing.py",
        " and url not in facts.hreflangs.get(target, ()):\n",
        " and target not in facts.hreflangs:\n",
        ("report/test_tables.py::test_titles_and_descriptions_are_judged",),
    ),
    Mutant(
        "list fast pages as slow",
        "P7",
        "report/sections.py",
        " and each.latency_ms > SLOW_MS]",
        " and each.latency_ms > 0]",
        ("report/test_tables.py::test_fast_pages_are_not_listed_as_slow",),
    ),
    Mutant(
        "export a damaged record",
        "P3",
        "exports/soundness.py",
        "            if damaged:\n",
        "            if damaged is None:\n",
        ("exports/test_damage.py::test_archive_leaves_the_record_out",),
    ),
    Mutant(
        "say nothing of damaged answers",
        "P7",
        "exports/content.py",
        "                damaged += 1\n",
        "                damaged += 0\n",
        ("exports/test_damage.py::test_content_of_the_page_is_missing",),
    ),
    Mutant(
        "stop at the first damaged record",
        "P1",
        "crawler/archive/records.py",
        "            after = _next_record(file, offset + 1, valid)\n",
        "            after = valid\n",
        ("exports/test_damage.py::test_damage_costs_the_record_that_it_is_in",),
    ),
    Mutant(
        "forget links to other shards",
        "P1",
        _CHANGE,
        "        self._send(batch.outgoing)\n",
        "",
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "TestSqliteStore::test_links_between_two_shards_arrive_both_ways"
            ),
        ),
    ),
    Mutant(
        "drop what does not fit into the queue",
        "P1",
        _CHANGE,
        "        self.database.executemany(_WAIT, rows[room:])\n",
        "",
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "TestSqliteStore::test_arriving_links_respect_the_limit"
            ),
        ),
        ("G1",),
    ),
    Mutant(
        "record a page that left the queue before",
        "P3",
        _CHANGE,
        "            if seq in taken:\n                taken.remove(seq)\n                left.append(host)\n                kind =",
        "            if True:\n                taken.discard(seq)\n                left.append(host)\n                kind =",
        ("crawler/store/test_store_sqlite.py::TestSqliteStore::test_a_page_is_recorded_once",),
    ),
    Mutant(
        "leave fetched pages in the queue",
        "P2",
        _CHANGE,
        '_TAKE = "DELETE FROM queue WHERE host = ? AND priority = ? AND seq = ? RETURNING seq"',
        '_TAKE = "SELECT seq FROM queue WHERE host = ? AND priority = ? AND seq = ?"',
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "TestSqliteStore::test_everything_is_there_after_reopening"
            ),
        ),
    ),
    Mutant(
        "remove more of the waiting room than was let in",
        "P1",
        _CHANGE,
        '"DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq,)',
        '"DELETE FROM waiting WHERE seq <= ?", (entries[-1].seq + 1,)',
        (
            "crawler/store/test_store_sqlite.py::TestSqliteStore::test_beyond_the_limit_urls_wait_in_the_order_of_arrival",
        ),
        ("G1",),
    ),
    Mutant(
        "remove sent links before they arrived",
        "P1",
        _STORE,
        "        except StoreBusy:\n            return 0\n        with self._change() as change:",
        "        except StoreBusy:\n            pass\n        with self._change() as change:",
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "test_an_inbox_that_is_busy_is_left_for_the_next_round"
            ),
        ),
    ),
    Mutant(
        "post links without waiting for the disk",
        "P1",
        _INBOX,
        "        with self._database.transaction(on_disk=True):\n            self._database.executemany(\n",
        "        with self._database.transaction():\n            self._database.executemany(\n",
        ("crawler/store/test_store_faults.py::test_a_crawl_survives_a_power_cut_at_any_moment",),
    ),
    Mutant(
        "take links over without waiting for the disk",
        "P1",
        _STORE,
        "        with self._change(on_disk=True) as change:\n            applied = change.apply(Batch(",
        "        with self._change() as change:\n            applied = change.apply(Batch(",
        ("crawler/store/test_store_faults.py::test_a_crawl_survives_a_power_cut_at_any_moment",),
    ),
    Mutant(
        "remove links that came in while others were read",
        "P1",
        _INBOX,
        '"DELETE FROM link_batches WHERE id <= ?", (last,)',
        '"DELETE FROM link_batches WHERE id <= ?", (last + 1,)',
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "TestSqliteStore::test_many_links_arrive_in_their_order"
            ),
        ),
    ),
    Mutant(
        "commit half a batch",
        "P1",
        _BASE,
        'self.execute("ROLLBACK")',
        'self.execute("COMMIT")',
        ("crawler/store/test_store_sqlite.py::test_an_unusable_batch_changes_nothing",),
        ("I3",),
    ),
    Mutant(
        "call a commit durable that is not",
        "P1",
        _BASE,
        "{'FULL' if durable else 'NORMAL'}",
        "{'NORMAL' if durable else 'NORMAL'}",
        (("crawler/store/test_store_faults.py::test_a_crawl_survives_a_power_cut_at_any_moment"),),
    ),
    Mutant(
        "remember URLs of a commit that failed",
        "P1",
        _STORE,
        "        fresh = urls - self._recent - self._confirmed\n",
        "        fresh = urls - self._recent - self._confirmed\n        self._confirmed |= urls\n",
        (
            (
                "crawler/store/test_store_faults.py::"
                "test_a_full_disk_is_told_apart_and_the_batch_can_be_offered_again"
            ),
        ),
    ),
    Mutant(
        "take the Bloom filter's word for known",
        "P1",
        _STORE,
        "        known = self._seen(self._maybe_known.among(fresh))",
        "        known = self._maybe_known.among(fresh)",
        (("crawler/store/test_known.py::test_a_url_is_new_although_the_filter_has_not_caught_up"),),
    ),
    Mutant(
        "ask the filter before it has caught up",
        "P2",
        _FILTER,
        "        if self._earlier is not None:\n            return urls\n",
        "",
        (
            (
                "crawler/store/test_maybe_known.py::"
                "test_maybe_known_covers_everything_until_the_earlier_urls_are_read"
            ),
        ),
    ),
    Mutant(
        "let the filter forget when it grows",
        "P2",
        _FILTER,
        "        for bloom, _, _ in self._chain:  # noqa: SIM110",
        "        for bloom, _, _ in self._chain[-1:]:  # noqa: SIM110",
        ("crawler/store/test_maybe_known.py::test_filter_never_forgets",),
    ),
    Mutant(
        "keep arrivals out of the index",
        "P2",
        _STORE,
        "    INSERT OR ROLLBACK INTO seen SELECT url, seq, host, priority FROM arrivals ORDER BY url;\n",
        "",
        (
            (
                "crawler/store/test_store_sqlite.py::"
                "test_arrivals_are_carried_over_into_the_index_without_a_trace"
            ),
        ),
    ),
    Mutant(
        "hand out again what is under way",
        "P2",
        _WINDOW,
        "        fresh = [entry for entry in entries if entry.seq not in outstanding]\n        if fresh",
        "        fresh = list(entries)\n        if fresh",
        (
            (
                "crawler/frontier/test_frontier_window.py::"
                "test_window_and_disk_together_are_one_sorted_queue"
            ),
        ),
    ),
    Mutant(
        "lose the tail of a window that is cut",
        "P1",
        _WINDOW,
        "            self.on_disk += excess\n",
        "",
        (
            (
                "crawler/frontier/test_frontier.py::"
                "test_better_arrivals_push_the_tail_of_a_window_back_to_disk"
            ),
        ),
    ),
    Mutant(
        "lose the cursor of a window that is cut",
        "P1",
        _WINDOW,
        "            self._move_cursor(self.window[0])\n        return excess",
        "        return excess",
        (
            (
                "crawler/frontier/test_frontier.py::"
                "test_better_arrivals_push_the_tail_of_a_window_back_to_disk"
            ),
        ),
    ),
    Mutant(
        "lose a retry",
        "P1",
        _FRONTIER,
        "        self._retries.push(due, entry)",
        "        pass",
        ("crawler/frontier/test_frontier.py::test_retry_goes_to_the_front_when_it_is_due",),
        ("D1",),
    ),
    Mutant(
        "forget hosts that wait for a place",
        "P1",
        _FRONTIER,
        "            if places.is_full:\n                places.inactive.add(name, count)\n",
        "            if places.is_full:\n                pass\n",
        (
            (
                "crawler/frontier/test_frontier.py::"
                "test_frontier_goes_on_where_an_earlier_run_stopped"
            ),
        ),
        ("I4",),
    ),
    Mutant(
        "count a page as committed when it is granted",
        "P2",
        "crawler/frontier/windows.py",
        "            self._outstanding.add(item.seq)\n            self.in_memory -= 1",
        "            self.in_memory -= 1",
        ("crawler/frontier/test_frontier.py::test_retry_goes_to_the_front_when_it_is_due",),
    ),
    Mutant(
        "replace a file before it is complete",
        "P3",
        "exports/whole.py",
        "        beside.replace(path)",
        "        beside.replace(path.with_suffix('.tmp'))",
        (
            "exports/test_exports.py::test_jsonl_holds_every_page_once_with_the_fields_of_the_contract",
        ),
    ),
    Mutant(
        "write one record twice",
        "P3",
        "exports/rows.py",
        "    for row in rows:\n        line = encode(row)\n",
        (
            "    for row in (each for every in rows for each in (every, every)):\n"
            "        line = encode(row)\n"
        ),
        (
            (
                "exports/test_exports.py::"
                "test_jsonl_holds_every_page_once_with_the_fields_of_the_contract"
            ),
        ),
        ("I10",),
    ),
    Mutant(
        "strip a slash from a canonical URL",
        "P1",
        "crawler/web/urls.py",
        '            text = text[: text.index("#")]',
        '            text = text[: text.index("#")].rstrip("/")',
        (("crawler/web/test_urls.py::test_canonical_shows_the_host_that_a_browser_would_contact"),),
    ),
    Mutant(
        "keep the fragment in a URL",
        "P2",
        "crawler/web/urls.py",
        '        if "#" in text:\n',
        '        if "#!" in text:\n',
        ("crawler/web/test_urls.py::test_canonical_has_one_spelling",),
    ),
    Mutant(
        "assign a site's hosts to different shards",
        "P2",
        "crawler/frontier/sharding.py",
        "        site = site_of(host).encode()",
        "        site = host.encode()",
        ("crawler/frontier/test_sharding.py::test_hosts_of_one_site_meet_in_one_shard",),
        ("G7",),
    ),
)
