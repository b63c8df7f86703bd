"""What counts as failed, what comes back, and pages that this machine could not read."""

from __future__ import annotations

from .model import Mutant

_POISON = "crawler/runtime/test_poison.py"
_RETRY = "cli/test_retry.py"
_MEMORY = "crawler/store/test_store_memory.py::TestMemoryStore"
_SQLITE = "crawler/store/test_store_sqlite.py::TestSqliteStore"

FAILED = (
    Mutant(
        "take a refusal for a page",
        "P1",
        "crawler/model.py",
        "    return status in REFUSALS or (record.parent is None and KINDS[kind].is_page)\n",
        "    return record.parent is None and KINDS[kind].is_page\n",
        (f"{_MEMORY}::test_what_ended_in_a_refusal_an_error_or_unread_has_failed",),
    ),
    Mutant(
        "take a page that was not read for a page",
        "P1",
        "crawler/model.py",
        "    if status is None or status >= 500 or (error is not None and error in NOT_READ):\n",
        "    if status is None or status >= 500:\n",
        (f"{_MEMORY}::test_what_ended_in_a_refusal_an_error_or_unread_has_failed",),
    ),
    Mutant(
        "count a refusal as fetched in the file",
        "P1",
        "crawler/store/sqlite/schema.py",
        """    (status IS NULL OR status >= 500 OR status IN""",
        """    (status IS NULL OR status >= 600 OR status IN""",
        (
            "crawler/store/test_failed.py::test_the_condition_of_the_file_is_that_of_the_model",
            f"{_SQLITE}::test_what_ended_in_a_refusal_an_error_or_unread_has_failed",
        ),
    ),
    Mutant(
        "leave a seed without a page alone when its crawl is run again",
        "P1",
        "crawler/runtime/run.py",
        '    return RetryUrls(seeds=True) if total["failed"] or total["given_up"] else None\n',
        "    return None\n",
        (f"{_RETRY}::test_one_of_several_seeds_that_gave_no_page_is_asked_for_again",),
    ),
    Mutant(
        "take links of a page that is read again for known",
        "P1",
        "crawler/shard/reading.py",
        "        routes.rules.hrefs.clear()  # its links count as passed on, and are not: it is read "
        "again\n",
        "",
        ("crawler/shard/test_lacks.py::test_the_links_of_a_page_that_is_read_again_are_followed",),
    ),
    Mutant(
        "blame a page for a lack of memory",
        "P1",
        "crawler/runtime/helpers.py",
        "            lacked = lacked or not helper.is_ready or helper.child.exit_status == NO_MEMORY\n",
        "            lacked = False\n",
        ("crawler/runtime/test_offload.py::test_the_memory_of_a_helper_is_limited",),
    ),
    Mutant(
        "forget pages that were not read in an earlier run",
        "P7",
        "crawler/crawl.py",
        '        unread = _unread(store) if total["failed"] else 0\n',
        "        unread = 0\n",
        (f"{_POISON}::test_a_page_that_kills_its_parser_is_recorded_as_an_error",),
    ),
)
