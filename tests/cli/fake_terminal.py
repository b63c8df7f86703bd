"""A terminal in memory: as much of one as the live view uses, with lines that wrap anew."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b\[(\??)(\d*(?:;\d+)*)([A-Za-z])")


class FakeTerminal:
    """Rows of text and a cursor. A narrower terminal wraps its lines, as most of them do."""

    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self._lines = [""]  # before wrapping
        self._row = self._column = 0  # of the cursor, in lines before wrapping

    @property
    def text(self) -> str:
        """What is on the screen, without the empty lines below."""
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n")

    def feed(self, data: str) -> None:
        """Take what a program has written."""
        at = 0
        while at < len(data):
            match = _SEQUENCE.match(data, at)
            if match is not None:
                self._obey(match)
                at = match.end()
            else:
                self._put(data[at])
                at += 1

    def resize(self, columns: int) -> None:
        """Wrap all lines at another width; the cursor stays behind the same character."""
        rows: list[str] = []
        for number, line in enumerate(self._lines):
            pieces = [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
            if number == self._row:
                row = len(rows) + min(len(pieces) - 1, self._column // columns)
                column = min(columns, self._column - (row - len(rows)) * columns)
            rows += pieces
        self.columns, self._lines, self._row, self._column = columns, rows, row, column

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._down()
        else:
            if self._column == self.columns:
                self._down()
                self._column = 0
            line = self._lines[self._row].ljust(self._column)
            self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append("")

    def _obey(self, match: re.Match[str]) -> None:
        private, numbers, command = match.groups()
        count = int(numbers or 1) if ";" not in numbers else 1
        line = self._lines[self._row]
        if private or command == "m":
            return
        if command == "A":
            self._row = max(0, self._row - count)
        elif command == "C":
            self._column = min(self.columns, self._column + count)
        elif command == "H":
            self._row = self._column = 0
        elif command == "K":
            self._lines[self._row] = line[: self._column]
        elif command == "J":
            self._lines[self._row] = line[: self._column]
            del self._lines[self._row + 1 :]
        else:
            raise AssertionError(f"unknown sequence: {match.group()!r}")
