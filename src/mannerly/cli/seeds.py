"""Read the seeds of a crawl: URLs, files of URLs, standard input.

    https://example.com/a     a URL
    example.com/a             the same: without a scheme, https is used
    seeds.txt, seeds.txt.gz   one URL per line; blank lines and # comments are ignored
    -                         the same, from standard input

A name that could be both, such as a file called example.com, is refused: the working directory must
not decide what is crawled. Errors name the argument, or the file and the line; user names and
passwords are left out. Files are read within limits. Nothing is fetched here.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from mannerly.crawler.web.words import without_userinfo

from .config import LocalFileError, opened_regular
from .endings import resume_command
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 200_000_000  # of one file, decompressed: a few million URLs
MAX_LINE = 65_536  # bytes; no URL of this length is crawled
MAX_LINES = 5_000_000  # of one file, blank ones included
_COMMENT = re.compile(r"(?:^|\s+)#.*")  # a # without a space before it is part of its URL
STANDARD_INPUT = "standard input"
_GZIP = b"\x1f\x8b"
_FILE_SUFFIXES = (".txt", ".gz", ".csv", ".list", ".lst", ".urls", ".jsonl")
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+\.?(:\d+)?|localhost(:\d+)?")


class SeedError(ValueError):
    """An argument or a line that is not a usable seed."""


class SeedSource(NamedTuple):
    """The seeds of one argument; `file` is its name if they were read from a file."""

    urls: list[str]
    file: str | None = None
    is_bare: bool = False  # a name without a scheme, which might have been meant as a file


def read_sources(arguments: Iterable[str]) -> list[SeedSource]:
    """Return the canonical URLs of each argument.

    Raises:
        SeedError: one of them is neither a URL nor a readable file of URLs.
    """
    return [_read(argument) for argument in arguments]


def read_seeds(arguments: Iterable[str]) -> list[str]:
    """Return the canonical URLs of all arguments, each once, in order.

    Raises:
        SeedError: one of them is neither a URL nor a readable file of URLs.
    """
    return list(dict.fromkeys(url for source in read_sources(arguments) for url in source.urls))


def _read(argument: str) -> SeedSource:
    if argument == "-":
        return SeedSource(_urls(sys.stdin.buffer, STANDARD_INPUT), STANDARD_INPUT)
    path = Path(argument)
    is_there = os.path.exists(argument)  # noqa: PTH110 - Path.exists fails on long names
    if "://" in argument or not (_looks_like_a_file(argument) or is_there):
        return SeedSource([_seed(argument, _shown(argument))], is_bare="://" not in argument)
    name = safe_term(argument)
    if _HOST.fullmatch(argument) and not _looks_like_a_file(argument):
        raise SeedError(
            f"{name} may be a host or the file of this name in the working directory: "
            f"write https://{name}/ for the host, or ./{name} for the file"
        )
    try:
        with opened_regular(path) as file:
            return SeedSource(_urls(file, name), name)
    except FileNotFoundError:
        raise SeedError(
            f"file not found: {name}; if it is a host, write https:// before it"
        ) from None
    except IsADirectoryError:
        raise SeedError(
            f"{name} is a directory; to resume the crawl in it: {resume_command(name)}"
        ) from None
    except LocalFileError as error:
        raise SeedError(f"{name} {error}; to read URLs from a pipe, use -") from None


def _looks_like_a_file(argument: str) -> bool:
    return argument.startswith(("/", "./", "../", "~")) or argument.lower().endswith(_FILE_SUFFIXES)


def _urls(stream: BinaryIO, name: str) -> list[str]:
    """Return the URLs in a stream, each once."""
    buffered = io.BufferedReader(cast("io.RawIOBase", stream))
    try:
        if buffered.peek(2).startswith(_GZIP):
            with gzip.open(buffered) as unpacked:
                return list(dict.fromkeys(_lines(cast("BinaryIO", unpacked), name)))
        return list(dict.fromkeys(_lines(buffered, name)))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SeedError(f"{name} is not a gzip file: {error}") from error
    finally:
        buffered.detach()


def _lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """Yield the URLs of a text with one per line."""
    total = number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        total += len(line)
        if total > MAX_BYTES or number > MAX_LINES:
            limits = f"{MAX_BYTES:,} bytes or {MAX_LINES:,} lines"
            raise SeedError(f"{name} has more than {limits}: split it into several files")
        if len(line) > MAX_LINE:
            raise SeedError(f"{name}, line {number}, is longer than {MAX_LINE:,} bytes")
        if b"\0" in line:
            raise SeedError(f"{name} is not a text file: line {number} has a zero byte")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise SeedError(f"{name} is not UTF-8 text: line {number}, {error.reason}") from error
        text = _COMMENT.sub("", text)
        if text:
            yield _seed(text, f"{name}, line {number}: {_shown(text)}")


def _seed(text: str, where: str) -> str:
    from mannerly.crawler.web.urls import canonical

    if not text:
        raise SeedError("an empty argument is not a URL: write it like https://example.com/page")
    if text.isdigit():  # https://99 would be the address 0.0.0.99
        raise SeedError(f"{where} is a number, not a URL: write it like https://example.com/page")
    full = text if "://" in text else f"https://{text}"
    scheme, _, rest = full.partition("://")
    if scheme.lower() not in ("http", "https"):
        raise SeedError(f"{where} cannot be crawled: only http and https URLs can")
    if "@" in rest.replace("\\", "/").partition("/")[0]:
        raise SeedError(f"{where} has a user name, which would never be sent: leave it out")
    url = canonical(full)
    if url is None:
        raise SeedError(f"{where} is not a URL: write it like https://example.com/page")
    return url


def _shown(text: str) -> str:
    return safe_term(without_userinfo(text))
