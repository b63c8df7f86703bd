"""The digest of a page's visible text: what is left of a page when its markup is taken away.

A page that is made anew for every visitor has other nonces, tokens and asset names in its tags and
scripts each time. Its text outside of tags, without scripts, styles, templates and comments and
without white space, is the same until its author changes it. So the digest of that text tells a
change from noise.

It takes a fifth of what a page costs in all, so a first crawl digests only pages that are made
anew for every answer: those whose server does not state when they were modified (`--text-digest`).
It is the same with and without the `pcre2` package.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

from .pcre import Substitution

if TYPE_CHECKING:
    from collections.abc import Callable

_MARKUP = rb"""<(?:
    !--(?:[^-]++|-(?!->))*+(?:-->)?+
    |(?:script\b(?:[^<]++|<(?!/script))*+|style\b(?:[^<]++|<(?!/style))*+
    |template\b(?:[^<]++|<(?!/template))*+)(?:</[^>]*+>?+)?+
    |[a-z/!?][^>]*+>?+
    )"""
_SPACE = b" \t\r\n\f"


def text_digest(body: bytes) -> str:
    """Return the digest of a page's visible text, hexadecimal."""
    return xxh3_128_hexdigest(_without_markup()(body).translate(None, _SPACE))


@cache
def _without_markup() -> Callable[[bytes], bytes]:
    plain = re.compile(_MARKUP, re.VERBOSE | re.IGNORECASE)
    fast = Substitution(_MARKUP, b"")

    def without_markup(body: bytes) -> bytes:
        found = fast(body)
        return plain.sub(b"", body) if found is None else found

    return without_markup
