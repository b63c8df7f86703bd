"""Parsing of a file: lines, keys, groups and the agents that they name."""

from __future__ import annotations

import pytest
from tests.politeness.cases import case

from mannerly.politeness.robots import Robots

FIVE_HUNDRED_KIB = 500 * 1024


def test_line_is_read_as_its_writer_meant_it() -> None:
    """Line ends, blanks, comments, case, common typos and stray octets do not hide a rule."""
    cases: list[bytes] = [
        b"User-agent: foo\nDisallow: /a",
        b"User-agent: foo\r\nDisallow: /a\r\n",
        b"User-agent: foo\rDisallow: /a\r",
        b"\n\r\n\rUser-agent: foo\n\n\nDisallow: /a",
        b"\xef\xbb\xbfUser-agent: foo\nDisallow: /a",
        b"\xef\xbbUser-agent: foo\nDisallow: /a",
        b"\xefUser-agent: foo\nDisallow: /a",
        b"  User-agent  :  foo  \n\tDisallow\t:\t/a\t",
        b"USER-AGENT: foo\ndisallow: /a",
        b"User-agent: foo # that is us\nDisallow: /a # private",
        b"User-agent:foo\nDisallow:/a",
        b"User-agent foo\nDisallow /a",
        b"User-agent\tfoo\nDisallow \t /a",
        b"Useragent: foo\nDisallow: /a",
        b"User agent: foo\nDisallow: /a",
        b"User-agents: foo\nDisallowed: /a",
        b"User-agent: foo\nDissallow: /a",
        b"User-agent: foo\nDissalow: /a",
        b"User-agent: foo\nDisalow: /a",
        b"User-agent: foo\nDiasllow: /a",
        b"User-agent: foo\nDisallaw: /a",
        b"User-agent: foo\0bar\nDisallow: /a\0b",
        b"User-agent: foo\nhello\n<html>\n: /\nDisallow: /a",
    ]
    for body in cases:
        with case(body):
            robots = Robots.parse(body)

            assert not robots.allowed("/ab", "foo")
            assert robots.allowed("/b", "foo")


@pytest.mark.parametrize(
    "line",
    [
        b"Disallow /a /b",
        b"Disallow",
        b"Dis allow: /a",
        b": /a",
        b"# Disallow: /a",
        b"\xef\xbb\xbfDisallow: /a",
        b"NoDisallow: /a",
    ],
)
def test_line_without_sense_is_skipped(line: bytes) -> None:
    """Guessing ends where a line has no key, or more than two words and no colon."""
    robots = Robots.parse(b"User-agent: foo\n" + line)

    assert robots.allowed("/a", "foo")


def test_group_binds_the_agents_that_it_names() -> None:
    """Groups of one agent are merged, `*` is for the unnamed, and only rules end a run."""
    cases: list[tuple[str, set[str]]] = [
        ("User-agent: foo\nDisallow: /a", {"foo"}),
        ("User-agent: foo\nUser-agent: bar\nDisallow: /a", {"foo", "bar"}),
        ("User-agent: foo\n\nUser-agent: bar\nDisallow: /a", {"foo", "bar"}),
        ("User-agent: foo\nAllow: /\nUser-agent: bar\nDisallow: /a", {"bar"}),
        ("User-agent: foo\nCrawl-delay: 1\nUser-agent: bar\nDisallow: /a", {"foo", "bar"}),
        ("User-agent: foo\nSitemap: s\nUser-agent: bar\nDisallow: /a", {"foo", "bar"}),
        ("User-agent: foo\nAllow: /x\nSitemap: s\nDisallow: /a", {"foo"}),
        ("User-agent: foo\nAllow: /x\n\nUser-agent: foo\nDisallow: /a", {"foo"}),
        ("User-agent: *\nDisallow: /a", {"foo", "bar", "baz"}),
        ("User-agent: *\nDisallow: /a\nUser-agent: foo\nAllow: /x", {"bar", "baz"}),
        ("User-agent: *\nDisallow: /a\nUser-agent: foo", {"bar", "baz"}),
        ("User-agent: foo\nDisallow:\nUser-agent: *\nDisallow: /a", {"bar", "baz"}),
        ("User-agent: *\nUser-agent: foo\nDisallow: /a", {"foo", "bar", "baz"}),
        ("User-agent: * but not you\nDisallow: /a", {"foo", "bar", "baz"}),
        ("User-agent: *foo\nDisallow: /a", set()),
        ("User-agent: 360Spider\nDisallow: /a", set()),
        ("User-agent: foo\nAllow: /\nUser-agent: 360\nDisallow: /a", set()),
        ("User-agent:\nDisallow: /a", set()),
        ("Disallow: /a\nUser-agent: foo\nAllow: /x", set()),
        ("Disallow: /a", set()),
        ("", set()),
    ]
    for body, forbidden_to in cases:
        with case(body, forbidden_to):
            robots = Robots.parse(body.encode())

            refused = {agent for agent in ("foo", "bar", "baz") if not robots.allowed("/a", agent)}

            assert refused == forbidden_to


def test_agent_is_named_by_its_whole_token() -> None:
    """The token is the leading letters, `-` and `_`; it is compared whole, without case."""
    cases: list[tuple[str, str, bool]] = [
        ("foo", "foo", True),
        ("foo", "FOO", True),
        ("FoO", "foo", True),
        ("foo", "foo/2.1", True),
        ("foo", "foo/2.1 (+https://example.org)", True),
        ("foo/1.0", "foo/2.1", True),
        ("foo bar", "foo", True),
        ("foo*", "foo", True),
        ("foo-bar_baz", "foo-bar_baz/1", True),
        ("foo", "foobar", False),
        ("foobar", "foo", False),
        ("foo", "barfoo", False),
        ("foo-bar", "foo", False),
        ("360Spider", "360spider", False),
        ("360Spider", "", False),
        ("*", "anything", True),
        ("*", "", True),
        ("*", "360spider", True),
        ("*", "агент", True),
        ("*", "*", True),
        ("foo", "*", False),
    ]
    for line, agent, is_named in cases:
        with case(line, agent, is_named):
            robots = Robots.parse(f"User-agent: {line}\nDisallow: /".encode())

            assert robots.allowed("/a", agent) is not is_named


def test_sitemaps_belong_to_the_file() -> None:
    """Sitemap lines count wherever they stand, in order, each address once."""
    robots = Robots.parse(
        b"Sitemap: https://example.com/1.xml\nUser-agent: foo\nDisallow: /\n"
        b"sitemap:https://example.com/2.xml # new\nSite-map: /3.xml\nSitemap:\n"
        b"Sitemap: https://example.com/1.xml"
    )

    assert robots.sitemaps == (
        "https://example.com/1.xml",
        "https://example.com/2.xml",
        "/3.xml",
    )


def test_file_counts_up_to_500_kib() -> None:
    """A rule within the first 500 KiB counts and one beyond does not."""
    within = b"User-agent: *\nDisallow: /near\n"
    filler = b"#" * (FIVE_HUNDRED_KIB - len(within) - 1) + b"\n"

    robots = Robots.parse(within + filler + b"Disallow: /far\n" + b"#" * 10_000_000)

    assert not robots.allowed("/near", "foo")
    assert robots.allowed("/far", "foo")


def test_line_cut_by_the_size_limit_is_dropped() -> None:
    """Half a rule must not become a wider rule: neither `Allow: /` nor `Disallow: /`."""
    head = b"User-agent: *\nDisallow: /private\n"
    cut = b"Allow: /"
    filler = b"#" * (FIVE_HUNDRED_KIB - len(head) - len(cut) - 1) + b"\n"

    robots = Robots.parse(head + filler + cut + b"private/but/not/this\n")

    assert not robots.allowed("/private/x", "foo")
    assert robots.explain("/public", "foo").rule is None


def test_byte_order_mark_does_not_move_the_size_limit() -> None:
    """The limit counts the octets after the mark, so a marked file keeps its last line."""
    head = b"User-agent: *\n"
    last = b"Disallow: /last"
    filler = b"#" * (FIVE_HUNDRED_KIB - len(head) - len(last) - 1) + b"\n"

    robots = Robots.parse(b"\xef\xbb\xbf" + head + filler + last)

    assert not robots.allowed("/last", "foo")
    assert robots.allowed("/las", "foo")


def test_line_counts_up_to_sixteen_kib() -> None:
    """What a line holds beyond 16,663 octets is cut, and the next line is whole again."""
    start = b"Disallow: /"
    kept = b"a" * (16_663 - len(start))

    robots = Robots.parse(b"User-agent: *\n" + start + kept + b"bcd\nDisallow: /next")

    assert not robots.allowed("/" + kept.decode(), "foo")
    assert robots.allowed("/" + kept.decode()[:-1], "foo")
    assert not robots.allowed("/next", "foo")


@pytest.mark.parametrize(
    "body",
    [
        "User-agent: *\nDisallow: /".encode("utf-16"),
        b"<!DOCTYPE html><html><body>Disallow: /</body></html>",
        bytes(range(256)) * 100,
        b"\0" * 1000,
        b"a" * 1_000_000,
    ],
)
def test_file_without_sense_has_no_rules(body: bytes) -> None:
    """Binary, HTML and UTF-16 are no rules, and what no rule forbids is allowed."""
    robots = Robots.parse(body)

    assert robots.allowed("/a", "foo")


def test_more_agents_than_are_kept_compiled() -> None:
    """Answers stay right when a file is asked for more agents than stay compiled."""
    names = [f"bot-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    body = "".join(f"User-agent: {name}\nDisallow: /{name}\n" for name in names)
    robots = Robots.parse(body.encode())

    answers = [robots.allowed(f"/{name}", other) for name in names for other in names]

    assert answers == [name != other for name in names for other in names]
