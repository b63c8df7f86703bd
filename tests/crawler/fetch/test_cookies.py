"""Cookies stay with the host that set them, and cannot grow without end."""

from __future__ import annotations

import pytest

from mannerly.crawler.fetch.cookies import (
    MAX_COOKIES,
    MAX_HOSTS,
    MAX_PACKED,
    CookieJar,
    path_of,
    set_cookie_lines,
)

HOME = ("https", "www.shop.example", 443)
PLAIN = ("http", "www.shop.example", 80)
NOW = 1_000_000.0


def sent(*lines: str, origin: tuple[str, str, int] = HOME, path: str = "/", at: str = "/") -> str:
    jar = CookieJar()
    jar.take(origin, at, list(lines), NOW)
    return jar.header(origin, path, NOW)


def test_cookie_comes_back_to_its_host() -> None:
    """Name and value as they were set, several in one header, the longest path first."""
    assert sent("a=1", "b=2; Path=/", "c=3; HttpOnly; SameSite=Lax") == "a=1; b=2; c=3"
    assert sent("a=1; Path=/", "b=2; Path=/x", path="/x/y") == "b=2; a=1"
    assert sent('a="q"; Max-Age=60') == 'a="q"'


@pytest.mark.parametrize(
    "other",
    [
        ("https", "shop.example", 443),
        ("https", "evil.shop.example", 443),
        ("https", "a.www.shop.example", 443),
        ("https", "www.shop.example", 8443),
        ("https", "other.example", 443),
    ],
)
@pytest.mark.parametrize("domain", ["", "; Domain=shop.example", "; Domain=.shop.example"])
def test_cookie_never_goes_to_another_host(other: tuple[str, str, int], domain: str) -> None:
    """Not to a subdomain, not to the domain that it names, not to another port."""
    jar = CookieJar()

    jar.take(HOME, "/", [f"session=1{domain}"], NOW)

    assert jar.header(HOME, "/", NOW) == "session=1"
    assert jar.header(other, "/", NOW) == ""


@pytest.mark.parametrize("suffix", ["example", "co.uk", "com", "github.io", "."])
def test_cookie_of_a_public_suffix_reaches_nobody_else(suffix: str) -> None:
    """A cookie for all of co.uk is refused, or kept for the one host that set it."""
    jar = CookieJar()
    hosts = [("https", f"{name}.{suffix}".rstrip("."), 443) for name in ("evil", "victim")]

    jar.take(hosts[0], "/", [f"super=1; Domain={suffix}"], NOW)

    assert jar.header(hosts[1], "/", NOW) == ""


@pytest.mark.parametrize(
    "line",
    [
        "a=1; Domain=other.example",
        "a=1; Domain=hop.example",
        "a",
        "=1",
        "a b=1",
        "a=\x01",
        "a=é",
        "a=1\x00",
        "a=1,2",
        "a=" + "x" * 5000,
        "a=1; Max-Age=0",
        "a=1; Max-Age=-5",
        "a=1; Expires=Wed, 01 Jan 1969 00:00:00 GMT",
        "__Secure-a=1",
        "__Host-a=1; Secure; Path=/x",
        "__Host-a=1; Secure; Domain=www.shop.example; Path=/",
    ],
)
def test_cookie_that_is_wrong_is_not_kept(line: str) -> None:
    """For another site, malformed, too large, over, or without what its name promises."""
    assert sent(line) == ""


def test_secure_cookie_needs_tls() -> None:
    """It is not sent without, cannot be set without, and is not replaced by one set without."""
    jar = CookieJar()
    jar.take(HOME, "/", ["s=1; Secure"], NOW)

    jar.take(PLAIN, "/", ["s=2", "t=3; Secure"], NOW)

    assert jar.header(HOME, "/", NOW) == "s=1"
    assert jar.header(PLAIN, "/", NOW) == ""


@pytest.mark.parametrize(
    ("own", "path", "matches"),
    [("/a", "/a", True), ("/a", "/a/b", True), ("/a", "/ab", False), ("/a/", "/a", False)],
)
def test_path_of_a_cookie_holds(own: str, path: str, matches: bool) -> None:
    """A path means itself and what is below it; without one, the directory of the page."""
    assert bool(sent(f"c=1; Path={own}", path=path)) == matches
    assert sent("c=1", at="/dir/page", path="/dir/other") == "c=1"
    assert sent("c=1", at="/dir/page", path="/") == ""


def test_cookie_ends() -> None:
    """Max-Age is stronger than Expires; an unreadable date means: with the run."""
    jar = CookieJar()
    lines = [
        "a=1; Max-Age=10; Expires=Wed, 01 Jan 1969 00:00:00 GMT",
        "b=2; Expires=Mon, 12 Jan 1970 13:46:50 GMT",  # NOW + 10 s
        "c=3; Expires=Mon, 12-Jan-1970 13:46:50 GMT",
        "d=4; Expires=tomorrow",
    ]

    jar.take(HOME, "/", lines, NOW)

    assert jar.header(HOME, "/", NOW + 9) == "a=1; b=2; c=3; d=4"
    assert jar.header(HOME, "/", NOW + 11) == "d=4"


def test_bomb_of_cookies_is_bounded() -> None:
    """A host has 50, the newest; hosts are 10,000, those that set one last."""
    jar = CookieJar()

    jar.take(HOME, "/", [f"c{number}=1" for number in range(500)], NOW)
    kept = jar.header(HOME, "/", NOW)
    for number in range(MAX_HOSTS):
        jar.take(("https", f"h{number}.example", 443), "/", ["c=1"], NOW)

    assert len(kept.split("; ")) == MAX_COOKIES
    assert "c499=1" in kept
    assert len(jar) == MAX_HOSTS
    assert jar.header(HOME, "/", NOW) == ""


def test_lines_and_paths_are_read_from_an_answer() -> None:
    """Several Set-Cookie lines in any case, and the path of a URL without its query."""
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX: y\r\nset-cookie: b=2; Path=/\r\n\r\n"

    assert set_cookie_lines(head) == ["a=1", "b=2; Path=/"]
    assert path_of("https://a.example/b/c?d=/e") == "/b/c"
    assert path_of("https://a.example") == "/"


def test_jar_that_was_packed_sends_the_same() -> None:
    """With paths, ends and Secure; it says when it has changed."""
    jar = CookieJar()
    jar.take(HOME, "/x/y", ["a=1; Path=/", 'b="q"; Secure', "c=3; Max-Age=60"], NOW)
    jar.take(PLAIN, "/", ["d=4"], NOW)

    again = CookieJar(jar.packed())

    assert jar.is_changed
    assert not again.is_changed
    for origin in (HOME, PLAIN):
        for path, at in (("/", NOW), ("/x/z", NOW), ("/x/z", NOW + 61)):
            assert again.header(origin, path, at) == jar.header(origin, path, at)
    assert again.is_changed  # one has expired


@pytest.mark.parametrize("text", ["", "{", "[1]", '[["h", "p", []]]', '[["h", 1, [["a", []]]]]'])
def test_text_that_is_no_jar_is_an_empty_one(text: str) -> None:
    """A damaged session is a lost login, not a crawl that does not start."""
    assert CookieJar(text).header(HOME, "/", NOW) == ""


def test_packed_jar_is_bounded() -> None:
    """What was set first is left out."""
    jar = CookieJar()
    for number in range(100):
        origin = ("https", f"h{number}.example", 443)
        jar.take(origin, "/", [f"a={number}{'x' * 2000}", f"b={number}"], NOW)

    packed = jar.packed()
    again = CookieJar(packed)

    assert len(packed) <= MAX_PACKED
    assert "b=99" in again.header(("https", "h99.example", 443), "/", NOW)
    assert again.header(("https", "h0.example", 443), "/", NOW) == ""
