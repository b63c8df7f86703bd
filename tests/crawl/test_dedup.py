"""Dedup: a filter that may doubt a new URL but never forgets an old one."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawl.dedup import Doubts, Recent, SeenFilter, fingerprint, fingerprints

FINGERPRINTS = st.integers(-(2**63), 2**63 - 1)


def test_fingerprint_depends_on_text_and_seed() -> None:
    """Equal texts agree under one seed, and another seed gives other numbers."""
    first = fingerprint("https://e.com/", 1)

    assert fingerprint("https://e.com/", 1) == first
    assert fingerprint("https://e.com/", 2) != first
    assert fingerprint("https://e.com/x", 1) != first


def test_fingerprints_are_the_single_ones_in_order() -> None:
    """A page's fingerprints are those of its links one by one."""
    texts = [f"https://e.com/{n}" for n in range(50)]

    assert fingerprints(texts, 7) == tuple(fingerprint(text, 7) for text in texts)
    assert fingerprints([], 7) == ()


def test_fingerprint_fits_an_sqlite_integer() -> None:
    """Numbers of both signs occur, and all survive a round trip through SQLite."""
    numbers = fingerprints([str(n) for n in range(200)], 3)

    with sqlite3.connect(":memory:") as store:
        returned = [store.execute("SELECT ?", (number,)).fetchone()[0] for number in numbers]
    store.close()

    assert returned == list(numbers)
    assert min(numbers) < 0 < max(numbers)


@given(st.lists(st.lists(FINGERPRINTS, max_size=30), max_size=10))
def test_filter_never_forgets(pages: list[list[int]]) -> None:
    """Nothing that was sifted is ever called new again, however often the filter grew."""
    seen = SeenFilter(expected=4)

    for page in pages:
        new, doubtful = seen.sift(page)
        assert sorted({*new, *doubtful}) == sorted(set(page))
        assert len(new) + len(doubtful) == len(set(page))

    everything = [fp for page in pages for fp in page]
    assert all(seen.maybe_seen(fp) for fp in everything)
    assert seen.sift(everything).new == []


def test_sift_keeps_page_order_and_names_each_once() -> None:
    """New ones come in the order of the page, repeated ones once."""
    seen = SeenFilter(expected=1000)
    seen.add(5)

    new, doubtful = seen.sift([9, 5, 7, 9, 5, 8])

    assert new == [9, 7, 8]
    assert doubtful == [5]


def test_doubt_is_rare_when_filled_as_expected() -> None:
    """At its capacity the filter doubts about one new fingerprint in a hundred."""
    seen = SeenFilter(expected=20_000, false_positive_rate=0.01)
    texts = [f"https://e.com/{n}" for n in range(40_000)]
    seen.update(fingerprints(texts[:20_000], 11))

    doubted = sum(map(seen.maybe_seen, fingerprints(texts[20_000:], 11)))

    assert doubted < 400


def test_doubt_stays_bounded_when_the_filter_grows() -> None:
    """Outgrown sixty times over, it still doubts fewer than two in a hundred."""
    seen = SeenFilter(expected=500, false_positive_rate=0.01)
    seen.update(fingerprints([f"a{n}" for n in range(30_000)], 11))

    doubted = sum(map(seen.maybe_seen, fingerprints([f"b{n}" for n in range(20_000)], 11)))

    assert seen.capacity >= 30_000
    assert doubted < 400


def test_ten_million_take_twelve_megabytes() -> None:
    """The size for a large crawl is what the formula says."""
    seen = SeenFilter(expected=10_000_000, false_positive_rate=0.01)

    assert 11_500_000 < seen.approx_bytes < 12_500_000


def test_repeats_do_not_fill_the_filter() -> None:
    """Only what is new takes room, so a site of one page never makes it grow."""
    seen = SeenFilter(expected=100)

    for _ in range(1000):
        seen.sift(range(50))

    assert repr(seen).startswith("<SeenFilter filters=1 capacity=100 ")


@pytest.mark.parametrize(("expected", "rate"), [(0, 0.01), (10, 0.0), (10, 0.7)])
def test_senseless_sizes_are_errors(expected: int, rate: float) -> None:
    """A filter for nothing, or one that is always sure or never, is refused."""
    with pytest.raises(ValueError, match=r"expected|false_positive_rate"):
        SeenFilter(expected, rate)


def test_doubts_are_only_about_urls_that_may_be_known() -> None:
    """A new store is asked about nothing but what it was given."""
    doubts = Doubts(None)
    doubts.learn(["http://a/", "http://b/"])

    assert doubts.among({"http://a/", "http://c/"}) == {"http://a/"}


def test_doubts_cover_everything_until_the_earlier_urls_are_read() -> None:
    """A resumed store is asked about every URL until the filter has caught up."""
    doubts = Doubts(iter(["http://a/", "http://b/", "http://c/"]))

    assert doubts.among({"http://new/"}) == {"http://new/"}
    doubts.catch_up(2)
    assert doubts.among({"http://new/"}) == {"http://new/"}
    doubts.catch_up(2)
    assert doubts.among({"http://new/", "http://c/"}) == {"http://c/"}


@given(st.lists(st.integers(0, 30), max_size=200), st.integers(1, 8))
def test_recent_urls_are_the_last_ones(numbers: list[int], size: int) -> None:
    """The last `size` URLs are known, no more than twice as many, and each is news once."""
    recent = Recent(size)
    noted: list[str] = []

    for number in numbers:
        url = f"https://e.com/{number}"
        if recent.add(url):
            noted.append(url)
        assert recent.others([url]) == []

    assert recent.others(noted[-size:]) == []
    assert set(recent.others(noted)) >= set(noted) - set(noted[-2 * size :])
