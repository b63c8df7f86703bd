"""Pages in browsers wait for requests of their own: a crawl that lacks memory or ends gets on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.crawler.runtime.test_parse_limit import Time
from tests.crawler.shard.shard_world import ShardWorld, brisk
from virtual.fetcher import FakeFetcher, FakeReply

from mannerly.crawler.fetch.body_memory import BodyMemory
from mannerly.crawler.render.values import RUN_ENDS, SubAnswer, SubRequest
from mannerly.crawler.runtime.budget import PageBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.runtime.rendering import Browsers

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Request
    from mannerly.crawler.runtime.browser_desk import BrowserPlan
    from mannerly.crawler.shard.interfaces import PageReading

HOSTS = [f"https://{letter}.example" for letter in "abcdef"]
PAGE = FakeReply(body=b"<p>" * 1000, headers={"content-type": "text/html"})
API = "/api"


class Screens(Browsers):
    """Browsers in which each page asks its host for one thing, and is finished when it has it."""

    def __init__(self) -> None:
        super().__init__(cast("BrowserPlan", None), lambda _host: 0)
        self.new: list[SubRequest] = []
        self.shown: dict[int, PageReading] = {}
        self.answers: list[SubAnswer] = []
        self.finished: list[tuple[PageReading, Fetched]] = []

    def render(self, tag: PageReading, wait_for: str | None) -> None:
        url, number = tag.answer.request.url, len(self.shown) + 1
        self.shown[number] = tag
        host = url.rpartition("/")[0]
        self.new.append(SubRequest(number, 1, url, host + API, "fetch", "GET", ()))

    def answer(self, request: SubRequest, answer: SubAnswer) -> None:
        self.answers.append(answer)
        tag = self.shown[request.job]
        self.finished.append((tag, tag.answer))

    def collect(
        self,
    ) -> tuple[list[SubRequest], list[SubRequest], list[tuple[PageReading, Fetched]]]:
        asked, self.new = self.new, []
        done, self.finished = self.finished, []
        return asked, [], done


class Rendering:
    """A crawl of one page on each host."""

    def __init__(self, memory: BodyMemory | None = None) -> None:
        self.time, self.screens, self.log = Time(), Screens(), list[str]()
        pages = [f"{host}/" for host in HOSTS]
        settings = brisk(ignore_robots=True, render=("all",))
        self.world = ShardWorld(*pages, settings=settings, renderer=self.screens)
        self.fetcher = FakeFetcher(self.time.clock, self._reply)
        self.engine = Engine(
            self.fetcher,
            [self.world.shard],
            self.time,
            PageBudget(None),
            concurrency=64,
            memory=memory,
            browsers=self.screens,
        )

    def _reply(self, request: Request) -> FakeReply:
        self.log.append(request.url)
        return PAGE

    def turns(self, count: int) -> None:
        """Let the loop go on."""
        for _ in range(count):
            self.engine.turn()

    def close(self) -> None:
        """End it."""
        self.fetcher.close()
        self.screens.close()


def test_pages_get_what_they_ask_for_when_their_bodies_take_all_memory() -> None:
    """No page starts meanwhile; when the first ones are finished, the others start."""
    crawl = Rendering(BodyMemory(limit=len(PAGE.body)))
    crawl.turns(200)
    crawl.close()

    assert crawl.engine.in_flight == 0
    assert crawl.world.stats.fetched == len(HOSTS)
    assert crawl.engine.stats().now.body_bytes == 0
    assert sorted(crawl.log) == sorted(host + path for host in HOSTS for path in ("/", API))
    assert {answer.status for answer in crawl.screens.answers} == {200}


def test_pages_end_when_the_run_has_to_end() -> None:
    """What they wait for, and what they ask for afterwards, is refused."""
    crawl = Rendering()
    while not crawl.world.shard.subrequests:
        crawl.turns(1)
    crawl.engine.drain()
    before = len(crawl.log)
    crawl.turns(20)
    crawl.close()

    assert crawl.engine.in_flight == 0
    assert len(crawl.log) == before
    assert RUN_ENDS in {answer.reason for answer in crawl.screens.answers}
