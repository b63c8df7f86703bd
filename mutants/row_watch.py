"""Rows H to K of docs/requirements.md: pages, persistence, observability, verification."""

from __future__ import annotations

from .model import Mutant

_CORE = "politeness/core.py"
_OBSERVE = "politeness/drivers/observe.py"
_PROGRESS = "cli/test_progress.py::test_"
_SNAPSHOTS = "politeness/test_snapshot.py::test_"

WATCH = (
    Mutant(
        "start requests while too many pages wait to be parsed",
        "H2",
        "crawler/runtime/engine.py",
        "        return self._offload is None or self._offload.pending < self._parse_limit\n",
        "        return True\n",
        (
            (
                "crawler/runtime/test_parse_limit.py::"
                "test_no_request_starts_while_too_many_pages_wait_to_be_parsed"
            ),
        ),
        ("H2",),
    ),
    Mutant(
        "read no language of a page",
        "H3",
        "crawler/page/html.py",
        "            if self._lang is None and is_language(said):\n",
        "            if False:\n",
        ("crawler/page/test_elements.py::test_a_page_says_its_description_heading_and_language",),
        ("H3",),
    ),
    Mutant(
        "take a wildcard of a certificate for a host",
        "H4",
        "crawler/web/seeds.py",
        '            if "*" not in name and "@" not in name:\n',
        '            if "@" not in name:\n                name = name.removeprefix("*.")\n',
        ("crawler/web/test_sources.py::test_certificates_name_hosts_and_wildcards_are_none",),
        ("H4",),
    ),
    Mutant(
        "ignore --timeout",
        "H5",
        "crawler/shard/requests.py",
        "                getattr(settings, row.timeout),\n",
        "                20.0,\n",
        ("crawler/shard/test_origins.py::test_robots_requests_have_a_timeout_of_their_own",),
        ("H5",),
    ),
    Mutant(
        "let an error of a parser leave its page",
        "H7",
        "crawler/page/html.py",
        "    except Exception as error:  # noqa: BLE001 - an error of a parser costs this page only\n",
        "    except ValueError as error:\n",
        ("crawler/page/test_parse.py::test_parser_error_costs_one_page",),
        ("H7",),
    ),
    Mutant(
        "keep the learned delay under another name",
        "I1",
        "politeness/memory/sqlite.py",
        "    adaptive_delay_floor_seconds REAL NOT NULL DEFAULT 0,\n",
        "    delay_floor REAL NOT NULL DEFAULT 0,\n    adaptive_delay_floor_seconds REAL,\n",
        ("politeness/test_memory.py::test_columns_are_those_of_document_001",),
        ("I1",),
    ),
    Mutant(
        "write what was learned every hour",
        "I2",
        "politeness/drivers/buffer.py",
        "FLUSH_EVERY_S = 30.0 ",
        "FLUSH_EVERY_S = 3600.0 ",
        (
            (
                "politeness/test_memory.py::"
                "test_changes_are_written_every_thirty_seconds_and_at_close"
            ),
        ),
        ("I2",),
    ),
    Mutant(
        "write no outputs of a crawl that was stopped",
        "I5",
        "cli/crawl.py",
        '        plan.configuration.texts("output"),\n        content',
        '        [] if result.ending.value == "stopped" else plan.configuration.texts("output"),\n        content',
        ("cli/test_crawl_command.py::test_outputs_are_written_even_after_a_stop",),
        ("I5",),
    ),
    Mutant(
        "tell no failures in the summary",
        "I8",
        "cli/summary.py",
        '        ("Failed", _reasons(_failed(stats), failure_words)),\n',
        "",
        (f"{_PROGRESS}summary_tells_what_was_fetched_what_was_not_and_what_to_do",),
        ("I8",),
    ),
    Mutant(
        "start as many requests while commits are slow",
        "I9",
        "crawler/runtime/governor.py",
        "            self._by_commits = max(1, int(0.7 * total))\n",
        "            self._by_commits = max(1, total)\n",
        ("crawler/runtime/test_governor.py::test_slow_commits_count_once_a_second",),
        ("I9",),
    ),
    Mutant(
        "log a slower pace without its streak",
        "J1",
        _OBSERVE,
        '            message = "%s: slower, one request every %.3g s (error streak %d)"\n',
        '            message = "%s: slower, one request every %.3g s (%d)"\n',
        ("politeness/test_observe.py::test_throttle_change_is_logged_with_delay_and_streak",),
        ("J1",),
    ),
    Mutant(
        "count refusals under another name",
        "J2",
        _OBSERVE,
        '    events.Throttled: "throttles",\n',
        '    events.Throttled: "slowdowns",\n',
        ("politeness/test_observe.py::test_counters_have_the_names_of_document_001",),
        ("J2",),
    ),
    Mutant(
        "overlook a rate that is broken",
        "J3",
        "simulation/audit.py",
        "            self.gap_violations += 1\n",
        "            self.gap_violations = 1\n",
        ("simulation/test_run.py::test_gap_violations_are_counted_by_the_simulator",),
        ("J3",),
    ),
    Mutant(
        "count no throttled answers",
        "J4",
        _CORE,
        "            self._throttled += outcome is THROTTLE\n",
        "            self._throttled += outcome is OK\n",
        (f"{_SNAPSHOTS}answers_are_counted_by_what_they_were",),
        ("J4",),
    ),
    Mutant(
        "show one token always",
        "J5",
        "politeness/schedule.py",
        "        return max(0.0, min(float(burst), 1.0 + (now - self.not_before) / self._gap_s))\n",
        "        return float(burst)\n",
        (f"{_SNAPSHOTS}tokens_are_the_requests_that_could_start_at_once",),
        ("J5",),
    ),
    Mutant(
        "add no waits up",
        "J6",
        _CORE,
        "        self._blocked_s += seconds\n",
        "        self._blocked_s = seconds\n",
        (f"{_SNAPSHOTS}time_that_callers_wait_is_added_up",),
        ("J6",),
    ),
    Mutant(
        "export the queue as no metric",
        "J7",
        "service/metrics.py",
        '    ("queue_urls", "URLs that wait to be fetched.", "now.queued"),\n',
        '    ("queue_urls", "URLs that wait to be fetched.", "now.in_flight"),\n',
        ("service/test_metrics.py::test_totals_are_counters_and_gauges",),
        ("J7",),
    ),
    Mutant(
        "show the host with the smallest count first",
        "J8",
        "crawler/inspection/hosts.py",
        "heapq.nlargest(limit, records, key",
        "heapq.nsmallest(limit, records, key",
        ("cli/test_stored.py::test_hosts_come_in_the_order_that_was_asked_for",),
        ("J8",),
    ),
    Mutant(
        "come a tenth of the interval early",
        "K2",
        "politeness/host.py",
        "            self.base_at = now\n            self.not_before = now + self._gap_s\n",
        "            self.base_at = now\n            self.not_before = now + 0.9 * self._gap_s\n",
        (
            (
                "simulation/test_promises.py::"
                "test_domain_that_is_prone_to_429_refuses_nothing_at_its_pace"
            ),
        ),
        ("K2",),
    ),
    Mutant(
        "roll other dice with the same seed",
        "K5",
        "simulation/run.py",
        '        reset(random.Random(f"server {seed}"))\n',
        "        reset(random.Random())\n",
        ("simulation/test_run.py::test_run_is_repeated_exactly_by_its_seed",),
        ("K5",),
    ),
    Mutant(
        "keep the permit of a request that was cancelled",
        "K6",
        "politeness/host.py",
        "        self.in_flight -= 1\n        if self.health is not None and self.health",
        "        if self.health is not None and self.health",
        ("politeness/test_core_machine.py",),
        ("K6",),
    ),
)
