"""Which rule decides: RFC 9309's precedence, wildcards and spelling, as tables."""

from __future__ import annotations

import pytest
from tests.politeness.cases import case

from mannerly.politeness.robots import Robots

AGENT = "mannerly/0.1 (+https://example.org/bot)"


def rules(*lines: str) -> Robots:
    return Robots.parse("\n".join(("User-agent: *", *lines)).encode())


def test_pattern_matches_from_the_start_of_the_path() -> None:
    """A pattern is a prefix in which `*` is any run and a final `$` is the end."""
    cases: list[tuple[str, str, bool]] = [
        ("/", "/anything", True),
        ("/fish", "/fish", True),
        ("/fish", "/fish.html", True),
        ("/fish", "/fishheads/yummy.html", True),
        ("/fish", "/fish.php?id=anything", True),
        ("/fish", "/Fish.asp", False),
        ("/fish", "/catfish", False),
        ("/fish", "/?id=fish", False),
        ("/fish*", "/fishheads", True),
        ("/fish/", "/fish", False),
        ("/fish/", "/fish/?id=anything", True),
        ("/*.php", "/folder/any.php.file.html", True),
        ("/*.php", "/", False),
        ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/folder/filename.php", True),
        ("/*.php$", "/filename.php?parameters", False),
        ("/*.php$", "/filename.php/", False),
        ("/*.php$", "/a.php.php", True),
        ("/fish*.php", "/fishheads/catfish.php?parameters", True),
        ("/fish*.php", "/Fish.PHP", False),
        ("/a*b*c", "/a-c-b-c", True),
        ("/a*b*c", "/a-c-b", False),
        ("/a**c", "/abc", True),
        ("*", "/anything", True),
        ("*.gif", "/a/b.gif", True),
        ("*$", "/anything", True),
        ("/$", "/", True),
        ("/$", "/a", False),
        ("/a$b", "/a$bc", True),
        ("/a$$", "/a$", True),
        ("/a$$", "/a", False),
        ("/aa*aa$", "/aaa", False),
        ("/aa*aa$", "/aaaa", True),
        ("$", "/", False),
        ("fish", "/fish", False),
        ("https://example.com/fish", "/fish", False),
        ("/a#b", "/ac", True),
        ("/a b", "/a b", True),
        ("/a?b=*&c", "/a?b=1&c=2", True),
    ]
    for pattern, path, is_match in cases:
        with case(pattern, path, is_match):
            robots = rules(f"Disallow: {pattern}")

            answer = robots.allowed(f"https://example.com{path}", AGENT)

            assert answer is not is_match


def test_longest_pattern_decides() -> None:
    """The longest matching pattern decides whatever its place, and Allow wins a tie."""
    cases: list[tuple[tuple[str, ...], str, bool]] = [
        (("Allow: /p", "Disallow: /"), "/page", True),
        (("Disallow: /", "Allow: /p"), "/page", True),
        (("Allow: /folder", "Disallow: /folder"), "/folder/page", True),
        (("Disallow: /folder", "Allow: /folder"), "/folder/page", True),
        (("Allow: /page", "Disallow: /*.htm"), "/page.htm", False),
        (("Allow: /page", "Disallow: /*.ph"), "/page.php5", True),
        (("Allow: /$", "Disallow: /"), "/", True),
        (("Allow: /$", "Disallow: /"), "/page.htm", False),
        (("Disallow: /a/", "Allow: /a/b/", "Disallow: /a/b/c/"), "/a/b/c/d", False),
        (("Disallow: /a/", "Allow: /a/b/", "Disallow: /a/b/c/"), "/a/b/d", True),
        (("Disallow: /x/*****", "Allow: /x/page"), "/x/page", False),
        (("Disallow:",), "/page", True),
        (("Disallow:", "Disallow: /page"), "/page", False),
        (("Allow:", "Disallow: /"), "/page", False),
        ((), "/page", True),
    ]
    for lines, path, is_allowed in cases:
        with case(lines, path, is_allowed):
            robots = rules(*lines)

            assert robots.allowed(path, AGENT) is is_allowed


def test_spellings_of_one_path_are_one_path() -> None:
    """A site cannot be entered by spelling a forbidden path in another way."""
    cases: list[tuple[str, str]] = [
        ("/é", "/%C3%A9"),
        ("/é", "/%c3%a9"),
        ("/é", "/é"),
        ("/%c3%a9", "/é"),
        ("/ツ", "/%E3%83%84"),
        ("/%7bid%7d", "/%7Bid%7D"),
        ("/a%3cd", "/a%3Cd.html"),
        ("/admin", "/%61dmin"),
        ("/%61dmin", "/admin"),
        ("/~joe", "/%7Ejoe"),
        ("/%7ejoe", "/~joe"),
        ("/file-%2A.html", "/file-*.html"),
        ("/cost-%24", "/cost-$"),
        ("/cost-$x", "/cost-%24x"),
        ("/*?q=ü", "https://example.com/?q=ü"),
        ("/*?q=ü", "https://example.com/?q=%c3%bc"),
        ("/*?q=%C3%BC", "https://bücher.example/?q=ü"),
        ("/*é$", "https://example.com/à/é"),
        ("/a b", "/a%20b"),
        ("/a%20b", "/a b"),
        ("/{id}", "/%7Bid%7D"),
        ("/%7Bid%7D", "/{id}"),
        ('/"a"', "/%22a%22"),
    ]
    for pattern, path in cases:
        with case(pattern, path):
            robots = rules(f"Disallow: {pattern}")

            assert not robots.allowed(path, AGENT)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("/a%2Fb", "/a/b"), ("/a/b", "/a%2Fb"), ("/a%zz", "/a%ZZ"), ("/a%3Fb", "/a?b")],
)
def test_reserved_characters_keep_their_escapes(pattern: str, path: str) -> None:
    """`%2F` is data and `/` is structure, so neither stands for the other."""
    robots = rules(f"Disallow: {pattern}")

    assert robots.allowed(path, AGENT)


def test_allow_is_not_widened_by_respelling() -> None:
    """Where Google and the RFC read an Allow differently, the stricter reading counts."""
    robots = rules("Disallow: /", "Allow: /foo/%62%61%7A")

    assert robots.allowed("/foo/%62%61%7A", AGENT)
    assert not robots.allowed("/foo/baz", AGENT)


def test_invalid_utf8_in_a_rule_matches_its_octets() -> None:
    """A rule in another encoding still forbids exactly the octets that it holds."""
    robots = Robots.parse(b"User-agent: *\nDisallow: /caf\xe9")

    assert not robots.allowed("/caf%E9", AGENT)
    assert robots.allowed("/caf%C3%A9", AGENT)


@pytest.mark.parametrize(
    ("rule", "path", "is_allowed"),
    [
        ("Allow: /a/index.html", "/a/", True),
        ("Allow: /a/index.htm", "/a/", True),
        ("Allow: /a/index.html", "/a/index.html", True),
        ("Allow: /a/index.html", "/a/b", False),
        ("Allow: /a/index.php", "/a/", False),
        ("Allow: /index.html/b", "/", False),
    ],
)
def test_allowing_an_index_page_allows_its_folder(rule: str, path: str, is_allowed: bool) -> None:
    """`Allow: /a/index.html` also opens `/a/`, and nothing else in the folder."""
    robots = rules("Disallow: /", rule)

    assert robots.allowed(path, AGENT) is is_allowed


def test_forbidding_an_index_page_leaves_its_folder_free() -> None:
    """The index page's kindness is for Allow lines only."""
    robots = rules("Disallow: /a/index.html")

    assert robots.allowed("/a/", AGENT)


def test_only_path_and_query_are_matched() -> None:
    """Scheme, host and fragment play no part; a URL without a path is `/`."""
    cases: list[tuple[str, bool]] = [
        ("https://example.com/a/b?c=d", False),
        ("HTTPS://EXAMPLE.COM:8443/a/b", False),
        ("https://user:pw@example.com/a/b", False),
        ("/a/b", False),
        ("/a/b#fragment", False),
        ("https://example.com/#/a/b", True),
        ("https://example.com#/a/b", True),
        ("https://example.com/?to=https://example.com/a/b", True),
        ("//a/b", True),
        ("https://example.com//a/b", True),
        ("https://example.com", True),
        ("", True),
    ]
    for url, is_allowed in cases:
        with case(url, is_allowed):
            robots = rules("Disallow: /a/b")

            assert robots.allowed(url, AGENT) is is_allowed


@pytest.mark.parametrize("url", ["https://example.com?q=1", "https://example.com/?q=1", "?q=1"])
def test_query_without_a_path_belongs_to_the_root(url: str) -> None:
    """`https://example.com?q=1` asks for `/?q=1`."""
    robots = rules("Disallow: /?q")

    assert not robots.allowed(url, AGENT)


def test_robots_txt_itself_is_always_allowed() -> None:
    """Nobody can forbid the reading of the rules, but a file below it is a page like others."""
    robots = rules("Disallow: /")

    assert robots.allowed("https://example.com/robots.txt", AGENT)
    assert not robots.allowed("https://example.com/robots.txt/more", AGENT)
    assert Robots.disallow_all().allowed("/robots.txt", AGENT)


def test_explosive_wildcards_are_answered() -> None:
    """A pattern that explodes a backtracking matcher gets its answer from one pass."""
    robots = rules("Disallow: /" + "*a" * 1_500 + "b")

    assert robots.allowed("/" + "a" * 20_000, AGENT)
    assert not robots.allowed("/" + "a" * 20_000 + "b", AGENT)
