"""Requests of pages in browsers on their way through a shard: refused, repeated, sent once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk

from mannerly.crawler.host.inflight import flight_of
from mannerly.crawler.model import LocalError
from mannerly.crawler.render.values import SubAnswer, SubRequest
from mannerly.politeness import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.model import FetchError, Request
    from mannerly.crawler.shard.interfaces import PageReading

HOST = "a.example"
HOME = f"http://{HOST}/"
URL = f"{HOME}api"


class Page:
    """Stands for the browsers: what a page asks for, and the answers that it is given."""

    def __init__(self) -> None:
        self.answers: list[tuple[SubRequest, SubAnswer]] = []
        self.world = ShardWorld(HOME, settings=brisk(ignore_robots=True), renderer=self)
        self.world.answer(self.sent(), 200)
        self.world.shard.commit(self.world.now)
        self._last = 0

    def render(self, tag: PageReading, wait_for: str | None) -> None:
        raise AssertionError("no page is shown")

    def answer(self, request: SubRequest, answer: SubAnswer) -> None:
        self.answers.append((request, answer))

    def ask(self, method: str = "GET", url: str = URL) -> SubRequest:
        """Ask for something."""
        self._last += 1
        wanted = SubRequest(self._last, 1, HOME, url, "fetch", method, ())
        self.world.shard.subrequests.ask(wanted, self.world.now)
        return wanted

    def sent(self) -> Request:
        """Return the one request that leaves now, or within a minute."""
        for _ in range(600):
            requests = self.world.start()
            if requests:
                (request,) = requests
                return request
            self.world.wait(0.1)
        raise AssertionError("nothing is sent")

    def is_silent(self) -> bool:
        """Return whether nothing more is sent within ten minutes."""
        for _ in range(600):
            if self.world.start():
                return False
            self.world.wait(1.0)
            self.world.shard.tick(self.world.now)
        return True


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.mark.parametrize("error", [LocalError.HELD, LocalError.STALE_CONNECTION])
def test_a_request_on_the_wire_whose_host_is_given_up_comes_back(
    page: Page, error: LocalError
) -> None:
    """It is left to its answer; if that is none, it is refused."""
    page.ask()
    request = page.sent()
    page.world.shard.given_up.give_up(HOST, "refuses", page.world.now)
    page.world.shard.tick(page.world.now)
    page.world.answer(request, error=error)
    page.world.wait(1.0)
    page.world.shard.tick(page.world.now)

    assert [answer.status for _, answer in page.answers] == [None]
    assert page.is_silent()
    assert page.world.shard.is_idle


def test_queued_requests_of_a_host_that_is_given_up_are_refused(page: Page) -> None:
    """Whether its queue was dropped before, or not."""
    first, second = page.ask(), page.ask()
    page.world.shard.given_up.give_up(HOST, "refuses", page.world.now)
    for _ in range(2):
        page.world.shard.tick(page.world.now)

    assert [wanted for wanted, _ in page.answers] == [first, second]
    assert page.is_silent()


@pytest.mark.parametrize("error", [ErrorKind.TIMEOUT, LocalError.STALE_CONNECTION, None])
def test_a_post_is_sent_once(page: Page, error: FetchError | None) -> None:
    """After a failure its page gets none, after an error of the server that error."""
    page.ask("POST")
    request = page.sent()
    page.world.answer(request, 500, error=error)

    ((_, answer),) = page.answers
    assert answer.status == (500 if error is None else None)
    assert page.is_silent()
    assert request.is_fresh


@pytest.mark.parametrize("status", [429, 503])
def test_a_post_that_was_refused_is_sent_again(page: Page, status: int) -> None:
    """It has done nothing."""
    page.ask("POST")
    page.world.answer(page.sent(), status, retry_after="5")
    again = page.sent()
    assert (again.method, page.answers) == ("POST", [])
    page.world.answer(again, 200)

    assert [answer.status for _, answer in page.answers] == [200]


@pytest.mark.parametrize("error", [LocalError.HELD, ErrorKind.CONNECT])
def test_a_post_that_did_not_leave_is_sent_later(page: Page, error: FetchError) -> None:
    """Nothing was sent."""
    page.ask("POST")
    page.world.wait(1.0)
    (request,) = page.world.shard.start_due(page.world.now, 9)
    page.world.answer(request, error=error)

    assert page.sent().method == "POST"


def test_a_get_is_tried_again(page: Page) -> None:
    """As any request of the crawl."""
    page.ask()
    page.world.answer(page.sent(), 500)

    assert page.answers == []
    assert flight_of(page.sent()).item.url == URL


def test_a_retry_is_taken_back_when_its_page_has_ended(page: Page) -> None:
    """Also when it is due and waits for its turn."""
    other = page.ask(url=HOME + "other")
    wanted = page.ask()
    first = page.sent()
    second = page.sent()
    page.world.answer(first, 500)
    page.world.answer(second, 500)
    page.world.wait(60.0)
    assert len(page.world.start()) == 1  # the other one waits behind it
    page.world.shard.subrequests.forget(wanted, page.world.now)
    page.world.shard.subrequests.forget(other, page.world.now)

    assert [answer.reason for _, answer in page.answers] == ["forgotten"]
    assert page.is_silent()


def test_lacks_are_forgotten_with_what_they_were_of(page: Page) -> None:
    """Of what a page has asked for, and of a page whose host was given up."""
    world = page.world
    page.ask()
    world.answer(page.sent(), error=LocalError.NO_MEMORY)
    world.offer(HOME + "page")
    for _ in range(2):
        world.answer(page.sent(), error=LocalError.NO_MEMORY)
    assert len(world.shard._lacked) == 2
    world.shard.given_up.give_up(HOST, "refuses", world.now)
    for _ in range(3):
        world.shard.tick(world.now)
        world.shard.commit(world.now)

    assert not world.shard._lacked
