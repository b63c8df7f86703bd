"""URLs that one piece of software made have one pattern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.patterns import pattern_of


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/", "/*"),
        ("/about", "/*"),
        ("/page-17", "/#"),
        ("/blog/a-post", "/blog/*"),
        ("/blog/2024/05/a-post", "/blog/*/*/*"),
        ("/3f9c01d2e4b5a6f7/p/17", "/#/*/*"),
        ("/averylongfoldernamewithoutanydigit/p", "/#/*"),
        ("/p/17?sid=8f3a", "/p/*?sid"),
        ("/list?sort=name&dir=up", "/*?dir&sort"),
        ("/list?dir=up&sort=date", "/*?dir&sort"),
        ("/list?a=1&b=2&c=3", "/*?3 keys"),
        ("/a/b/a/b/a/b/", "/…/"),
        ("/a/a/a/a/a/a/a/a/a/a/a/a/", "/…/"),
        ("/en/docs/guide/first/steps/install/linux", "/en/*/*/*/*/*/*"),
        ("/1/2/3/4/5/6/7/8/9/10/11/12", "/#/*/*/*/*/*/*/*"),
    ],
)
def test_the_pattern_keeps_what_divides_a_site(path: str, pattern: str) -> None:
    """The first folder and the names of few keys stay; numbers, names and combinations do not."""
    assert pattern_of(f"https://a.example{path}") == pattern


@given(st.text("ab/?&=1%.", max_size=60))
def test_every_url_has_a_pattern(rest: str) -> None:
    """A pattern begins with a slash and is about as short as the part of the URL that it keeps."""
    pattern = pattern_of(f"https://a.example/{rest}")

    assert pattern.startswith("/")
    assert len(pattern) <= len(rest) + 40
