"""What caches say about an answer, in all their dialects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.caches import STATUS_HEADERS, CacheState, cache_state
from mannerly.crawler.web.patterns import section_of

HIT, MISS, UNCACHEABLE, UNKNOWN = CacheState


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, UNKNOWN),
        ({"age": "17"}, HIT),
        ({"age": "0"}, MISS),
        ({"age": "soon"}, UNKNOWN),
        ({"x-cache": "HIT"}, HIT),
        ({"x-cache": "Hit from cloudfront"}, HIT),
        ({"x-cache": "RefreshHit from cloudfront"}, HIT),
        ({"x-cache": "Miss from cloudfront", "age": "3"}, MISS),
        ({"x-cache": "Error from cloudfront"}, UNCACHEABLE),
        ({"x-cache": "TCP_MISS from a23.deploy"}, MISS),
        ({"x-cache": "HIT, MISS"}, MISS),  # the nearest to us is the last
        ({"x-cache": "MISS, HIT"}, HIT),
        ({"cf-cache-status": "DYNAMIC"}, UNCACHEABLE),
        ({"cf-cache-status": "EXPIRED"}, MISS),
        ({"cf-cache-status": "REVALIDATED"}, HIT),
        ({"x-cache-status": "BYPASS"}, UNCACHEABLE),
        ({"x-cache-status": "STALE"}, HIT),
        ({"x-proxy-cache": "MISS"}, MISS),
        ({"x-varnish": "32770 3"}, HIT),
        ({"x-varnish": "32770", "age": "0"}, MISS),
        ({"cache-status": "ExampleCache; hit"}, HIT),
        ({"cache-status": "ExampleCache; hit; ttl=376"}, HIT),
        ({"cache-status": "ExampleCache; fwd=uri-miss; stored"}, MISS),
        ({"cache-status": '"CDN Company Here"; fwd=bypass'}, UNCACHEABLE),
        ({"cache-status": "OriginCache; hit; ttl=1100, CDN; fwd=uri-miss"}, MISS),
        ({"cache-status": "OriginCache; fwd=uri-miss, CDN; hit; ttl=545"}, HIT),
        ({"x-cache": "MISS", "cache-control": "private, max-age=0"}, UNCACHEABLE),
        ({"x-cache": "MISS", "cache-control": "public, max-age=60"}, MISS),
        ({"x-cache": "HIT", "cache-control": "no-store"}, HIT),  # it is what visitors meet
        ({"cache-control": "no-store"}, UNCACHEABLE),
    ],
)
def test_dialects_of_caches_are_understood(headers: dict[str, str], expected: CacheState) -> None:
    """The most exact header counts, and in a line of caches the one nearest to us."""
    assert cache_state(headers) is expected


NAMES = st.sampled_from([*STATUS_HEADERS, "cache-status", "age", "x-varnish", "cache-control"])


@given(st.dictionaries(NAMES, st.text(max_size=40)))
def test_no_header_makes_it_fail(headers: dict[str, str]) -> None:
    """Headers are text of a server."""
    assert cache_state(headers) in CacheState


@pytest.mark.parametrize(
    ("url", "section"),
    [
        ("https://a.example/", "a.example/"),
        ("https://a.example/about", "a.example/"),
        ("https://a.example/blog/one/two", "a.example/blog/"),
        ("https://a.example:8080/?next=/x/", "a.example:8080/"),
        ("https://a.example/shop?to=/x/", "a.example/"),
    ],
)
def test_section_is_the_first_directory(url: str, section: str) -> None:
    """Pages at the top of a site are one section."""
    assert section_of(url) == section
