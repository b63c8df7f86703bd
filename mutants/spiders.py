"""Spiders and `Durable`: handlers, sessions, items that come once, what a kill leaves behind."""

from __future__ import annotations

from .model import Mutant

_HANDLERS, _OF_HANDLERS = "crawler/page/handlers.py", "crawler/page/test_handlers.py"
_FORM, _OF_FORMS = "crawler/page/form.py", "crawler/page/test_form.py"
_FEED, _OF_SPIDERS = "crawler/item_feed.py", "crawler/test_spider.py"
_SESSIONS = "crawler/plugins/sessions.py"
_QUEUE, _DURABLE = "adapters/spider_queue.py", "adapters/scrapy_durable.py"
_OF_DURABLE = "adapters/test_scrapy_durable.py"
_LOGINS = "cli/test_sessions.py::test_logins_survive_kills"
_HANDLE, _OF_EXTRACT = "exports/handle.py", "cli/test_extract.py"
_AGAIN = "cli/test_failed_handlers.py::test_handlers_run_again_when_they_are_mended"
_KILLED = f"{_OF_DURABLE}::test_every_item_is_there_once_after_five_kills"

SPIDERS = (
    Mutant(
        "give a page with an unknown label to a pattern",
        "P7",
        _HANDLERS,
        "        if page.label:\n",
        "        if page.label in self._of_labels:\n",
        (f"{_OF_HANDLERS}::test_label_without_a_handler_is_said_with_those_that_there_are",),
    ),
    Mutant(
        "give redirects to handlers",
        "P7",
        _HANDLERS,
        "        return 200 <= status < 300\n",
        "        return 200 <= status < 400\n",
        (f"{_OF_HANDLERS}::test_label_then_first_pattern_picks_the_handler",),
    ),
    Mutant(
        "end well although a handler has failed",
        "P7",
        "cli/run.py",
        "        code = code or max(handler_failures(plan.location), _unsent(plan.location))\n",
        "",
        ("cli/test_run.py::test_handlers_that_failed_are_counted_over_all_runs",),
    ),
    Mutant(
        "give items again that a program has acknowledged",
        "P2",
        _FEED,
        "                    first = number if at == position else 0\n",
        "                    first = 0\n",
        (f"{_OF_SPIDERS}::test_loop_that_was_left_goes_on",),
    ),
    Mutant(
        "pass over the item that a program has in hand",
        "P1",
        _FEED,
        "_PLACE.pack(given.position, given.number)",
        "_PLACE.pack(given.position, given.number + 1)",
        (f"{_OF_SPIDERS}::test_loop_that_was_left_goes_on",),
    ),
    Mutant(
        "let sessions share their cookies",
        "P7",
        _SESSIONS,
        "        name = request.payload.session\n",
        '        name = "any"\n',
        (_LOGINS,),
    ),
    Mutant(
        "lose a login with the process",
        "P1",
        _SESSIONS,
        "            if jar.is_changed:\n",
        "            if False:\n",
        (_LOGINS,),
    ),
    Mutant(
        "read a secret that a page has named",
        "S",
        _FORM,
        " or self._is_text(value)",
        "",
        (f"{_OF_FORMS}::test_page_cannot_name_a_secret",),
    ),
    Mutant(
        "send a form without its own fields",
        "P7",
        _FORM,
        "tuple(form.form_data())",
        "()",
        (f"{_OF_FORMS}::test_fields_are_those_of_a_browser",),
    ),
    Mutant(
        "lose the requests of a handler that runs again",
        "P1",
        "exports/handle_again.py",
        "                    batch.found.append(each)\n",
        "                    pass\n",
        (_AGAIN,),
    ),
    Mutant(
        "fetch a page whose answer is kept for its handler",
        "P2",
        "crawler/store/sqlite/bring_back.py",
        "items.error IS NOT NULL)\n"
        "      AND NOT EXISTS (SELECT 1 FROM kept WHERE kept.seq = pages.seq)\n",
        "items.error IS NOT NULL)\n",
        (_AGAIN,),
    ),
    Mutant(
        "give kept pages to handlers without their data",
        "P1",
        _HANDLE,
        "*page[2:])",
        "*page[2:4], None)",
        (f"{_OF_EXTRACT}::test_the_same_handlers_make_the_same_items",),
    ),
    Mutant(
        "count a damaged answer as handled",
        "P7",
        _HANDLE,
        "        return HandledPage(url, [], is_damaged=True)\n",
        "        return HandledPage(url, [])\n",
        (f"{_OF_EXTRACT}::test_a_damaged_answer_costs_its_page_alone",),
    ),
    Mutant(
        "show a handler the error of the one before",
        "P7",
        _HANDLE,
        "record._replace(error=None) if is_ours else record",
        "record",
        (f"{_OF_EXTRACT}::test_a_damaged_answer_costs_its_page_alone",),
    ),
    Mutant(
        "extract, and end well although handlers have failed",
        "P7",
        "cli/extract.py",
        "    if not is_complete or tally.failed or ",
        "    if not is_complete or ",
        (f"{_OF_EXTRACT}::test_failures_cost_their_page_alone",),
    ),
    Mutant(
        "find the place of another page's answer",
        "P1",
        "crawler/store/sqlite/reader.py",
        "            seqs = [row[_POSITION + 1] for row in rows]\n",
        "            seqs = [row[_POSITION] for row in rows]\n",
        (
            (
                "crawler/store/test_store_sqlite.py::TestSqliteStore::"
                "test_a_page_is_found_by_its_url_with_its_seq"
            ),
        ),
    ),
    Mutant(
        "lose what Scrapy had taken from the queue",
        "P1",
        _QUEUE,
        "(WAITING, TAKEN))",
        "(WAITING, MEMORY))",
        (f"{_KILLED}[lists-wanted0]",),
    ),
    Mutant(
        "send a form of Scrapy again after a kill",
        "P2",
        _QUEUE,
        "(SENT, number, TAKEN)",
        "(TAKEN, number, TAKEN)",
        (f"{_OF_DURABLE}::test_form_in_flight_is_not_sent_again",),
    ),
    Mutant(
        "forget what a spider of Scrapy has seen",
        "P2",
        _QUEUE,
        '        row = self._database.row("SELECT 1 FROM seen WHERE fingerprint = ?", (fingerprint,))\n',
        "        return False\n",
        (f"{_KILLED}[rules-wanted1]",),
    ),
    Mutant(
        "lose the cookies of Scrapy with the process",
        "P1",
        _DURABLE,
        "        outcome.cookies = self._jars.changed()\n",
        "        outcome.cookies = {}\n",
        (f"{_OF_DURABLE}::test_cookies_survive_a_kill",),
    ),
    Mutant(
        "keep items of a page before its end",
        "P2",
        _DURABLE,
        "            page.outcome.items.append(line)\n",
        "            self._write(None, page.url, PageEnd(items=[line]), [])\n",
        (f"{_OF_DURABLE}::test_items_of_a_callback_that_was_cut_off_are_not_kept",),
    ),
    Mutant(
        "give a spider of Scrapy the queue of another",
        "P2",
        _QUEUE,
        "        elif row[0] != spider:\n",
        "        elif False:\n",
        (f"{_OF_DURABLE}::test_directory_of_another_spider_is_refused",),
    ),
)
