"""One spelling for both sides: a URL's path and a rule's pattern are compared only after this.

Every octet outside ASCII is percent-encoded and hex digits are upper-case, in rules and in URLs
alike, so `/é`, `/%c3%a9` and `/%C3%A9` are one path. That is the *written* form, and it is all
that Google's matcher does (to rules; it expects URLs already encoded).

RFC 9309 §2.2.2 asks for more: `%61` is `a`, because a server serves the same page for both, and
§2.2.3 writes a literal `*` or `$` as `%2A` or `%24`. That is the *meant* form. `matching.py`
decides which of the two counts; this file does not know what a rule is.
"""

from __future__ import annotations

import re

# scheme and authority, then what a rule can match, then the fragment, which no server ever sees.
# The first match is the only one tried at each place, so the scan is linear.
_URL = re.compile(r"(?:[^/?;#]*://)?[^/?;#]*([^#]*)")
_TO_ENCODE = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")
# The escapes of RFC 3986's unreserved characters: letters, digits, - . _ ~
_NEEDLESS_ESCAPE = re.compile(r"%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)")


def path_of(url: str) -> str:
    """The path and query of an absolute URL, or of a path, in its written form.

    What starts with `/` is a path from end to end: `//a/b` names no host here.
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
    """A rule's value in its written form: ASCII, whatever the octets were."""
    if b"%" not in value and value.isascii():
        return value.decode("ascii")
    return _encode(value)


def meant_path(path: str) -> str:
    """A written path in its meant form; the very same object when nothing changes."""
    if "%" in path:
        path = _unescape(path)
    if "*" in path or "$" in path:
        path = path.replace("*", "%2A").replace("$", "%24")
    return path


def meant_pattern(pattern: str) -> str:
    """A written pattern in its meant form: `*`, and `$` at the end, keep their special sense."""
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
