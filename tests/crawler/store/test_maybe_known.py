"""A filter that may take a new URL for a known one, but never the other way round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.store.sqlite.maybe_known import MaybeKnown, SeenFilter, fingerprints

FINGERPRINTS = st.integers(-(2**63), 2**63 - 1)


def test_fingerprints_depend_on_text_and_seed() -> None:
    """Equal texts agree under one seed, in any company, and another seed gives other numbers."""
    texts = [f"https://e.com/{n}" for n in range(50)]
    ours = fingerprints(texts, 7)

    assert ours == tuple(fp for text in texts for fp in fingerprints([text], 7))
    assert len(set(ours)) == 50
    assert not set(ours) & set(fingerprints(texts, 8))
    assert fingerprints([], 7) == ()


@given(st.lists(st.lists(FINGERPRINTS, max_size=30), max_size=10))
def test_filter_never_forgets(pages: list[list[int]]) -> None:
    """What it was told is never called new again, however often the filter grew."""
    seen = SeenFilter(expected=4)

    for page in pages:
        seen.update(page)

    assert all(seen.maybe_seen(fp) for page in pages for fp in page)


def test_false_positives_are_rare_when_filled_as_expected() -> None:
    """At its capacity the filter takes one new fingerprint in a hundred for known."""
    seen = SeenFilter(expected=20_000, false_positive_rate=0.01)
    texts = [f"https://e.com/{n}" for n in range(40_000)]
    seen.update(fingerprints(texts[:20_000], 11))

    mistaken = sum(map(seen.maybe_seen, fingerprints(texts[20_000:], 11)))

    assert mistaken < 400


def test_false_positives_stay_bounded_when_the_filter_grows() -> None:
    """Outgrown sixty times over, it still takes less than two and a half in a hundred for known."""
    seen = SeenFilter(expected=500, false_positive_rate=0.01)
    seen.update(fingerprints([f"a{n}" for n in range(30_000)], 11))

    mistaken = sum(map(seen.maybe_seen, fingerprints([f"b{n}" for n in range(20_000)], 11)))

    assert seen.capacity >= 30_000
    assert mistaken < 500


def test_ten_million_take_twelve_megabytes() -> None:
    """The size for a large crawl is what the formula says."""
    seen = SeenFilter(expected=10_000_000, false_positive_rate=0.01)

    assert 11_500_000 < seen.approx_bytes < 12_500_000


def test_repeats_do_not_fill_the_filter() -> None:
    """Only what is new takes room, so a site of one page never makes it grow."""
    seen = SeenFilter(expected=100)

    for _ in range(1000):
        seen.update(range(50))

    assert repr(seen).startswith("<SeenFilter filters=1 capacity=100 ")


@pytest.mark.parametrize(("expected", "rate"), [(0, 0.01), (10, 0.0), (10, 0.7)])
def test_senseless_sizes_are_errors(expected: int, rate: float) -> None:
    """A filter for nothing, or one that is always sure or never, is refused."""
    with pytest.raises(ValueError, match=r"expected|false_positive_rate"):
        SeenFilter(expected, rate)


def test_maybe_known_are_only_about_urls_that_may_be_known() -> None:
    """A new store is asked about nothing but what it was given."""
    maybe = MaybeKnown(None)
    maybe.learn(["http://a/", "http://b/"])

    assert maybe.among({"http://a/", "http://c/"}) == {"http://a/"}


def test_maybe_known_covers_everything_until_the_earlier_urls_are_read() -> None:
    """A resumed store is asked about every URL until the filter has caught up."""
    maybe = MaybeKnown(iter(["http://a/", "http://b/", "http://c/"]))

    assert maybe.among({"http://new/"}) == {"http://new/"}
    maybe.catch_up(2)
    assert maybe.among({"http://new/"}) == {"http://new/"}
    maybe.catch_up(2)
    assert maybe.among({"http://new/", "http://c/"}) == {"http://c/"}
