"""What follows from an answer: every row of the table in `shard.follows`."""

from __future__ import annotations

import pytest

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import (
    STARVED,
    Entry,
    Fetched,
    FetchError,
    LocalError,
    Now,
    Request,
    RobotsRequest,
)
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.page.long_work import BIG_BYTES
from mannerly.crawler.shard.follows import (
    LACK_TRIES,
    STARVED_RETRY_S,
    Again,
    FollowContext,
    Follows,
    LearnRules,
    Read,
    Settled,
    what_follows,
)
from mannerly.crawler.web.scope import Scope
from mannerly.politeness.model import ErrorKind
from mannerly.politeness.retry import GiveUp, GiveUpReason, Retry

RULES = LinkRules(Scope(("https://a.example/",)), "mannerly", 5)
NOW = Now(100.0, 1_700_000_000.0)
MAX_ATTEMPTS = 3
ROBOTS = RobotsRequest("https://a.example/robots.txt", "a.example", "https://a.example")
AGAIN_FREE = Retry(due=130.0, attempt=1, costs_attempt=False)
AGAIN_COUNTED = Retry(due=101.5, attempt=2, costs_attempt=True)
NO_MORE = GiveUp(GiveUpReason.ATTEMPTS)
BIG = b"x" * BIG_BYTES


def entry(kind: Kind = Kind.PAGE, attempts: int = 0) -> Entry:
    return Entry(1, "https://a.example/", "a.example", 0, 0, None, 0, kind, attempts)


def answer(
    status: int | None = 200,
    body: bytes = b"",
    *,
    error: FetchError | None = None,
    detail: str | None = None,
) -> Fetched:
    status = None if error is not None else status
    headers = {"content-type": "text/html"}
    return Fetched(
        Request("https://a.example/", "a.example", 5.0),
        status,
        headers,
        body,
        error=error,
        detail=detail,
    )


def follows(
    item: Entry | RobotsRequest,
    said: Fetched,
    retry: Retry | GiveUp | None = None,
    *,
    reads_elsewhere: bool = True,
    lacked: int = 0,
) -> Follows:
    context = FollowContext(MAX_ATTEMPTS, RULES, reads_elsewhere)
    return what_follows(item, said, retry, NOW, context, lacked=lacked)


@pytest.mark.parametrize(
    "said",
    [
        answer(200, BIG),
        answer(301),
        answer(503),
        answer(error=ErrorKind.TIMEOUT),
        answer(error=LocalError.BLOCKED_ADDRESS),
        answer(error=LocalError.STALE_CONNECTION),
    ],
)
def test_any_answer_to_a_request_for_robots_is_about_rules(said: Fetched) -> None:
    """Row 1: whatever it is, the gate decides what it means."""
    assert follows(ROBOTS, said) == LearnRules(ROBOTS)


def test_what_was_held_back_goes_to_the_queue_as_it_was() -> None:
    """Nothing was sent, so it is not a try, however often it happens."""
    page = entry(attempts=MAX_ATTEMPTS)

    assert follows(page, answer(error=LocalError.HELD)) == Again(page, NOW.mono)


@pytest.mark.parametrize("error", sorted({*STARVED, LocalError.NO_ROOM}))
def test_what_this_machine_lacks_costs_a_page_no_attempt(error: LocalError) -> None:
    """It is asked for again after two seconds, and no try is counted."""
    page = entry(attempts=MAX_ATTEMPTS)

    assert follows(page, answer(error=error)) == Again(page, NOW.mono + STARVED_RETRY_S)


def test_a_compressed_body_that_ends_early_is_asked_for_once_more() -> None:
    """The second time it is taken as it is, and its record says so."""
    cut, page = answer(200, b"half a pa", detail="truncated"), entry()

    first = follows(page, cut)
    second = follows(page._replace(attempts=1), cut)

    assert first == Again(page._replace(attempts=1), NOW.mono + 0.5)
    assert second == Settled()


def test_memory_that_lacks_for_one_page_again_and_again_has_an_end() -> None:
    """Each wait is twice as long; after nine tries the page has failed, and says why."""
    page, lack = entry(attempts=MAX_ATTEMPTS), answer(error=LocalError.NO_MEMORY)

    waits = []
    for lacked in range(LACK_TRIES):
        again = follows(page, lack, lacked=lacked)
        assert isinstance(again, Again)
        waits.append(again.due - NOW.mono)

    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0, 64.0]
    assert follows(page, lack, lacked=LACK_TRIES) == Settled("no_memory")
    no_room = answer(error=LocalError.NO_ROOM)
    assert follows(page, no_room, lacked=LACK_TRIES) == Settled("no_room")


@pytest.mark.parametrize("error", [LocalError.STALE_CONNECTION])
@pytest.mark.parametrize(("attempts", "wait_s"), [(0, 0.5), (1, 1.0), (2, 2.0)])
def test_what_failed_on_our_side_and_may_pass_is_tried_again(
    error: LocalError, attempts: int, wait_s: float
) -> None:
    """Row 3: after half a second, doubled with every try, which is counted."""
    page = entry(attempts=attempts)

    again = follows(page, answer(error=error))

    assert again == Again(page._replace(attempts=attempts + 1), NOW.mono + wait_s)


@pytest.mark.parametrize(
    ("said", "attempts", "reason"),
    [
        (answer(error=LocalError.STALE_CONNECTION), MAX_ATTEMPTS, "stale_connection"),
        (answer(error=LocalError.BLOCKED_ADDRESS), 0, "blocked_address"),
        (answer(error=LocalError.BLOCKED_PORT), 0, "blocked_port"),
        (answer(error=LocalError.BAD_URL, detail="no such scheme"), 0, "no such scheme"),
        (answer(error=LocalError.TRUST), 0, "trust"),
    ],
)
def test_what_failed_on_our_side_otherwise_is_settled_with_the_reason(
    said: Fetched, attempts: int, reason: str
) -> None:
    """Row 3: no tries are left, or another one would fail the same way."""
    page = entry(attempts=attempts)

    assert follows(page, said) == Settled(reason)


@pytest.mark.parametrize("said", [answer(429), answer(503), answer(error=ErrorKind.TIMEOUT)])
@pytest.mark.parametrize(
    ("retry", "attempts"), [(AGAIN_FREE, 1), (AGAIN_COUNTED, 2)], ids=["refused", "failed"]
)
def test_a_granted_retry_is_due_when_the_politeness_core_says_so(
    said: Fetched, retry: Retry, attempts: int
) -> None:
    """Row 4: a refusal for the moment costs no try, a failure does."""
    page = entry(attempts=1)

    assert follows(page, said, retry) == Again(page._replace(attempts=attempts), retry.due)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (entry(), answer(200, BIG)),
        (entry(Kind.SITEMAP), answer(200, BIG)),
        (entry(Kind.CT), answer(200, BIG)),
    ],
    ids=["long page", "long sitemap", "certificates"],
)
def test_what_is_too_long_for_the_loop_is_read_in_another_process(
    item: Entry, said: Fetched
) -> None:
    """Row 5: with the work to do there; without helpers it is read here."""
    elsewhere = follows(item, said)
    here = follows(item, said, reads_elsewhere=False)

    assert isinstance(elsewhere, Read)
    assert callable(elsewhere.work)
    assert here == Settled()


@pytest.mark.parametrize(
    ("item", "said", "retry"),
    [
        (entry(), answer(200, b"<p>hello"), None),
        (entry(), answer(200, BIG[:-1]), None),
        (entry(), answer(404, BIG), None),
        (entry(), answer(301), None),
        (entry(), answer(503), NO_MORE),
        (entry(), answer(429), NO_MORE),
        (entry(), answer(error=ErrorKind.TIMEOUT), NO_MORE),
        (entry(), answer(error=ErrorKind.PROTOCOL), None),
        (entry(Kind.SITEMAP), answer(200, b"<urlset/>"), None),
        (entry(Kind.CT), answer(404), None),
    ],
)
def test_anything_else_is_settled(item: Entry, said: Fetched, retry: GiveUp | None) -> None:
    """Row 6: its record and links are made here, and it did reach the server."""
    assert follows(item, said, retry) == Settled(None)
