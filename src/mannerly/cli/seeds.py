"""Read the seeds of a crawl: URLs, files of URLs, standard input; say what became of them.

    https://example.com/a     a URL
    example.com/a             the same: without a scheme, https is used
    seeds.txt, seeds.txt.gz   one URL per line; blank lines and # comments are ignored
    -                         the same, from standard input

A name that could be both, such as a file called example.com, is refused: the working directory must
not decide what is crawled. Errors name the argument, or the file and the line; user names and
passwords are left out. Files are read within limits. Nothing is fetched here.

Of seeds that could not be fetched or that lead elsewhere a summary says what to do about it.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shlex
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.web.words import many, without_userinfo

from .config import LocalFileError, opened_regular
from .display import width, wrapped
from .endings import resume_command
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mannerly.crawler.inspection.seeds import SeedAstray, SeedProblem

    from .display import Display


_SEEDS = 10  # that are named; the rest is one number
_URL = 200  # characters of one

_ADVICE = {
    "name_not_resolved": "Check the name, then run the same command again.",
    "connection_refused": "Check the port, and that the server runs; then run the same command "
    "again.",
    "robots": "The site's robots.txt forbids these pages to crawlers like this one. Start from a "
    "URL that it allows, or ask the owner of the site.",
    "401": "The page asks for a login.",
    "403": "The site refuses us. Perhaps the page needs a login, or the site wants to know who "
    "asks: --contact names you.",
    "404": "Check the URL, then run the same command again.",
    "robots_timeout": "No page is asked for before the robots.txt is known. Wait longer for it "
    "with --robots-timeout; --robots-unreachable allow goes on without it.",
    "blocked_address": "The name leads to a private address. If that is meant: --allow-net.",
}
_TLS = (
    "Check the host's certificate. --ca-file trusts another authority, --insecure-host skips the "
    "check for one host."
)
_LATER = "Run the same command again when the server answers."


def failed_seed_lines(problems: Sequence[SeedProblem], display: Display) -> list[str]:
    """Return each seed with its cause, then what to do."""
    lines = [line for problem in problems[:_SEEDS] for line in _named(problem, display)]
    if len(problems) > _SEEDS:
        lines.append(f"  and {many(len(problems) - _SEEDS, 'more seed')}")
    advice = dict.fromkeys(_advice(problem.code) for problem in problems)
    said = [line for each in advice for line in _paragraph(each, display)]
    return ["", *lines, "", *said]


def _named(problem: SeedProblem, display: Display) -> list[str]:
    """Return a seed and its cause; on a narrow terminal, the cause below it."""
    url, why = safe_term(problem.url, limit=_URL), safe_term(problem.cause)
    line = f"  {url}   {why}"
    fits = not display.wraps or width(line) < display.columns
    return [line] if fits else [f"  {url}", f"      {why}"]


def _advice(code: str) -> str:
    if code.startswith("tls"):
        return _TLS
    if code == "401":
        return f"{_ADVICE[code]} {_credentials()}".rstrip()
    return _ADVICE.get(code, _LATER)


def _credentials() -> str:
    """Return how to send credentials, as far as there are options for it."""
    flags = [OPTIONS[name].flag for name in ("auth", "header") if name in OPTIONS]
    return f"{' or '.join(flags)} sends credentials to its host." if flags else ""


def astray_lines(seeds: Sequence[SeedAstray], pages: str) -> tuple[str, list[str]]:
    """Return the headline for seeds that lead elsewhere, and the lines below it."""
    is_login = any(seed.is_login for seed in seeds)
    who = "the seed leads" if len(seeds) == 1 else "all seeds lead"
    where = "another host" if len(seeds) == 1 else "other hosts"
    if is_login:
        where = "a login page"
    elif all(seed.skipped for seed in seeds):
        where = "a page that was skipped" if len(seeds) == 1 else "pages that were skipped"
    lines = [""]
    for seed in seeds[:_SEEDS]:
        url, target = safe_term(seed.url, limit=_URL), safe_term(seed.target, limit=_URL)
        why = f"   {safe_term(seed.skipped)}" if seed.skipped else ""
        lines.append(f"  {url}  {seed.status} →  {target}{why}")
    if len(seeds) > _SEEDS:
        lines.append(f"  and {many(len(seeds) - _SEEDS, 'more seed')}")
    lines.append("")
    said = f": {pages}; {who} to {where}"
    return said, [*lines, *(_login() if is_login else _follow(seeds))]


def _login() -> list[str]:
    return [f"  Start from a page that needs no login. {_credentials()}".rstrip()]


def _follow(seeds: Sequence[SeedAstray]) -> list[str]:
    """Return the commands that follow: there alone, or both."""
    seeds = [seed for seed in seeds if not seed.skipped]
    if not seeds:
        return ["  Start from a page that may be fetched."]
    given = [shlex.quote(seed.url) for seed in seeds[:_SEEDS]]
    targets = [shlex.quote(seed.target) for seed in seeds[:_SEEDS]]
    there = f"  mannerly crawl {safe_term(' '.join(dict.fromkeys(targets)))}"
    both = f"  mannerly crawl {safe_term(' '.join(dict.fromkeys([*given, *targets])))}"
    return [f"{there}   # crawl there instead", f"{both}   # or both"]


def _paragraph(text: str, display: Display) -> list[str]:
    """Return a text as lines, indented by two."""
    indented = wrapped("", text.split(" "), display.columns + 13, gap=" ")
    return [f"  {line.strip()}" for line in indented]


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
