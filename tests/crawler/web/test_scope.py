"""Scope: which URLs belong to a crawl, and the reason of those that do not."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.web.choices import ScopeMode
from mannerly.crawler.web.scope import Glob, Scope, SkipReason

SEED = "https://www.example.com/docs/intro.html"


BORDERS = [
    (ScopeMode.HOST, "https://www.example.com/x", None),
    (ScopeMode.HOST, "http://www.example.com/x", None),
    (ScopeMode.HOST, "https://example.com/x", SkipReason.OFF_HOST),
    (ScopeMode.HOST, "https://www.example.com:8443/x", SkipReason.OFF_HOST),
    (ScopeMode.HOST, "https://www.example.com.evil.org/", SkipReason.OFF_HOST),
    (ScopeMode.SITE, "https://blog.example.com/x", None),
    (ScopeMode.SITE, "https://example.com:8443/x", None),
    (ScopeMode.SITE, "https://notexample.com/", SkipReason.OFF_SITE),
    (ScopeMode.PREFIX, "http://www.example.com/docs/more/x", None),
    (ScopeMode.PREFIX, "https://www.example.com/docs", SkipReason.OFF_PREFIX),
    (ScopeMode.PREFIX, "https://www.example.com/", SkipReason.OFF_PREFIX),
    (ScopeMode.PREFIX, "https://example.com/docs/x", SkipReason.OFF_PREFIX),
    (ScopeMode.ANY, "https://elsewhere.org/", None),
]


def test_mode_draws_the_border() -> None:
    """Host, site and prefix each leave out what lies beyond them, whatever the scheme."""
    for mode, url, reason in BORDERS:
        assert Scope((SEED,), mode).judge(url, 1) is reason, (mode, url)


def test_seeds_on_one_host_may_have_several_prefixes() -> None:
    """A URL below any of the seeds is inside."""
    scope = Scope(("https://e.com/a/x", "https://e.com/b/?q=/c/"), ScopeMode.PREFIX)

    verdicts = [scope.judge(f"https://e.com/{path}", 1) for path in ("a/1", "b/1", "c/1")]

    assert verdicts == [None, None, SkipReason.OFF_PREFIX]


def test_depth_is_limited() -> None:
    """Seeds have depth 0, and a URL deeper than the limit is outside."""
    scope = Scope((SEED,), max_depth=1)

    assert scope.judge(SEED, 1) is None
    assert scope.judge(SEED, 2) is SkipReason.TOO_DEEP


def test_exclude_beats_include() -> None:
    """What both name is left out, and what neither names is not included."""
    scope = Scope((SEED,), include=("*/docs/*",), exclude=("*.pdf",))

    assert scope.judge("https://www.example.com/docs/a", 1) is None
    assert scope.judge("https://www.example.com/docs/a.pdf", 1) is SkipReason.EXCLUDED
    assert scope.judge("https://www.example.com/blog/a", 1) is SkipReason.NOT_INCLUDED


def test_seed_needs_no_include() -> None:
    """A crawl can start at a page that leads to what is included; exclude binds even seeds."""
    scope = Scope(("https://e.com/",), include=("*/blog/*",), exclude=("*/secret",))

    assert scope.judge("https://e.com/", 0) is None
    assert scope.judge("https://e.com/secret", 0) is SkipReason.EXCLUDED


def test_exclude_binds_outside_the_scope_too() -> None:
    """A sitemap may lie on another host, but not where the operator said never."""
    scope = Scope(("https://e.com/",), exclude=("*/secret",))

    assert scope.judge("https://elsewhere.org/secret", 0) is SkipReason.OFF_HOST
    assert scope.excludes("https://elsewhere.org/secret")
    assert not scope.excludes("https://elsewhere.org/sitemap.xml")


GLOBS = [
    ("*", "https://e.com/", True),
    ("*/a*b*c", "https://e.com/aXbYc", True),
    ("*/a*b*c", "https://e.com/aXcYb", False),
    ("*aa*aa", "https://e.com/aaa", False),
    ("https://e.com/*", "https://e.com/a/b/c", True),
    ("https://e.com/", "https://e.com/", True),
    ("https://e.com/", "https://e.com/x", False),
    ("*?page=*", "https://e.com/list?page=2", True),
    ("*?page=*", "https://e.com/listXpage=2", False),
    ("*[::1]*", "http://[::1]/", True),
    ("*/статьи/*", "https://e.com/%D1%81%D1%82%D0%B0%D1%82%D1%8C%D0%B8/1", True),
]


def test_glob_matches_the_whole_url() -> None:
    """A star stands for anything, every other character for itself."""
    for glob, text, is_match in GLOBS:
        assert Glob(glob).matches(text) is is_match, (glob, text)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_glob_agrees_with_fnmatch(pattern: str, text: str) -> None:
    """On patterns of stars and letters an independent matcher gives the same answer."""
    glob = Glob("*" + pattern)

    expected = re.match(fnmatch.translate("*" + pattern), text) is not None
    assert glob.matches(text) is expected


def test_glob_takes_no_exponential_time() -> None:
    """The pattern that freezes backtracking matchers is answered at once."""
    glob = Glob("*" + "a*" * 500 + "b")

    assert not glob.matches("https://e.com/" + "a" * 2000)


def test_globs_that_match_nothing_are_errors() -> None:
    """A pattern that can never fit is told at the start, not found out after a day."""
    for glob in ("", "/blog/*", "example.com/*", "*#top", "* x", "*\n"):
        with pytest.raises(ValueError, match=re.escape(f"{glob!r} can match no URL")):
            Scope((SEED,), exclude=(glob,))


def test_bad_seeds_are_errors() -> None:
    """No seeds, or seeds that no link could equal, are refused with a clear message."""
    with pytest.raises(ValueError, match="at least one seed"):
        Scope(())
    for seed in ("example.com", "HTTP://example.com", "ftp://example.com/"):
        with pytest.raises(ValueError, match=f"not a canonical .*{seed!r}"):
            Scope((seed,))


def test_seed_of_an_earlier_release_is_accepted() -> None:
    """A seed whose escapes were stored in another spelling stands for the same folder."""
    scope = Scope(("https://example.com/%c3%a9/x",), ScopeMode.PREFIX)

    assert scope.judge("https://example.com/%C3%A9/y", 1) is None
    assert scope.judge("https://example.com/e/y", 1) is SkipReason.OFF_PREFIX


def test_glob_matches_any_spelling_of_escapes() -> None:
    """A glob is compared as URLs are spelled, whatever its own escapes look like."""
    for pattern in ("*/%c3%a9*", "*/%C3%A9*", "*/é*", "*/%c3%A9*"):
        assert Glob(pattern).matches("https://example.com/%C3%A9/y"), pattern
    assert Glob("*/%7ejoe/*").matches("https://example.com/~joe/")


def test_glob_has_a_longest_length() -> None:
    """A glob that is longer than any URL is refused before it is used."""
    Glob("*" + "a" * 2047)
    with pytest.raises(ValueError, match="2048 are allowed"):
        Glob("*" + "a" * 2048)


def test_explosive_globs_take_linear_time() -> None:
    """A pattern that explodes a backtracking matcher is answered in one pass over the URL."""
    url = "https://example.com/" + "a" * 2000
    globs = [Glob("*a" * 1000 + "*b"), Glob("*" + "a*" * 1000 + "b"), Glob("*aab" * 400)]

    began = time.process_time()
    found = [glob.matches(url) for glob in globs for _ in range(10)]
    took_s = time.process_time() - began

    assert not any(found)
    assert took_s < 0.1  # 0.003


def test_negative_depth_is_an_error() -> None:
    """A limit that excludes the seeds themselves makes no sense."""
    with pytest.raises(ValueError, match="max_depth"):
        Scope((SEED,), max_depth=-1)


def test_wider_scope_includes_what_a_seed_would() -> None:
    """Including a URL is the same as a scope with one more seed, in every mode."""
    target = "https://www.other.org/docs/a.html"
    urls = (target, "https://www.other.org/x", "https://other.org/docs/", "https://no.org/docs/")
    for mode in ScopeMode:
        narrow = Scope((SEED,), mode)
        wide = narrow.including(target, SEED)
        again = dataclasses.replace(wide, exclude=("*/x",))
        with_seed = Scope((SEED, target), mode)

        assert [wide.judge(url, 1) for url in urls] == [with_seed.judge(url, 1) for url in urls]
        assert again.judge(target, 1) is None
        assert narrow.judge(target, 1) is Scope((SEED,), mode).judge(target, 1)
        assert wide.including(target) is wide


def test_scope_of_many_seeds_is_widened_quickly() -> None:
    """A thousand of ten thousand seeds that move cost no more than a second in all."""
    scope = Scope(tuple(f"http://h{number}.example/" for number in range(10_000)))

    began = time.process_time()
    for number in range(1000):
        scope = scope.including(f"https://www.h{number}.example/")
    took_s = time.process_time() - began

    assert scope.judge("https://www.h999.example/x", 1) is None
    assert took_s < 5.0  # 0.7


def test_scope_can_be_widened() -> None:
    """A seed that redirects elsewhere is added by replacing the seeds."""
    scope = Scope(("https://example.com/",))

    wider = dataclasses.replace(scope, seeds=(*scope.seeds, "https://www.example.com/"))

    assert scope.judge("https://www.example.com/x", 1) is SkipReason.OFF_HOST
    assert wider.judge("https://www.example.com/x", 1) is None


URLS = st.sampled_from(
    [
        f"{scheme}://{host}{path}"
        for scheme in ("http", "https")
        for host in ("e.com", "www.e.com", "e.com:8080", "other.org")
        for path in ("/", "/a/", "/a/x.pdf", "/b?q=1")
    ]
)


@given(
    st.lists(URLS, max_size=12),
    URLS,
    st.sampled_from(ScopeMode),
    st.sampled_from([(), ("*/a/*",)]),
    st.sampled_from([(), ("*.pdf",)]),
    st.integers(0, 3),
)
def test_sorting_a_page_agrees_with_judging_each(
    urls: list[str],
    page_url: str,
    mode: ScopeMode,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    depth: int,
) -> None:
    """The short cut for a page's own host changes no verdict and no order."""
    scope = Scope(("https://e.com/a/",), mode, include, exclude, max_depth=2)

    inside, outside = scope.sort(urls, depth, page_url=page_url)

    verdicts = [(url, scope.judge(url, depth)) for url in urls]
    assert inside == [url for url, verdict in verdicts if verdict is None]
    assert outside == [(url, verdict) for url, verdict in verdicts if verdict is not None]


def test_added_seed_counts_as_a_seed_in_any_scope() -> None:
    """Its host is not one that was met as a link, even where every host is in scope."""
    for mode in (ScopeMode.ANY, ScopeMode.SITE):
        scope = Scope((SEED,), mode=mode)

        wider = scope.including("https://new.example.com/")

        assert wider.has_seed_on("new.example.com")
