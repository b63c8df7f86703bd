"""Normalise URL paths and rule patterns before they are compared.

In the *written* form every octet outside ASCII is percent-encoded and hex digits are upper-case,
so `/é`, `/%c3%a9` and `/%C3%A9` are one path. Google's matcher does only this (to rules; it expects
encoded URLs).

RFC 9309 §2.2.2 requires more: `%61` is `a`, because a server serves the same page for both, and in
§2.2.3 a literal `*` or `$` is written as `%2A` or `%24`. This is the *canonical* form. In it `%20`
is a space, too: the rule `/a b` is for the URL `/a%20b`.
`matching.py` decides which of the two counts.
"""

from __future__ import annotations

import re

# Scheme and authority, then the part that rules match, then the fragment, which is never sent.
# Only one start position is tried, so the time is linear.
_URL = re.compile(r"(?:[^/?;#]*://)?[^/?;#]*([^#]*)")
_TO_ENCODE = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")
# Escapes of characters without a meaning in URLs: the unreserved ones of RFC 3986 (letters, digits,
# - . _ ~), and those that URLs have to escape but authors of rules do not: space " < > \ ^ ` { | }
_NEEDLESS_ESCAPE = re.compile(r"%(?:2[02DE]|3[0-9CE]|[46][1-9A-F]|[57][0-9A]|5[CEF]|60|7[B-E])")


def path_of(url: str) -> str:
    """Return the path and query of an absolute URL, or of a path, in written form.

    Text that starts with `/` is a path: `//a/b` names no host here.
    """
    if url.startswith("/") and "#" not in url:
        path = url
    else:
        found = _URL.match(url)
        path = found[1] if found else ""
        if not path.startswith("/"):
            path = "/" + path
    if "%" not in path and path.isascii():
        return path
    return _encode(path.encode("utf-8", "surrogatepass"))


def pattern_of(value: bytes) -> str:
    """Return the value of a rule in written form, which is always ASCII."""
    if b"%" not in value and value.isascii():
        return value.decode("ascii")
    return _encode(value)


def canonical_path(path: str) -> str:
    """Return a written path in canonical form; the same object if nothing changes."""
    if "%" in path:
        path = _unescape(path)
    if "*" in path or "$" in path:
        path = path.replace("*", "%2A").replace("$", "%24")
    return path


def canonical_pattern(pattern: str) -> str:
    """Return a written pattern in canonical form: `*`, and `$` at the end, stay special."""
    if "%" in pattern:
        pattern = _unescape(pattern)
    if "$" in pattern:
        pattern = pattern[:-1].replace("$", "%24") + pattern[-1]
    return pattern


def _encode(octets: bytes) -> str:
    return _TO_ENCODE.sub(_encoded, octets.decode("latin-1"))


def _encoded(found: re.Match[str]) -> str:
    text = found[0]
    return text.upper() if len(text) > 1 else f"%{ord(text):02X}"


def _unescape(text: str) -> str:
    return _NEEDLESS_ESCAPE.sub(lambda found: chr(int(found[0][1:], 16)), text)
