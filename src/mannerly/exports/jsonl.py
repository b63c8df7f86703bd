"""Write one JSON object per line, in UTF-8, with every field in every line.

Characters that end a line for some readers (U+2028, U+2029, U+0085), control a terminal or change
the direction of text are escaped: JSON allows them, but the lines may be printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# In UTF-8: U+007F to U+009F, U+061C, U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F, U+FEFF.
_INVISIBLE = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf"
)


class Writable(Protocol):
    """A file that can be written to."""

    def write(self, data: bytes, /) -> object: ...


def write_jsonl(rows: Iterable[Mapping[str, object]], file: Writable) -> int:
    """Write the rows; return the number of rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in rows:
        line = encode(row)
        if not line.isascii() or b"\x7f" in line:
            line = _INVISIBLE.sub(_escaped, line)
        file.write(line + b"\n")
        count += 1
    return count


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(character[0].decode())
