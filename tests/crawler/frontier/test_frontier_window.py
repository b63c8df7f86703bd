"""One host's queue against a model: a sorted list in which nothing is ever on disk."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.frontier.heap import HostHeap
from mannerly.crawler.frontier.windows import Windows
from mannerly.crawler.host.host import Host
from mannerly.crawler.host.queue import HostQueue
from mannerly.crawler.model import Entry, RobotsRequest


def entry(seq: int, priority: int = 5) -> Entry:
    return Entry(seq, f"https://a/{seq}", "a", 1, priority, None, 0)


@given(st.lists(st.integers(0, 9) | st.none(), max_size=60), st.integers(1, 5))
def test_window_and_disk_together_are_one_sorted_queue(events: list[int | None], room: int) -> None:
    """Arrivals of any priority, mixed with removals (None), always leave in order."""
    queue, model, outstanding = HostQueue("a"), [], set()

    for seq, priority in enumerate(events):
        if priority is not None:
            queue.add(entry(seq, priority), room)
            model.append(entry(seq, priority))
        elif waiting := sorted(
            (each for each in model if each.seq not in outstanding),
            key=lambda each: (each.priority, each.seq),
        ):
            while queue.peek(0) is None:
                everything = sorted(model, key=lambda each: (each.priority, each.seq))
                past = [e for e in everything if (e.priority, e.seq) > queue.cursor][:room]
                queue.refill(past, outstanding, is_end=len(past) < room)
            first = queue.peek(0)
            queue.remove(0)
            outstanding.add(first.seq)

            assert first == waiting[0]
        queue.check()
        assert queue.in_memory <= room


def test_robots_then_retries_then_the_window() -> None:
    """Peeking shows the order of turns, and removing one leaves the others in it."""
    queue = HostQueue("a")
    queue.add(entry(1), 9)
    queue.add(entry(2), 9)
    queue.push_retry(entry(7))
    queue.push_retry(entry(8))
    request = RobotsRequest("https://a/robots.txt", "a", "https://a")
    queue.push_robots(request)

    order = [queue.peek(index) for index in range(6)]
    queue.remove(3)
    queue.remove(1)

    assert order == [request, entry(7), entry(8), entry(1), entry(2), None]
    assert [queue.peek(index) for index in range(4)] == [request, entry(8), entry(2), None]


def test_queue_describes_itself() -> None:
    """What an operator sees in a debugger is enough to know the state."""
    queue = Host("a", on_disk=3)
    queue.push_retry(entry(1))

    assert repr(queue) == "<Host a unscheduled, 1 here, 3 there>"


def test_heap_brings_hosts_forward_but_never_puts_them_off() -> None:
    """The earliest instant that was ever agreed on counts, and equals go in order of asking."""
    heap = HostHeap()
    a, b, c = (Host(name) for name in "abc")
    heap.put(a, 5.0)
    heap.put(b, 3.0)
    heap.put(c, 3.0)

    heap.put(a, 1.0)
    heap.put(b, 9.0)

    assert heap.next_due() == 1.0
    assert [heap.pop_due(3.0) for _ in range(4)] == [a, b, c, None]
    heap.check()


def test_heap_serves_an_earlier_instant_between_two_hosts_of_one_line() -> None:
    """Who is put before everybody goes next, and nobody of the line is passed over for it."""
    heap = HostHeap()
    a, b, c, d = (Host(name) for name in "abcd")
    for queue in (a, b, c):
        heap.put(queue, 5.0)
    first = heap.pop_due(5.0)

    heap.put(d, 4.0)
    heap.put(a, 5.0)

    heap.check()
    assert first is a
    assert [heap.pop_due(5.0) for _ in range(5)] == [d, b, c, a, None]
    assert len(heap) == 0


def test_heap_keeps_its_waste_small() -> None:
    """A host that is brought forward a thousand times leaves no thousand places behind."""
    heap = HostHeap()
    queue = Host("a")

    for step in range(1000):
        heap.put(queue, 1000.0 - step)
        heap.check()

    assert len(heap) == 1
    assert heap.pop_due(1.0) is queue
    assert heap.next_due() is None


def test_heap_counts_who_is_due_without_the_dead() -> None:
    """Removed hosts and old places do not count, and counting stops where it is told to."""
    heap = HostHeap()
    queues = [Host(str(number)) for number in range(50)]
    for number, queue in enumerate(queues):
        heap.put(queue, float(number))
    heap.remove(queues[3])
    heap.put(queues[40], 0.5)

    assert heap.count_due(9.0, 1000) == 10
    assert heap.count_due(9.0, 4) == 4
    assert len(heap) == 49


def test_windows_are_larger_while_few_urls_are_in_memory() -> None:
    """Where a read is a round trip; beyond the limit they are as large as elsewhere."""
    windows = Windows(2, memory_limit=100, roomy_limit=40)
    queues = [Host(name) for name in "abc"]

    for queue in queues:
        for seq in range(50):
            windows.add(queue, entry(seq))

    assert [queue.in_memory for queue in queues] == [32, 8, 2]
    wanted = Windows(2, 100, roomy_limit=40).wanted(queues)
    assert [each.limit for each in wanted] == [32, 32, 2]
