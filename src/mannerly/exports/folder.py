"""Write the content of every page to a file of its own, and an index of them.

    pages/index.jsonl                                  a line for each page: its record and its file
    pages/docs-example-com/library-json-3f0c….md       the content, below its front matter

A name has the words of the URL and a digest of it. Only lower-case letters and digits of ASCII are
taken from a URL, some dozens of them, so none can lead out of the folder, name a device or be too
long; the digest tells two of the same words apart. Files are put in place whole. A second export
replaces the files of the first, and removes those that its index does not name any more.

A Markdown file begins with front matter in YAML, as generators of sites and notes read it: URL,
title, time and what else is known of the page.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING
from unicodedata import normalize
from urllib.parse import unquote

import msgspec

from mannerly.crawler.web.choices import Content

from .rows import page_row, write_jsonl
from .target import ExportError
from .whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.crawler.model import PageRecord

    from .rows import Row

INDEX = "index.jsonl"
_DIGEST = 16  # hexadecimal digits
_WORDS = 60  # characters
# Names that we give, and those that earlier versions gave.
_NAME = re.compile(
    rf"(?:[a-z0-9-]{{1,{_WORDS + 5}}}/[a-z0-9-]{{1,{_WORDS}}}-[0-9a-f]{{{_DIGEST}}}"
    r"|[0-9a-f]{2}/[0-9a-f]{32})\.(?:html|txt|md)"
)
_FRONT = ("title", "description", "lang", "status", "fetched_at", "last_modified", "canonical")
# What YAML takes for the end of a line, or not at all, inside of quotes.
_ESCAPED = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
}
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
                if form is Content.MARKDOWN:
                    content = front_matter(row) + content
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
    digest = sha256(url.encode()).hexdigest()[:_DIGEST]
    host, _, path = url.partition("://")[2].partition("/")
    words = _slug(re.sub(r"\.(?:html?|php|aspx?)(?=$|[?])", "", path)) or "index"
    site = _slug(host) or "site"
    if "-" not in site:  # `con` is a device on some systems
        site += "-host"
    return f"{site}/{words}-{digest}{SUFFIXES[form]}"


def front_matter(row: Row) -> str:
    """Return what is known of a page as YAML, between two lines of dashes."""
    lines = [f"url: {_quoted(str(row['url']))}"]
    for name in _FRONT:
        value = row.get(name)
        if value is not None:
            lines.append(f"{name}: {value if isinstance(value, int) else _quoted(str(value))}")
    return "\n".join(("---", *lines, "---", "", ""))


def _quoted(text: str) -> str:
    """Return a text as JSON writes it, which YAML reads, too."""
    clean = text.encode("utf-8", "replace").decode()
    return json.dumps(clean, ensure_ascii=False).translate(_ESCAPED)


def _slug(text: str) -> str:
    plain = normalize("NFKD", unquote(text)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_WORDS].strip("-")


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
