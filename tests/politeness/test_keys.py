"""Claims about the names under which hosts, origins and sites are kept."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.politeness.cases import case

from mannerly.politeness.keys import host_key, origin_key, site_key


def test_host_key_has_one_name_for_all_spellings() -> None:
    """Case, dots, users, web ports and scripts do not make a second host."""
    cases: list[tuple[str, str]] = [
        ("example.com", "example.com"),
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("example.com:", "example.com"),
        ("example.com:80", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com:0443", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("  example.com\n", "example.com"),
        ("https://user:p@ss@Example.com:443/a?b=c://d#e", "example.com"),
        ("HTTP://example.com:80", "example.com"),
        ("http://example.com:443/", "example.com"),
        ("http://example.com:8080/", "example.com:8080"),
        ("http://example.com?q", "example.com"),
        ("http://example.com\\@evil.test/", "example.com"),
        ("//example.com/a", "example.com"),
        ("example.com/a", "example.com"),
        ("under_score.example.com", "under_score.example.com"),
        ("localhost", "localhost"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("https://bücher。example/", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("[2001:DB8:0::1]", "[2001:db8::1]"),
        ("http://[2001:db8::1]:443/", "[2001:db8::1]"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("ü" * 70 + ".example", "ü" * 70 + ".example"),
    ]
    for spelling, key in cases:
        with case(spelling, key):
            assert host_key(spelling) == key


def test_host_key_refuses_what_no_server_can_have() -> None:
    """Garbage is a ValueError with a short, printable message, never a key."""
    cases: list[str] = [
        *("", " ", ".", "..", "a..b", ".a", "a..", "://", "http://", "http:///path", "http://@/"),
        *("http://:80/", "a b", "a\tb.com", "a\x00b", "ex%41mple.com", "exa<mple.com", "a,b"),
        *("a:b", "a:0", "a:65536", "a:99999999", "a:-1", "a:８０", "http:example.com", "a:1:2"),
        *("[::1", "[::1]x", "[fe80::1%25eth0]", "[zz]", "[]", "[127.0.0.1]", "::g"),
        *("a\ud800.com", "ü ü", "ü..ü", "℀.com", "ａ：８０", "x" * 254, "ü" * 300, "a" * 1_000_000),
    ]
    for garbage in cases:
        with case(garbage), pytest.raises(ValueError, match=r"^[ -~…]{1,200}$"):
            host_key(garbage)


def test_host_key_takes_the_longest_legal_name() -> None:
    """253 characters and a trailing dot are still a name."""
    name = ".".join(["a" * 63] * 3 + ["b" * 61])

    assert host_key(name) == name
    assert host_key(name + ".") == name


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("HTTPS://Example.com:443/a", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:443/", "http://example.com:443"),
        ("https://example.com:8443/?q", "https://example.com:8443"),
        ("https://user@[::1]:443/", "https://[::1]"),
        ("https://bücher.example./", "https://xn--bcher-kva.example"),
    ],
)
def test_origin_key_keeps_scheme_and_port_apart(url: str, key: str) -> None:
    """Each scheme and port has its own robots.txt; only its own default port is dropped."""
    assert origin_key(url) == key
    assert origin_key(key) == key


@pytest.mark.parametrize("url", ["example.com", "//example.com", "https://", "1a://b", "mailto:a"])
def test_origin_key_needs_a_scheme_and_a_host(url: str) -> None:
    """A bare host has no origin."""
    with pytest.raises(ValueError, match=r"scheme|host"):
        origin_key(url)


def test_site_key_is_the_registrable_domain() -> None:
    """Two labels, three under a country's registries; addresses and single labels stay whole."""
    cases: list[tuple[str, str]] = [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("WWW.Example.com:8080", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("shop.example.com.au", "example.com.au"),
        ("a.b.example.or.jp", "example.or.jp"),
        ("a.example.me.uk", "example.me.uk"),
        ("www.example.de", "example.de"),
        ("a.co.example.org", "example.org"),
        ("a.com.info", "com.info"),
        ("localhost:8000", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]:8000", "[::1]"),
    ]
    for host, key in cases:
        with case(host, key):
            assert site_key(host) == key


labels = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)
authorities = st.builds(
    "{}{}{}".format, hosts, st.sampled_from(["", ".", "。"]), st.sampled_from(["", ":80", ":8080"])
)
anything = st.text() | authorities | authorities.map("https://u@{}/p".format)


@given(anything)
@example("\xad.0.¡")  # one label that IDNA refuses used to keep the others from being encoded
@example("\xad.0.,")
def test_keys_are_idempotent(text: str) -> None:
    """A key is its own key, so a host has one budget however often its name is normalised."""
    try:
        key = host_key(text)
    except ValueError:
        return

    assert host_key(key) == key
    assert site_key(site_key(key)) == site_key(key)
    assert origin_key(origin_key(f"https://{key}/")) == origin_key(f"https://{key}/")


@given(
    st.from_regex(r"[a-z0-9]{1,9}(\.[a-z0-9]{1,9}){0,3}", fullmatch=True), st.integers(1, 65_535)
)
def test_host_key_ignores_scheme_path_and_case(host: str, port: int) -> None:
    """Whatever surrounds the host in a URL, the key is that of the bare host."""
    bare = host_key(f"{host}:{port}")

    assert host_key(f"HTTPS://me@{host.upper()}.:{port}/x?y#z") == bare
