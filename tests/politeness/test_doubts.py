"""Refusals that look like the answers of single pages: what they mean is found out by asking."""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import Grant, Politeness, Response, Settings
from mannerly.politeness.doubts import HELD, PAGES
from mannerly.politeness.model import Outcome
from mannerly.politeness.retry import Retry
from mannerly.politeness.stats import IN_A_ROW
from mannerly.simulation.servers import BanningBucket, TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.simulation.servers import LimitedServer

HOST = "a.example"


@dataclass
class Crawl:
    """What came of a crawl of a few hundred pages in virtual time."""

    given: int = 0  # pages that were got, forbidden ones included
    sent: int = 0
    refused: int = 0
    repeats: int = 0  # of forbidden pages
    ended_at: float = 0.0


def crawl(
    server: LimitedServer,
    *,
    pages: int = 300,
    is_forbidden: Callable[[int], bool] = lambda _: False,
    refusal: int = 403,
    names_pages: bool = True,
) -> Crawl:
    """Ask for every page, and again whenever the core says so; refused ones have one body."""
    server.reset(random.Random(1))
    core, result = Politeness(Settings(seed=1)), Crawl()
    new, again = deque(range(pages)), list[tuple[float, int, int]]()
    arrivals: list[tuple[float, int, int, int, object, Response]] = []
    asked: set[int] = set()
    now = 0.0
    while new or again or arrivals:
        until = inf
        if new or (again[:1] and again[0][0] <= now):
            decision = core.reserve(HOST, now=now)
            if isinstance(decision, Grant):
                is_due = bool(again) and again[0][0] <= now
                page, attempt = heapq.heappop(again)[1:] if is_due else (new.popleft(), 1)
                status, latency_s, _ = server.request(now, len(arrivals) + 1)
                is_refused = status != 200
                status = refusal if is_refused else 403 if is_forbidden(page) else 200
                body = "refused" if is_refused else "forbidden" if status == 403 else page
                response = Response(status, latency_s)
                if names_pages:
                    url = f"https://{HOST}/{page}"
                    response = response._replace(url=url, body_digest=hash(body))
                result.sent += 1
                result.refused += is_refused
                result.repeats += page in asked and is_forbidden(page)
                asked.add(page)
                arrival = (now + latency_s, result.sent, page, attempt, decision.permit, response)
                heapq.heappush(arrivals, arrival)
                continue
            until = inf if decision.until is None else max(decision.until, now + 1e-6)
        elif again:
            until = again[0][0]
        if not arrivals or arrivals[0][0] > until:
            now = until
            continue
        now, _, page, attempt, permit, response = heapq.heappop(arrivals)
        outcome = core.report(permit, response, now=now)
        retry = None
        if outcome is not Outcome.OK and outcome is not Outcome.NEUTRAL:
            retry = core.retry(permit, response, outcome, attempt=attempt, now=now)
        if isinstance(retry, Retry):
            heapq.heappush(again, (retry.due, page, retry.attempt))
        else:
            is_page = response.status == (403 if is_forbidden(page) else 200)
            result.given += is_page and response.body_digest != hash("refused")
            result.ended_at = now
    return result


BANS = [pytest.param(20.0, id="20 s"), pytest.param(60.0, id="60 s")]


@pytest.mark.parametrize("ban_s", BANS)
@pytest.mark.parametrize("names_pages", [True, False], ids=["urls", "no urls"])
def test_a_ban_by_403_is_found_and_held(ban_s: float, names_pages: bool) -> None:
    """Nearly every page is fetched, and few requests go into a ban."""
    seen = crawl(BanningBucket(3.0, 3, ban_s), names_pages=names_pages)

    assert seen.given >= 0.97 * 300
    assert seen.refused <= 0.04 * seen.sent


def test_a_bucket_that_answers_403_is_found() -> None:
    """Single refusals between pages that are given are refusals when they are given later."""
    seen = crawl(TokenBucket(3.0, 5))

    assert seen.given == 300
    assert seen.refused <= 0.04 * seen.sent


def test_a_challenge_with_status_200_is_a_refusal() -> None:
    """Only the first one looks like a page: the next has the same body."""
    seen = crawl(BanningBucket(3.0, 3, 20.0), refusal=200)

    assert seen.given >= 0.97 * 300  # the first ones of the row are taken for pages
    assert seen.refused <= 0.04 * seen.sent


def test_forbidden_pages_cost_neither_pace_nor_many_requests() -> None:
    """Three pages that stay forbidden while others are given decide for all."""
    free = crawl(TokenBucket(1000.0, 1000))
    seen = crawl(TokenBucket(1000.0, 1000), is_forbidden=lambda page: page % 10 == 7)

    assert seen.given == 300
    assert seen.repeats <= 0.5 * 30
    assert seen.ended_at <= 1.1 * free.ended_at


def test_forbidden_pages_beside_a_ban_are_told_apart_by_their_bodies() -> None:
    """The ban is held, and forbidden pages do not slow the host down."""
    plain = crawl(BanningBucket(3.0, 3, 20.0))
    seen = crawl(BanningBucket(3.0, 3, 20.0), is_forbidden=lambda page: page % 10 == 7)

    assert seen.given >= 0.97 * 300
    assert seen.refused <= 0.04 * seen.sent
    assert seen.ended_at <= 1.1 * plain.ended_at


def test_a_forbidden_part_of_a_site_is_waited_for_once() -> None:
    """Thirty forbidden pages in a row could be a ban: the host is asked for a minute."""
    free = crawl(TokenBucket(1000.0, 1000))
    seen = crawl(TokenBucket(1000.0, 1000), is_forbidden=lambda page: 100 <= page < 130)

    assert seen.given == 300
    assert seen.ended_at <= free.ended_at + 70.0


class Client:
    """Sends one request after the other, each to the page that is named."""

    def __init__(self) -> None:
        self.core = Politeness(Settings(seed=1))
        self.now = 0.0

    def ask(self, page: str, status: int = 200, body: str = "") -> Outcome:
        while not isinstance(decision := self.core.reserve(HOST, now=self.now), Grant):
            assert decision.until is not None
            self.now = max(decision.until, self.now + 1e-6)
        response = Response(status, 0.05, url=page, body_digest=body or page)
        self.now += 0.05
        return self.core.report(decision.permit, response, now=self.now)


def test_the_same_page_given_later_is_a_proof() -> None:
    """From then on, another page with the refusal's body is a refusal at once."""
    client = Client()
    client.ask("/a")

    assert client.ask("/b", 403, "no") is Outcome.UNDECIDED
    client.ask("/c")
    client.ask("/b")

    assert client.ask("/d", 403, "no") is Outcome.THROTTLE


def test_a_page_that_stays_refused_among_others_is_its_own() -> None:
    """It costs one request more, and no pause."""
    client = Client()
    client.ask("/a")
    assert client.ask("/b", 403, "no") is Outcome.UNDECIDED
    client.ask("/c")
    before = client.now

    assert client.ask("/b", 403, "no") is Outcome.NEUTRAL
    assert client.now - before < 1.2
    assert client.ask("/d", 403, "no") is Outcome.NEUTRAL


def test_different_pages_in_a_row_leave_one_request_at_a_time() -> None:
    """Every further request would prolong a ban."""
    client = Client()
    client.ask("/a")
    client.ask("/b", 403)
    client.ask("/c", 403)
    before = client.now
    client.ask("/d", 403)
    client.ask("/e", 403)

    assert client.now - before >= 1.0 + 2.0
    host = client.core.host(HOST)
    assert host is not None
    assert host.concurrency == 1


def test_bodies_that_never_differ_are_pages() -> None:
    """A site that answers all URLs with the same page refuses none."""
    client = Client()

    outcomes = {client.ask(f"/{number}", body="the only page") for number in range(20)}

    assert outcomes == {Outcome.OK}


def test_a_page_and_its_version_for_printers_are_pages() -> None:
    """Some pages with one body are usual: none is asked for again. A long row is doubted."""
    client = Client()

    outcomes = [
        client.ask(url, body=f"text {number}")
        for number in range(20)
        for url in (f"/{number}", f"/{number}?view=print")
    ]
    row = [client.ask(f"/many/{number}", body="one for all") for number in range(IN_A_ROW)]

    assert set(outcomes) == {Outcome.OK}
    assert row == [Outcome.OK] * (IN_A_ROW - 1) + [Outcome.UNDECIDED]


def test_a_site_that_answers_every_further_url_with_one_page_is_waited_for_once() -> None:
    """As sites do that are one program: a minute, then each page is asked for once."""
    client = Client()
    for number in range(20):
        client.ask(f"/{number}")
    before = client.now

    outcomes = [client.ask(f"/app/{number}", body="one for all") for number in range(200)]

    assert outcomes.count(Outcome.UNDECIDED) <= 7
    assert outcomes[-100:] == [Outcome.OK] * 100
    assert client.now - before < 63.0 + 200 * 1.5


def test_one_page_asked_for_again_and_again_is_a_page() -> None:
    """A program that polls a URL gets the same body."""
    client = Client()
    for number in range(10):
        client.ask(f"/{number}")

    assert {client.ask("/poll", body="same") for _ in range(5)} == {Outcome.OK}


def test_memory_is_bounded() -> None:
    """However many pages are forbidden, few are remembered."""
    client = Client()
    client.ask("/a")
    for number in range(2 * PAGES):
        client.ask(f"/{number}", 403, f"not you, {number}")
        client.ask(f"/given {number}")

    health = client.core._hosts[HOST].health
    assert health is not None
    assert health.doubts is not None
    assert len(health.doubts._waiting) <= PAGES
    assert len(health.doubts.held) <= HELD
