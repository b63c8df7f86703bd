"""Control records of a running crawl: a full disk or a busy file is waited for, nothing is lost."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from mannerly.crawler.control import FetchRobots, Pause, Stop, Unpause
from mannerly.crawler.model import RobotsRequest
from mannerly.crawler.runtime.order_book import AGAIN_S, ROBOTS_KEPT, OrderBook
from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.base import StoreBusy, StoreFull
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.sqlite import control_file

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.store.base import StoreError


class Store:
    """Control records in memory, which cannot be reached while there is an `error`."""

    def __init__(self) -> None:
        self.records: list[Control] = []
        self.error: StoreError | None = None
        self.tries = 0

    def order(self, record: Control) -> int:
        self.tries += 1
        if self.error is not None:
            raise self.error
        self.records.append(record)
        return len(self.records)

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        if self.error is not None:
            raise self.error
        return list(enumerate(self.records, 1))[after:]


@pytest.mark.parametrize("error", [StoreFull("no room"), StoreBusy("in use")])
def test_what_cannot_be_written_is_written_later(error: StoreError) -> None:
    """In order, each once; a try waits for the next only after some seconds."""
    store = Store()
    book = OrderBook(store)  # type: ignore[arg-type]
    store.error = error
    book.send(Pause())
    book.flush(0.0)
    book.send(Unpause())
    book.flush(AGAIN_S / 2)
    tries, trouble, has_news = store.tries, book.trouble, book.has_news

    store.error = None
    book.flush(AGAIN_S)
    book.flush(AGAIN_S)

    assert (tries, trouble, has_news) == (1, str(error), True)
    assert store.records == [Pause(), Unpause()]
    assert book.trouble is None


def test_what_was_read_is_told_to_others_from_where_they_are() -> None:
    store = Store()
    store.records += [Pause(), Unpause(), Stop()]
    book = OrderBook(store)  # type: ignore[arg-type]
    book.news()

    told = [book.after(number) for number in (0, 2, 3)]

    assert told == [[(1, Pause()), (2, Unpause()), (3, Stop())], [(3, Stop())], []]


def test_requests_for_robots_files_of_others_are_kept_for_a_while_only() -> None:
    """The web decides how many there are. Orders of people are kept, however old they are."""
    store = Store()
    book = OrderBook(store)  # type: ignore[arg-type]
    store.records.append(Pause())
    for number in range(10 * ROBOTS_KEPT):
        host = f"h{number}.example"
        store.records.append(
            FetchRobots((RobotsRequest(f"http://{host}/", host, f"http://{host}"),))
        )
        if number % 100 == 0:
            book.news()
    store.records.append(Stop())
    book.news()
    store.records.append(Unpause())

    assert ROBOTS_KEPT < len(book.past) <= 2 * ROBOTS_KEPT + 102
    assert [order for _, order in book.past if not isinstance(order, FetchRobots)] == [
        Pause(),
        Stop(),
    ]
    assert book.past[-2] == (len(store.records) - 2, store.records[-3])
    assert book.news() == [(len(store.records), Unpause())]


def test_a_busy_file_is_read_later() -> None:
    """Meanwhile there may be news, so no run takes itself for finished; then each comes once."""
    store = Store()
    store.records += [Pause(), Unpause()]
    book = OrderBook(store)  # type: ignore[arg-type]
    store.error = StoreBusy("in use")
    seen = [book.news(), book.has_news, book.trouble]

    store.error = None
    seen += [book.news(), book.news(), book.has_news, book.trouble]

    first, second = (1, Pause()), (2, Unpause())
    assert seen == [[], True, "in use", [first, second], [], False, None]


def test_a_process_that_holds_the_file_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was stopped in the middle of writing, for instance."""
    monkeypatch.setattr(control_file, "_BUSY_MS", 10)
    create_crawl(tmp_path / "crawl", new_manifest()).close()
    stopped = apsw.Connection(str(tmp_path / "crawl" / "control.db"))
    with closing(open_crawl(tmp_path / "crawl")) as store, closing(stopped):
        book = OrderBook(store)
        stopped.execute("BEGIN IMMEDIATE")
        book.send(Stop())
        book.flush(0.0)
        meanwhile = book.news()
        stopped.execute("ROLLBACK")
        book.flush(AGAIN_S)

        assert meanwhile == []
        assert book.news() == [(1, Stop())]
