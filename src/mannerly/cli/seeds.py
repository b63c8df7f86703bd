"""Read the seeds of a crawl: URLs, files of URLs, standard input.

    https://example.com/a     a URL
    example.com/a             the same: without a scheme, https is used
    seeds.txt, seeds.txt.gz   one URL per line; blank lines and # comments are ignored
    -                         the same, from standard input

Errors name the argument, or the file and the line. Nothing is fetched here.
"""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GZIP = b"\x1f\x8b"
_FILE_SUFFIXES = (".txt", ".gz", ".csv", ".list", ".lst", ".urls", ".jsonl")


class SeedError(ValueError):
    """An argument or a line that is not a usable seed."""


def read_seeds(arguments: Iterable[str]) -> list[str]:
    """Return the canonical URLs of all arguments, each once, in order.

    Raises:
        SeedError: one of them is neither a URL nor a readable file of URLs.
    """
    seeds: dict[str, None] = {}
    for argument in arguments:
        for text, where in _texts(argument):
            seeds[_seed(text, where)] = None
    return list(seeds)


def _texts(argument: str) -> Iterator[tuple[str, str]]:
    if argument == "-":
        yield from _lines(sys.stdin.buffer.read(), "standard input")
        return
    path = Path(argument)
    if "://" in argument or not (_looks_like_a_file(argument) or path.is_file()):
        yield argument, safe_term(argument)
        return
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise SeedError(
            f"file not found: {safe_term(argument)}; if it is a host, write https:// before it"
        ) from None
    except IsADirectoryError:
        raise SeedError(
            f"{safe_term(argument)} is a directory; to resume the crawl in it: "
            f"mannerly resume {safe_term(argument)}"
        ) from None
    yield from _lines(content, safe_term(argument))


def _looks_like_a_file(argument: str) -> bool:
    return argument.startswith(("/", "./", "../", "~")) or argument.lower().endswith(_FILE_SUFFIXES)


def _lines(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    try:
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError) as error:
        raise SeedError(f"{name} is not a gzip file: {error}") from error
    except UnicodeDecodeError as error:
        raise SeedError(f"{name} is not UTF-8 text: {error.reason}") from error
    for number, line in enumerate(io.StringIO(text), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield stripped, f"{name}, line {number}: {safe_term(stripped)}"


def _seed(text: str, where: str) -> str:
    from mannerly.crawler.web.urls import canonical

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
