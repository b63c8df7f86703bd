"""A site of 300 real pages beside a trap without end, crawled by the real code in virtual time.

Every page, real or not, links into the trap; every page of the trap links to several more. The
servers answer at once and set no limits, so that the number of requests is the only measure.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from mannerly.crawler.events import Event, Events
from mannerly.crawler.fetch.fake import FakeFetcher, FakeReply, VirtualClock
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Now, Request
from mannerly.crawler.page.rules import LinkRules
from mannerly.crawler.runtime.budget import LocalBudget
from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.shard.shard import Shard
from mannerly.crawler.store.memory import MemoryStore
from mannerly.crawler.web.scope import ScopeMode
from mannerly.crawler.web.seeds import seed_candidates
from mannerly.politeness import Settings

PAGES = 300
FAST = Settings(strategy="fixed", delay_s=0.001, max_rate="unlimited", max_concurrency=8, seed=1)
HTML = {"content-type": "text/html"}
EPOCH_S = 1_700_000_000.0
HOST = "www.site.example"

Trap = Callable[[str, random.Random], tuple[str, list[str]] | None]
"""Returns the title and the links of a URL (path and query); None if it is none of the trap's."""


def tree(page: int) -> list[int]:
    """Each page links to three more."""
    return [3 * page + 1, 3 * page + 2, 3 * page + 3]


def chain(page: int) -> list[int]:
    """Each page links to the next."""
    return [page + 1]


def calendar(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    if path != "/" and not path.startswith("/calendar/"):
        return None
    links = [f"/calendar/{rng.randrange(9999)}/{rng.randrange(1, 13)}" for _ in range(10)]
    return f"Events of {path[10:]}", links


def session_in_path(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    return _session(path, rng, lambda page, session: f"/{session}/p/{page}")


def session_in_query(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    return _session(path, rng, lambda page, session: f"/p/{page}?sid={session}")


def _session(
    path: str, rng: random.Random, url: Callable[[int, str], str]
) -> tuple[str, list[str]] | None:
    """Every visit starts a session, and all links of the page carry it."""
    place, _, query = path.partition("?")
    number = place.rpartition("/")[2]
    if path != "/" and not query and place.count("/") == 2:
        return None
    page = int(number) if number.isdigit() else 0
    session = f"{rng.getrandbits(64):016x}"
    pages = [*tree(page), *(rng.randrange(PAGES) for _ in range(7))]
    return f"Page {page}", [url(page % PAGES, session) for page in pages]


def soft_404(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    words = ("news", "about", "press", "jobs", "team", "blog", "shop", "help", "legal", "map")
    return "Page not found", [
        f"/{rng.choice(words)}-{rng.choice(words)}-{rng.choice(words)}-{rng.choice(words)}"
        for _ in range(10)
    ]


def sort_orders(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    if path != "/" and not path.startswith("/list/"):
        return None
    keys = {
        "sort": ["name", "price", "date", "size", "rank"],
        "dir": ["up", "down"],
        "view": ["grid", "list", "table"],
        "per": ["10", "20", "50", "100"],
        "colour": ["red", "blue", "green", "black"],
        "page": [str(number) for number in range(1, 40)],
    }
    links = []
    for _ in range(10):
        chosen = rng.sample(sorted(keys), rng.randrange(1, len(keys) + 1))
        query = "&".join(f"{key}={rng.choice(keys[key])}" for key in chosen)
        links.append(f"/list/{rng.randrange(5)}?{query}")
    return "All our products", links


def nesting(path: str, rng: random.Random) -> tuple[str, list[str]] | None:
    if path != "/" and path[:3] not in ("/a/", "/b/", "/c/", "/d/", "/e/"):
        return None
    return f"Folder {path}", [f"{path}{name}/" for name in "abcde"]


TRAPS: dict[str, Trap] = {
    "calendar": calendar,
    "session in the path": session_in_path,
    "session in the query": session_in_query,
    "soft 404": soft_404,
    "sort orders": sort_orders,
    "nesting": nesting,
}


class Crawled(NamedTuple):
    """What was requested, in its order, and what was told."""

    requests: list[str]  # path and query
    events: list[Event]
    store: MemoryStore
    is_finished: bool

    @property
    def real(self) -> set[int]:
        """The real pages that were requested."""
        return {page for url in self.requests if (page := page_of(url)) is not None}


def page_of(path: str) -> int | None:
    """The number of a real page."""
    number = path.removeprefix("/p/")
    return 0 if path == "/" else int(number) if number.isdigit() else None


def crawl(
    trap: Trap | None,
    shape: Callable[[int], list[int]] = tree,
    *,
    pages: int = PAGES,
    until: int | None = None,
    most: int = 4000,
    store: MemoryStore | None = None,
) -> Crawled:
    """Crawl the site until it is finished, `until` real pages or `most` requests were made.

    With the store of an earlier crawl that one is resumed.
    """
    rng = random.Random(7)
    requests: list[str] = []
    real: set[int] = set()

    def answer(request: Request) -> FakeReply:
        parts = urlsplit(request.url)
        path = parts.path + ("?" + parts.query if parts.query else "")
        if path == "/robots.txt":
            return FakeReply(404, latency_s=0.01)
        requests.append(path)
        page = page_of(path)
        if page is not None:
            real.add(page)
        if page is not None and page < pages:
            links = [f"/p/{next_}" for next_ in shape(page) if next_ < pages]
            title = f"Page {page}"
            if trap is not None:
                links += (trap("/", rng) or ("", []))[1]
        elif trap is not None and (found := trap(path, rng)) is not None:
            title, links = found
        else:
            return FakeReply(404, latency_s=0.01)
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
        body = f"<!doctype html><title>{title}</title><p>{title}</p>{anchors}".encode()
        return FakeReply(200, body, HTML, latency_s=0.01)

    seed = f"https://{HOST}/"
    settings = CrawlSettings(
        politeness=FAST, seeding="none", scope=ScopeMode.HOST, max_urls=most, workers=8
    )
    clock = VirtualClock()
    kept = store or MemoryStore(frontier_limit=5_000_000)
    told: list[Event] = []
    shard = Shard(
        0,
        kept,
        Sharding(1),
        settings,
        LinkRules(settings.scope_of([seed]), settings.agent_token, settings.max_redirects),
        is_resumed=store is not None,
        now=Now(0.0, EPOCH_S),
        events=Events(told.append),
    )
    engine = Engine(FakeFetcher(clock, answer), [shard], _Time(clock), LocalBudget(most), workers=8)
    shard.offer(seed_candidates([seed]))
    engine.commit()
    while len(real) < (until or pages + 1) and not (engine.in_flight == 0 and engine.is_idle):
        engine.turn(1.0)
        if len(requests) >= most and not engine.in_flight:
            break
    engine.stop()
    return Crawled(requests, told, kept, shard.is_idle)


class _Time:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now

    def wall(self) -> float:
        return EPOCH_S + self._clock.now
