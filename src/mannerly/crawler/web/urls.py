r"""Gives every URL one canonical spelling, which all stages of the crawler share as a plain `str`.

Two parsers that read `http://example.com\@127.0.0.1/` differently are a security hole, and two
spellings of one page are a wasted request. So a link is parsed once, here, by the WHATWG rules that
browsers follow, and from then on only its serialised form is used:

    canonical = serialise(parse(href, base))
                − fragment − userinfo − default port − the host's trailing dot
                − an empty query − tracking parameters
                − escapes of characters that need none (`%7E` is `~`), the others in upper case

It is idempotent: `canonical(canonical(x)) == canonical(x)`. The path keeps its case, because `/A`
and `/a` may be two pages, and so do `%2F` and `/`. Host and site are found by slicing the text,
which has the form `scheme://host[:port]/…`; it is never parsed again.

Query strings are percent-encoded as UTF-8 whatever the page's charset: browsers use the charset of
the page, but then one URL would mean different things on different pages.

This module knows no page, no scope and no network: the guard decides whether an address is private.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from url import URL, URLError

from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

# Servers and intermediaries are asked to take 8,000 octets (RFC 9110 §4.1), but almost every real
# link is shorter than the 2,048 that sitemaps and old browsers allow; traps are longer.
DEFAULT_MAX_LENGTH = 2048

# Spaces, tabs, dot segments and fragments vanish in parsing, so a raw href may be longer than its
# URL. Beyond this factor it is refused without parsing it: it may be a megabyte long.
RAW_LENGTH_FACTOR = 8

# Click identifiers that advertising and mail systems add to links. They never choose the page.
TRACKING_PARAMS = frozenset(
    {
        "_ga", "_gl", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igshid", "li_fat_id",
        "mc_cid", "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "srsltid", "ttclid",
        "twclid", "vero_id", "wbraid", "yclid",
    }
)  # fmt: skip
TRACKING_PREFIXES = ("utm_",)

# Rotating subdomains can make any number of hosts; this many results are cached (about 10 MB).
SITE_CACHE_SIZE = 65_536

# Pages link to the same few origins again and again.
ORIGIN_CACHE_SIZE = 4096

_WEB = ("http://", "https://")
# The most frequent schemes of links that lead to no page; the parser recognises the others.
_NO_PAGES = ("javascript:", "mailto:", "tel:")

# RFC 1035 §2.3.4. The URL standard accepts hosts that no server can have (`a..b`, `a!b`, port 0).
# The politeness core raises for them, so they are refused here.
_MAX_HOST_LENGTH = 253
_NAME = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
_AUTHORITY = re.compile(rf"(?:{_NAME}|\[[0-9a-f:.]+\])(?::[1-9][0-9]*)?")
_NO_ORIGIN = "\0"

# RFC 3986 §6.2.2: hex digits have no case, and letters, digits, - . _ ~ need no escape.
_UNPLAIN_ESCAPE = re.compile(
    r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]|2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)"
)
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class UrlRefusal(Enum):
    """The reason why a link was not taken. The values are stored in records."""

    SCHEME = "scheme"  # mailto:, javascript:, ftp: …
    TOO_LONG = "too_long"
    MALFORMED = "malformed"

    __hash__ = object.__hash__  # an Enum's own is a function in Python: a microsecond a page


_SCHEME = UrlRefusal.SCHEME  # found faster than by its full name


@dataclass(frozen=True, slots=True)
class UrlRules:
    """The query parameters that the canonical form drops, and its maximum length.

    Parameter names are compared as they are written: tracking systems write theirs in lower case.
    """

    max_length: int = DEFAULT_MAX_LENGTH
    drop_params: frozenset[str] = TRACKING_PARAMS
    drop_prefixes: tuple[str, ...] = TRACKING_PREFIXES

    def __post_init__(self) -> None:
        if self.max_length < 16:
            raise ValueError(f"max_length must be 16 or more, not {self.max_length}")
        if "" in self.drop_prefixes:
            raise ValueError("an empty prefix in drop_prefixes would drop every parameter")


DEFAULT_RULES = UrlRules()


class LinkBase:
    """Turns the hrefs of one page into canonical URLs; the page's own URL is parsed once.

    A `<base href>` that cannot be read, or that is not http(s), is ignored, as browsers do.
    """

    __slots__ = ("_join", "_max_length", "_max_raw_length", "_own_origin", "_tracked", "text")

    def __init__(
        self, page_url: str, base_href: str | None = None, rules: UrlRules = DEFAULT_RULES
    ) -> None:
        self._max_length = rules.max_length
        self._max_raw_length = RAW_LENGTH_FACTOR * rules.max_length
        self._tracked = _tracked_pattern(rules.drop_params, rules.drop_prefixes)
        base = _parse(page_url, None)
        if base_href is not None and len(base_href) <= self._max_raw_length:
            base = _parse_or(base_href, base)
        self._join = base.join
        self.text = str(base)
        origin = self.text[: self.text.find("/", 8) + 1]
        self._own_origin = origin if _is_reachable(origin) else _NO_ORIGIN

    def resolve(self, href: str) -> str | UrlRefusal:
        """Return the canonical URL of an href on this page, or the reason why it is refused."""
        # Substring tests on the serialised form, because reading attributes of a parsed URL costs
        # more: 1.2 µs a link in all, of which parsing takes half.
        if len(href) > self._max_raw_length:
            return UrlRefusal.TOO_LONG
        if ":" in href and href.startswith(_NO_PAGES):  # `in` takes a third of the time
            return _SCHEME
        try:
            parsed = self._join(href)
            text = str(parsed)
            if not text.startswith(self._own_origin):
                if not text.startswith(_WEB):
                    return UrlRefusal.SCHEME
                text = _with_bare_authority(parsed, text)
        except (URLError, ValueError):  # also: lone surrogates
            return UrlRefusal.MALFORMED
        if "#" in text:
            text = text[: text.index("#")]
        if "%" in text:
            text = with_plain_escapes(text)
        if "?" in text:
            text = self._with_bare_query(text)
        return text if len(text) <= self._max_length else UrlRefusal.TOO_LONG

    def bare(self, href: str) -> str:
        """Return a shorter href with the same URL on any page: without fragment and tracking.

        An href that begins with its query (`?a`, ` ?a`, `http:?a`) depends on the page's own path,
        so its query stays. A blank within an href counts (`/a #b` is `/a%20`), at its end it does
        not; where the short form would end in a blank, the href is returned unchanged. So is one
        that `resolve` refuses because of a lone surrogate, wherever that is.
        """
        short = href.partition("#")[0] or href  # partition: find takes twice as long
        if "?" in short and "/" in short.partition("?")[0]:
            short = self._with_bare_query(short)
        if short[-1:] <= " " or not (href.isascii() or _is_encodable(href)):
            return href
        return short

    def _with_bare_query(self, text: str) -> str:
        """The URL without tracking parameters and without an empty query."""
        bare, _, query = text.partition("?")
        # With "&" in front, every parameter begins with its separator. The others stay unchanged.
        query = self._tracked.sub("", "&" + query)
        return f"{bare}?{query[1:]}" if len(query) > 1 else bare


def canonical(href: str, base: str | None = None, rules: UrlRules = DEFAULT_RULES) -> str | None:
    """Return the canonical form of a URL, or None. For the links of one page use a `LinkBase`."""
    try:
        found = LinkBase(href if base is None else base, rules=rules).resolve(href)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


class Url(NamedTuple):
    """The parts of a canonical URL."""

    text: str
    scheme: str
    host_key: str  # the politeness key, as from `mannerly.politeness.keys.host_key`
    origin: str  # scheme, host and port: the unit of robots.txt and of credentials
    path_and_query: str

    @classmethod
    def of(cls, text: str) -> Url:
        """Split a canonical URL into its parts. Other text is a programming error."""
        slash = text.find("/", 8)
        if slash < 0 or not text.startswith(_WEB):
            raise ValueError(f"not a canonical URL: {text!r}")
        return cls(text, text[: text.index(":")], host_key_of(text), text[:slash], text[slash:])

    @property
    def host(self) -> str:
        """The host without its port; an IPv6 address keeps its brackets."""
        return without_port(self.host_key)


def host_key_of(text: str) -> str:
    """Return the politeness key of a canonical URL: host, and port if it is not 80 or 443."""
    host_key = text[8 if text.startswith("https") else 7 : text.find("/", 8)]
    # The default port is removed already. http on port 443 is the same host to be polite to.
    if host_key.endswith((":80", ":443")):
        return without_port(host_key)
    return host_key


@lru_cache(maxsize=SITE_CACHE_SIZE)
def site_of(host: str) -> str:
    """Return the registrable domain of a host or host key; the port is ignored.

    Addresses, `localhost`, single labels and public suffixes have no registrable domain: each is
    its own site.
    """
    host = without_port(host)
    last_label = host[host.rfind(".") + 1 :]
    # In a canonical host only an IPv4 address ends in a number; it has no domain to look up.
    if host.startswith("[") or last_label.isdigit():
        return host
    return _public_suffixes().privatesuffix(host) or host


@cache
def _public_suffixes() -> PublicSuffixList:
    # Reading the list takes 50 ms, so it is read when a site is asked for first.
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _parse(text: str, base: URL | None) -> URL:
    """Parse a URL; every error is a ValueError that names the text."""
    try:
        return URL.parse(text) if base is None else base.join(text)
    except (URLError, ValueError) as error:
        raise ValueError(f"not a URL: {text[:200]!r} ({error})") from error


def _parse_or(href: str, fallback: URL) -> URL:
    try:
        parsed = _parse(href, fallback)
    except ValueError:
        return fallback
    return parsed if parsed.scheme in ("http", "https") else fallback


def _is_encodable(text: str) -> bool:
    """Return whether the text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=ORIGIN_CACHE_SIZE)
def _is_reachable(origin: str) -> bool:
    """Return whether a server can have this host and port."""
    if not origin.startswith(_WEB):
        return False
    authority = origin[origin.index(":") + 3 : -1]
    return len(without_port(authority)) <= _MAX_HOST_LENGTH and bool(
        _AUTHORITY.fullmatch(authority)
    )


def _with_bare_authority(parsed: URL, text: str) -> str:
    """The URL without userinfo and without dots at the end of its host."""
    # All three occur in paths too; then nothing changes.
    if "@" in text or "./" in text or ".:" in text:
        if parsed.username:
            parsed = parsed.with_username("")
        if parsed.password is not None:
            parsed = parsed.with_password(None)
        host = parsed.host_str or ""
        if host.endswith("."):
            # Parsed again, because `127.1..` is a name but `127.1` an address.
            parsed = parsed.with_host(host.rstrip("."))
        text = str(parsed)
    if not _is_reachable(text[: text.find("/", 8) + 1]):
        raise ValueError("no server can have this host")
    return text


def with_plain_escapes(text: str) -> str:
    """Return a URL with its escapes in upper case, and without those that are not needed."""
    if _UNPLAIN_ESCAPE.search(text) is None:
        return text
    if _STRAY_PERCENT.search(text) is None:
        return _UNPLAIN_ESCAPE.sub(_plain, text)
    # A stray percent sign could form a new escape with what is decoded: `%%36%31` would be `%61`.
    return _UNPLAIN_ESCAPE.sub(lambda found: found[0].upper(), text)


def _plain(found: re.Match[str]) -> str:
    char = chr(int(found[0][1:], 16))
    return char if char in _UNRESERVED else found[0].upper()


@lru_cache(maxsize=16)  # by two values that keep their hashes: that of the rules takes 1 µs
def _tracked_pattern(params: frozenset[str], prefixes: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for dropped parameters. Names are literals, so searching takes linear time."""
    names = [re.escape(name) + "(?=[=&]|$)" for name in sorted(params)]
    beginnings = [re.escape(prefix) for prefix in prefixes]
    # An empty alternative would match everywhere; `(?!)` matches nowhere.
    return re.compile(f"&(?:{'|'.join(beginnings + names) or '(?!)'})[^&]*")
