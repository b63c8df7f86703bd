"""The browsers of one process, and the thread that talks to them.

    shard ──render──► Browsers ══given══► thread ──► Chromium, in a process of its own
      ▲  ◄─rendered──           ◄══told═══   │ ▲
      │                                      │ │ answered from memory, if it was fetched before
      └── subrequests ◄── SubRequest ────────┘ └─── answer ◄── subrequests

The loop of the crawl must not wait for a browser, so one thread serves the pipes of all browsers;
work and results pass through two queues, and a result makes `descriptor` readable.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mannerly.crawler.model import Fetched, Received, Rendering
from mannerly.crawler.render.values import RenderJob, SubAnswer, SubRequest
from mannerly.crawler.web.urls import canonical, host_key_of, site_of
from mannerly.politeness.keys import without_port

from .browser_desk import (
    AnswerGiven,
    BrowserDesk,
    BrowserPlan,
    BrowsersFailed,
    Forgotten,
    Given,
    Told,
)
from .waking import WakingQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.render.values import Rendered
    from mannerly.crawler.shard.interfaces import PageReading


class Browsers:
    """The browsers of one process, as its loop sees them: a shard's `Renderer`."""

    def __init__(self, plan: BrowserPlan, shard_of: Callable[[str], int]) -> None:
        self._plan = plan
        self._shard_of = shard_of
        self._given: WakingQueue[Given] = WakingQueue()
        self._told: WakingQueue[Told] = WakingQueue()
        self._readings: dict[int, PageReading] = {}
        self._last = 0
        self._thread: threading.Thread | None = None

    @property
    def descriptor(self) -> int:
        """Return the descriptor that is readable when something came from a browser."""
        return self._told.fileno()

    @property
    def pending(self) -> int:
        """Return how many pages are being rendered, or wait for a tab."""
        return len(self._readings)

    def render(self, tag: PageReading, wait_for: str | None) -> None:
        """Show the page of an answer."""
        self._last += 1
        self._readings[self._last] = tag
        answer = tag.answer
        host = without_port(host_key_of(answer.request.url))
        job = RenderJob(
            self._last,
            answer.request.url,
            site_of(host),
            host,
            answer.status or 200,
            answer.headers,
            answer.body,
            wait_for,
        )
        self._given.put([job])
        if self._thread is None:
            desk = BrowserDesk(self._plan, self._given, self._told)
            self._thread = threading.Thread(target=desk.run, name="mannerly-browsers", daemon=True)
            self._thread.start()

    def answer(self, request: SubRequest, answer: SubAnswer) -> None:
        """Give a page what it has asked for."""
        self._given.put([AnswerGiven(request, answer)])

    def refuse(self, request: SubRequest, reason: str) -> None:
        """Tell a page that it gets no answer."""
        self.answer(request, SubAnswer(None, {}, b"", reason))

    def owner_of(self, request: SubRequest) -> int:
        """Return the shard that owns the host of a request; -1: it names none."""
        url = canonical(request.url)
        return -1 if url is None else self._shard_of(host_key_of(url))

    def collect(
        self,
    ) -> tuple[list[SubRequest], list[SubRequest], list[tuple[PageReading, Fetched]]]:
        """Return what pages ask for, what they ask for no more, and the pages that are finished.

        The error that has ended the thread is raised here: pages would wait for ever.
        """
        asked: list[SubRequest] = []
        forgotten: list[SubRequest] = []
        done: list[tuple[PageReading, Fetched]] = []
        for told in self._told.take():
            if isinstance(told, SubRequest):
                asked.append(told)
            elif isinstance(told, Forgotten):
                forgotten.append(told.request)
            elif isinstance(told, BrowsersFailed):
                raise told.error
            else:
                reading = self._readings.pop(told.job)
                done.append((reading, _as_answer(reading.answer, told)))
        return asked, forgotten, done

    def close(self) -> None:
        """End the browsers; pages that are being rendered are dropped. Twice is harmless."""
        self._given.put([None])
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._given.close()
        self._told.close()


def _as_answer(answer: Fetched, rendered: Rendered) -> Fetched:
    """Return an answer with the final DOM as its body."""
    is_rendered = rendered.html is not None
    headers, body, exchange = answer.headers, answer.body, answer.exchange
    if rendered.html is not None:
        headers = headers | {"content-type": "text/html; charset=utf-8"}
        body = rendered.html
        exchange = None if exchange is None else exchange._replace(shown=body)
    if rendered.left_for is not None:
        headers = headers | {"location": rendered.left_for}  # it is read as a redirect
    return Fetched(
        answer.request,
        answer.status,
        headers,
        body,
        answer.latency_s,
        answer.total_s,
        answer.error,
        answer.detail,
        answer.is_truncated,
        exchange,
        Rendering(
            Received(answer.body, answer.headers.get("content-type")),
            rendered.requests,
            rendered.seconds,
            rendered.refused,
            rendered.error,
            rendered.left_for,
            rendered.picture,
            is_rendered,
        ),
    )
