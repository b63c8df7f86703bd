"""The second half of the registry: threats and the control that answers each."""

from __future__ import annotations

from tests.hostile.rows import FAULTS, Row

_ADDRESS = "crawler/store/test_valkey_address.py"
_ANSWERS = "hostile/test_answers.py"
_AROUND = "hostile/test_surroundings.py"
_CURL = "crawler/fetch/test_fetch_curl.py"
_GUARD = "crawler/fetch/test_fetch_guard.py"
_NETWORK = "crawler/fetch/test_network_guard.py"
_SITEMAPS = "crawler/web/test_sitemaps.py"
_EXPORTS = "exports/test_exports.py"
_PAGES = "hostile/test_pages.py"
_CREDENTIALS = "cli/test_credentials.py"
_COOKIES = "crawler/fetch/test_cookies.py"
_OPTIONS = "cli/test_network_options.py"
_SERVICE = "hostile/test_service.py"

THREATS = (
    Row(
        "S1",
        "links to private, loopback, link-local and reserved networks",
        "The first and last address of each network is refused, their neighbours are not.",
        (
            f"{_GUARD}::test_guard_refuses_a_special_network_from_end_to_end",
            f"{_GUARD}::test_guard_allows_the_public_neighbours",
            f"{_GUARD}::test_guard_refuses_cloud_metadata",
            f"{_GUARD}::test_guard_refuses_cloud_metadata_even_as_a_seed",
        ),
    ),
    Row(
        "S2",
        "IPv4 addresses inside IPv6 ones: mapped, NAT64, 6to4",
        "An embedded address is judged like the plain one.",
        (f"{_GUARD}::test_guard_sees_through_embedded_addresses",),
    ),
    Row(
        "S3",
        "127.0.0.1 as 0x7f.1, 2130706433, 0177.0.0.1, full-width, percent-encoded …",
        "No spelling reaches the canary on loopback.",
        (
            f"{_GUARD}::test_guard_knows_an_address_however_it_is_spelled",
            f"{_CURL}::test_curl_never_reaches_the_canary",
            "crawler/web/test_urls.py::test_canonical_shows_the_host_that_a_browser_would_contact",
        ),
    ),
    Row(
        "S4",
        "names that resolve to private addresses, or to another one the second time",
        "The address that is about to be connected is judged, not the name.",
        (
            f"{_GUARD}::test_guard_leaves_names_to_their_addresses",
            f"{_GUARD}::test_guard_does_not_trust_a_public_seed_with_private_addresses",
            f"{_CURL}::test_curl_never_reaches_the_canary",
            (
                "hostile/test_lying_dns.py::"
                "test_a_name_that_turns_to_a_forbidden_address_is_not_followed"
            ),
        ),
    ),
    Row(
        "S5",
        "redirects to private addresses and to file:, ftp:, gopher:, data:, javascript:",
        "Only http and https are followed, each hop through the guard.",
        (
            f"{_ANSWERS}::test_redirects_end",
            f"{_NETWORK}::test_no_link_or_redirect_reaches_the_canary",
        ),
    ),
    Row(
        "S6",
        "private addresses in sitemaps, robots.txt, <base>, refresh, frames",
        "Every way in meets the same guard: the canary hears nothing.",
        (
            f"{_NETWORK}::test_no_other_way_reaches_the_canary",
            f"{_NETWORK}::test_a_robots_that_redirects_to_the_canary_is_not_followed",
        ),
    ),
    Row(
        "S7",
        r"URLs that two parsers read differently, such as http://example.com\@127.0.0.1/",
        "A URL is parsed once; what is not its serialised form is refused.",
        (
            f"{_GUARD}::test_origin_is_read_from_serialised_urls_only",
            f"{_CURL}::test_curl_takes_no_ambiguous_url",
        ),
    ),
    Row(
        "S8",
        "links to ports of mail servers and databases",
        "Only web ports are connected, and the port of a seed on its own host.",
        (
            f"{_GUARD}::test_guard_keeps_to_web_ports",
            f"{_GUARD}::test_guard_opens_the_port_of_a_seed_on_its_own_host",
        ),
    ),
    Row(
        "S9",
        "a crawl of a private seed that links to another port of its host",
        "A private seed opens exactly its host and port.",
        (
            f"{_NETWORK}::test_a_private_seed_opens_its_own_port_alone",
            f"{_GUARD}::test_guard_opens_a_private_seed_and_nothing_beside_it",
            "cli/test_crawl_command.py::test_private_seed_is_said_at_the_start",
        ),
    ),
    Row(
        "S10",
        "a proxy that hides the address, named by an option or by a variable of the environment",
        "Literal private addresses are refused before the proxy is asked; variables are ignored "
        "unless --proxy-env is given.",
        (
            f"{_OPTIONS}::test_proxy_does_not_open_private_addresses",
            f"{_CREDENTIALS}::test_proxies_of_the_environment_are_used_if_asked",
            f"{_CREDENTIALS}::test_guard_holds_for_hosts_that_no_proxy_is_used_for",
            f"{_CREDENTIALS}::test_password_of_a_proxy_is_not_stored",
        ),
    ),
    Row(
        "S11",
        "line breaks and NUL in headers, User-Agent and contact",
        "They are refused before anything is sent.",
        (
            f"{_AROUND}::test_line_break_in_a_header_is_refused",
            f"{_CURL}::test_curl_refuses_headers_that_smuggle",
        ),
    ),
    Row(
        "S12",
        "a page with credentials that links and redirects to another host",
        "Headers and logins go to their own origin alone, and are neither printed nor stored.",
        (
            f"{_CREDENTIALS}::test_secret_goes_to_its_host_alone",
            f"{_CREDENTIALS}::test_login_without_a_scheme_is_for_https",
            f"{_CREDENTIALS}::test_secret_has_to_be_given_again_and_a_reference_has_not",
            f"{_CREDENTIALS}::test_mistake_is_named_without_the_secret",
        ),
    ),
    Row(
        "S13",
        "cookies for whole suffixes or other hosts, cookie bombs",
        "No cookie is kept unless asked; then it goes to its own host alone, 50 of 4 KB at most.",
        (
            f"{_CREDENTIALS}::test_cookies_are_kept_for_each_host_if_asked",
            f"{_COOKIES}::test_cookie_never_goes_to_another_host",
            f"{_COOKIES}::test_cookie_of_a_public_suffix_reaches_nobody_else",
            f"{_COOKIES}::test_bomb_of_cookies_is_bounded",
        ),
    ),
    Row(
        "S14",
        "exports: a target that is a link, is half written, or cannot be; URLs, headers and bodies "
        "that would name a file or end a record",
        "A file is replaced whole or not at all, and nothing else is touched. No file name and no "
        "header of an archive's record comes from a site.",
        (
            f"{_EXPORTS}::test_file_that_fails_halfway_leaves_the_earlier_one",
            f"{_EXPORTS}::test_target_that_cannot_be_is_refused_before_anything_is_written",
            f"{_PAGES}::test_exports_write_nothing_outside_their_place",
            f"{_PAGES}::test_folder_is_not_written_through_a_link",
            f"{_PAGES}::test_no_header_of_an_archive_comes_from_a_site",
            f"{_PAGES}::test_rows_of_every_format_have_the_same_texts",
            f"{_PAGES}::test_sitemap_of_a_hostile_site_is_well_formed",
        ),
    ),
    Row(
        "S15",
        "CSV cells that a spreadsheet would run: titles, URLs, headers, texts of links, items",
        "No text cell begins with a formula, unless the operator asks for --csv-raw.",
        (
            f"{_EXPORTS}::test_csv_cell_is_never_a_formula",
            f"{_PAGES}::test_no_exported_cell_is_a_formula",
            f"{_PAGES}::test_raw_cells_are_written_on_request_only",
        ),
    ),
    Row(
        "S16",
        "scripts in titles, URLs, headers, errors and texts of links, in the report",
        "Nothing that was crawled runs in a browser, and no request leaves the file.",
        (
            f"{_PAGES}::test_nothing_of_a_hostile_site_runs_in_the_report",
            "report/test_browser.py::test_nothing_that_was_crawled_runs",
            "report/test_browser.py::test_a_policy_stands_in_front_of_the_script",
            "report/test_browser.py::test_data_cannot_end_its_element",
            "service/test_live_page.py::test_crawled_text_never_becomes_markup",
            f"{_SERVICE}::test_json_of_the_stream_cannot_break_out",
        ),
    ),
    Row(
        "S17",
        "a live page or service that others can reach",
        "It listens on loopback; beyond that everything about a crawl needs the token.",
        (
            f"{_SERVICE}::test_beyond_loopback_everything_needs_the_token",
            "service/test_access.py::test_everything_about_crawls_needs_the_token",
        ),
    ),
    Row(
        "S18",
        "names that are bound to the live page's address (DNS rebinding)",
        "Every route, the event stream included, refuses a Host that is not its own.",
        (
            f"{_SERVICE}::test_every_route_refuses_names_that_are_not_ours",
            "service/test_access.py::test_other_names_are_refused",
            "service/test_access.py::test_second_host_header_is_refused",
        ),
    ),
    Row(
        "S19",
        "requests that another site makes the browser send",
        "A form, a fetch without CORS and a preflight change nothing, and can read nothing.",
        (
            f"{_SERVICE}::test_other_site_in_a_browser_changes_nothing",
            "service/test_access.py::test_pages_of_other_sites_change_nothing",
            "service/test_access.py::test_bodies_of_forms_are_refused",
        ),
    ),
    Row(
        "S20",
        "tokens in URLs, logs and files",
        "A token is in the fragment and in a header alone, is printed once, and its file is 0600.",
        (
            f"{_SERVICE}::test_page_keeps_the_token_out_of_addresses",
            f"{_SERVICE}::test_beyond_loopback_everything_needs_the_token",
        ),
    ),
    Row(
        "S21",
        "abuse of the control interface: nonsense, floods, private seeds, paths, large bodies",
        "Each is refused with a reason; none sends faster than robots.txt allows; all are logged.",
        (
            f"{_SERVICE}::test_nonsense_is_answered_with_a_problem",
            f"{_SERVICE}::test_no_order_sends_faster_than_robots_txt_allows",
            f"{_SERVICE}::test_changes_are_logged_and_floods_of_them_refused",
            f"{_SERVICE}::test_seeds_at_private_addresses_are_refused",
            f"{_SERVICE}::test_path_tricks_find_nothing",
            f"{_SERVICE}::test_oversized_bodies_are_cut_off",
        ),
    ),
    Row(
        "S22",
        "a shared store without a password or TLS, one that evicts, poisoned values in it",
        "Each is refused with the reason; no password is printed, stored or in a process list.",
        (
            f"{_ADDRESS}::test_a_server_beyond_this_machine_needs_password_and_tls",
            f"{_ADDRESS}::test_a_password_in_a_location_is_refused_and_not_repeated",
            "crawler/fleet/test_secrets.py::test_the_password_of_a_server_is_shown_nowhere",
            f"{_ADDRESS}::test_tls_is_verified",
            f"{_ADDRESS}::test_a_user_limited_to_the_prefix_is_enough",
            f"{_ADDRESS}::test_a_server_that_may_evict_is_refused",
            (
                "crawler/store/test_store_valkey_faults.py::"
                "test_poisoned_values_are_refused_with_their_key"
            ),
            "crawler/fleet/test_workers.py::test_a_password_on_the_command_line_is_refused",
        ),
    ),
    Row(
        "S23",
        "escape sequences, line ends and marks of direction in crawled text",
        "No command prints a raw control character.",
        (
            f"{_AROUND}::test_crawled_text_reaches_no_terminal_raw",
            "cli/test_progress.py::test_safe_term_lets_nothing_invisible_through",
            "cli/test_stored.py::test_crawled_text_reaches_no_terminal_raw",
        ),
    ),
    Row(
        "S24",
        "pickle, marshal, eval and yaml.load of what others wrote",
        "The source has none of them.",
        (f"{_AROUND}::test_source_runs_no_data",),
    ),
    Row(
        "S25",
        "entity bombs, external entities, endless nesting in sitemaps",
        "Declarations are refused, depth, names and size are bounded.",
        (
            f"{_SITEMAPS}::test_document_type_with_declarations_is_refused",
            "crawler/runtime/test_lists.py::test_sitemap_with_declarations_costs_nothing",
            f"{_SITEMAPS}::test_hostile_shapes_are_cut_short",
            f"{_SITEMAPS}::test_bomb_is_stopped_at_the_cap",
        ),
    ),
    Row(
        "S26",
        "patterns and texts that freeze backtracking matchers",
        "Globs and our own patterns take linear time.",
        (
            "crawler/web/test_scope.py::test_explosive_globs_take_linear_time",
            "politeness/test_robots_many_rules.py::test_any_file_is_judged_within_milliseconds",
            "politeness/test_robots_rules.py::test_explosive_wildcards_are_answered",
        ),
    ),
    Row(
        "S27",
        "URLs made to collide in a filter",
        "Fingerprints are keyed anew in each run, and a filter never decides alone.",
        (
            "crawler/store/test_maybe_known.py::test_fingerprints_depend_on_text_and_seed",
            (
                "crawler/store/test_maybe_known.py::"
                "test_maybe_known_are_only_about_urls_that_may_be_known"
            ),
        ),
    ),
    Row(
        "S28",
        "many names, ports and spellings for one server",
        "Spellings and web ports share one budget, names of one address a limit.",
        (
            (
                "crawler/runtime/test_many_names.py::"
                "test_one_server_behind_many_names_is_not_asked_faster"
            ),
            "crawler/frontier/test_addresses.py::test_names_of_one_site_share_a_pace",
            "crawler/frontier/test_addresses.py::test_names_of_several_sites_share_an_address",
            "politeness/test_core_contract.py::test_spellings_share_one_budget",
            "crawler/web/test_urls.py::test_web_ports_share_a_host_key",
        ),
    ),
    Row(
        "S29",
        "pages, robots.txt and sitemaps that aim the crawler at others",
        "What is out of scope is not asked for, lists have limits, and links begin slowly.",
        (
            "crawler/runtime/test_lists.py::test_robots_sends_nothing_to_hosts_out_of_scope",
            "crawler/shard/test_sitemaps.py::test_robots_cannot_aim_the_crawl_at_other_hosts",
            "crawler/runtime/test_lists.py::test_page_limit_is_reached_beside_an_endless_index",
            (
                "crawler/runtime/test_names_and_victims.py::"
                "test_a_page_cannot_aim_the_crawler_at_a_host"
            ),
            (
                "crawler/runtime/test_names_and_victims.py::"
                "test_a_page_cannot_aim_the_crawler_at_a_site_by_inventing_names"
            ),
            "crawler/runtime/test_many_names.py::test_names_met_as_links_are_contacted_one_by_one",
            (
                "crawler/runtime/test_scope_crawl.py::"
                "test_what_is_excluded_is_not_fetched_even_as_a_seed_or_a_sitemap"
            ),
            "crawler/runtime/test_scope_crawl.py::test_a_host_scope_stays_and_any_scope_goes",
        ),
    ),
    Row(
        "S30",
        "a dependency that was exchanged, or has a known hole",
        "Each file is locked by its hash, and an audit that could not ask does not pass.",
        (
            "test_supply.py::test_every_dependency_is_locked_with_hashes",
            "test_supply.py::test_audit_passes_only_what_was_audited",
            "test_supply.py::test_vendored_files_are_what_they_were",
        ),
    ),
    Row(
        "S31",
        "an old SQLite with known faults",
        "The library is at least 3.51.3.",
        (f"{_AROUND}::test_sqlite_is_new_enough",),
    ),
)

ROWS = (*FAULTS, *THREATS)
