"""The two ends between a crawl's loop and the program's: wake-ups, and pages of dead workers."""

from __future__ import annotations

import select
import threading
from typing import Any

import pytest

from mannerly.crawler.runtime.delivery import Delivered, PageQueue
from mannerly.crawler.runtime.waking import WakingQueue

pytestmark = pytest.mark.processes


def is_readable(queue: WakingQueue[int]) -> bool:
    return bool(select.select([queue], [], [], 0)[0])


def test_waking_queue_is_readable_exactly_while_it_has_items() -> None:
    """Otherwise a loop that sleeps on it would sleep too long, or not at all."""
    queue: WakingQueue[int] = WakingQueue()

    assert not is_readable(queue)
    queue.put([1, 2])
    queue.put([3])
    queue.put([])
    assert is_readable(queue)
    assert queue.take() == [1, 2, 3]
    assert not is_readable(queue)
    assert queue.take() == []
    queue.put([])
    assert not is_readable(queue)
    queue.close()
    queue.close()
    queue.put([4])
    assert queue.take() == []


def test_waking_queue_loses_no_wake_up_between_threads() -> None:
    """Whatever two threads do at the same time, the reader gets all and sleeps at the end."""
    queue: WakingQueue[int] = WakingQueue()
    writer = threading.Thread(target=lambda: [queue.put([n]) for n in range(20_000)])
    writer.start()
    taken: list[int] = []

    while len(taken) < 20_000:
        assert select.select([queue], [], [], 30.0)[0], "items without a wake-up"
        taken += queue.take()
    writer.join()

    assert taken == list(range(20_000))
    assert not is_readable(queue)
    queue.close()


def page(worker: int, seq: int, shard: int = 0) -> Delivered:
    record: Any = None
    return Delivered(worker, seq * 10, shard, seq, record, {}, b"")


class Ends:
    """A page queue, and the acknowledgements that leave it."""

    def __init__(self) -> None:
        self.queue = PageQueue()
        self.routed: list[Delivered] = []
        self.queue.route = self.routed.append


@pytest.fixture
def ends() -> Ends:
    return Ends()


def test_pages_of_a_dead_worker_are_dropped(ends: Ends) -> None:
    """Its successor sends them again."""
    ends.queue.put([page(1, 1), page(2, 2), page(1, 3)])

    ends.queue.lost(1)

    assert ends.queue.take() == page(2, 2)
    assert ends.queue.take_at_once() is None


def test_the_page_in_hand_of_a_dead_worker_is_settled_when_it_comes_again(ends: Ends) -> None:
    """The program has it once; its acknowledgement goes to the page that came again."""
    ends.queue.put([page(1, 1)])
    mine = ends.queue.take()
    assert mine is not None

    ends.queue.lost(1)
    ends.queue.put([page(3, 1), page(3, 2)])
    ends.queue.acknowledge(mine)

    assert ends.routed == [page(3, 1)]
    assert ends.queue.take() == page(3, 2)


def test_the_page_in_hand_may_be_done_before_it_comes_again(ends: Ends) -> None:
    """Then it is settled as soon as it comes; the same number in another shard is another page."""
    ends.queue.put([page(1, 1)])
    mine = ends.queue.take()
    assert mine is not None
    ends.queue.lost(1)
    ends.queue.acknowledge(mine)

    ends.queue.put([page(3, 1), page(4, 1, shard=1)])

    assert ends.routed == [mine, page(3, 1)]
    assert ends.queue.take() == page(4, 1, shard=1)


def test_a_second_death_changes_nothing(ends: Ends) -> None:
    """The successor dies, too, with the page that came again."""
    ends.queue.put([page(1, 1)])
    mine = ends.queue.take()
    assert mine is not None
    ends.queue.lost(1)
    ends.queue.put([page(3, 1)])
    ends.queue.lost(3)
    ends.queue.acknowledge(mine)

    ends.queue.put([page(5, 1)])

    assert ends.routed[-1] == page(5, 1)
    assert ends.queue.take_at_once() is None


def test_a_page_that_was_done_is_not_in_hand(ends: Ends) -> None:
    """Its acknowledgement is in the store: the successor knows, and nothing is kept for it."""
    ends.queue.put([page(1, 1)])
    mine = ends.queue.take()
    assert mine is not None
    ends.queue.acknowledge(mine)

    ends.queue.lost(1)
    ends.queue.put([page(3, 1)])

    assert ends.queue.take() == page(3, 1)


def test_a_closed_queue_gives_what_it_has_and_then_ends(ends: Ends) -> None:
    """Pages that came before the end can still be taken."""
    ends.queue.put([page(1, 1)])
    ends.queue.close()

    assert ends.queue.is_closed
    assert ends.queue.take() == page(1, 1)
    assert ends.queue.take() is None
