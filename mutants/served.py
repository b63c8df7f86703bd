"""What the service and its jobs promise."""

from __future__ import annotations

from .model import Mutant

_BOOK = "service/jobs/book.py"
_BOOK_TESTS = "service/test_book.py"
_RUNNER = "service/jobs/runner.py"
_RUNNER_TESTS = "service/test_runner.py"
_HOOK = "service/webhook.py"
_HOOK_TESTS = "service/test_webhook.py"
_CONNECTIONS = "service/connections.py"
_CONNECTION_TESTS = "service/test_connections.py"
_WATCH = "service/jobs/watch.py"
_WATCH_TESTS = "service/test_watch.py"
_SERVE_TESTS = "service/test_serve.py"
_OPTION_TESTS = "service/test_options.py"
_FAILURES_IN_A_ROW = (
    "crawler/test_stats.py::test_refused_pages_and_hosts_that_are_given_up_are_failures_in_a_row"
)
_FIGURE_TESTS = "service/test_host_figures.py"
_BACKGROUND_TESTS = "service/test_background.py"

SERVED = (
    Mutant(
        "write back a job as it was before its run ended",
        "P1",
        "service/service.py",
        "            lambda known: msgspec.structs.replace(known, options=_merged(known.options, options)),\n",
        "            lambda known: msgspec.structs.replace(known, options=options, run=job.run, undelivered=[]),\n",
        (f"{_BOOK_TESTS}::test_run_that_ends_while_a_request_arrives_keeps_its_result",),
    ),
    Mutant(
        "lose what a job owes when it is changed",
        "P1",
        _BOOK,
        "            job = self.get(job_id)\n            if job is not None:\n                changed = apply(job)\n",
        "            job = self.get(job_id)\n            if job is not None:\n"
        "                changed = msgspec.structs.replace(apply(job), undelivered=[])\n",
        (f"{_BOOK_TESTS}::test_run_that_ends_while_a_request_arrives_keeps_its_result",),
    ),
    Mutant(
        "forget a process before its end is written",
        "P1",
        _RUNNER,
        "            self._is_over(job_id, running, now)\n            del self._running[job_id]\n",
        "            del self._running[job_id]\n            self._is_over(job_id, running, now)\n",
        (f"{_RUNNER_TESTS}::test_end_that_cannot_be_written_is_written_later",),
    ),
    Mutant(
        "let one error end a background task",
        "P7",
        "service/background.py",
        "            return self._failed(error)\n",
        "            raise error\n",
        (f"{_BACKGROUND_TESTS}::test_failed_step_is_repeated_after_longer_and_longer_waits",),
    ),
    Mutant(
        "call a service ready whose jobs stand still",
        "P6",
        "service/app.py",
        "        if reasons:\n",
        "        if False:\n",
        (f"{_BACKGROUND_TESTS}::test_readiness_names_the_task_that_fails",),
    ),
    Mutant(
        "tell the end of a run that goes on",
        "P6",
        _HOOK,
        "state=self.run.state, run=self.run, undelivered=[])",
        "undelivered=[])",
        (f"{_HOOK_TESTS}::test_end_is_told_as_it_was_although_the_next_run_goes_on",),
    ),
    Mutant(
        "retry all hosts when one was named",
        "P6",
        "service/service.py",
        "retries=[*known.retries, host])",
        "retries=[*known.retries, None])",
        (f"{_BOOK_TESTS}::test_only_the_host_that_was_named_is_retried",),
    ),
    Mutant(
        "call a cancelled job stopped",
        "P6",
        _RUNNER,
        "            event = JobEvent.CANCELLED\n",
        "            event = JobEvent.STOPPED\n",
        (f"{_BOOK_TESTS}::test_cancelled_job_has_a_state_and_a_count",),
        rows=("J2",),
    ),
    Mutant(
        "let any user of the machine steer a crawl",
        "S18",
        "cli/watchers.py",
        "                token=_token(),\n",
        "                token=None if is_loopback(host) else _token(),\n",
        ("hostile/test_service.py::test_page_of_a_crawl_obeys_its_operator_alone",),
    ),
    Mutant(
        "open everything beside metrics",
        "S18",
        "service/access.py",
        'self._open_paths = {*OPEN_PATHS, "/metrics"}',
        'self._open_paths = {*OPEN_PATHS, "/metrics", "/api/jobs"}',
        ("service/test_access.py::test_metrics_can_be_open_beside_a_token",),
    ),
    Mutant(
        "wait for headers without limit",
        "S21",
        _CONNECTIONS,
        "            self._stop_waiting()\n\n    def on_response",
        "            pass\n        self._stop_waiting()\n\n    def on_response",
        (f"{_CONNECTION_TESTS}::test_headers_have_to_arrive_in_time",),
    ),
    Mutant(
        "close a connection that is being answered",
        "S21",
        _CONNECTIONS,
        "            and each.waits_since is not None\n",
        "",
        (f"{_CONNECTION_TESTS}::test_one_connection_too_many_is_closed_if_all_are_being_answered",),
    ),
    Mutant(
        "write a line for every connection that fails",
        "S21",
        _CONNECTIONS,
        "        if record.created - said_at < QUIET_S:\n",
        "        if False:\n",
        (f"{_CONNECTION_TESTS}::test_lines_that_repeat_are_written_once_in_a_while",),
    ),
    Mutant(
        "fail for a body that does not arrive",
        "S21",
        "service/access.py",
        "            raise Problem(HTTPStatus.REQUEST_TIMEOUT, words) from None\n",
        "            raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, words) from None\n",
        ("service/test_access.py::test_body_that_does_not_arrive_is_refused",),
    ),
    Mutant(
        "count refusals by the delay alone",
        "P5",
        "politeness/answers.py",
        "            wait_s = max(self._gap_s, self.not_before - now)\n",
        "            wait_s = self._gap_s\n",
        (f"{_WATCH_TESTS}::test_host_that_only_answers_429_cancels_the_job_with_every_strategy",),
        rows=("E4",),
    ),
    Mutant(
        "count refusals after any wait",
        "P5",
        _WATCH,
        "int(wait_s // self.delay_s)",
        "int(wait_s // 60.0)",
        (f"{_WATCH_TESTS}::test_shortest_wait_that_counts_is_a_setting",),
        rows=("E4",),
    ),
    Mutant(
        "let a job fail for ever",
        "P6",
        _WATCH,
        "        if most and failures >= most and not self.allows_failures:\n",
        "        if False:\n",
        (f"{_SERVE_TESTS}::test_failing_urls_in_a_row_fail_the_job",),
        rows=("E5",),
    ),
    Mutant(
        "count no URL of a host that is given up",
        "P6",
        "crawler/stats_fold.py",
        "        if reason in GIVEN_UP:\n",
        "        if False:\n",
        (_FAILURES_IN_A_ROW,),
        rows=("E5",),
    ),
    Mutant(
        "count no answer of 400 or above",
        "P6",
        "crawler/stats_fold.py",
        "        if status is None or status >= 400:\n",
        "        if status is None:\n",
        (_FAILURES_IN_A_ROW,),
        rows=("E5",),
    ),
    Mutant(
        "let a check fail of the links that it looks for",
        "P6",
        "service/jobs/process.py",
        "    watch.allows_failures = True",
        "    watch.allows_failures = False",
        (f"{_SERVE_TESTS}::test_failing_urls_in_a_row_fail_the_job",),
    ),
    Mutant(
        "run jobs without the operator's options",
        "P6",
        "cli/config.py",
        "    given = _from_files(environment, directory) | _from_environment(OPTIONS, environment)\n",
        "    given: dict[str, Given] = {}\n",
        (f"{_OPTION_TESTS}::test_service_reads_options_of_jobs_from_variables_and_files",),
        rows=("A3", "E8"),
    ),
    Mutant(
        "let a job turn pacing off",
        "P4",
        "politeness/settings.py",
        ', "for_jobs": False}',
        "}",
        (f"{_OPTION_TESTS}::test_jobs_may_set_the_pace_and_not_what_is_the_operators",),
    ),
    Mutant(
        "suggest an option that is refused",
        "P6",
        "crawler/options/values.py",
        "    close = [right] if right in known else",
        "    close = [right] if right else",
        (f"{_OPTION_TESTS}::test_refused_option_is_never_suggested",),
    ),
    Mutant(
        "keep no figures of a host",
        "J5",
        "crawler/host/records.py",
        "            counts.saw(pack_doing(doing), ",
        '            counts.saw(b"", ',
        (f"{_FIGURE_TESTS}::test_record_of_a_host_has_its_figures",),
        rows=("J5",),
    ),
    Mutant(
        "tell no streaks of the busiest hosts",
        "J5",
        "service/metrics.py",
        '"success_streak"),\n',
        '"fetched"),\n',
        (f"{_FIGURE_TESTS}::test_metrics_of_the_busiest_hosts_have_their_figures",),
        rows=("J5",),
    ),
    Mutant(
        "refuse a value without naming its field",
        "P6",
        "service/operations.py",
        "        raise bad_request(str(error), field=field) from error\n",
        "        raise bad_request(str(error)) from error\n",
        (f"{_BOOK_TESTS}::test_problem_names_the_field_that_is_wrong",),
    ),
    Mutant(
        "call a container well whose service is not ready",
        "P6",
        "service/health.py",
        "    return int(problem is not None)\n",
        "    return 0\n",
        ("service/test_health.py::test_check_fails_while_nothing_answers",),
    ),
)
