"""Write the content of every page to a file of its own, and an index of them.

    pages/index.jsonl              one line a page: its record, and the name of its file
    pages/3f/3f0c….md              the content; the name is a digest of the URL

No part of a file name comes from a site, so no URL can lead out of the folder, name a device or be
too long. Files are put in place whole. A second export replaces the files of the first, and removes
those that its index does not name any more.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.web.content_form import Content

from .jsonl import write_jsonl
from .rows import page_row
from .target import ExportError
from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.crawler.model import PageRecord

    from .rows import Row

INDEX = "index.jsonl"
_NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{32}\.(html|txt|md)")
SUFFIXES = {Content.HTML: ".html", Content.TEXT: ".txt", Content.MARKDOWN: ".md"}


class _Line(msgspec.Struct):
    """A line of an index, as far as it is needed here."""

    file: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def write_folder(
    pages: Iterable[tuple[PageRecord, str | None]], folder: Path, form: Content
) -> tuple[int, int]:
    """Write contents and index; return the numbers of records and of files."""
    folder.mkdir(exist_ok=True)
    earlier = _earlier(folder)
    files = 0

    def rows() -> Iterator[Row]:
        nonlocal files
        for record, content in pages:
            row = page_row(record)
            row["file"] = None
            if content is not None:
                row["file"] = name = file_name(record.url, form)
                earlier.discard(name)
                _put(folder, name, content)
                files += 1
            yield row

    with whole_file(folder / INDEX) as index:
        records = write_jsonl(rows(), index)
    for name in earlier:
        with suppress(OSError):
            (folder / name).unlink()
    return records, files


def file_name(url: str, form: Content) -> str:
    """Return the name of a page's file in the folder."""
    digest = sha256(url.encode()).hexdigest()[:32]
    return f"{digest[:2]}/{digest}{SUFFIXES[form]}"


def _earlier(folder: Path) -> set[str]:
    """Return the files that the index of an earlier export names; only names that we give count."""
    found = set()
    with suppress(OSError), (folder / INDEX).open("rb") as lines:
        for line in lines:
            with suppress(msgspec.DecodeError):
                name = _decode(line).file
                if name and _NAME.fullmatch(name):
                    found.add(name)
    return found


def _put(folder: Path, name: str, content: str) -> None:
    path = folder / name
    if path.parent.is_symlink():
        raise ExportError(f"{path.parent} is a link: remove it, or choose another folder")
    path.parent.mkdir(exist_ok=True)
    with whole_file(path, sync=False) as file:
        file.write(content.encode("utf-8", "replace"))
