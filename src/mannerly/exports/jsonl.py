"""Write one JSON object per line, in UTF-8, with every field in every line.

U+2028, U+2029 and U+0085 are escaped: JSON allows them, but some readers end a line there. JSON
escapes the other control characters below U+0020 itself. For a terminal, everything that is not
printable is escaped, too: DEL, the C1 controls and marks that reverse the text.
"""

from __future__ import annotations

import json
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


def write_jsonl(rows: Iterable[Row], file: BinaryIO, *, for_terminal: bool = False) -> int:
    """Write the rows; return the number of rows."""
    encode = msgspec.json.Encoder().encode
    count = 0
    for row in rows:
        line = encode(row)
        if for_terminal:
            line = _printable(line.decode()).encode()
        elif not line.isascii():
            for end, escaped in _LINE_ENDS:
                line = line.replace(end, escaped)
        file.write(line + b"\n")
        count += 1
    return count


def _printable(text: str) -> str:
    """Return JSON whose text is the same, and which a terminal shows as it is."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
