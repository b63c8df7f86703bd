"""Which of a host's URLs goes first."""

from __future__ import annotations

from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.priority import is_held_back, place_of, placed, priority, sitemap_turn

DAY_S = 86_400.0
OPINIONS = st.none() | st.floats()
DEPTHS = st.integers(0, 10_000_000)


def test_order_is_seeds_home_pages_depth_sitemap_news() -> None:
    """The table of the module, from first to last."""
    in_order = [
        priority(0),
        priority(9, is_home_page=True),
        priority(1, sitemap_priority=1.0),
        priority(1, sitemap_priority=0.8, lastmod_age_s=1 * DAY_S),
        priority(1, sitemap_priority=0.8, lastmod_age_s=6 * DAY_S),
        priority(1, sitemap_priority=0.8, lastmod_age_s=30 * DAY_S),
        priority(1, sitemap_priority=0.8, lastmod_age_s=300 * DAY_S),
        priority(1, sitemap_priority=0.8, lastmod_age_s=3000 * DAY_S),
        priority(1),
        priority(1, sitemap_priority=0.0),
        priority(2, sitemap_priority=1.0, lastmod_age_s=0.0),
        priority(3),
    ]

    assert in_order == sorted(set(in_order))
    assert (in_order[0], in_order[1], priority(1)) == (0, 64, 157)


def test_silence_is_the_protocols_default() -> None:
    """A page without a priority counts as one of 0.5."""
    assert priority(1) == priority(1, sitemap_priority=0.5)


def test_nonsense_is_clamped() -> None:
    """Values from a sitemap can neither jump the queue nor break the sum."""
    assert priority(1, sitemap_priority=inf) == priority(1, sitemap_priority=1.0)
    assert priority(1, sitemap_priority=-5.0) == priority(1, sitemap_priority=0.0)
    assert priority(1, sitemap_priority=nan, lastmod_age_s=nan) == priority(1)
    assert priority(1, lastmod_age_s=-inf) == priority(1, lastmod_age_s=0.0)


@given(DEPTHS, OPINIONS, OPINIONS)
def test_depth_outweighs_every_opinion(
    depth: int, sitemap_priority: float | None, age_s: float | None
) -> None:
    """A deeper page never goes before a page of lesser depth, and the number can be stored."""
    here = priority(depth, sitemap_priority=sitemap_priority, lastmod_age_s=age_s)
    worst_above = priority(min(depth, 1_000_000) - 1, sitemap_priority=0.0)

    assert 0 <= here < 2**62
    assert depth == 0 or here > worst_above or depth == 1


@given(st.integers(0, 10**9), st.booleans())
def test_a_place_is_kept_in_the_priority(place: int, held_back: bool) -> None:
    """A link that is held back says so and stays in its band; others keep their exact place."""
    number = placed(place, is_held_back=held_back)

    assert is_held_back(number) == held_back
    assert place_of(number) == (place | 31 if held_back else place)


@given(st.integers(0, 60), st.floats(0, 1), st.floats(0, 1e9), st.booleans())
def test_no_other_priority_says_that_a_link_is_held_back(
    depth: int, rank: float, age_s: float, is_home_page: bool
) -> None:
    """The mark of a place in the line is no priority that depth, rank and age can have."""
    number = priority(depth, is_home_page=is_home_page, sitemap_priority=rank, lastmod_age_s=age_s)

    assert not is_held_back(number)
    assert not is_held_back(sitemap_turn(depth))
