"""Notes of the page that is being parsed, without a commit: it may end the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mannerly.crawler.store.sqlite.notes import ParsingNote

if TYPE_CHECKING:
    from pathlib import Path

    from .crawl import ValkeyCrawl


class ServerNote:
    """Tells the server which page is being parsed: for an owner without a data directory.

    Attributes:
        seq: of the last owner, if it died meanwhile; else 0.
    """

    def __init__(self, crawl: ValkeyCrawl, number: int, token: str) -> None:
        self._crawl, self._number, self._token = crawl, number, token
        self.seq = 0

    def write(self, seq: int) -> None:
        """Note a page; 0: none."""
        self._crawl.note(self._number, "parsing", seq, self._token)

    def close(self) -> None:
        """Do nothing: the note stays."""


class FileNote:
    """Notes it in a mapped file of the member, which costs nothing and outlives the process."""

    def __init__(self, folder: Path, number: int) -> None:
        self._note = ParsingNote(folder, number)
        self.seq = self._note.cell[0]

    def write(self, seq: int) -> None:
        """Note a page; 0: none."""
        self._note.cell[0] = seq

    def close(self) -> None:
        """Keep no note any more."""
        self._note.close()


Note: TypeAlias = ServerNote | FileNote
