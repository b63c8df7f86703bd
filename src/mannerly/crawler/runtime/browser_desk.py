"""The thread that talks to the browsers of one process (`rendering`).

A browser is replaced after `RECYCLE` pages, since Chromium's memory grows, and killed if it hangs.
If a browser dies, each page that was in it is shown again, alone, so that the one that kills
browsers is found; after `TRIES` deaths its record is that of the answer, with the reason. That is
so at once for a page that has sent a POST: shown again, it would send that once more. A tab that
dies takes only its own page. If the processes of a browser take more than `memory` bytes, the
largest of them is ended.

What was fetched before is answered here. Pages that ask for the same style or script at the same
time wait for one request.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mannerly.crawler.payload import REPEATABLE
from mannerly.crawler.render.answers import STATIC, Answers
from mannerly.crawler.render.browser import Browser
from mannerly.crawler.render.chromium import BrowserError, Chromium, Installed
from mannerly.crawler.render.devtools import BrowserClosed
from mannerly.crawler.render.values import (
    CRASHED,
    NO_BROWSER,
    Rendered,
    RenderJob,
    RenderLimits,
    SubAnswer,
    SubRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .waking import WakingQueue

RECYCLE = 200  # pages of one browser
TRIES = 2  # browsers or tabs that one page may take down
STARTING_S = 30.0  # for a browser to answer
START_TRIES = 3  # in a row, then pages are read as they are
TICK_S = 0.05  # between two looks at the time
MEMORY_S = 1.0  # between two looks at the memory


class BrowserPlan(NamedTuple):
    """The browsers that a process may run."""

    installed: Installed
    limits: RenderLimits
    tabs: int  # pages at once
    memory: int  # bytes of one browser


class AnswerGiven(NamedTuple):
    """The crawl has answered what a page asked for."""

    request: SubRequest
    answer: SubAnswer


class Forgotten(NamedTuple):
    """No page waits for this any more."""

    request: SubRequest


Given: TypeAlias = "RenderJob | AnswerGiven | None"


class BrowsersFailed(NamedTuple):
    """The thread has ended by an error: no page is shown any more."""

    error: Exception


Told: TypeAlias = "Rendered | SubRequest | Forgotten | BrowsersFailed"


class BrowserDesk:
    """Gives pages to browsers, and passes on what they say. It runs in a thread of its own."""

    def __init__(
        self, plan: BrowserPlan, given: WakingQueue[Given], told: WakingQueue[Told]
    ) -> None:
        self._plan = plan
        self._given, self._told = given, told
        self._waiting: deque[RenderJob] = deque()
        self._suspects: deque[RenderJob] = deque()  # were in a browser that died
        self._deaths: dict[int, int] = {}  # of browsers or tabs, by page
        self._browsers: list[Browser] = []
        self._answers = Answers()
        self._asked: dict[str | int, list[SubRequest]] = {}  # of the loop: see `_name`
        self._failed_starts = 0
        self._start_at = self._measure_at = 0.0
        self._is_closed = False
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Work until it is closed."""
        try:
            self._selector.register(self._given.fileno(), selectors.EVENT_READ)
            while not self._is_closed:
                self._turn()
        except Exception as error:  # noqa: BLE001 - the loop raises it
            self._told.put([BrowsersFailed(error)])
        finally:
            for browser in self._browsers:
                browser.kill()
            self._selector.close()

    def _turn(self) -> None:
        writing = self._watch()
        ready = {key.fd for key, _ in self._selector.select(TICK_S if self._is_busy else None)}
        self._take()
        now = time.monotonic()
        for browser in list(self._browsers):
            tools = browser.chromium.devtools
            try:
                if writing:
                    tools.flush()
                if tools.reading in ready:
                    browser.receive()
                browser.tick(now)
            except BrowserClosed:
                self._bury(browser)
            else:
                self._pass_on(browser, now)
        self._look_after(now)
        self._start_pages(now)

    @property
    def _is_busy(self) -> bool:
        return bool(self._waiting or self._suspects or any(each.jobs for each in self._browsers))

    def _watch(self) -> bool:
        """Wait for what browsers say, and for those that take no more at present."""
        wanted = {self._given.fileno(): selectors.EVENT_READ}
        is_writing = False
        for browser in self._browsers:
            tools = browser.chromium.devtools
            wanted[tools.reading] = selectors.EVENT_READ
            if tools.writing is not None:
                wanted[tools.writing] = selectors.EVENT_WRITE
                is_writing = True
        known = {key.fd: key.events for key in self._selector.get_map().values()}
        for descriptor in known.keys() - wanted.keys():
            self._selector.unregister(descriptor)
        for descriptor in wanted.keys() - known.keys():
            self._selector.register(descriptor, wanted[descriptor])
        return is_writing

    # ------------------------------------------------------------------ in

    def _take(self) -> None:
        for each in self._given.take():
            if each is None:
                self._is_closed = True
            elif isinstance(each, RenderJob):
                self._waiting.append(each)
            else:
                self._answered(each.request, each.answer)

    def _answered(self, request: SubRequest, answer: SubAnswer) -> None:
        now = time.monotonic()
        self._answers.keep(request, answer, now)
        for each in self._asked.pop(_name(request), ()):
            for browser in list(self._browsers):
                with self._burying(browser):
                    browser.answer(each, answer)

    def _pass_on(self, browser: Browser, now: float) -> None:
        """Tell the loop what pages of a browser ask for, and what came out."""
        told: list[Told] = []
        for request in browser.asked():
            known = self._answers.find(request, now)
            if known is not None:
                with self._burying(browser):
                    browser.answer(request, known)
                if browser.is_dead:
                    return  # nothing of it is waited for any more
            else:
                if request.method not in REPEATABLE:
                    self._deaths[request.job] = TRIES - 1  # it is not shown again
                waiting = self._asked.setdefault(_name(request), [])
                waiting.append(request)
                if len(waiting) == 1:
                    told.append(request)
        told += self._finished(browser)
        for job in browser.broken():
            told += self._forget(job.number)
            told += self._died(job, self._waiting)
        self._told.put(told)

    def _finished(self, browser: Browser) -> list[Told]:
        """Return the pages that came out of a browser."""
        told: list[Told] = []
        for rendered in browser.finished():
            self._deaths.pop(rendered.job, None)
            told += self._forget(rendered.job)
            told.append(rendered)
        return told

    def _forget(self, job: int) -> list[Told]:
        """Return what only this page has waited for."""
        forgotten: list[Told] = []
        for name, waiting in list(self._asked.items()):
            rest = [each for each in waiting if each.job != job]
            if not rest:
                forgotten.append(Forgotten(waiting[0]))
                del self._asked[name]
            elif len(rest) < len(waiting):
                self._asked[name] = rest
        return forgotten

    def _died(self, job: RenderJob, line: deque[RenderJob], reason: str = CRASHED) -> list[Told]:
        """Show a page once more whose tab or browser died; or give up on it."""
        deaths = self._deaths[job.number] = self._deaths.get(job.number, 0) + 1
        if deaths < TRIES:
            line.append(job)
            return []
        del self._deaths[job.number]
        return [Rendered(job.number, None, 0.0, error=reason)]

    # ------------------------------------------------------------------ browsers

    @contextmanager
    def _burying(self, browser: Browser) -> Iterator[None]:
        """End a browser that turns out to be dead while it is told something."""
        try:
            yield
        except BrowserClosed:
            self._bury(browser)

    def _bury(self, browser: Browser) -> None:
        """End a browser that died or hangs."""
        if browser.is_dead:
            return
        jobs = browser.jobs
        self._forget_descriptors(browser)
        browser.kill()
        self._browsers.remove(browser)
        if not browser.is_ready:
            self._failed_starts += 1
            self._start_at = time.monotonic() + 1.0
        told = self._finished(browser)
        for job in jobs:
            told += self._forget(job.number)
            told += self._died(job, self._suspects)
        self._told.put(told)

    def _forget_descriptors(self, browser: Browser) -> None:
        tools = browser.chromium.devtools
        for descriptor in tools.descriptors:
            with suppress(KeyError, ValueError):
                self._selector.unregister(descriptor)

    def _look_after(self, now: float) -> None:
        """Replace old browsers, and end what takes too much memory or never starts."""
        for browser in list(self._browsers):
            is_late = not browser.is_ready and now > browser.started_at + STARTING_S
            is_spent = browser.pages >= RECYCLE and not browser.jobs
            if is_late or is_spent:
                self._bury(browser)
            elif browser.is_ready:
                self._failed_starts = 0
        if now >= self._measure_at and self._browsers:
            self._measure_at = now + MEMORY_S
            for browser in self._browsers:
                self._limit_memory(browser)

    def _limit_memory(self, browser: Browser) -> None:
        processes = browser.chromium.processes()
        if sum(size for _, size in processes) <= self._plan.memory:
            return
        largest, _ = max(processes, key=lambda each: each[1])
        with suppress(ProcessLookupError):
            os.kill(largest, signal.SIGKILL)

    def _start_pages(self, now: float) -> None:
        if not (self._waiting or self._suspects):
            return
        if self._failed_starts >= START_TRIES:
            self._give_up()
            return
        browser = self._open_browser(now)
        if browser is None or not browser.is_ready:
            return
        is_alone = not any(each.jobs for each in self._browsers)
        line = self._suspects or self._waiting
        if self._suspects and not is_alone:
            return  # a suspect is shown alone
        while line and self._start(browser, line, now):
            if line is self._suspects:
                return

    def _start(self, browser: Browser, line: deque[RenderJob], now: float) -> bool:
        """Give the first page of a line to a browser; return False if it takes no more."""
        job = line.popleft()
        try:
            is_taken = browser.start(job, now)
        except BrowserClosed:
            if job not in browser.jobs:  # no tab has it: it is no reason why the browser ended
                line.appendleft(job)
            self._bury(browser)
            return False
        if not is_taken:
            line.appendleft(job)
        return is_taken

    def _open_browser(self, now: float) -> Browser | None:
        """Return the browser that takes pages, started if there is none."""
        for browser in self._browsers:
            if browser.pages < RECYCLE:
                return browser
        if now < self._start_at or len(self._browsers) > 1:
            return None
        plan = self._plan
        try:
            chromium = Chromium(plan.installed)
        except BrowserError:
            self._failed_starts += 1
            self._start_at = now + 1.0
            return None
        try:
            browser = Browser(chromium, plan.limits, plan.tabs, now)
        except BrowserClosed:
            chromium.kill()
            self._failed_starts += 1
            self._start_at = now + 1.0
            return None
        self._browsers.append(browser)
        return browser

    def _give_up(self) -> None:
        """No browser starts: pages are read as they are, and say so."""
        jobs = (*self._suspects, *self._waiting)
        told = [Rendered(job.number, None, 0.0, error=NO_BROWSER) for job in jobs]
        self._suspects.clear()
        self._waiting.clear()
        self._failed_starts = START_TRIES - 1  # the next page may try again
        self._told.put(told)


def _name(request: SubRequest) -> str | int:
    """Return under what a request waits: pages share what they may share the answer of.

    Any other waits as the object that it is, not by its number: a page that is shown again counts
    its requests anew, and an answer to one of before may still come.
    """
    is_shared = request.kind in STATIC and request.method == "GET"
    return request.url if is_shared else id(request)
