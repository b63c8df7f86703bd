"""URLs: one spelling each, the same to every stage, whatever a page writes."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mannerly.crawler.web.urls import (
    LinkBase,
    Url,
    UrlRefusal,
    UrlRules,
    canonical,
    host_key_of,
    site_of,
)
from mannerly.politeness import keys

PAGE = "https://example.com/a/b?x=1"

# Pieces that parsers disagree about; glued together they make worse links than random text does.
ATOMS = st.sampled_from(
    [
        "http:", "https:", "ftp:", "//", "/", "\\", "@", "?", "#", ".", "..", "%2e", "%", "%zz",
        "%41", "%c3%a9", "%7E", "%2f", "%25", "%3", "6", "%5f",
        "a", "ex.com", "127.0.0.1", "1", "0x7f", ":", ":80", ":443", ":0", ":99999", "ü", "。",
        "xn--", "[", "]", "::1", " ", "\t", "\n", "\0", "&", "=", "utm_a=1", "gclid", "\u200d",
        "ß", "İ", "-", "_", "|", "user", "\ud800", "１",
    ]
)  # fmt: skip
GLUED = st.lists(ATOMS, min_size=1, max_size=9).map("".join)
HOSTILE = st.one_of(GLUED, GLUED.map("http://".__add__), st.text(max_size=60))


SPELLINGS = [
    ("HTTPS://EXAMPLE.com:443/A/%7eb", "https://example.com/A/~b"),
    ("http://example.com:80", "http://example.com/"),
    ("http://example.com:8080/x", "http://example.com:8080/x"),
    ("../c#top", "https://example.com/c"),
    ("#top", "https://example.com/a/b?x=1"),
    ("", "https://example.com/a/b?x=1"),
    ("?y", "https://example.com/a/b?y"),
    ("/x?", "https://example.com/x"),
    ("/x??", "https://example.com/x??"),
    ("//other.org/x", "https://other.org/x"),
    ("  /spaced\t/o\nut ", "https://example.com/spaced/out"),
    ("/%00", "https://example.com/%00"),
    ("http://user:secret@example.com/", "http://example.com/"),
    ("/mail/me@home", "https://example.com/mail/me@home"),
    ("http://bücher.example/ü?ü", "http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
    ("http://example.com./x", "http://example.com/x"),
    ("http://example.com.:8080/x", "http://example.com:8080/x"),
    ("/end./x", "https://example.com/end./x"),
    ("/%c3%a9?%c3%bc", "https://example.com/%C3%A9?%C3%BC"),
    ("/é", "https://example.com/%C3%A9"),
    ("/%61%2Db%5F%7e.%30", "https://example.com/a-b_~.0"),
    ("/a%2fb%3fc%26", "https://example.com/a%2Fb%3Fc%26"),
    ("/%2561", "https://example.com/%2561"),
    ("/%%36%31%c3", "https://example.com/%%36%31%C3"),
    ("/x/%2e%2E/y", "https://example.com/y"),
]


def test_canonical_has_one_spelling() -> None:
    """Case of the host, default port, fragment, userinfo and trailing dot make no difference."""
    for href, expected in SPELLINGS:
        assert canonical(href, PAGE) == expected, href


DISGUISED_HOSTS = [
    ("http://example.com\\@127.0.0.1/", "example.com"),
    ("http://example.com@127.0.0.1/", "127.0.0.1"),
    ("http://127.0.0.1#@example.com/", "127.0.0.1"),
    ("http:/\\127.0.0.1/x", "127.0.0.1"),
    ("http:127.0.0.1", "127.0.0.1"),
    ("http://0x7f.1/", "127.0.0.1"),
    ("http://127.1/", "127.0.0.1"),
    ("http://127.1../", "127.0.0.1"),
    ("http://2130706433/", "127.0.0.1"),
    ("http://0177.0.0.1/", "127.0.0.1"),
    ("http://①②⑦.0.0.1/", "127.0.0.1"),
    ("http://%31%32%37.0.0.1/", "127.0.0.1"),
    ("http://127。0。0。1/", "127.0.0.1"),
    ("http://localhost./", "localhost"),
    ("http://[::]/", "[::]"),
    ("http://[0:0::1]:8000/", "[::1]:8000"),
    ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]"),
]


def test_canonical_shows_the_host_that_a_browser_would_contact() -> None:
    """Disguised addresses come out plain, so that the guard judges what is connected to."""
    for href, host_key in DISGUISED_HOSTS:
        text = canonical(href, PAGE)
        assert text is not None, href
        assert Url.of(text).host_key == host_key, href


REFUSED = [
    ("mailto:me@example.com", UrlRefusal.SCHEME),
    ("javascript:void(0)", UrlRefusal.SCHEME),
    ("data:text/html,<a>", UrlRefusal.SCHEME),
    ("ftp://example.com/", UrlRefusal.SCHEME),
    ("file:///etc/passwd", UrlRefusal.SCHEME),
    ("//", UrlRefusal.MALFORMED),
    ("http://.../", UrlRefusal.MALFORMED),
    ("http://ex.com:99999/", UrlRefusal.MALFORMED),
    ("http://ex.com:0/", UrlRefusal.MALFORMED),
    ("http://a..b/", UrlRefusal.MALFORMED),
    ("http://a!b/", UrlRefusal.MALFORMED),
    ("http://" + "a." * 150 + "com/", UrlRefusal.MALFORMED),
    ("http://[::1", UrlRefusal.MALFORMED),
    ("http://xn--a/", UrlRefusal.MALFORMED),
    ("/\ud800", UrlRefusal.MALFORMED),
    ("/" + "x" * 3000, UrlRefusal.TOO_LONG),
    ("/" + "x" * 1_000_000, UrlRefusal.TOO_LONG),
    ("/" + "ü" * 1000, UrlRefusal.TOO_LONG),
    ("?" + "&".join(f"k{n}" for n in range(64_000)), UrlRefusal.TOO_LONG),
]


def test_refused_links_say_why() -> None:
    """What is not taken has a reason, and hostile text raises nothing."""
    for href, reason in REFUSED:
        assert LinkBase(PAGE).resolve(href) is reason, href[:80]


def test_length_is_counted_after_normalising() -> None:
    """A link that is long only in what is dropped is taken."""
    found = LinkBase(PAGE).resolve("/x#" + "y" * 5000)

    assert found == "https://example.com/x"


QUERIES = [
    ("?utm_source=a&id=1&utm_medium=b", "?id=1"),
    ("?gclid=1", ""),
    ("?gclid&a", "?a"),
    ("?gclids=1", "?gclids=1"),
    ("?a=utm_x", "?a=utm_x"),
    ("?a=b?utm_x=1", "?a=b?utm_x=1"),
    ("?b=2&a=1&a=%7e%3d", "?b=2&a=1&a=~%3D"),
    ("?utm%5Fsource=a&b", "?b"),
    ("?&&", "?&&"),
]


def test_tracking_parameters_are_dropped_and_others_untouched() -> None:
    """Only whole names on the list go; the order of the rest stays."""
    for query, kept in QUERIES:
        assert canonical("/p" + query, PAGE) == "https://example.com/p" + kept, query


def test_rules_are_settings() -> None:
    """Which parameters go and how long a URL may be is the crawl's choice."""
    rules = UrlRules(max_length=40, drop_params=frozenset({"sid"}), drop_prefixes=())

    assert canonical("/p?sid=1&utm_a=2", PAGE, rules) == "https://example.com/p?utm_a=2"
    assert canonical("/" + "p" * 30, PAGE, rules) is None
    nothing_dropped = UrlRules(drop_params=frozenset(), drop_prefixes=())
    assert canonical("/p?utm_a=2", PAGE, nothing_dropped) == "https://example.com/p?utm_a=2"


def test_rules_refuse_nonsense() -> None:
    """Rules that would refuse or strip everything are errors of the user."""
    with pytest.raises(ValueError, match="max_length"):
        UrlRules(max_length=3)
    with pytest.raises(ValueError, match="drop_prefixes"):
        UrlRules(drop_prefixes=("",))


def test_base_href_moves_relative_links() -> None:
    """A page's base element decides what its relative links mean."""
    base = LinkBase(PAGE, "/deep/er/")

    assert base.resolve("x") == "https://example.com/deep/er/x"


def test_unusable_base_href_is_ignored() -> None:
    """A base that is no web address leaves links relative to the page."""
    for href in ("javascript:alert(1)", "http://[", "data:,", "\ud800", "x" * 99999):
        assert LinkBase(PAGE, href).resolve("x") == "https://example.com/a/x", href[:80]


def test_page_url_that_is_none_is_an_error() -> None:
    """A page without a URL is a mistake of the caller; a link without a base is merely refused."""
    with pytest.raises(ValueError, match="not a URL"):
        LinkBase("no url")
    assert canonical("no url") is None


@given(HOSTILE)
@example("/%%36%31")
@example("/%25%36%31")
@example("/a%2e/%2e")
def test_canonical_is_idempotent(href: str) -> None:
    """Whatever comes in, the canonical form of a canonical form is itself."""
    once = canonical(href, PAGE)

    if once is not None:
        assert canonical(once) == once


@given(st.text(st.sampled_from("%0123456789abcdefABCDEF7eE~/?")))
def test_canonical_means_the_same_octets(path: str) -> None:
    """Respelling escapes changes no octet of what a server decodes, and decodes nothing twice."""
    assume("%2e" not in path.lower())  # a dot segment, perhaps

    found = canonical("/x" + path, PAGE)

    assert found is not None
    sent = ("/x" + path).removesuffix("?") if path.count("?") == 1 else "/x" + path
    assert unquote_to_bytes(found.removeprefix("https://example.com")) == unquote_to_bytes(sent)


@given(HOSTILE)
@example("page.html #top")
@example("https:\0#")
@example("https:#\ud800")
@example("/a?utm_source=\ud800")
@example("/a ?utm_source=x")
@example("/a?b=1 &utm_source=x")
def test_bare_href_means_the_same(href: str) -> None:
    """What a shorter spelling leaves out does not matter, on no page."""
    base = LinkBase(PAGE)

    assert base.resolve(base.bare(href)) == base.resolve(href)


@given(HOSTILE)
def test_canonical_shape_can_be_sliced(href: str) -> None:
    """Every canonical URL is ASCII and short, and its parts are what the politeness core sees."""
    text = canonical(href, PAGE)

    if text is not None:
        parts = Url.of(text)
        assert text.isascii()
        assert len(text) <= 2048
        assert parts.origin + parts.path_and_query == text
        assert parts.host_key == host_key_of(text) == keys.host_key(text)
        assert parts.origin == keys.origin_key(text)
        assert "@" not in parts.host_key
        assert "#" not in text


def test_url_names_its_parts() -> None:
    """The parts of a URL are found by slicing, with brackets and ports in their places."""
    url = Url.of("https://[::1]:8000/a?b=/c")

    assert url.scheme == "https"
    assert url.host_key == "[::1]:8000"
    assert url.host == "[::1]"
    assert url.origin == "https://[::1]:8000"
    assert url.path_and_query == "/a?b=/c"


def test_web_ports_share_a_host_key() -> None:
    """One machine has one pace, whichever web port a link names."""
    for text in ("http://e.com:443/", "https://e.com:80/", "https://e.com/"):
        assert host_key_of(text) == "e.com", text


def test_url_is_made_of_canonical_text_only() -> None:
    """Slicing what was not normalised would give wrong hosts, so it is refused."""
    for text in ("", "example.com", "https://example.com", "ftp://example.com/"):
        with pytest.raises(ValueError, match=f"canonical URL: {text!r}"):
            Url.of(text)


SITES = [
    ("www.example.co.uk", "example.co.uk"),
    ("example.com:8080", "example.com"),
    ("me.github.io", "me.github.io"),
    ("github.io", "github.io"),
    ("com", "com"),
    ("localhost", "localhost"),
    ("localhost:8000", "localhost"),
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1:8000", "127.0.0.1"),
    ("[::1]:8000", "[::1]"),
    ("a.b.xn--85x722f.com.cn", "xn--85x722f.com.cn"),
    ("a.b.unknown-suffix", "b.unknown-suffix"),
]


def test_site_is_the_registrable_domain() -> None:
    """Subdomains share a site; addresses, single labels and public suffixes are their own."""
    for host, site in SITES:
        assert site_of(host) == site, host
