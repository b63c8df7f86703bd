"""Requests that carry something: their identity, their place in the queue, what is sent once."""

from __future__ import annotations

from .model import Mutant

_PAYLOAD = "crawler/payload.py"
_CODEC = "crawler/test_payload.py"
_SHARD = "crawler/shard/shard.py"
_ONCE = "crawler/shard/sent_once.py"
_TESTS = "crawler/shard/test_payloads.py"
_SQLITE = "crawler/store/sqlite/"
_SERVER = "crawler/store/valkey/"
_ON_DISK = "crawler/store/test_store_sqlite.py::TestSqliteStore::"
_IN_SERVER = "crawler/store/test_store_valkey.py::TestValkeyStore::"
_FUNCTIONS = "crawler/runtime/test_requests_of_functions.py"
_UNANSWERED = "test_a_request_that_was_sent_is_unanswered_for_the_next_owner"

PAYLOADS = (
    Mutant(
        "send a POST again that got no answer",
        "P2",
        _ONCE,
        "        if answer.status is None:\n",
        "        if False:\n",
        (f"{_TESTS}::test_a_post_without_an_answer_is_not_repeated",),
    ),
    Mutant(
        "send a POST again that was answered with an error",
        "P2",
        _ONCE,
        "        return SETTLED if isinstance(follows, Again) else follows\n",
        "        return follows\n",
        (f"{_TESTS}::test_an_answer_to_a_post_is_its_result",),
    ),
    Mutant(
        "take a refused POST for an unanswered one",
        "P2",
        _ONCE,
        "                self._store.note_sent(item.seq, is_refused=True)\n",
        "                pass\n",
        (f"{_TESTS}::test_a_post_that_was_refused_is_sent_again",),
    ),
    Mutant(
        "send a POST without a note",
        "P2",
        _ONCE,
        "            self._store.note_sent(entry.seq)\n",
        "            pass\n",
        (f"{_TESTS}::test_a_post_in_flight_at_a_crash_is_unanswered_for_the_next_owner",),
    ),
    Mutant(
        "send a POST again after a crash",
        "P2",
        "crawler/shard/judge.py",
        "        if row.is_sent_once and entry.seq in self._store.unanswered:\n",
        "        if False:\n",
        (f"{_TESTS}::test_a_post_in_flight_at_a_crash_is_unanswered_for_the_next_owner",),
    ),
    Mutant(
        "forget on disk what was sent",
        "P2",
        _SQLITE + "notes.py",
        "        if number > 0:\n            sent.add(number)\n",
        "        if number > 0:\n            pass\n",
        (_ON_DISK + _UNANSWERED,),
    ),
    Mutant(
        "take a 503 without Retry-After for a refusal",
        "P2",
        _PAYLOAD,
        '    return status == 429 or (status == 503 and "retry-after" in headers)\n',
        "    return status in (429, 503)\n",
        (f"{_CODEC}::test_a_refusal_says_that_nothing_was_done",),
    ),
    Mutant(
        "repeat a POST in a recrawl",
        "P2",
        _SQLITE + "bring_back.py",
        "    WHERE {REPEATABLE} AND",
        "    WHERE {PAGES_ONLY} AND",
        (_ON_DISK + "test_a_recrawl_repeats_what_may_be_repeated",),
    ),
    Mutant(
        "repeat a POST in a recrawl of a server",
        "P2",
        _SERVER + "returning.py",
        "        for entry, record in here:\n"
        "            if KINDS[entry.kind].form in forms and not KINDS[entry.kind].is_sent_once:\n",
        "        for entry, record in here:\n            if KINDS[entry.kind].form in forms:\n",
        (_IN_SERVER + "test_a_recrawl_repeats_what_may_be_repeated",),
    ),
    Mutant(
        "let a secret leave its origin with a redirect",
        "S12",
        _PAYLOAD,
        "            if is_same_origin and not",
        "            if not",
        (f"{_CODEC}::test_no_header_and_no_secret_leaves_its_origin",),
    ),
    Mutant(
        "send a form with secrets to another origin",
        "S12",
        _PAYLOAD,
        "            if fields and not is_same_origin:\n",
        "            if False:\n",
        (f"{_TESTS}::test_a_form_with_a_secret_does_not_leave_its_origin",),
    ),
    Mutant(
        "keep a secret in the archive",
        "S12",
        "crawler/fetch/raw_exchange.py",
        "        headers = request.payload.headers\n",
        "        pass\n",
        ("crawler/fetch/test_fetch_methods.py::test_what_is_kept_of_a_request_names_its_secrets",),
    ),
    Mutant(
        "print what a payload says",
        "S12",
        _PAYLOAD,
        '        return f"<Payload {self.method}{label}, {len(encode(self))} bytes>"\n',
        '        return f"<Payload {self.method}{label}, {self.body!r}>"\n',
        (f"{_CODEC}::test_a_payload_is_not_printed",),
    ),
    Mutant(
        "send the method of the request before",
        "P1",
        "crawler/fetch/transfer.py",
        "        handle.unsetopt(pycurl.CUSTOMREQUEST)\n",
        "",
        ("crawler/fetch/test_fetch_methods.py::test_one_handle_sends_every_method_in_turn",),
    ),
    Mutant(
        "take two bodies for one request",
        "P1",
        _PAYLOAD,
        '        digest = xxh3_128_hexdigest(sent) if sent else ""\n',
        '        digest = ""\n',
        (_ON_DISK + "test_a_request_is_known_by_url_method_and_body",),
    ),
    Mutant(
        "ask for a link beside the request with its label",
        "P1",
        _SHARD,
        "                self.judge.replaced.add(link.seq)\n",
        "                pass\n",
        (f"{_TESTS}::test_a_label_replaces_a_link_that_waits",),
    ),
    Mutant(
        "read a link from disk beside the request with its label",
        "P1",
        _SHARD,
        "                    self._drop_replaced(entries)\n",
        "                    pass\n",
        (f"{_TESTS}::test_a_label_replaces_a_link_that_is_not_in_memory",),
    ),
    Mutant(
        "forget a label when arrivals join the index",
        "P1",
        _SQLITE + "shard.py",
        "            if self._labels:\n                self._database.execute(_RELABEL)\n",
        "",
        ("crawler/store/test_payload_index.py::test_the_index_says_the_same_as_a_store_in_memory",),
    ),
    Mutant(
        "leave a link new beside its label in a server",
        "P1",
        _SERVER + "scripts/arrive.lua",
        "      if is_new then count = count + redis.call('SADD', bucket, print) end\n",
        "",
        (_IN_SERVER + "test_a_link_to_a_url_with_a_label_is_known",),
    ),
    Mutant(
        "lose a payload between shards of a server",
        "P1",
        _SERVER + "scripts/arrive.lua",
        "  set_fields(P .. 'p', payloads)\n",
        "  if not told then set_fields(P .. 'p', payloads) end\n",
        (_IN_SERVER + "test_a_request_travels_to_its_shard",),
    ),
    Mutant(
        "fetch what is excluded for a label",
        "P4",
        "crawler/shard/routes.py",
        "        wanted = [each for each in candidates if not excludes(each.url)]\n",
        "        wanted = list(candidates)\n",
        (f"{_TESTS}::test_what_is_excluded_is_not_asked_for",),
    ),
    Mutant(
        "lose the requests of a function",
        "P1",
        "crawler/plugins/extract.py",
        "requests=[*found.requests, *requests]",
        "requests=found.requests",
        (f"{_FUNCTIONS}::test_a_function_of_the_program_asks_in_its_own_process",),
    ),
    Mutant(
        "ask once for what is yielded twice on purpose",
        "P1",
        "crawler/page/request.py",
        "        if is_again:  # another one in each answer of the page\n",
        "        if False:\n",
        (f"{_FUNCTIONS}::test_a_function_of_the_program_asks_in_its_own_process",),
    ),
    Mutant(
        "lose the data of a request in a helper",
        "P1",
        "crawler/page/extract.py",
        "        page = Page(record, headers, body, carried=carried, received=received)\n"
        "        items, asked",
        "        page = Page(record, headers, body)\n        items, asked",
        (f"{_FUNCTIONS}::test_what_a_function_asks_for_is_fetched_with_what_it_carries",),
    ),
)
