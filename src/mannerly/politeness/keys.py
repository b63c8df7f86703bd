"""One host, one name: the keys under which pace, robots rules and shards are kept.

    host_key    "https://Example.COM.:443/a"  →  "example.com"          whose pace?
    origin_key  "https://Example.COM.:443/a"  →  "https://example.com"  whose robots.txt?
    site_key    "www.example.co.uk"           →  "example.co.uk"        whose shard or group?

Two spellings of one host that got two keys would get two budgets, and the host twice the load:
so every function is idempotent, and what cannot be a host raises ValueError instead of passing
through. This file knows URLs only as far as their authority; paths are none of its business.
"""

from __future__ import annotations

import re

# RFC 1035 §2.3.4. The bound also keeps the quadratic IDNA codec harmless.
MAX_HOST_CHARS = 253

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_WEB_PORTS = frozenset(_DEFAULT_PORTS.values())

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"
_AUTHORITY_END = r"[/?#\\]"  # browsers take the backslash for a slash
_PORT = r"[0-9]{1,5}"
_PLAIN = r"[a-z0-9_\-]+(?:\.[a-z0-9_\-]+)*"
_PLAIN_URL = re.compile(rf"(?:https?://)?({_PLAIN})(?=[/?#]|\Z)")
# What a label may hold: no other ASCII, no control, no lone surrogate.
_LABEL = r"[a-z0-9_\-\xa1-\ud7ff\ue000-\U0010ffff]+"
_DOTS = r"[.\u3002\uff0e\uff61]"  # RFC 3490 §3.1: all of these separate labels
_NUMERIC = r"[0-9]+"

# Labels under which most country registries sell names …
_REGISTRY_LABELS = frozenset(
    {"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "mil", "ne", "net", "nom", "or", "org"}
)
# … and registries that only one country has.
_REGISTRIES = frozenset(
    {
        *("gv.at", "asn.au", "id.au", "gen.nz", "geek.nz", "school.nz", "web.za", "law.za"),
        *("ad.jp", "ed.jp", "gr.jp", "lg.jp", "pe.kr", "re.kr", "in.th", "idv.tw", "biz.tr"),
        *("ltd.uk", "me.uk", "nhs.uk", "plc.uk", "police.uk", "sch.uk", "adv.br", "blog.br"),
        *("firm.in", "gen.in", "ind.in", "web.id", "sch.id", "muni.il", "k12.il", "k12.tr"),
    }
)


def host_key(url_or_host: str) -> str:
    """The key of a host's pace: lower case, IDNA, no user, no trailing dot, no :80 or :443.

    Both web ports go whatever the scheme, because http and https of one name are one machine to
    be polite to; any other port is another server and stays.

    Raises:
        ValueError: there is no host in it, or one that no server can have.
    """
    plain = _PLAIN_URL.match(url_or_host)
    if plain is not None and len(plain[1]) <= MAX_HOST_CHARS:
        return plain[1]
    _, authority = _split(url_or_host)
    host, port = _host_and_port(authority)
    return host if port is None or port in _WEB_PORTS else f"{host}:{port}"


def origin_key(url: str) -> str:
    """The key of a robots.txt: scheme, host and port, for each has its own (RFC 9309 §2.3).

    Raises:
        ValueError: the URL has no scheme or no usable host.
    """
    scheme, authority = _split(url)
    if not scheme:
        raise ValueError(f"{_shown(url)} has no scheme: write it as https://host/…")
    host, port = _host_and_port(authority)
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def site_key(host: str) -> str:
    """The registrable domain, nearly: the last two labels, or three below `co.uk` and its like.

    An approximation by rule, without the public suffix list, which is large, changes weekly and
    has to come from somewhere. It errs towards one key for many sites (all of `github.io` is
    one), which is slower, never ruder. Whoever has the list passes a function of the same shape
    instead. Addresses and single labels stay whole; a port is no part of a site.

    Raises:
        ValueError: as for `host_key`.
    """
    name, _ = _host_and_port(host_key(host))
    labels = name.split(".")
    if name.startswith("[") or len(labels) <= 2 or re.fullmatch(_NUMERIC, labels[-1]):
        return name
    return ".".join(labels[-3:] if _is_registry(labels[-2], labels[-1]) else labels[-2:])


def _is_registry(label: str, country: str) -> bool:
    return len(country) == 2 and (label in _REGISTRY_LABELS or f"{label}.{country}" in _REGISTRIES)


def _split(url_or_host: str) -> tuple[str, str]:
    """Scheme (lower case, or empty) and authority."""
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
            raise ValueError(f"{_shown(authority)} has a broken IPv6 address: write it as [::1]")
        return _ipv6(address), _port(tail[1:])
    if place.count(":") > 1:
        return _ipv6(place), None
    host, _, port = place.partition(":")
    return _name(host), _port(port)


def _ipv6(text: str) -> str:
    if "%" in text or len(text) > MAX_HOST_CHARS:
        raise ValueError(f"{_shown(text)} is not an IPv6 address that a URL can name")
    import ipaddress

    try:
        return f"[{ipaddress.IPv6Address(text)}]"
    except ValueError:
        raise ValueError(f"{_shown(text)} is not an IPv6 address") from None


def _port(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(_PORT, text) or not 0 < int(text) < 65_536:
        raise ValueError(f"{_shown(text)} is not a port: it must be 1 to 65535")
    return int(text)


def _name(text: str) -> str:
    if not text:
        raise ValueError("the host is empty")
    if len(text) > MAX_HOST_CHARS + 1:  # the trailing dot
        raise ValueError(f"the host has {len(text)} characters; no name has over {MAX_HOST_CHARS}")
    name = text.lower()
    if not name.isascii():
        name = ".".join(_encoded(label) for label in re.split(_DOTS, name))
    name = name.removesuffix(".")
    if len(name) > MAX_HOST_CHARS or not all(map(_is_label, name.split("."))):
        raise ValueError(f"{_shown(text)} is not a host name")
    return name


def _encoded(label: str) -> str:
    """The `xn--` form. A label that the codec refuses keeps its own, which is still one key."""
    try:
        return label.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return label


def _is_label(text: str) -> bool:
    return re.fullmatch(_LABEL, text) is not None and not any(map(str.isspace, text))


def _shown(text: str) -> str:
    """Short and printable, for a message: what is wrong may be a megabyte long."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")
