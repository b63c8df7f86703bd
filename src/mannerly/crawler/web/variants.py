"""The variants of a page that a cache keeps apart: each is a request of its own.

    mobile                  as a phone: the User-Agent says so, after our name
    gzip, br, zstd, identity    the encoding that is accepted
    NAME: VALUE             any other header, such as Accept-Language: de

A variant is added to the plain request; it has one name, by which the report calls it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Headers: TypeAlias = tuple[tuple[str, str], ...]

PLAIN = "plain"
MOBILE = "mobile"
ENCODINGS = ("gzip", "br", "zstd", "identity")
FORM = f"{MOBILE}, {', '.join(ENCODINGS)}, or a header such as 'Accept-Language: de'"

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~]+)")
# They decide where a request goes, what it asks for, or who asks: no variant of a page.
_NOT_A_VARIANT = frozenset(
    {"host", "from", "content-length", "transfer-encoding", "connection", "upgrade", "te"}
    | {"expect", "range", "if-none-match", "if-modified-since", "authorization", "cache-control"}
    | {"pragma", "proxy-authorization"}
)


class Variant(NamedTuple):
    """One variant: its name, and the headers that ask for it."""

    name: str
    headers: Headers


def read_variant(text: str, user_agent: str) -> Variant:
    """Return the variant that a text names.

    Raises:
        ValueError: it names none; the message says what is allowed.
    """
    if text == MOBILE:
        name, _, rest = user_agent.partition(" ")
        agent = f"{name} (Linux; Android 14; Mobile) {rest}".strip()
        return Variant(text, (("User-Agent", agent),))
    if text in ENCODINGS:
        return Variant(text, (("Accept-Encoding", text),))
    header = _HEADER.fullmatch(text)
    if header is None or header[1].lower() in _NOT_A_VARIANT:
        raise ValueError(FORM)
    return Variant(text, ((header[1], header[2].strip()),))


def variants_of(texts: Iterable[str], user_agent: str) -> tuple[Variant, ...]:
    """Return the variants of each page in the order in which they are asked for.

    The plain one is the last, so that the record of a page is that of its plain answer.
    """
    named = (read_variant(text, user_agent) for text in dict.fromkeys(texts))
    return (*named, Variant(PLAIN, ()))
