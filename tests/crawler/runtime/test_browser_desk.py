"""The thread of the browsers, with browsers that do what a test says: pages are told of once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mannerly.crawler.render.chromium import Installed, IsolationKind
from mannerly.crawler.render.devtools import BrowserClosed
from mannerly.crawler.render.values import CRASHED, Rendered, RenderJob, SubAnswer, SubRequest
from mannerly.crawler.render.values import RenderLimits as Limits
from mannerly.crawler.runtime import browser_desk
from mannerly.crawler.runtime.browser_desk import AnswerGiven, BrowserDesk, BrowserPlan, Forgotten
from mannerly.crawler.runtime.waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = "http://a.example/"
OK = SubAnswer(200, {}, b"")


class FakeBrowser:
    """A browser that says what a test gave it to say, and dies when told to."""

    def __init__(self, *_: object) -> None:
        self.chromium = self.devtools = self
        self.reading, self.writing = -1, None
        self.descriptors: tuple[int, ...] = ()
        self.is_ready, self.is_dead = True, False
        self.pages, self.started_at = 0, 0.0
        self.jobs: list[RenderJob] = []
        self.says: list[SubRequest] = []
        self.done: list[Rendered] = []
        self.answers: list[SubRequest] = []
        self.dies_in = ""  # the name of a method

    def _live(self, method: str) -> None:
        if self.dies_in == method:
            raise BrowserClosed("it has died")

    def start(self, job: RenderJob, _now: float) -> bool:
        self.pages += 1
        self.jobs.append(job)
        self._live("start")
        return True

    def tick(self, _now: float) -> None:
        self._live("tick")

    def answer(self, request: SubRequest, _answer: SubAnswer) -> None:
        self._live("answer")
        self.answers.append(request)

    def asked(self) -> list[SubRequest]:
        said, self.says = self.says, []
        return said

    def finished(self) -> list[Rendered]:
        done, self.done = self.done, []
        return done

    def broken(self) -> list[RenderJob]:
        return []

    def processes(self) -> list[Any]:
        return []

    def kill(self) -> None:
        self.is_dead = True


class NothingToWaitFor:
    """Stands for a selector."""

    def select(self, _timeout_s: float | None) -> list[Any]:
        return []


class Desk:
    """A desk that goes on when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.browsers: list[FakeBrowser] = []
        self.new_die_in = ""
        monkeypatch.setattr(browser_desk, "Chromium", lambda _: None)
        monkeypatch.setattr(browser_desk, "Browser", self._opened)
        monkeypatch.setattr(browser_desk.selectors, "DefaultSelector", NothingToWaitFor)
        self.given: WakingQueue[Any] = WakingQueue()
        self._told: WakingQueue[Any] = WakingQueue()
        plan = BrowserPlan(Installed("/none", IsolationKind.USER, has_sandbox=True), Limits(), 1, 1)
        self._desk = BrowserDesk(plan, self.given, self._told)
        monkeypatch.setattr(self._desk, "_watch", lambda: False)

    def _opened(self, *_: object) -> FakeBrowser:
        self.browsers.append(FakeBrowser())
        self.browsers[-1].dies_in = self.new_die_in
        return self.browsers[-1]

    def turn(self, *given: object) -> list[Any]:
        """Give it something, let it go on twice, and return what it tells."""
        self.given.put(given)
        for _ in range(2):
            self._desk._turn()
        return self._told.take()

    def close(self) -> None:
        self.given.close()
        self._told.close()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk(monkeypatch)
    yield desk
    desk.close()


def job(number: int = 1) -> RenderJob:
    return RenderJob(number, HOME, "a.example", "a.example", 200, {}, b"")


def asks(path: str, method: str = "GET", kind: str = "fetch") -> SubRequest:
    """Return the first request of a page in a new tab."""
    return SubRequest(1, 1, HOME, HOME + path, kind, method, ())


def die(browser: FakeBrowser, method: str = "tick") -> None:
    browser.dies_in = method


def test_what_a_dead_browser_has_asked_for_is_not_waited_for(desk: Desk) -> None:
    """Its page is shown again, and asks for something else under the same number."""
    desk.turn(job())
    desk.browsers[0].says = [asks("before")]
    die(desk.browsers[0])
    assert desk.turn() == []

    desk.browsers[1].says = [asks("now")]
    assert desk.turn() == [asks("now")]


def test_a_late_answer_is_not_given_to_the_page_that_is_shown_again(desk: Desk) -> None:
    """The request that it is for is forgotten, but was on the wire."""
    before, now = asks("before"), asks("now")
    desk.turn(job())
    desk.browsers[0].says = [before]
    assert desk.turn() == [before]
    die(desk.browsers[0])
    assert desk.turn() == [Forgotten(before)]
    desk.browsers[1].says = [now]
    assert desk.turn() == [now]

    desk.turn(AnswerGiven(before, OK))
    assert desk.browsers[1].answers == []
    desk.turn(AnswerGiven(now, OK))
    assert desk.browsers[1].answers == [now]


def test_a_browser_that_dies_while_it_is_answered_asks_for_nothing(desk: Desk) -> None:
    """What it asked for in the same breath is forgotten with its page."""
    style = asks("s.css", kind="stylesheet")
    desk.turn(job())
    desk.browsers[0].says = [style]
    desk.turn()
    desk.turn(AnswerGiven(style, OK))
    desk.browsers[0].says = [style, asks("before")]
    die(desk.browsers[0], "answer")

    assert desk.turn() == []
    desk.browsers[1].says = [asks("now")]
    assert desk.turn() == [asks("now")]


def test_a_page_that_has_sent_a_post_is_not_shown_again(desk: Desk) -> None:
    """It would send it once more."""
    post = asks("order", "POST")
    desk.turn(job())
    desk.browsers[0].says = [post]
    desk.turn()
    die(desk.browsers[0])

    told = desk.turn()

    assert told == [Forgotten(post), Rendered(1, None, 0.0, error=CRASHED)]
    assert len(desk.browsers) == 1


def test_a_page_that_came_out_before_its_browser_died_is_told_of(desk: Desk) -> None:
    """Once."""
    desk.turn(job())
    done = Rendered(1, b"<p>", 0.1)
    desk.browsers[0].jobs.clear()
    desk.browsers[0].done = [done]
    die(desk.browsers[0])

    assert desk.turn() == [done]


def test_a_page_whose_browser_dies_as_it_starts_has_one_result(desk: Desk) -> None:
    """After the second death that is the answer as it is."""
    desk.new_die_in = "start"
    told = desk.turn(job())
    for _ in range(4):
        told += desk.turn()

    assert told == [Rendered(1, None, 0.0, error=CRASHED)]
