"""What came with kept bodies, recrawls and the service."""

from __future__ import annotations

from .model import Mutant

_SEGMENTS = "crawler/store/segments.py"
_SEGMENT_TESTS = "crawler/store/test_segments.py"
_AGAIN = "crawler/store/test_store_sqlite.py::TestSqliteStore"
_ACCESS = "service/access.py"
_ACCESS_TESTS = "service/test_access.py"
_END_TESTS = "service/test_page_ends.py"

GROWN = (
    Mutant(
        "keep an answer twice after a kill",
        "P3",
        _SEGMENTS,
        "                os.ftruncate(descriptor, length)\n",
        "",
        (f"{_SEGMENT_TESTS}::test_what_was_not_committed_is_cut_off",),
    ),
    Mutant(
        "go on with an archive that lost bytes",
        "P1",
        _SEGMENTS,
        "            if size < length:\n",
        "            if size < 0:\n",
        (f"{_SEGMENT_TESTS}::test_lost_bytes_are_noticed",),
    ),
    Mutant(
        "lose answers when the disk is full",
        "P1",
        _SEGMENTS,
        "            del waiting[:done]\n",
        "            waiting.clear()\n",
        (f"{_SEGMENT_TESTS}::test_full_disk_loses_nothing",),
    ),
    Mutant(
        "keep the old record of a page that was asked for again",
        "P3",
        "crawler/store/sqlite/change.py",
        "        self.database.executemany(_RECHECKED, again)\n",
        "",
        (f"{_AGAIN}::test_an_answer_replaces_the_record_in_its_place",),
    ),
    Mutant(
        "ask for pages before their sitemaps in a recrawl",
        "P1",
        "crawler/store/sqlite/bring_back.py",
        '    if not is_lists and order.at_row == 0 and change.totals["rechecks"]:',
        "    if False:",
        (f"{_AGAIN}::test_a_recrawl_brings_lists_back_and_then_pages",),
    ),
    Mutant(
        "believe a sitemap that lied",
        "P1",
        "crawler/store/lastmod.py",
        " and right > MIN_SHARE * cases",
        "",
        (f"{_AGAIN}::test_a_sitemap_that_lied_spares_none",),
    ),
    Mutant(
        "serve a page whose name was made to lead here",
        "S18",
        _ACCESS,
        " or match[1].lower() not in self._hosts",
        "",
        (f"{_ACCESS_TESTS}::test_other_names_are_refused",),
    ),
    Mutant(
        "let a page of another site steer crawls",
        "S19",
        _ACCESS,
        '        if not is_ours or site not in (None, "same-origin", "none"):',
        "        if not is_ours:",
        (f"{_ACCESS_TESTS}::test_pages_of_other_sites_change_nothing",),
    ),
    Mutant(
        "take any token",
        "S20",
        _ACCESS,
        '        if kind.lower() != "bearer" or not is_right:',
        '        if kind.lower() != "bearer":',
        (f"{_ACCESS_TESTS}::test_wrong_tokens_are_refused",),
    ),
    Mutant(
        "show metrics without a token",
        "S20",
        _ACCESS,
        ' or path == "/metrics"',
        "",
        (f"{_ACCESS_TESTS}::test_everything_about_crawls_needs_the_token",),
    ),
    Mutant(
        "take any number of changes a second",
        "S21",
        _ACCESS,
        "        if full_at - now > 1.0 - 1 / CHANGES:",
        "        if False:",
        (f"{_ACCESS_TESTS}::test_too_many_changes_are_refused_for_a_moment",),
    ),
    Mutant(
        "answer 500 when the page ends",
        "P6",
        "service/server.py",
        "                if request not in self._unanswered:\n",
        "                if True:\n",
        (f"{_END_TESTS}::test_report_under_way_is_refused_in_words",),
    ),
    Mutant(
        "cut event streams off when the page ends",
        "P6",
        "service/stream.py",
        "            is_last = ending.has_begun\n",
        "",
        (f"{_END_TESTS}::test_event_streams_end_whole",),
    ),
)
