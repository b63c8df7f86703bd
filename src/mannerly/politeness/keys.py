"""Normalised keys for hosts, origins and sites.

    host_key    "https://Example.COM.:443/a"  →  "example.com"          for the request rate
    origin_key  "https://Example.COM.:443/a"  →  "https://example.com"  for robots.txt
    site_key    "www.example.co.uk"           →  "example.co.uk"        for shards and groups

If two spellings of one host had two keys, the host would get twice the load. So every function is
idempotent, and text that cannot be a host raises ValueError. This module reads only the scheme and
the authority of a URL.
"""

from __future__ import annotations

import re

# RFC 1035 §2.3.4. The limit also bounds the time of the IDNA codec, which is quadratic.
MAX_HOST_CHARS = 253

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB_PORTS = frozenset(_DEFAULT_PORTS.values())

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"
_AUTHORITY_END = r"[/?#\\]"  # browsers treat the backslash as a slash
_PORT = r"[0-9]{1,5}"
_PLAIN = r"[a-z0-9_\-]+(?:\.[a-z0-9_\-]+)*"
_PLAIN_URL = re.compile(rf"(?:https?://)?({_PLAIN})(?=[/?#]|\Z)")
# The characters of a label: of ASCII only a-z, 0-9, _ and -; no control characters, no lone
# surrogates. Written as what it excludes: that compiles in a tenth of the time.
_LABEL = r"[^\0-,./:-^`{-\xa0\ud800-\udfff]+"
_DOTS = r"[.\u3002\uff0e\uff61]"  # RFC 3490 §3.1: all of these separate labels
_NUMERIC = r"[0-9]+"

# Second-level labels under which most country registries register names …
_REGISTRY_LABELS = frozenset(
    {"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "mil", "ne", "net", "nom", "or", "org"}
)
# … and those that only one country has.
_REGISTRIES = frozenset(
    {
        *("gv.at", "asn.au", "id.au", "gen.nz", "geek.nz", "school.nz", "web.za", "law.za"),
        *("ad.jp", "ed.jp", "gr.jp", "lg.jp", "pe.kr", "re.kr", "in.th", "idv.tw", "biz.tr"),
        *("ltd.uk", "me.uk", "nhs.uk", "plc.uk", "police.uk", "sch.uk", "adv.br", "blog.br"),
        *("firm.in", "gen.in", "ind.in", "web.id", "sch.id", "muni.il", "k12.il", "k12.tr"),
    }
)


def host_key(url_or_host: str) -> str:
    """Return the key of a host: lower case, IDNA, no user, no trailing dot, no :80 or :443.

    Ports 80 and 443 are removed for both schemes, because http and https of one name are usually
    one machine; any other port is another server and stays.

    Raises:
        ValueError: the text contains no valid host.
    """
    plain = _PLAIN_URL.match(url_or_host)
    if plain is not None and len(plain[1]) <= MAX_HOST_CHARS:
        return plain[1]
    _, authority = _split(url_or_host)
    host, port = _host_and_port(authority)
    return host if port is None or port in _WEB_PORTS else f"{host}:{port}"


def origin_key(url: str) -> str:
    """Return scheme, host and port of a URL: each such origin has its own robots.txt (RFC 9309).

    Raises:
        ValueError: the URL has no scheme or no usable host.
    """
    scheme, authority = _split(url)
    if not scheme:
        raise ValueError(f"{_shown(url)} has no scheme: use https://host/…")
    host, port = _host_and_port(authority)
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def site_key(host: str) -> str:
    """Return the approximate registrable domain: the last two labels, or three below `co.uk` etc.

    The rule does not need the public suffix list, which is large and changes weekly. Where it is
    wrong, it joins several sites (all of `github.io` is one), which makes requests slower, never
    faster. To use the list, pass a function of your own as `group_of`. IP addresses and single
    labels are returned whole; a port is not part of a site.

    Raises:
        ValueError: as for `host_key`.
    """
    name, _ = _host_and_port(host_key(host))
    labels = name.split(".")
    if name.startswith("[") or len(labels) <= 2 or re.fullmatch(_NUMERIC, labels[-1]):
        return name
    return ".".join(labels[-3:] if _is_registry(labels[-2], labels[-1]) else labels[-2:])


def without_port(host_key: str) -> str:
    """Return the host of a host key; an IPv6 address keeps its brackets."""
    if host_key.startswith("["):
        return host_key[: host_key.find("]") + 1]
    return host_key.partition(":")[0]


def _is_registry(label: str, country: str) -> bool:
    return len(country) == 2 and (label in _REGISTRY_LABELS or f"{label}.{country}" in _REGISTRIES)


def _split(url_or_host: str) -> tuple[str, str]:
    """Return the scheme (lower case, or empty) and the authority."""
    text = url_or_host.strip()
    scheme, slashes, rest = text.partition("://")
    if slashes and re.fullmatch(_SCHEME, scheme):
        return scheme.lower(), re.split(_AUTHORITY_END, rest, maxsplit=1)[0]
    return "", re.split(_AUTHORITY_END, text.removeprefix("//"), maxsplit=1)[0]


def _host_and_port(authority: str) -> tuple[str, int | None]:
    place = authority.rpartition("@")[2]
    if place.startswith("["):
        address, bracket, tail = place[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError(f"{_shown(authority)} has an invalid IPv6 address: use [::1]")
        return _ipv6(address), _port(tail[1:])
    if place.count(":") > 1:
        return _ipv6(place), None
    host, _, port = place.partition(":")
    return _name(host), _port(port)


def _ipv6(text: str) -> str:
    if "%" in text or len(text) > MAX_HOST_CHARS:
        raise ValueError(f"{_shown(text)} is not an IPv6 address that a URL can contain")
    import ipaddress

    try:
        return f"[{ipaddress.IPv6Address(text)}]"
    except ValueError:
        raise ValueError(f"{_shown(text)} is not an IPv6 address") from None


def _port(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(_PORT, text) or not 0 < int(text) < 65_536:
        raise ValueError(f"{_shown(text)} is not a port: must be 1 to 65535")
    return int(text)


def _name(text: str) -> str:
    if not text:
        raise ValueError("the host is empty")
    if len(text) > MAX_HOST_CHARS + 1:  # the trailing dot
        raise ValueError(f"the host has {len(text)} characters; the maximum is {MAX_HOST_CHARS}")
    name = text.lower()
    if not name.isascii():
        name = ".".join(_encoded(label) for label in re.split(_DOTS, name))
    name = name.removesuffix(".")
    if len(name) > MAX_HOST_CHARS or not all(map(_is_label, name.split("."))):
        raise ValueError(f"{_shown(text)} is not a host name")
    return name


def _encoded(label: str) -> str:
    """Return the `xn--` form of a label; one that the codec rejects stays as it is."""
    try:
        return label.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return label


def _is_label(text: str) -> bool:
    return re.fullmatch(_LABEL, text) is not None and not any(map(str.isspace, text))


def _shown(text: str) -> str:
    """Return a short printable form for error messages: the text may be a megabyte long."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")
