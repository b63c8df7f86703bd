"""The registry: every fault (F) and threat (S) of the hostile web, and the tests that show it.

`python -m tests.hostile` runs the tests of each row and writes docs/explanation/reliability.md;
`test_rows.py` checks that no row is without a test. A row that needs something that mannerly does
not have yet says what it waits for.
"""

from __future__ import annotations

from typing import NamedTuple

_CUT = "crawler/fleet/test_partitions.py"
_WORKERS = "crawler/fleet/test_workers.py"
_KILLED = "hostile/test_killed.py"
_PARTS = "hostile/test_dying_parts.py"
_DNS = "hostile/test_lying_dns.py"
_LACKS = "crawler/shard/test_lacks.py"
_DISK = "hostile/test_disk.py"
_ANSWERS = "hostile/test_answers.py"
_TIME = "hostile/test_time_and_names.py"
_AROUND = "hostile/test_surroundings.py"
_CURL = "crawler/fetch/test_fetch_curl.py"
_GUARD = "crawler/fetch/test_fetch_guard.py"
_NETWORK = "crawler/fetch/test_network_guard.py"
_FAULTS = "crawler/store/test_store_faults.py"
_PARSE = "crawler/page/test_parse.py"
_SITEMAPS = "crawler/web/test_sitemaps.py"
_URLS = "crawler/web/test_urls.py"
_ROBOTS = "crawler/runtime/test_robots_fetch.py"
_SITES = "crawler/runtime/test_hostile_sites.py"
_SERVICE = "hostile/test_service.py"


class Row(NamedTuple):
    """One fault or threat."""

    id: str
    what: str  # the fault, and how it is injected
    holds: str  # one sentence: what holds all the same
    tests: tuple[str, ...] = ()  # node ids below tests/, without parameters
    waits_for: str = ""  # what has to exist before there can be a test


FAULTS = (
    Row(
        "F1",
        "kill -9 of all processes at random instants, then resume",
        "No URL is lost, only what was in flight is fetched again, and gaps outlive the process.",
        (
            f"{_KILLED}::test_killed_crawl_loses_nothing",
            f"{_KILLED}::test_killed_crawl_loses_nothing_in_fifty_kills",
            f"{_KILLED}::test_fresh_retry_after_survives_a_kill",
            (
                "crawler/runtime/test_kill.py::"
                "test_a_crawl_that_is_killed_again_and_again_loses_nothing_and_stays_polite"
            ),
            (
                "crawler/runtime/test_kill.py::"
                "test_the_gap_that_was_in_force_at_a_kill_is_kept_by_the_next_process"
            ),
        ),
    ),
    Row(
        "F2",
        "power loss: writes since the last flush are dropped, torn or reordered",
        "The files open and equal the state after some commit; with --durable, the last one.",
        (
            f"{_FAULTS}::test_a_crawl_survives_a_power_cut_at_any_moment",
            f"{_FAULTS}::test_a_power_cut_leaves_the_state_after_some_commit",
            f"{_DISK}::test_power_cuts_of_a_thousand_seeds",
            "cli/test_missing.py::test_answers_that_a_power_cut_took_are_fetched_again",
        ),
    ),
    Row(
        "F3",
        "a full disk: no file of the data directory may grow",
        "The crawl pauses with a message and goes on when there is room; nothing is lost.",
        (
            f"{_DISK}::test_full_disk_pauses_and_goes_on",
            f"{_DISK}::test_full_disk_under_a_segment_pauses_and_goes_on",
            f"{_FAULTS}::test_a_full_disk_is_told_apart_and_the_batch_can_be_offered_again",
            (
                "crawler/runtime/test_resume.py::"
                "test_a_disk_that_stays_full_ends_the_crawl_with_a_reason"
            ),
        ),
    ),
    Row(
        "F4",
        "I/O errors at every operation; damaged, emptied, replaced and deleted files",
        "A damaged crawl is refused with exit code 4 and what to do; it never starts empty.",
        (
            f"{_DISK}::test_damaged_file_is_refused",
            f"{_DISK}::test_deleted_directory_is_noticed",
            "crawler/runtime/test_starved.py::test_a_data_directory_that_is_removed_ends_the_crawl",
            f"{_FAULTS}::test_a_crawl_survives_a_disk_that_dies_at_any_operation",
        ),
    ),
    Row(
        "F5",
        "two processes on one data directory",
        "The second one ends at once with exit code 4; the first one goes on.",
        (f"{_KILLED}::test_second_process_is_refused",),
    ),
    Row(
        "F6",
        "SIGINT, SIGTERM and SIGHUP, once and twice",
        "One drains, two end at once whatever hangs; the crawl can be resumed.",
        (
            f"{_KILLED}::test_signal_ends_a_crawl_that_can_be_resumed",
            f"{_KILLED}::test_second_interrupt_ends_whatever_hangs",
            "crawler/runtime/test_shutdown.py::test_the_second_signal_stops_at_once",
            (
                "crawler/runtime/test_stuck.py::"
                "test_two_signals_end_a_crawl_in_which_a_process_is_frozen"
            ),
        ),
    ),
    Row(
        "F7",
        "the shared store is killed and restarted, emptied, full, or gone for good",
        "Workers fall silent in time and go on with nothing lost, or end with the reason.",
        (
            f"{_CUT}::test_a_server_that_is_killed_and_restarted_loses_nothing",
            f"{_CUT}::test_a_full_server_pauses_the_crawl",
            f"{_CUT}::test_a_server_that_is_gone_for_good_ends_the_workers",
            f"{_WORKERS}::test_a_crawl_that_is_gone_is_never_finished",
        ),
    ),
    Row(
        "F8",
        "a worker is cut off from the shared store, one way and both ways, or stopped for long",
        "No host ever has two senders, and what a former owner writes is refused.",
        (
            f"{_CUT}::test_a_worker_that_is_cut_off_falls_silent",
            f"{_CUT}::test_a_worker_that_is_stopped_for_long_sends_nothing_when_it_wakes",
            (
                "crawler/fleet/test_two_members.py::"
                "test_shards_of_a_member_that_is_cut_off_are_taken_over"
            ),
        ),
    ),
    Row(
        "F9",
        "a worker of a shared crawl is killed with -9",
        "Others take over its hosts within 20 s; no URL is lost, and gaps stay as they were.",
        (f"{_WORKERS}::test_shards_of_a_killed_worker_are_taken_over",),
    ),
    Row(
        "F10",
        "the shared store forgets its last second",
        "No URL is lost; what that second held is done again.",
        (
            (
                "crawler/store/test_store_valkey_faults.py::"
                "test_a_server_that_forgot_its_last_second_loses_no_url"
            ),
        ),
    ),
    Row(
        "F11",
        "clock steps of an hour and a day, both ways; all processes suspended",
        "No pause is shortened, and there is no burst afterwards.",
        (
            f"{_TIME}::test_stepped_clock_shortens_no_retry_after",
            f"{_KILLED}::test_suspended_crawl_sends_no_burst",
            f"{_KILLED}::test_refusal_that_comes_while_stopped_is_kept",
            "crawler/shard/test_hosts.py::test_short_retry_after_survives_a_crash",
        ),
    ),
    Row(
        "F12",
        "a DNS server that answers NXDOMAIN, SERVFAIL, nothing, now and then, or 1,000 addresses",
        "Every failed name is recorded and tried again, and other hosts are crawled meanwhile. The "
        "system's resolver does not tell these failures apart, so all are tried alike.",
        (
            f"{_DNS}::test_failing_names_cost_their_own_host_only",
            f"{_DNS}::test_a_flapping_name_and_one_with_a_thousand_addresses_are_crawled",
            f"{_TIME}::test_names_that_do_not_resolve_delay_no_other_host",
            (
                "crawler/runtime/test_names_and_victims.py::"
                "test_names_without_an_address_delay_no_other_host"
            ),
            (
                "crawler/runtime/test_names_and_victims.py::"
                "test_a_name_that_resolves_now_and_then_loses_no_page"
            ),
            "crawler/fetch/test_fetch_failures.py::test_failure_has_a_kind_and_a_code",
        ),
    ),
    Row(
        "F13",
        "headers and bodies that drip, servers that fall silent",
        "The request is dropped by its timeout and by its minimum speed; others go on.",
        (
            f"{_ANSWERS}::test_slow_answers_are_dropped",
            f"{_CURL}::test_curl_drops_a_server_that_drips",
            f"{_CURL}::test_curl_serves_other_hosts_while_one_hangs",
        ),
    ),
    Row(
        "F14",
        "bodies, chunks and interim answers without end, a lying Content-Length",
        "Bodies are cut at --max-bytes, and memory stays bounded.",
        (
            f"{_ANSWERS}::test_endless_answers_are_cut",
            f"{_CURL}::test_curl_cuts_an_endless_body",
            f"{_CURL}::test_curl_misses_what_a_lying_length_promised",
        ),
    ),
    Row(
        "F15",
        "compression bombs, a thousand members, nested encodings",
        "What is unpacked is cut at --max-bytes, and takes no more than that and 16 MB.",
        (f"{_ANSWERS}::test_bombs_are_defused", f"{_CURL}::test_curl_defuses_a_bomb"),
    ),
    Row(
        "F16",
        "redirect loops, chains without end, garbage and empty targets",
        "At most ten hops are followed, and the reason is recorded.",
        (f"{_ANSWERS}::test_redirects_end", f"{_SITES}::test_redirects_end"),
    ),
    Row(
        "F17",
        "a calendar, a maze, session ids, sort orders, soft 404, invented names",
        "At least 95 % of the real pages beside a trap are fetched.",
        (
            "crawler/frontier/test_traps.py::test_real_pages_are_reached_beside_a_trap",
            (
                "crawler/frontier/test_addresses.py::"
                "test_real_pages_are_reached_beside_subdomains_without_end"
            ),
            f"{_SITES}::test_traps_take_no_more_than_their_share",
        ),
    ),
    Row(
        "F18",
        "a page with a million links",
        "Ten thousand are taken, and the record says that there were more.",
        (
            f"{_SITES}::test_a_page_of_a_million_links_is_read_in_part",
            f"{_PARSE}::test_no_more_elements_are_asked_for_than_the_cap",
        ),
    ),
    Row(
        "F19",
        "a hundred thousand nested elements, the attack by formatting elements",
        "The page is read in linear time, and the link before the attack is found.",
        (
            f"{_PARSE}::test_hostile_markup_is_survived",
            f"{_PARSE}::test_formatting_is_not_copied",
            "crawler/page/test_scan.py::test_hostile_markup_is_scanned_in_linear_time",
        ),
    ),
    Row(
        "F20",
        "robots.txt of 10 MB, as HTML, redirected, 5xx, 401, silent",
        "RFC 9309: 4xx allows, 5xx and silence forbid and are asked again, 500 KiB are read.",
        (
            f"{_ROBOTS}::test_a_crawl_ends_whatever_its_hosts_call_robots",
            f"{_ROBOTS}::test_no_rules_forbid_nothing",
            f"{_ROBOTS}::test_rules_are_kept_wherever_they_are",
            f"{_ROBOTS}::test_no_answer_forbids_everything",
            f"{_ROBOTS}::test_unauthorized_forbids_nothing",
            "politeness/test_robots_groups.py::test_file_counts_up_to_500_kib",
            "politeness/test_robots_google.py::test_any_octets_get_an_answer",
        ),
    ),
    Row(
        "F21",
        "Crawl-delay of 0, 1e9, -1, nan; contradictory groups",
        "Only plain numbers count, a long delay is kept or the host is skipped, never shortened.",
        (
            "politeness/test_robots_extensions.py::test_crawl_delay_is_a_plain_finite_number",
            "politeness/test_host_clocks.py::test_long_crawl_delay_is_respected_or_capped",
            "politeness/test_core_contract.py::test_nonsensical_crawl_delay_is_refused",
        ),
    ),
    Row(
        "F22",
        "Retry-After in other scripts, huge, negative, in the year 9999, garbage",
        "ASCII digits and dates count, in full up to 100 years; a longer one gives the host up.",
        (
            "politeness/test_headers.py::test_retry_after_that_is_no_wait_counts_as_absent",
            "politeness/test_headers.py::test_retry_after_never_raises",
            "politeness/test_host_health.py::test_long_retry_after_is_kept_in_full",
            "politeness/test_host_health.py::test_unreadably_long_retry_after_gives_the_host_up",
            (
                "crawler/runtime/test_leaving.py::"
                "test_nothing_is_sent_inside_a_retry_after_that_came_while_connecting"
            ),
            "politeness/test_host_clocks.py::test_retry_after_is_honoured_in_every_form",
            (
                "crawler/runtime/test_manners.py::"
                "test_hidden_limits_are_found_without_breaking_a_silence"
            ),
        ),
    ),
    Row(
        "F23",
        "429 and 503 without Retry-After, hidden limits, bans, hosts that only refuse",
        "The pace settles near the limit with few refusals; a host without success is given up. "
        "Of limits that answer 503 after a burst not all are found; whether a 403 is a refusal "
        "is found out by asking again (decision records 0038 and 0005).",
        (
            (
                "crawler/shard/test_403.py::"
                "test_a_403_that_is_given_later_means_too_fast_however_often"
            ),
            "crawler/shard/test_403.py::test_forbidden_pages_are_asked_for_again_until_three_have_stayed_so",
            "simulation/test_promises.py::test_steady_use_is_near_the_limit",
            "simulation/test_promises.py::test_steady_refusals_are_rare",
            "simulation/test_promises.py::test_server_that_bans_is_hardly_provoked",
            "simulation/test_crawl.py::test_an_unreachable_web_is_given_up",
        ),
    ),
    Row(
        "F24",
        "malformed status lines, headers and chunks, floods of headers, early closes",
        "Each is a typed error, and no other request suffers.",
        (
            f"{_ANSWERS}::test_malformed_answers_have_a_reason",
            f"{_ANSWERS}::test_crawl_of_broken_servers_ends",
            f"{_CURL}::test_curl_types_what_is_malformed",
            f"{_CURL}::test_curl_survives_any_bytes",
            f"{_CURL}::test_curl_ends_a_flood_of_headers",
        ),
    ),
    Row(
        "F25",
        "certificates that are self-signed, expired, of another host; TLS 1.1; broken handshakes",
        "Nothing is sent, and the reason is recorded.",
        (
            f"{_ANSWERS}::test_bad_certificates_are_refused",
            "crawler/fetch/test_fetch_tls.py::test_tls_types_a_broken_handshake",
            "crawler/fetch/test_fetch_tls.py::test_tls_takes_an_unverified_host_only_where_told",
        ),
    ),
    Row(
        "F26",
        "resets before and within a body, connections that die while they are idle",
        "It is tried again with a permit of its own, then recorded.",
        (
            f"{_ANSWERS}::test_resets_are_retried_and_recorded",
            f"{_CURL}::test_curl_does_not_send_twice_on_one_permit",
        ),
    ),
    Row(
        "F27",
        "URLs of a megabyte, surrogates, %00, backslashes, port 0",
        "URLs are capped at 2,048 characters, and their canonical form is stable.",
        (
            f"{_URLS}::test_canonical_is_idempotent",
            f"{_URLS}::test_refused_links_say_why",
            f"{_URLS}::test_canonical_shape_can_be_sliced",
            f"{_CURL}::test_curl_takes_a_megabyte_of_url",
        ),
    ),
    Row(
        "F28",
        "wrong charsets, UTF-16 without a mark, lone surrogates, control characters",
        "What is exported is valid UTF-8 on one line.",
        (
            f"{_PARSE}::test_title_is_always_clean",
            f"{_PARSE}::test_no_bytes_raise",
            f"{_SITES}::test_what_was_crawled_can_be_exported",
        ),
    ),
    Row(
        "F29",
        "64 file descriptors; 400 MB and 84 to 120 MB of address space",
        "No page is lost, or the exit code says so and the next run fetches it.",
        (
            f"{_KILLED}::test_few_descriptors_lose_nothing",
            f"{_KILLED}::test_little_memory_loses_nothing_in_silence",
            f"{_KILLED}::test_very_little_memory_loses_no_page",
            (
                "crawler/runtime/test_poison.py::"
                "test_a_page_that_kills_its_parser_is_recorded_as_an_error"
            ),
            f"{_CURL}::test_curl_reports_a_lack_of_descriptors",
            "crawler/runtime/test_starved.py::test_few_descriptors_mean_fewer_requests_at_once",
            "crawler/runtime/test_starved.py::test_a_lack_of_memory_is_no_error_of_a_page",
            "crawler/runtime/test_starved.py::test_a_lack_of_memory_has_one_exit_code",
            f"{_LACKS}::test_a_page_that_lacks_memory_while_it_is_read_fails_in_the_end",
            "crawler/runtime/test_stuck.py::test_a_helper_that_dies_costs_no_link",
        ),
    ),
    Row(
        "F30",
        "a live page that dies, hangs, or has a thousand readers that never read",
        "The crawl ends as usual; 200 readers are served, the others refused.",
        (
            "service/test_live_page.py::test_page_that_dies_costs_the_crawl_nothing",
            f"{_SERVICE}::test_page_that_hangs_costs_the_crawl_nothing",
            f"{_SERVICE}::test_thousand_readers_that_never_read_cost_the_crawl_nothing",
        ),
    ),
    Row(
        "F31",
        "a program that blocks between two pages, or the event loop in a slot",
        "Fetching waits, it is said why, and no gap is shortened afterwards.",
        (
            "politeness/test_drivers_blocked.py::test_stalled_loop_is_reported",
            (
                "politeness/test_drivers_blocked.py::"
                "test_blocking_call_in_the_same_turn_keeps_the_spacing"
            ),
            "library/test_slow_programs.py::test_fetching_waits_for_the_program",
            "library/test_slow_programs.py::test_pages_are_not_fetched_in_a_burst_after_a_wait",
        ),
    ),
    Row(
        "F32",
        "data directories of earlier releases and of a later one",
        "They are migrated, whichever statement is the last before a kill, or refused clearly.",
        (
            (
                "crawler/store/test_migration.py::"
                "test_resume_of_an_earlier_release_fetches_the_rest_once"
            ),
            (
                "crawler/store/test_migration.py::"
                "test_a_migration_that_is_killed_goes_on_at_the_next_open"
            ),
            "crawler/store/test_migration.py::test_a_newer_format_is_refused",
        ),
    ),
    Row(
        "F33",
        "workers and helpers that are killed, frozen, or out of memory or descriptors, at random",
        "No URL and no link is lost, each is named, and two Ctrl-C end all of it at once.",
        (
            f"{_PARTS}::test_dying_workers_and_helpers_cost_nothing",
            f"{_PARTS}::test_ten_random_deaths_cost_nothing",
            (
                "crawler/runtime/test_starved.py::"
                "test_workers_without_memory_end_the_run_with_that_cause"
            ),
            (
                "crawler/runtime/test_stuck.py::"
                "test_a_worker_without_a_sign_of_life_is_named_and_replaced"
            ),
            "crawler/runtime/test_stuck.py::test_a_frozen_helper_is_replaced_and_its_page_read",
        ),
    ),
)
