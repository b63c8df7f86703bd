"""A site of 300 real pages beside a trap without end, crawled by the real code in virtual time.

Every page, real or not, links into the trap; every page of the trap links to several more. The
servers answer at once and set no limits, so that the number of requests is the only measure.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.crawler.frontier.virtual_crawl import NOT_FOUND, Asked, Crawled, html, virtual_crawl

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from virtual.fetcher import FakeReply
    from virtual.store.memory import MemoryStore

PAGES = 300
FAST = Settings(strategy="fixed", delay_s=0.001, max_rate="unlimited", max_concurrency=8, seed=1)
HOST = "www.site.example"
SEED = f"https://{HOST}/"

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


def page_of(asked: Asked) -> int | None:
    """The number of a real page."""
    number = asked.path.removeprefix("/p/")
    if asked.host != HOST:
        return None
    return 0 if asked.path == "/" else int(number) if number.isdigit() else None


def real_pages(log: list[Asked]) -> set[int]:
    """The real pages that were requested."""
    return {page for asked in log if (page := page_of(asked)) is not None}


def crawl(
    trap: Trap | None,
    shape: Callable[[int], list[int]] = tree,
    *,
    pages: int = PAGES,
    until: int | None = None,
    most: int = 4000,
    store: MemoryStore | None = None,
) -> Crawled:
    """Crawl the site until it is finished, `until` real pages or `most` requests were made."""
    rng = random.Random(7)
    reached: set[int] = set()

    def answer(host: str, path: str) -> FakeReply:
        page = page_of(Asked(0.0, host, path))
        if page is not None and page < pages:
            reached.add(page)
            links = [f"/p/{further}" for further in shape(page) if further < pages]
            return html(f"Page {page}", links + ((trap("/", rng) or ("", []))[1] if trap else []))
        found = None if trap is None else trap(path, rng)
        return NOT_FOUND if found is None else html(*found)

    settings = CrawlSettings(
        politeness=FAST, seeding="none", scope=ScopeMode.HOST, max_urls=most, concurrency=8
    )
    return virtual_crawl(
        answer,
        [SEED],
        settings,
        store=store,
        until=lambda log: until is not None and len(reached) >= until,
    )
