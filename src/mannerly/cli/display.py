"""Text for a terminal as it can display it: glyphs, colours, columns.

A line is a list of pieces, each with a tone. Only glyphs, state words and the done part of a bar
have one, so everything reads the same without colour. `Display.line` turns pieces into text of at
most `columns - 1` columns: a line that wraps cannot be redrawn.

The tones keep a contrast of 3.5 on light and on dark grounds, so the ground is never asked for.
"""

from __future__ import annotations

import os
import shutil
import sys
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeAlias

from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESET = "\x1b[0m"


class Tone(Enum):
    """The meaning of a colour: the codes for 256 and for 16 colours."""

    GOING = "1;38;5;32", "1"
    WAITING = "1;38;5;130", "1;35"
    REFUSED = "1;38;5;167", "1;31"
    DONE = "1;38;5;29", "1"
    PLAIN = "1", "1"


Piece: TypeAlias = "str | tuple[str, Tone]"
Line: TypeAlias = "list[Piece]"

# Where the encoding is not UTF-8; the glyphs of hosts are in the table of their states.
_ASCII = {"◇": "?", "■": ".", "━": "#", "╸": "#", "─": "-", "…": "...", "–": "-", "→": "->"}


@cache
def _ascii() -> dict[int, str]:
    from mannerly.crawler.host_view import STATES  # rarely needed, and errors must show at once

    return str.maketrans(_ASCII | {row.glyph[0]: row.glyph[1] for row in STATES.values()})


class Display(NamedTuple):
    """The abilities of a terminal."""

    columns: int = 80
    rows: int = 24
    colors: int = 0  # 256, 16, or 0: none
    is_unicode: bool = True
    wraps: bool = False  # it breaks long lines wherever they reach the edge

    @property
    def is_wide(self) -> bool:
        """Return whether there is room for the longer forms."""
        return self.columns >= 100

    def line(self, pieces: Line) -> str:
        """Return one line, cut at the last column but one."""
        room = max(1, self.columns - 1)
        said = []
        for piece in pieces:
            text, tone = piece if isinstance(piece, tuple) else (piece, None)
            text = cut(self.spelled(text), room)
            room -= width(text)
            said.append(self.painted(text, tone) if text else "")
        return "".join(said).rstrip()

    def spelled(self, text: str) -> str:
        """Return text in characters that the terminal has."""
        return text if self.is_unicode or text.isascii() else text.translate(_ascii())

    def painted(self, text: str, tone: Tone | None) -> str:
        """Return text in a tone, where there are colours."""
        if tone is None or not self.colors:
            return text
        return f"\x1b[{tone.value[self.colors < 256]}m{text}{_RESET}"


def display_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Display:
    """Return what the terminal behind a stream can show, as its environment says."""
    size = shutil.get_terminal_size()
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
    return Display(
        size.columns,
        size.lines,
        _colors(stream, environment),
        encoding.startswith("utf8"),
        stream.isatty(),
    )


def _colors(stream: TextIO, environment: Mapping[str, str]) -> int:
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or term in ("", "dumb") or not stream.isatty():
        return 0
    return 256 if term.endswith("-256color") or environment.get("COLORTERM") else 16


def error_display() -> Display:
    """Return what the terminal behind stderr can show."""
    return display_of(sys.stderr)


# ---------------------------------------------------------------------- columns


def width(text: str) -> int:
    """Return the number of columns that a text takes: wide characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def cut(text: str, columns: int) -> str:
    """Return as much of a text as fits."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for each in text:
        used += width(each)
        if used > columns:
            break
        kept.append(each)
    return "".join(kept)


def short_host(host: str, columns: int) -> str:
    """Return a host that was cut in the middle; its registrable domain is kept if it fits."""
    host = safe_term(host)
    if len(host) <= columns:
        return host
    from mannerly.crawler.web.urls import site_of

    head = int(0.38 * (columns - 1))
    tail = min(columns - 2, max(columns - 1 - head, len(site_of(host)) + 1))
    return f"{host[: columns - 1 - tail]}…{host[-tail:]}"


def wrapped(label: str, parts: list[str], columns: int, *, gap: str = "   ") -> list[str]:
    """Return a label of 13 columns and parts that continue under themselves on further lines."""
    room, lines, line = max(20, columns - 1 - 15), list[str](), ""
    for part in parts:
        joined = f"{line}{gap}{part}" if line else part
        if line and width(joined) > room:
            lines.append(line)
            joined = part
        line = joined
    lines.append(line)
    return [
        f"  {label if number == 0 else '':<13}{each}".rstrip() for number, each in enumerate(lines)
    ]
