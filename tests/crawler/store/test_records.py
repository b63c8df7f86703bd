"""Logs of page records: valid up to the committed length, one history over all claims."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual.store.memory import MemoryStore

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import ArchivePlace, Entry, ListedPage, PageItems, Skipped
from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.contract import candidate, enter, page
from mannerly.crawler.store.element_streams import packed
from mannerly.crawler.store.records.frames import ElementsFrame, LogDamaged, RecordedFrame, pack
from mannerly.crawler.store.records.reader import LogReader
from mannerly.crawler.store.records.writer import Extent, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def entry(number: int, kind: Kind = Kind.PAGE) -> Entry:
    url = f"https://a.example/{number}"
    return Entry(number, url, "a.example", 1, 1, "https://a.example/", 0, kind)


class Logs:
    """Writers and readers that are closed after the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def writer(self, folder: Path, claim: int = 1) -> RecordWriter:
        folder.mkdir(exist_ok=True)
        return self._stack.enter_context(closing(RecordWriter(folder, f"records-0-{claim}", claim)))

    def reader(
        self, *folders: Path, committed: dict[str, Extent], round_number: int = 0
    ) -> LogReader:
        found = self._stack.enter_context(closing(LogReader(folders)))
        found.update(committed, round_number)
        return found


@pytest.fixture
def logs() -> Iterator[Logs]:
    with ExitStack() as stack:
        yield Logs(stack)


def urls(found: LogReader) -> list[str]:
    return [record.url for _, record in found.pages()]


def test_what_a_batch_brought_is_read_back(logs: Logs, tmp_path: Path) -> None:
    """Records, elements, places, items and reasons, in the order of commits."""
    writer = logs.writer(tmp_path, 1)
    one, two, three = entry(1), entry(2), entry(3)
    place = ArchivePlace("shard-0-1.warc.gz", 7, 9)
    batch = Batch(
        pages=[(one, page(one)), (two, page(two, status=None, error="timeout"))],
        dropped=[(three, "robots")],
        elements={1: b"links"},
        kept={1: place},
        items={2: PageItems([b"{}"])},
        listed=[ListedPage(one.url, "2026-01-01")],
    )
    writer.add(batch, 0)
    found = logs.reader(tmp_path, committed=writer.flush())

    first, second = found.kept_pages()
    assert first[1:] == (page(one)._replace(in_sitemap=True, lastmod="2026-01-01"), place)
    assert second[1:] == (page(two, status=None, error="timeout"), None)
    assert [kept for _, kept in found.elements()] == [b"links", None]
    assert [each[1:] for each in found.items()] == [(two.url, PageItems([b"{}"]))]
    assert list(found.skipped()) == [Skipped(three.url, "robots", 1, three.parent)]
    assert found.find(three.url) == Skipped(three.url, "robots", 1, three.parent)
    assert found.find("https://a.example/unknown") is None
    assert found.missing_segments == []


def test_what_was_not_committed_is_not_read(logs: Logs, tmp_path: Path) -> None:
    """A crash leaves frames behind the committed length; they do not count."""
    writer = logs.writer(tmp_path, 1)
    writer.add(Batch(pages=[(entry(1), page(entry(1)))]), 0)
    committed = writer.flush()
    writer.add(Batch(pages=[(entry(2), page(entry(2)))]), 0)
    later = writer.flush()

    found = logs.reader(tmp_path, committed=committed)
    assert urls(found) == ["https://a.example/1"]
    found.update(later, 0)
    assert urls(found) == ["https://a.example/1", "https://a.example/2"]
    assert later["records-0-1-1.log"].pages == 2


def test_claims_on_several_machines_are_one_history(logs: Logs, tmp_path: Path) -> None:
    """A URL that was returned to the queue by one owner has the record that the next one wrote."""
    here, there = tmp_path / "here", tmp_path / "there"
    first = logs.writer(here, 1)
    first.add(Batch(pages=[(entry(1), page(entry(1), status=None, error="dns"))]), 0)
    first.returned([1])
    second = logs.writer(there, 2)
    second.add(Batch(pages=[(entry(2), page(entry(2))), (entry(1), page(entry(1)))]), 0)
    committed = first.flush() | second.flush()

    found = logs.reader(here, there, committed=committed)

    assert [(record.url, record.status) for _, record in found.pages()] == [
        ("https://a.example/2", 200),
        ("https://a.example/1", 200),
    ]
    positions = [position for position, _ in found.pages()]
    assert positions == sorted(positions)


def test_a_segment_that_is_nowhere_is_counted(logs: Logs, tmp_path: Path) -> None:
    """Its pages are missing; the others are read."""
    lost = logs.writer(tmp_path / "lost", 1)
    lost.add(Batch(pages=[(entry(1), page(entry(1))), (entry(2), page(entry(2)))]), 0)
    kept = logs.writer(tmp_path, 2)
    kept.returned([1])
    kept.add(Batch(pages=[(entry(3), page(entry(3)))]), 0)

    found = logs.reader(tmp_path, committed=lost.flush() | kept.flush())

    assert found.missing_segments == ["records-0-1-1.log"]
    assert urls(found) == ["https://a.example/3"]


def test_a_record_that_is_checked_again_keeps_its_place(logs: Logs, tmp_path: Path) -> None:
    """A later round replaces it; a batch that is offered twice does not."""
    writer = logs.writer(tmp_path, 1)
    one, two, three = entry(1), entry(2), entry(3)
    writer.add(Batch(pages=[(each, page(each)) for each in (one, two, three)]), 0)
    before = [position for position, _ in logs.reader(tmp_path, committed=writer.flush()).pages()]
    again = page(one)._replace(change="changed", digest="11")
    for record in (again, page(one, status=500)):
        writer.add(Batch(pages=[(one, record)]), 1)
    writer.add(Batch(dropped=[(two, "excluded")]), 1)
    writer.checked([3], 1)

    found = logs.reader(tmp_path, committed=writer.flush(), round_number=1)

    read = [(record.change, record.error) for _, record in found.pages()]
    assert read == [("changed", None), (None, "excluded"), ("same", None)]
    assert [position for position, _ in found.pages()] == before


@pytest.mark.parametrize(
    ("at", "words"),
    [(0, "is damaged at byte 0"), (12, "is damaged at byte 0"), (-1, "is damaged at byte ")],
)
def test_damage_is_named_with_its_place(logs: Logs, tmp_path: Path, at: int, words: str) -> None:
    """A committed frame that cannot be read is never passed over."""
    writer = logs.writer(tmp_path, 1)
    writer.add(Batch(pages=[(entry(n), page(entry(n))) for n in (1, 2)]), 0)
    committed = writer.flush()
    log = tmp_path / "records-0-1-1.log"
    content = bytearray(log.read_bytes())
    content[at] ^= 0xFF
    log.write_bytes(content)

    with pytest.raises(LogDamaged, match=words):
        logs.reader(tmp_path, committed=committed)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_logs_agree_with_a_store_in_memory(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever is recorded, dropped, offered twice and brought back, by any number of owners."""
    folder = tmp_path_factory.mktemp("logs")
    store = MemoryStore(frontier_limit=10**6)
    entries = enter(store, *(candidate(f"/{n}") for n in range(8)))
    committed: dict[str, Extent] = {}
    with ExitStack() as stack:
        logs = Logs(stack)
        found = logs.reader(folder, committed={})
        for claim in range(1, data.draw(st.integers(1, 3)) + 1):
            writer = logs.writer(folder, claim)
            for _ in range(data.draw(st.integers(1, 4))):
                batch = data.draw(batches(entries))
                store.commit(batch)
                writer.add(batch, 0)
                if data.draw(st.booleans()):
                    writer.returned(_bring_back(store, data.draw(st.sampled_from(["", "robots"]))))
                committed |= writer.flush()
                found.update(committed, 0)
        _agree(found, store, entries)


def _bring_back(store: MemoryStore, skipped: str) -> list[int]:
    store.commit(Batch(retries=[RetryUrls(skipped=skipped or None)]))
    return [each.seq for _ in range(3) for each in store.bring_back(99).new]


def _agree(found: LogReader, store: MemoryStore, entries: list[Entry]) -> None:
    assert [record for _, record in found.pages()] == [record for _, record in store.pages()]
    assert list(found.elements()) == list(store.elements())
    assert list(found.skipped()) == list(store.skipped())
    lost = list(store.given_up())
    for each in entries:
        known = store.find(each.url)
        if known not in lost and not isinstance(known, Entry):  # these are the server's
            assert found.find(each.url) == known


@st.composite
def batches(draw: Any, entries: list[Entry]) -> Batch:
    """Return a batch with records and reasons of some entries, queued or not."""
    pages = draw(st.lists(st.sampled_from(entries), max_size=3))
    dropped = draw(st.lists(st.sampled_from(entries), max_size=2))
    statuses = st.sampled_from([(200, None), (None, "timeout")])
    reasons = st.sampled_from(["robots", "max_per_host", "host_retired: x"])
    return Batch(
        pages=[
            (each, page(each, **dict(zip(("status", "error"), draw(statuses), strict=True))))
            for each in pages
        ],
        dropped=[(each, draw(reasons)) for each in dropped],
        elements={each.seq: b"%d" % draw(st.integers(0, 9)) for each in pages},
    )


def test_elements_of_a_batch_are_compressed_together(logs: Logs, tmp_path: Path) -> None:
    """And only those of its own pages; a reader finds each in any order."""
    menu = b"utf-8" + b"".join(b"\0/menu/%d\0Entry %d" % (n, n) for n in range(99))
    writer = logs.writer(tmp_path, 1)
    pages = [(entry(n), page(entry(n))) for n in range(1, 41)]
    elements = {n: menu + b"%d" % n for n in range(1, 99)}
    writer.add(Batch(pages=pages[:20], elements=elements), 0)
    writer.add(Batch(pages=pages[20:], elements=elements), 0)
    committed = writer.flush()
    found = logs.reader(tmp_path, committed=committed)

    assert [kept for _, kept in found.elements()] == [menu + b"%d" % n for n in range(1, 41)]
    backwards = [found.elements_of(each.url) for each, _ in reversed(pages)]
    assert backwards == [menu + b"%d" % n for n in range(40, 0, -1)]
    (extent,) = committed.values()
    assert extent.length < 40 * 500  # bytes; the elements of one page are 2,000


@pytest.mark.parametrize("data", [b"", b"no frame", packed([]), packed([b"one", b"more"])])
def test_elements_that_cannot_be_read_are_named(logs: Logs, tmp_path: Path, data: bytes) -> None:
    """With the file and the place; the record itself is read."""
    one = entry(1)
    frames = [
        ElementsFrame([1], data),
        RecordedFrame(1, 0, one, page(one), False, True, None, None),
    ]
    content = b"".join(map(pack, frames))
    (tmp_path / "records-0-1-1.log").write_bytes(content)
    found = logs.reader(tmp_path, committed={"records-0-1-1.log": Extent(len(content), 1)})

    assert urls(found) == [one.url]
    with pytest.raises(LogDamaged, match=r"records-0-1-1.log has invalid links at byte 0"):
        found.elements_of(one.url)


def test_elements_in_a_segment_that_is_nowhere_are_not_those_of_another_page(
    logs: Logs, tmp_path: Path
) -> None:
    """A segment may end between the elements of a batch and its records."""
    one, two = entry(1), entry(2)
    contents = [
        pack(ElementsFrame([2], packed([b"of another page"]))),
        pack(ElementsFrame([1], packed([b"links"]))),
        pack(RecordedFrame(1, 0, one, page(one), False, True, None, None)),
    ]
    committed = {}
    for number, content in enumerate(contents, 1):
        name = f"records-0-1-{number}.log"
        (tmp_path / name).write_bytes(content)
        committed[name] = Extent(len(content), int(number == 3))
    whole = logs.reader(tmp_path, committed=committed)
    (tmp_path / "records-0-1-2.log").unlink()
    found = logs.reader(tmp_path, committed=committed)

    assert (urls(found), found.missing_segments) == ([one.url], ["records-0-1-2.log"])
    assert (whole.elements_of(one.url), found.elements_of(one.url)) == (b"links", None)
    assert found.find(two.url) is None
