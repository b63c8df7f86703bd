"""Big pages are parsed in other processes, and come back with their tag."""

from __future__ import annotations

import select

from mannerly.crawl.parse.offload import ParserPool
from mannerly.crawl.parse.page import Page, ParseFailed


def collected(pool: ParserPool[str], count: int) -> dict[str, Page | ParseFailed]:
    """Wait for the bell until so many pages are there."""
    pages: dict[str, Page | ParseFailed] = {}
    while len(pages) < count:
        assert select.select([pool.descriptor], [], [], 30.0)[0], "nobody rang"
        pages.update(pool.collect())
    return pages


def test_pages_come_back_with_their_tags() -> None:
    """Whatever order the processes finish in, each page is found under its own tag."""
    pool: ParserPool[str] = ParserPool(1)

    for name in ("a", "b", "c"):
        body = f"<title>{name}</title><a href=/{name}>".encode()
        pool.give(name, body, "text/html", "http://e/", x_robots_tag=None, agent="mannerly")
    pages = collected(pool, 3)
    pool.close()

    assert pool.pending == 0
    assert {name: (page.title, page.links) for name, page in pages.items()} == {
        name: (name, [f"/{name}"]) for name in ("a", "b", "c")
    }
