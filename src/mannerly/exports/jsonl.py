"""Write one JSON object per line, in UTF-8, with every field in every line.

U+2028, U+2029 and U+0085 are escaped: JSON allows them, but some readers end a line there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rows import Row

_LINE_ENDS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


def write_jsonl(rows: Iterable[Row], file: BinaryIO) -> int:
    """Write the rows; return the number of rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in rows:
        line = encode(row)
        if not line.isascii():
            for end, escaped in _LINE_ENDS:
                line = line.replace(end, escaped)
        file.write(line + b"\n")
        count += 1
    return count
