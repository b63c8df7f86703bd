"""Recent: links that were passed on lately are recognised."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.dedup import Recent


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
