"""Items on their way to a program: what is read, and what comes again."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mannerly.crawler.item_feed import ItemFeed
from mannerly.crawler.model import PageItems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Committed:
    """The pages of one shard, and which of them were read."""

    def __init__(self) -> None:
        self.pages: list[PageItems] = []
        self.read: list[int] = []

    def items(self, *, after: int = 0) -> Iterator[tuple[int, str, PageItems]]:
        for position, found in enumerate(self.pages, 1):
            if position > after:
                self.read.append(position)
                yield position, f"https://a.example/{position}", found

    @contextmanager
    def view(self) -> Iterator[Any]:
        yield SimpleNamespace(readers=[self])


def test_pages_without_items_are_read_once(tmp_path: Path) -> None:
    """Each call begins with the page that was read last, however many had nothing before it."""
    crawl: Any = Committed()
    crawl.pages += [PageItems([b'{"n":1}']), *[PageItems([])] * 50]
    feed = ItemFeed(crawl, tmp_path)

    (first,) = feed.more()
    crawl.read.clear()
    crawl.pages += [PageItems([], "ValueError: no price"), PageItems([b'{"n":2}', b'{"n":3}'])]
    found = feed.more()

    assert first.item == {"n": 1}
    assert [(each.position, each.item["n"]) for each in found] == [(53, 2), (53, 3)]
    assert crawl.read == [51, 52, 53]
    feed.close()


def test_items_that_were_not_acknowledged_come_again(tmp_path: Path) -> None:
    """Also when later pages had been read; what was acknowledged does not."""
    crawl: Any = Committed()
    two, one = PageItems([b'{"n":1}', b'{"n":2}']), PageItems([b'{"n":3}'])
    crawl.pages += [two, PageItems([]), one, PageItems([])]
    feed = ItemFeed(crawl, tmp_path)
    first, *_ = feed.more()
    feed.acknowledge(first)
    assert feed.more() == []
    feed.close()

    again = ItemFeed(crawl, tmp_path)

    assert [each.item["n"] for each in again.more()] == [2, 3]
    again.close()
